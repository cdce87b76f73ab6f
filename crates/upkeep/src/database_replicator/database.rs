//! One database: looked at, brought to its other replicas, and removed where it does not belong.

use super::context::{Context, FoundDatabase};
use super::figures::Figures;
use super::misplaced;
use super::push::{Push, Pushed};
use crate::database_stamp::DatabaseStamp;
use crate::open_device::OpenDevice;
use listing_engine::{Broker, Error, Location};
use placement::{Device, Ring};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use vocabulary::{Partition, PathHash, Timestamp};

/// Devices that stand in for those that are out of service, at most.
const STAND_INS: usize = 3;

/// A device of this server, and what it is in the ring.
#[derive(Clone)]
pub(crate) struct ReplicatedDevice {
    pub(super) open: OpenDevice,
    pub(super) id: u32,
    pub(super) region: u32,
}

/// A database that was level with all its replicas.
#[derive(Clone, Copy)]
pub(super) struct LevelDatabase {
    stamp: u64,
    /// When it was compared.
    at: Duration,
}

/// What came of a database.
pub(crate) struct DatabaseOutcome {
    pub(super) figures: Figures,
    pub(super) took: Duration,
    pub(super) level: Option<(PathHash, LevelDatabase)>,
}

/// What a look at a database showed.
enum Look {
    /// There is none, or not any more.
    Nothing,
    /// As it was when it was level with all others.
    Level,
    /// It was deleted long ago, and is gone now.
    Removed,
    Found(Box<FoundDatabase>),
}

impl Context {
    pub(super) async fn attend(
        &self,
        device: &ReplicatedDevice,
        location: Location,
        known: Option<LevelDatabase>,
    ) -> DatabaseOutcome {
        let (hash, partition) = (location.hash(), location.partition());
        let began = self.world.clock.elapsed();
        let ages = self.ages();
        let (world, trust) = (self.world.clone(), self.options.trust);
        let looked = device.open.run(move || {
            let stamp = DatabaseStamp::of(&world, &location);
            let trusted = known.filter(|known| began.saturating_sub(known.at) < trust);
            match (stamp, trusted) {
                (Some(stamp), Some(known)) if stamp.value == known.stamp => Ok((None, Look::Level)),
                _ => Ok::<_, Error>((stamp, look(location, ages)?)),
            }
        });
        let figures = match looked.await {
            None => self.unreadable(partition),
            Some((_, Look::Nothing)) => Figures::default(),
            Some((_, Look::Level)) => {
                return DatabaseOutcome {
                    figures: Figures::default(),
                    took: Duration::ZERO,
                    level: known.map(|known| (hash, known)),
                };
            }
            Some((_, Look::Removed)) => Figures {
                attempted: 1,
                remove: 1,
                ..Figures::default()
            },
            Some((stamp, Look::Found(found))) => {
                let (figures, at_home) = self.replicate(device, *found).await;
                let stamp = stamp.and_then(DatabaseStamp::trusted);
                let stamp = stamp.filter(|_| at_home && figures.changed_nothing());
                let level = stamp.map(|stamp| (hash, LevelDatabase { stamp, at: began }));
                return DatabaseOutcome {
                    figures,
                    took: self.since(began),
                    level,
                };
            }
        };
        DatabaseOutcome {
            figures,
            took: self.since(began),
            level: None,
        }
    }

    /// Of a database that cannot be read: no replica has been brought anything of it.
    fn unreadable(&self, partition: Partition) -> Figures {
        let ring = self.ring_client.ring.load_full();
        let mut figures = Figures {
            attempted: 1,
            left: 1,
            failure: 1,
            ..Figures::default()
        };
        if partition.0 < ring.partition_count() {
            ring.primaries(partition)
                .into_iter()
                .for_each(|node| figures.lacks(node));
        }
        figures
    }

