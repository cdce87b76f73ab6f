//! What all work on a database uses.

use super::DatabaseReplicatorOptions;
use crate::peer_failures::PeerFailures;
use crate::ring_client::RingClient;
use crate::rsync::DatabaseRsync;
use listing_engine::{Broker, Kind, ReplicationInfo};
use std::sync::Arc;
use std::time::Duration;
use vocabulary::Timestamp;
use world::World;

/// What stays the same during all work.
pub(super) struct Context {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) world: World,
    pub(super) ring_client: RingClient,
    pub(super) options: DatabaseReplicatorOptions,
    pub(super) rsync: DatabaseRsync,
    pub(super) peer_failures: PeerFailures,
}

/// A database that was found, and what it said of itself.
#[derive(Clone)]
pub(super) struct FoundDatabase {
    pub(super) broker: Arc<Broker>,
    pub(super) info: ReplicationInfo,
    pub(super) state: &'static str,
}

impl Context {
    /// The time since then.
    pub(super) fn since(&self, began: Duration) -> Duration {
        self.world.clock.elapsed().saturating_sub(began)
    }

    /// So long ago.
    pub(super) fn before(&self, age: Duration) -> Timestamp {
        let now = self.world.clock.now().seconds();
        Timestamp::from_seconds(now.saturating_sub(age.as_secs()))
    }

    /// Since when deleted things, and replicas that have not been heard of, are remembered.
    pub(super) fn ages(&self) -> (Timestamp, Timestamp) {
        let now = self.world.clock.now();
        let micros = |age: Duration| u64::try_from(age.as_micros()).unwrap_or(u64::MAX);
        let ago = |age: Duration| Timestamp::from_micros(as_micros(now).saturating_sub(micros(age)));
        let age = self.options.reclaim_age;
        (ago(age), ago(age.saturating_mul(2)))
    }
}

fn as_micros(time: Timestamp) -> u64 {
    time.ticks().saturating_mul(10)
}
