//! The replicas of a container, read from their databases.

use super::names::{ACCOUNT, NewestRows, container};
use crate::cluster::SimCluster;
use crate::disk::MOUNTS;
use crate::history::Violation;
use crate::topology::{DRIVE, address};
use listing_engine::{Broker, DeviceRoot, Error, Kind, Location, Metadata, Row};
use std::collections::BTreeMap;
use std::sync::Arc;
use vocabulary::{Partition, Timestamp};
use world::files::FileSystem;

/// More rows than any run makes.
const MANY: usize = 100_000;

/// One replica. Equal replicas are equal here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DatabaseReplica {
    pub(super) put: Timestamp,
    pub(super) deleted: Timestamp,
    created: Timestamp,
    hash: String,
    pub(super) rows: NewestRows,
    pub(super) metadata: BTreeMap<String, (String, Timestamp)>,
}

/// Why a container's replicas are not as they have to be in the end.
#[derive(Debug)]
pub(super) enum ReplicaError {
    /// They differ, or one is where it does not belong, which replication may mend.
    NotLevel(String),
    /// One cannot be read or contradicts itself, which nothing mends.
    Broken(Violation),
}

impl ReplicaError {
    /// When nothing will mend it any more.
    pub(super) fn into_violation(self) -> Violation {
        match self {
            Self::NotLevel(why) => Violation(why),
            Self::Broken(violation) => violation,
        }
    }
}

impl From<Violation> for ReplicaError {
    fn from(violation: Violation) -> Self {
        Self::Broken(violation)
    }
}

/// Why a database cannot be taken for a replica.
enum ContentError {
    /// It cannot be read.
    Engine(Error),
    /// It contradicts itself.
    Contradiction(String),
}

impl From<Error> for ContentError {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

/// Where a container belongs now: by node, whether it should be there.
pub(super) fn homes(cluster: &SimCluster, number: usize) -> (Partition, Vec<bool>) {
    let ring = cluster.topology.listings.load_full();
    let hash = cluster.topology.hash.container(ACCOUNT, &container(number));
    let partition = ring.partition_of(&hash.0);
    let primaries = ring.primaries(partition);
    let is_home = |node| primaries.iter().any(|device| device.ip == address(node));
    (partition, (0..cluster.nodes.len()).map(is_home).collect())
}

/// What a node has of a container.
pub(super) fn read(cluster: &SimCluster, node: usize, number: usize) -> Result<Option<DatabaseReplica>, Violation> {
    let files: Arc<dyn FileSystem> = Arc::new(cluster.nodes[node].files.clone());
    let hash = cluster.topology.hash.container(ACCOUNT, &container(number));
    let partition = cluster.topology.listings.load().partition_of(&hash.0);
    let root = DeviceRoot::new(format!("{MOUNTS}/{DRIVE}"), true).on(&files);
    let place = Location::new(root, Kind::Container, partition, hash);
    let content = Broker::open(place).map_err(ContentError::from);
    match content.and_then(|broker| replica_in(&broker)) {
        Ok(replica) => Ok(Some(replica)),
        Err(ContentError::Engine(Error::NotFound { .. })) => Ok(None),
        Err(ContentError::Engine(error)) => Err(Violation(format!("node {node}: {error}"))),
        Err(ContentError::Contradiction(why)) => Err(Violation(format!("node {node}, container {number}: {why}"))),
    }
}

/// The replica in a database that does not contradict itself.
fn replica_in(broker: &Broker) -> Result<DatabaseReplica, ContentError> {
    let known = broker.replication_info()?;
    let rows = broker.rows_since(-1, MANY)?;
    let count = rows.len();
    let rows: NewestRows = rows
        .into_iter()
        .filter_map(|numbered| match numbered.row {
            Row::Object(row) => Some((row.name.clone(), row)),
            Row::Container(_) => None,
        })
        .collect();
    let metadata = Metadata::from_json(&known.summary.metadata).unwrap_or_default();
    let items = metadata
        .iter()
        .map(|(name, item)| (name.to_owned(), (item.value.clone(), item.timestamp)));
    let there = rows.values().filter(|row| !row.deleted);
    let sums = there.fold((0, 0), |(count, bytes), row| (count + 1, bytes + row.size));
    let counters = (known.info.object_count, known.info.bytes_used);
    if count != rows.len() {
        let why = format!("{count} rows of {} names", rows.len());
        return Err(ContentError::Contradiction(why));
    }
    if sums != counters {
        let why = format!("its counters are {counters:?}, its rows come to {sums:?}");
        return Err(ContentError::Contradiction(why));
    }
    Ok(DatabaseReplica {
        put: known.summary.put_timestamp,
        deleted: known.summary.delete_timestamp,
        created: known.summary.created_at,
        hash: known.summary.hash,
        metadata: items.collect(),
        rows,
    })
}

/// What all replicas are, if they are where they belong and equal.
pub(super) fn level(cluster: &SimCluster, number: usize) -> Result<Option<DatabaseReplica>, ReplicaError> {
    let (_, homes) = homes(cluster, number);
    let mut all = vec![];
    for (node, home) in homes.into_iter().enumerate() {
        match (read(cluster, node, number)?, home) {
            (found, true) => all.push((node, found)),
            (Some(_), false) => {
                let why = format!("node {node} has container {number} and should not");
                return Err(ReplicaError::NotLevel(why));
            }
            (None, false) => {}
        }
    }
    let first = all.first().and_then(|(_, found)| found.clone());
    match all.iter().find(|(_, found)| *found != first) {
        None => Ok(first),
        Some((node, found)) => Err(ReplicaError::NotLevel(format!(
            "container {number} is not the same everywhere: node {} has {first:?}, node {node} {found:?}",
            all[0].0
        ))),
    }
}
