//! Gateways and object servers: they ask each replica of a container by itself, and report each reply to the run.

use super::history::{ContainerVerb, ContainerWrite};
use super::names::{ACCOUNT, container, etag, header_name, object};
use crate::cluster::SimCluster;
use crate::topology::{LISTINGS, address};
use http::HeaderMap;
use http::header::HeaderValue;
use parking_lot::Mutex;
use peer::message::{
    DeleteContainer, Message, PostContainer, PutContainer, RequestContext, RowChange, UpdateContainer,
};
use peer::{Call, Target, Timeouts};
use placement::Device;
use std::sync::Arc;
use std::time::Duration;
use vocabulary::{EntityPath, Partition, PolicyIndex};

pub(super) const TIMEOUTS: Timeouts = Timeouts {
    connect: Duration::from_millis(500),
    response: Duration::from_secs(10),
};

/// Number of the write, node, status.
pub(super) type ContainerReplies = Arc<Mutex<Vec<(usize, usize, u16)>>>;

/// So many of 100 replicas are not reached, and of a node that is shunned.
const MISSED: u64 = 25;
const SHUNNED: u64 = 85;
/// So many of 100 writes reach one replica only; if there is a shunned node, that of it.
const ALONE: u64 = 10;

/// Asks replicas at once, not always all, as long as the node lives that asks. For a new container another node
/// stands in for one that fails.
pub(super) fn ask(
    cluster: &SimCluster,
    (node, shunned): (usize, Option<usize>),
    number: usize,
    write: &ContainerWrite,
    replies: &ContainerReplies,
) {
    let Some(process) = &cluster.nodes[node].process else {
        return;
    };
    let ring = cluster.topology.listings.load_full();
    let hash = cluster.topology.hash.container(ACCOUNT, &container(write.container));
    let partition = ring.partition_of(&hash.0);
    let stand_in = ring.handoffs(partition).next().cloned();
    let primaries = ring.primaries(partition);
    let only = cluster.dice.chance(ALONE).then(|| match shunned {
        Some(node) => node,
        None => node_of(primaries[cluster.dice.up_to(primaries.len())]),
    });
    for device in primaries {
        let missed = match (only, shunned == Some(node_of(device))) {
            (Some(only), _) => 100 * u64::from(only != node_of(device)),
            (None, true) => SHUNNED,
            (None, false) => MISSED,
        };
        if cluster.dice.chance(missed) {
            continue;
        }
        let (device, peers, replies) = (device.clone(), process.peers.clone(), replies.clone());
        let stand_in = stand_in
            .clone()
            .filter(|_| matches!(write.verb, ContainerVerb::Put { .. }));
        let (write, executor) = (write.clone(), cluster.executor.clone());
        let pause = Duration::from_micros(cluster.dice.between(0, 3_000));
        let asking = async move {
            executor.sleep(pause).await;
            for device in [Some(device), stand_in].into_iter().flatten() {
                let call = call(&device, partition, number, &write);
                let answer = peers.send(&device.ip, LISTINGS, call, TIMEOUTS).await;
                let status = answer.map_or(0, |response| response.status().as_u16());
                replies.lock().push((number, node_of(&device), status));
                if (200..500).contains(&status) {
                    return;
                }
            }
        };
        cluster.executor.spawn(process.home, Box::pin(asking));
    }
}

fn node_of(device: &Device) -> usize {
    (0..).find(|node| address(*node) == device.ip).unwrap_or_default()
}

fn call(device: &Device, partition: Partition, number: usize, write: &ContainerWrite) -> Call {
    let name = match write.verb {
        ContainerVerb::Row { name } | ContainerVerb::NoRow { name } => Some(object(name)),
        _ => None,
    };
    let target = Target {
        device: device.device.as_str().into(),
        partition,
        path: Arc::new(EntityPath {
            account: ACCOUNT.into(),
            container: Some(container(write.container)),
            object: name,
        }),
    };
    let metadata = |key| {
        let item = (header_name(key), HeaderValue::from(number));
        Arc::new(HeaderMap::from_iter([item]))
    };
    let timestamp = write.at.into();
    let policy = PolicyIndex(0).into();
    let message: Message = match write.verb {
        ContainerVerb::Put { key } => PutContainer {
            timestamp,
            policy,
            headers: metadata(key),
            ..PutContainer::new(target)
        }
        .into(),
        ContainerVerb::Post { key } => PostContainer {
            timestamp,
            headers: metadata(key),
            ..PostContainer::new(target)
        }
        .into(),
        ContainerVerb::Delete => DeleteContainer {
            timestamp,
            policy,
            ..DeleteContainer::new(target)
        }
        .into(),
        ContainerVerb::Row { .. } => UpdateContainer {
            timestamp,
            policy,
            size: (number as u64).into(),
            content_type: Some(HeaderValue::from_static("text/plain")),
            etag: HeaderValue::try_from(etag(number)).ok(),
            ..UpdateContainer::new(target)
        }
        .into(),
        ContainerVerb::NoRow { .. } => UpdateContainer {
            timestamp,
            policy,
            change: RowChange::Delete,
            ..UpdateContainer::new(target)
        }
        .into(),
    };
    Call::new(RequestContext::default(), message)
}
