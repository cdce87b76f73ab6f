//! Gateways and object servers: they ask each replica of a container by itself, and tell the run what each said.

use super::history::{ContainerVerb, ContainerWrite};
use super::names::{ACCOUNT, container, etag, header, object};
use crate::cluster::SimCluster;
use crate::topology::{LISTINGS, address};
use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, Method};
use parking_lot::Mutex;
use peer::{RawCall, Target, Timeouts};
use placement::Device;
use std::sync::Arc;
use std::time::Duration;
use vocabulary::{EntityPath, Partition};

const TIMEOUTS: Timeouts = Timeouts {
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

/// Asks replicas at once, not always all, as long as the node lives that asks. For a new container another node stands in for one that
/// fails.
pub(super) fn ask(
    cluster: &SimCluster,
    (node, shunned): (usize, Option<usize>),
    number: usize,
    write: &ContainerWrite,
    told: &ContainerReplies,
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
        let (device, peers, told) = (device.clone(), process.peers.clone(), told.clone());
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
                told.lock().push((number, node_of(&device), status));
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

fn call(device: &Device, partition: Partition, number: usize, write: &ContainerWrite) -> RawCall {
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
    let mut headers = HeaderMap::new();
    let mut set = |name: &str, value: String| {
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::try_from(value)) {
            headers.insert(name, value);
        }
    };
    set("x-timestamp", write.at.internal());
    set("x-backend-storage-policy-index", "0".into());
    let method = match write.verb {
        ContainerVerb::Put { key } | ContainerVerb::Post { key } => {
            set(&header(key), number.to_string());
            match write.verb {
                ContainerVerb::Put { .. } => Method::PUT,
                _ => Method::POST,
            }
        }
        ContainerVerb::Row { .. } => {
            set("x-size", number.to_string());
            set("x-content-type", "text/plain".into());
            set("x-etag", etag(number));
            Method::PUT
        }
        ContainerVerb::Delete | ContainerVerb::NoRow { .. } => Method::DELETE,
    };
    RawCall::new(method, target, headers)
}
