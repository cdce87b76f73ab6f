//! Small objects that have come whole, to be written together.
//!
//! Always holds: an object is in a batch once; a batch is bounded in objects and bytes.

use crate::put::put_batch;
use crate::replicate::PartitionAddress;
use crate::state::ObjectServerState;
use bytes::Bytes;
use http::{Method, StatusCode};
use peer::message::PutObject;
use std::collections::HashSet;
use std::sync::Arc;
use vocabulary::EntityPath;

/// Objects in a batch: from some dozens on a drive gains little more.
const MOST_OBJECTS: usize = 128;
/// Bytes of their headers and bodies.
const MOST_BYTES: usize = 2 << 20;

/// Small objects that have come whole.
#[derive(Default)]
pub(super) struct PutBatch {
    puts: Vec<(PutObject, Bytes)>,
    paths: Vec<Arc<EntityPath>>,
    objects: HashSet<Arc<EntityPath>>,
    bytes: usize,
}

impl PutBatch {
    pub(super) fn is_empty(&self) -> bool {
        self.puts.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.puts.len() >= MOST_OBJECTS || self.bytes >= MOST_BYTES
    }

    pub(super) fn has(&self, object: &EntityPath) -> bool {
        self.objects.contains(object)
    }

    /// Headers of `head` bytes, and the body.
    pub(super) fn add(&mut self, path: Arc<EntityPath>, message: PutObject, body: Bytes, head: usize) {
        self.bytes += head + body.len();
        self.objects.insert(path.clone());
        self.paths.push(path);
        self.puts.push((message, body));
    }

    /// The objects, and the work that writes them and says how many it has written.
    pub(super) fn work(
        self,
        state: &Arc<ObjectServerState>,
        place: &PartitionAddress,
    ) -> (Vec<Arc<EntityPath>>, impl Future<Output = usize> + Send + 'static) {
        let (state, place, paths) = (state.clone(), place.clone(), self.paths.clone());
        let work = async move {
            let statuses = put_batch(&state, &place.device, self.puts).await;
            let done = statuses.iter().zip(&self.paths);
            done.filter(|(status, path)| is_done(&place, **status, &Method::PUT, path))
                .count()
        };
        (paths, work)
    }
}

/// Whether a request was done, or was superfluous.
pub(super) fn is_done(place: &PartitionAddress, status: StatusCode, method: &Method, path: &EntityPath) -> bool {
    match status {
        StatusCode::NOT_FOUND | StatusCode::CONFLICT => true,
        status if status.is_success() => true,
        status => {
            let PartitionAddress { device, key, .. } = place;
            let (partition, path) = (key.partition, path.quoted());
            tracing::warn!("ssync receiver ({device}/{partition}): subrequest failed with {status}: {method} {path}");
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use peer::Target;

    #[test]
    fn headers_fill_a_batch_as_bodies_do() {
        let mut batch = PutBatch::default();
        for name in ["one", "two"] {
            assert!(!batch.is_full());
            let path = Arc::new(EntityPath::account("a").with_container("c").with_object(name));
            let target = Target {
                device: "sda".into(),
                partition: vocabulary::Partition(1),
                path: path.clone(),
            };
            batch.add(path, PutObject::new(target), Bytes::new(), MOST_BYTES / 2);
        }
        assert!(batch.is_full());
    }
}
