//! Deletions sorted into requests: those of one device, no more than [`BATCH`] in each.

use super::learnt::ServerAddress;
use super::{CLOCKS_DIFFER, TOO_EARLY};
use crate::peer_failures::PeerFailures;
use peer::deletes::{OneDelete, encode, encode_check};
use placement::Device;
use std::collections::BTreeMap;
use vocabulary::PolicyIndex;

/// Objects in one request.
pub(super) const BATCH: usize = 128;

/// One of the replicas of a task's object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TaskReplica {
    pub(super) task: usize,
    pub(super) replica: usize,
}

/// A request on its way: for which device, and of which tasks.
pub(super) struct DeleteBatch {
    pub(super) server: ServerAddress,
    pub(super) device: String,
    pub(super) policy: PolicyIndex,
    /// Whether it asks only what the deletions would come to.
    pub(super) only_checks: bool,
    pub(super) replicas: Vec<TaskReplica>,
    pub(super) deletes: Vec<OneDelete>,
}

/// Where a deletion goes.
pub(super) struct BatchPlace {
    pub(super) server: ServerAddress,
    pub(super) device: String,
    pub(super) policy: PolicyIndex,
}

impl BatchPlace {
    pub(super) fn of(device: &Device, policy: PolicyIndex) -> Self {
        Self {
            server: server_of(device),
            device: device.device.clone(),
            policy,
        }
    }
}

pub(super) fn server_of(device: &Device) -> ServerAddress {
    (device.replication_ip.clone(), device.replication_port)
}

impl DeleteBatch {
    /// The question whether a server can check deletions, which empty lists are enough for.
    pub(super) fn question(place: BatchPlace) -> Self {
        Self::new(place, true, vec![])
    }

    fn new(place: BatchPlace, only_checks: bool, listed: Vec<(TaskReplica, OneDelete)>) -> Self {
        let (replicas, deletes) = listed.into_iter().unzip();
        let BatchPlace { server, device, policy } = place;
        Self {
            server,
            device,
            policy,
            only_checks,
            replicas,
            deletes,
        }
    }

    pub(super) fn body(&self) -> Vec<u8> {
        match self.only_checks {
            true => encode_check(&self.deletes),
            false => encode(&self.deletes),
        }
    }

    /// Says that by the clock of its server tasks are not due.
    pub(super) fn note_early(&self, statuses: impl Iterator<Item = u16>, failures: &PeerFailures) {
        let (ip, port) = &self.server;
        let early = statuses.zip(&self.deletes).filter(|(status, _)| *status == TOO_EARLY);
        for (_, delete) in early {
            let what = format!("{} on {}", delete.path.path(), self.device);
            failures.note_at(format!("{ip}:{port}"), what, CLOCKS_DIFFER.to_owned());
        }
    }
}

/// What is to be deleted on each device of a server: which replicas, and how.
#[derive(Default)]
pub(super) struct DeleteBatches(BTreeMap<(ServerAddress, String, PolicyIndex), Vec<(TaskReplica, OneDelete)>>);

impl DeleteBatches {
    pub(super) fn add(&mut self, place: BatchPlace, replica: TaskReplica, delete: OneDelete) {
        let key = (place.server, place.device, place.policy);
        self.0.entry(key).or_default().push((replica, delete));
    }

    /// What is in one partition goes together, for the server takes the lock of a partition once for a batch; the
    /// batches of one device are not next to each other.
    pub(super) fn all(self, only_checks: bool) -> Vec<DeleteBatch> {
        let mut in_turn = vec![];
        for ((server, device, policy), mut deletes) in self.0 {
            deletes.sort_by_key(|(_, delete)| delete.partition);
            let mut deletes = deletes.into_iter();
            for turn in 0_usize.. {
                let listed: Vec<_> = deletes.by_ref().take(BATCH).collect();
                if listed.is_empty() {
                    break;
                }
                let (server, device) = (server.clone(), device.clone());
                let place = BatchPlace { server, device, policy };
                in_turn.push((turn, DeleteBatch::new(place, only_checks, listed)));
            }
        }
        in_turn.sort_by_key(|(turn, _)| *turn);
        in_turn.into_iter().map(|(_, batch)| batch).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vocabulary::{EntityPath, Partition};

    #[test]
    fn batches_are_full_sorted_and_in_turn() {
        let mut batches = DeleteBatches::default();
        let on = |name: &str| {
            let device = Device {
                device: name.into(),
                ..Device::default()
            };
            BatchPlace::of(&device, PolicyIndex(0))
        };
        let delete = |partition| OneDelete {
            partition,
            path: EntityPath::account("a").with_container("c").with_object("o"),
            headers: vec![],
        };
        for task in 0..BATCH + 1 {
            let replica = |replica| TaskReplica { task, replica };
            batches.add(on("sda"), replica(0), delete(Partition(1000 - task as u32)));
            batches.add(on("sdb"), replica(1), delete(Partition(task as u32)));
        }
        let batches = batches.all(true);
        let sizes: Vec<_> = batches
            .iter()
            .map(|batch| (batch.device.as_str(), batch.replicas.len()))
            .collect();
        assert_eq!(sizes, [("sda", BATCH), ("sdb", BATCH), ("sda", 1), ("sdb", 1)]);
        assert_eq!((batches[0].replicas[0].task, batches[2].replicas[0].task), (BATCH, 0));
        assert!(batches[0].deletes.is_sorted_by_key(|delete| delete.partition));
    }
}
