//! Which partitions there are to look at, and in which order.
//!
//! Partitions of different devices take turns, so that no device has all the work at a time; handoffs come first when
//! the operator says so, and nothing else then before they are home. Partitions in which something has changed come
//! before those in which nothing has: what is new is soon where it belongs, and the device that has it offers it before
//! others offer what they have instead.

use super::local::Local;
use super::{NAME, Shared, is_growing};
use crate::local_server::LocalServer;
use object_engine::{ObjectEngine, PartitionKey};
use placement::Device;
use std::collections::VecDeque;
use vocabulary::Partition;

/// A partition of a device.
pub(super) struct PartitionTask {
    pub(super) local: Local,
    /// The device, as the ring has it.
    pub(super) own: Device,
    pub(super) key: PartitionKey,
    /// Of the ring by which it was found.
    pub(super) partition_count: u32,
    /// Whether the device is one of its primaries.
    pub(super) belongs_here: bool,
    /// Whether something has changed here since its suffixes were last hashed.
    pub(super) is_changed: bool,
}

/// What is left of a pass.
pub(super) struct TaskQueue {
    handoffs_first: bool,
    /// Handoffs that go before everything else, device by device.
    early: VecDeque<VecDeque<PartitionTask>>,
    changed: VecDeque<VecDeque<PartitionTask>>,
    rest: VecDeque<VecDeque<PartitionTask>>,
}

impl TaskQueue {
    pub(super) fn new(handoffs_first: bool) -> Self {
        Self {
            handoffs_first,
            early: VecDeque::new(),
            changed: VecDeque::new(),
            rest: VecDeque::new(),
        }
    }

    /// The tasks of a device.
    pub(super) fn add(&mut self, tasks: Vec<PartitionTask>) {
        let (early, others): (Vec<PartitionTask>, Vec<PartitionTask>) = tasks
            .into_iter()
            .partition(|task| self.handoffs_first && !task.belongs_here);
        let (changed, rest) = others.into_iter().partition(|task| task.is_changed);
        self.early.push_back(early.into());
        self.changed.push_back(changed);
        self.rest.push_back(rest);
    }

    /// With `handoffs_first`: leaves the partitions that belong here to another pass. How many they are.
    pub(super) fn put_off_all_but_handoffs(&mut self) -> usize {
        if !self.handoffs_first {
            return 0;
        }
        let others = self.changed.drain(..).chain(self.rest.drain(..));
        others.map(|tasks| tasks.len()).sum()
    }

    /// The next `count`, in turns.
    pub(super) fn take(&mut self, count: usize) -> Vec<PartitionTask> {
        let queues = [&mut self.early, &mut self.changed, &mut self.rest];
        let taken = queues.into_iter().map(|queues| take_turns(queues, count));
        taken.into_iter().find(|taken| !taken.is_empty()).unwrap_or_default()
    }
}

fn take_turns(queues: &mut VecDeque<VecDeque<PartitionTask>>, count: usize) -> Vec<PartitionTask> {
    let mut taken = vec![];
    while taken.len() < count
        && let Some(mut queue) = queues.pop_front()
    {
        if let Some(task) = queue.pop_front() {
            taken.push(task);
            queues.push_back(queue);
        }
    }
    taken
}

/// The partitions of a device, of all policies whose ring has it.
pub(super) async fn of_device(shared: &Shared, server: &LocalServer, local: &Local) -> Vec<PartitionTask> {
    let options = &shared.options;
    let mut tasks = vec![];
    for (&policy, ring) in &shared.ring_client.rings {
        if !options.policies.is_empty() && !options.policies.contains(&policy) {
            continue;
        }
        let ring = ring.load_full();
        if is_growing(&ring) {
            continue;
        }
        let Some(device) = server.device(&ring, &local.name).cloned() else {
            continue;
        };
        let known = ring.partition_count();
        let listing = move |engine: &dyn ObjectEngine| {
            let replica = engine.replica();
            replica.prepare(policy)?;
            let mut found = vec![];
            for partition in engine.partitions(policy)? {
                let key = PartitionKey { policy, partition };
                match replica.is_changed(key) {
                    Some(is_changed) => found.push((partition, is_changed)),
                    None if partition.0 >= known => found.push((partition, false)),
                    None => replica
                        .make_way(key)
                        .unwrap_or_else(|error| tracing::error!("{NAME}: {error}")),
                }
            }
            Ok(found)
        };
        let partitions = match local.run(listing).await {
            Ok(partitions) => partitions,
            Err(error) => {
                tracing::error!("{NAME}: device {}: {error}", local.name);
                continue;
            }
        };
        let chosen = |(partition, _): &(Partition, bool)| {
            options.partitions.is_empty() || options.partitions.contains(partition)
        };
        for (partition, is_changed) in partitions.into_iter().filter(chosen) {
            if partition.0 >= known {
                let directory = policy.directory("objects");
                let name = &local.name;
                tracing::warn!("{NAME}: {name}/{directory}/{partition} is no partition of the ring; left alone");
                continue;
            }
            let belongs_here = ring.primaries(partition).iter().any(|node| node.id == device.id);
            tasks.push(PartitionTask {
                local: local.clone(),
                own: device.clone(),
                key: PartitionKey { policy, partition },
                partition_count: known,
                belongs_here,
                is_changed,
            });
        }
    }
    tasks
}
