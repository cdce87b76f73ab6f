//! What there is of a partition, as it is offered to others.
//!
//! POSTs whose body is not here (it was moved away while they came, or lost) are offered as those of a body from the
//! beginning of time: a server that has a body older than they are wishes for them, one that has something newer wishes
//! for nothing, and one that has nothing wishes in vain. OpenStack's replicator does not offer them, and its handoffs
//! keep them and their partition.

use super::local::Local;
use object_engine::{EngineError, ObjectEngine, PartitionKey, Versions};
use peer::ssync::Offer;
use std::collections::BTreeMap;
use vocabulary::{Fault, PathHash, Timestamp};

/// Objects by hash, with when their parts were written.
pub(super) type Objects = BTreeMap<PathHash, Versions>;

/// Suffixes that are listed in one go: others wait for the device meanwhile.
const AT_A_TIME: usize = 32;

impl Local {
    /// The objects under these suffixes that are needed.
    pub(super) async fn objects(
        &self,
        key: PartitionKey,
        suffixes: &[String],
        horizon: Timestamp,
    ) -> Result<Objects, Fault> {
        let mut objects = Objects::new();
        for some in suffixes.chunks(AT_A_TIME) {
            let some = some.to_vec();
            let look = move |engine: &dyn ObjectEngine| {
                let under = some.iter().map(|suffix| engine.replica().versions_under(key, suffix));
                under.collect::<Result<Vec<_>, _>>()
            };
            let found = self.run(look).await?.into_iter().flatten();
            objects.extend(found.filter(|(_, versions)| is_needed(versions, horizon)));
        }
        Ok(objects)
    }

    /// Forgets what others hold; how many objects could not be forgotten since they have changed.
    pub(super) async fn forget(&self, key: PartitionKey, objects: Objects) -> Result<usize, Fault> {
        let forgetting = move |engine: &dyn ObjectEngine| {
            let mut kept = 0;
            for (hash, versions) in &objects {
                kept += usize::from(!engine.replica().forget(key, *hash, versions)?);
            }
            Ok::<usize, EngineError>(kept)
        };
        self.run(forgetting).await
    }
}

/// Tombstones and POSTs without a body from before `horizon` are not.
pub(super) fn is_needed(versions: &Versions, horizon: Timestamp) -> bool {
    match versions.is_lone() {
        true => versions.meta >= Some(horizon),
        false => !versions.deleted || versions.data >= horizon,
    }
}

pub(super) fn offer(hash: PathHash, versions: &Versions) -> Offer {
    Offer {
        hash,
        data: versions.data,
        deleted: versions.deleted,
        meta: versions.meta.unwrap_or(versions.data),
        content_type: versions.content_type.unwrap_or(versions.data),
        durable: true,
    }
}