    /// Also whether it belongs where it is.
    async fn replicate(&self, device: &ReplicatedDevice, found: FoundDatabase) -> (Figures, bool) {
        let ring = self.ring_client.ring.load_full();
        let info = &found.info.info;
        let hash = match &info.container {
            None => self.ring_client.hash.account(&info.account),
            Some(container) => self.ring_client.hash.container(&info.account, container),
        };
        let (partition, lies_in) = (ring.partition_of(&hash.0), found.broker.location().partition());
        if partition != lies_in {
            let file = found.broker.location().db_file();
            tracing::error!(
                "{}: found {} when it should be on partition {partition}; will replicate out and remove",
                self.name,
                file.display()
            );
        }
        let primaries = ring.primaries(partition);
        let at_home = partition == lies_in && primaries.iter().any(|primary| primary.id == device.id);
        let mut push = Push {
            context: self,
            device: &device.open,
            region: Some(device.region),
            partition,
            found,
            overtaken: false,
            figures: Figures {
                attempted: 1,
                ..Figures::default()
            },
        };
        let others = others(&primaries, device.id, partition == lies_in);
        let (reached, all) = push_to_all(&mut push, &ring, partition, &others, device.id).await;
        let level = (reached + usize::from(at_home)) * 2 > primaries.len();
        misplaced::enqueue(self, &device.open, &push.found, level).await;
        let broker = push.found.broker.clone();
        // What fails has been logged.
        let _ = device.open.run(move || broker.keep_sync_link()).await;
        let enough = match self.options.handoff_delete {
            Some(count) => reached >= count,
            None => reached == all && all > 0,
        };
        if !at_home && enough && !push.overtaken {
            let (broker, seen) = (push.found.broker.clone(), push.found.info.summary.clone());
            let removed = device.open.run(move || broker.remove_if_unchanged(&seen)).await;
            push.figures.remove += u64::from(removed == Some(true));
        }
        let mut figures = push.figures;
        figures.success += reached as u64;
        figures.failure += (all - reached) as u64;
        figures.left += u64::from(reached < all);
        (figures, at_home)
    }
}

/// Whom a replica is to be brought to: all other primaries, those behind it in the ring's order first, so
/// that replicas that begin at the same time do not all begin with the same one.
fn others<'r>(primaries: &[&'r Device], id: u32, right_partition: bool) -> Vec<&'r Device> {
    match primaries.iter().position(|device| device.id == id) {
        Some(at) if right_partition => primaries[at + 1..].iter().chain(&primaries[..at]).copied().collect(),
        _ => primaries.to_vec(),
    }
}

/// How many of how many have it now.
async fn push_to_all(
    push: &mut Push<'_>,
    ring: &Ring,
    partition: Partition,
    others: &[&Device],
    own: u32,
) -> (usize, usize) {
    let mut stand_ins = ring
        .handoffs(partition)
        .filter(|device| device.id != own)
        .take(STAND_INS);
    let mut waiting: VecDeque<&Device> = others.iter().copied().collect();
    let (mut reached, mut asked) = (0, 0);
    while let Some(node) = waiting.pop_front() {
        asked += 1;
        match push.to(node).await {
            Pushed::Done => reached += 1,
            Pushed::Failed => {}
            Pushed::NoDevice => waiting.extend(stand_ins.next()),
        }
    }
    (reached, asked)
}

/// Forgets what is old, and says what there is.
fn look(location: Location, (before, silent): (Timestamp, Timestamp)) -> Result<Look, Error> {
    let found = match open(location.clone(), before, silent) {
        // Gone meanwhile, or a directory without a database (yet).
        Err(Error::NotFound { .. }) => return location.remove_if_unmade().map(|_| Look::Nothing),
        other => other?,
    };
    let info = &found.info.info;
    let is_reported = info.container.is_none()
        || (
            info.put_timestamp,
            info.delete_timestamp,
            info.object_count,
            info.bytes_used,
        ) == (
            info.reported_put_timestamp,
            info.reported_delete_timestamp,
            info.reported_object_count,
            info.reported_bytes_used,
        );
    let forgotten =
        info.is_deleted() && info.delete_timestamp < before && found.broker.is_empty()? && found.broker.is_deleted()?;
    match forgotten && found.state == "unsharded" {
        true if is_reported && found.broker.remove_if_unchanged(&found.info.summary)? => Ok(Look::Removed),
        // Its account must know first; no other server needs to.
        true => Ok(Look::Nothing),
        false => Ok(Look::Found(Box::new(found))),
    }
}

fn open(location: Location, before: Timestamp, silent: Timestamp) -> Result<FoundDatabase, Error> {
    let broker = Broker::open(location)?;
    broker.reclaim(before, silent)?;
    Ok(FoundDatabase {
        info: broker.replication_info()?,
        state: broker.sharding_state()?,
        broker: Arc::new(broker),
    })
}
