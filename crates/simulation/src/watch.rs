//! What a replicator may take away: the copy of an object on a node that is none of its primaries, and that
//! only when each of them has it, safe from a loss of power. On a drive that has given errors it has to be there: after
//! a sync that failed no more can be known.

use crate::cluster::SimCluster;
use crate::disk::SimFiles;
use crate::pool::Census;
use crate::topology::{Topology, address};
use object_engine::rules::{FileName, choose};
use parking_lot::Mutex;
use placement::Ring;
use std::collections::BTreeMap;
use std::sync::Arc;
use vocabulary::{Partition, Timestamp};

/// Partitions are below it; what is in quarantine is not.
pub(crate) const OBJECTS: &str = "/srv/d/objects/";

/// By partition and hash.
type ObjectCopies = BTreeMap<(u32, String), ObjectCopy>;

/// What there is of an object.
#[derive(Debug, Clone)]
struct ObjectCopy {
    /// The PUT, or the DELETE.
    ruler: Timestamp,
    deleted: bool,
    /// The newest POST included.
    newest: Timestamp,
}

impl ObjectCopy {
    /// Whether nothing is lost without `other`. A deletion ends what a POST said.
    fn covers(&self, other: &Self) -> bool {
        self.ruler >= other.ruler && (self.deleted || self.newest >= other.newest)
    }
}

/// Looks over the shoulder of a node's replicator.
pub(crate) struct HandoffWatch {
    number: usize,
    nodes: Vec<SimFiles>,
    topology: Arc<Topology>,
    unlucky: usize,
    census: Arc<Mutex<Census>>,
}

/// What a node holds for others, by a ring.
pub(crate) struct HeldCopies {
    ring: Arc<Ring>,
    copies: ObjectCopies,
}

impl HandoffWatch {
    pub(crate) fn new(cluster: &SimCluster, number: usize) -> Self {
        Self {
            number,
            nodes: cluster.nodes.iter().map(|node| node.files.clone()).collect(),
            topology: cluster.topology.clone(),
            unlucky: cluster.config.unlucky,
            census: cluster.census.clone(),
        }
    }

    /// What the node holds for others.
    pub(crate) fn handoffs(&self) -> HeldCopies {
        let ring = self.topology.objects.load_full();
        let here = address(self.number);
        let mut copies = copies(self.nodes[self.number].all_files());
        copies.retain(|(partition, _), _| {
            ring.primaries(Partition(*partition))
                .iter()
                .all(|device| device.ip != here)
        });
        HeldCopies { ring, copies }
    }

    /// Takes note of what is gone since and should not be.
    pub(crate) fn compare(&self, before: HeldCopies) {
        let now = self.handoffs();
        let gone = |(key, _): &(_, _)| !now.copies.contains_key(key);
        let gone: ObjectCopies = before.copies.into_iter().filter(gone).collect();
        // Its drive may have been replaced, or others than before may have to have it.
        if gone.is_empty() || self.number == self.unlucky || !Arc::ptr_eq(&before.ring, &now.ring) {
            return;
        }
        let safe = |files: &SimFiles| match files.has_erred() {
            true => copies(files.all_files()),
            false => copies(files.safe_files()),
        };
        let safe: Vec<ObjectCopies> = self.nodes.iter().map(safe).collect();
        for (key, copy) in gone {
            for device in now.ring.primaries(Partition(key.0)) {
                let holder = (0..self.nodes.len()).find(|number| address(*number) == device.ip);
                let Some(holder) = holder.filter(|holder| *holder != self.unlucky) else {
                    continue;
                };
                if safe[holder].get(&key).is_none_or(|safe| !safe.covers(&copy)) {
                    let finding = format!(
                        "node {} gave up {} of {}, and node {holder} has it not",
                        self.number, key.1, copy.newest
                    );
                    self.census.lock().given_up.push(finding);
                }
            }
        }
    }
}

/// Names of files by partition and hash.
fn files_of_objects(files: Vec<String>) -> BTreeMap<(u32, String), Vec<FileName>> {
    let mut objects: BTreeMap<_, Vec<FileName>> = BTreeMap::new();
    for file in files {
        let Some(rest) = file.strip_prefix(OBJECTS) else {
            continue;
        };
        let [partition, _, hash, name] = rest.split('/').collect::<Vec<_>>()[..] else {
            continue;
        };
        if let (Ok(partition), Ok(name)) = (partition.parse(), name.parse()) {
            objects.entry((partition, hash.to_owned())).or_default().push(name);
        }
    }
    objects
}

/// Only files that count, as readers count them.
fn copies(files: Vec<String>) -> ObjectCopies {
    let newest = |(key, names): (_, Vec<FileName>)| {
        let choice = choose(&names);
        let counting = [choice.data, choice.meta, choice.content_type, choice.tombstone];
        let newest = counting.into_iter().flatten().map(|at| names[at].timestamp).max()?;
        let ruler = names[choice.data.or(choice.tombstone)?].timestamp;
        let deleted = choice.data.is_none();
        Some((key, ObjectCopy { ruler, deleted, newest }))
    };
    files_of_objects(files).into_iter().filter_map(newest).collect()
}

/// Whether a node has the remains of an object: a POST without what it was about. A loss of power may leave
/// that of a copy that was given up; replication neither takes nor removes it.
pub(crate) fn has_remains(files: &SimFiles) -> bool {
    let all = files.all_files();
    files_of_objects(all.clone()).len() > copies(all).len()
}
