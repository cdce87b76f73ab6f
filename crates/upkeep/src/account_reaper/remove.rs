//! What the reaper asks of container and object servers: lists and deletions, straight to each of them.
//!
//! Always holds: all replicas of a thing are deleted as of the same moment, each sending to other servers of
//! the level above; an answer that something is gone already is as good as its deletion.
//! Requests compared with those of OpenStack Swift 2.38.3's reaper.

use super::NAME;
use crate::faults::ToFault;
use crate::internal_client::ListedItem;
use crate::ring_client::{Answer, RingClient, user_agent};
use arc_swap::ArcSwap;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use peer::{RawCall, Target};
use placement::{Device, Ring};
use std::collections::BTreeMap;
use std::sync::Arc;
use telemetry::Statsd;
use vocabulary::names::quote;
use vocabulary::{EntityPath, Fault, Partition, PolicyIndex, Timestamp};
use world::World;

/// The most bytes of a listing.
const MAX_LISTING: u64 = 128 << 20;

/// The rings of what accounts hold, and the way there.
#[derive(Clone)]
pub struct ReaperTargets {
    /// Those who hold containers.
    pub containers: RingClient,
    /// Those who hold objects, by policy.
    pub objects: BTreeMap<PolicyIndex, Arc<ArcSwap<Ring>>>,
}

/// What became of one deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Removal {
    /// Most servers have deleted it, or did not have it.
    Done,
    /// Too many could not be told.
    Left,
}

/// A page of a container's listing.
pub(super) struct Page {
    pub(super) policy: PolicyIndex,
    pub(super) names: Vec<String>,
}

/// The rows of a listing; no bytes are no rows.
fn understood(body: &[u8]) -> Result<Vec<ListedItem>, Fault> {
    match body.is_empty() {
        true => Ok(vec![]),
        false => serde_json::from_slice(body).map_err(|error| Fault::peer(error.to_string())),
    }
}

impl ReaperTargets {
    /// What a container lists behind `marker`; an empty page when it is gone. `None` when nobody could say.
    pub(super) async fn page(&self, container: &EntityPath, marker: &str, statsd: &Statsd) -> Option<Page> {
        let ring_client = &self.containers;
        let ring = ring_client.ring.load_full();
        let partition = partition_of_container(ring_client, &ring, container);
        let mut everywhere_gone = true;
        for device in ring.primaries(partition) {
            let target = Target {
                device: device.device.as_str().into(),
                partition,
                path: Arc::new(container.clone()),
            };
            let query = format!("format=json&marker={}", quote(marker).replace('/', "%2F"));
            let call = RawCall::new(Method::GET, target, own_headers()).with_query(query);
            let (ip, port) = (&device.replication_ip, device.replication_port);
            let response = match ring_client.peers.send(ip, port, call, ring_client.timeouts).await {
                Ok(response) => response,
                Err(error) => {
                    tracing::warn!(
                        "{NAME}: {ip}:{port}/{} does not list {}: {error}",
                        device.device,
                        container.path()
                    );
                    everywhere_gone = false;
                    continue;
                }
            };
            count_code(statsd, response.status());
            if response.status().is_success() {
                let policy = header(response.headers(), "x-backend-storage-policy-index");
                let policy = PolicyIndex(policy.and_then(|text| text.parse().ok()).unwrap_or(0));
                let patience = ring_client.timeouts.response;
                let body = response.into_body();
                let body = body
                    .collect_within(ring_client.peers.world(), MAX_LISTING, patience)
                    .await;
                let listed = body
                    .map_err(|error| error.to_fault())
                    .and_then(|body| understood(&body));
                let listed = match listed {
                    Ok(listed) => listed,
                    // What cannot be read is not an empty container.
                    Err(why) => {
                        let (device, path) = (&device.device, container.path());
                        tracing::warn!("{NAME}: {ip}:{port}/{device} lists of {path} what cannot be read: {why}");
                        everywhere_gone = false;
                        continue;
                    }
                };
                let names = listed.into_iter().map(|row| row.name).collect();
                return Some(Page { policy, names });
            }
            everywhere_gone &= response.status() == StatusCode::NOT_FOUND;
        }
        everywhere_gone.then_some(Page {
            policy: PolicyIndex::LEGACY,
            names: vec![],
        })
    }

    /// Deletes an object everywhere.
    pub(super) async fn remove_object(
        &self,
        world: &World,
        policy: PolicyIndex,
        path: EntityPath,
        statsd: &Statsd,
    ) -> Removal {
        let Some(ring) = self.objects.get(&policy).map(|ring| ring.load_full()) else {
            tracing::error!(
                "{NAME}: {}: policy {policy} does not exist here; left alone",
                path.path()
            );
            return Removal::Left;
        };
        let ring_client = &self.containers;
        let containers = ring_client.ring.load_full();
        let above = partition_of_container(ring_client, &containers, &path);
        let (container, object) = (path.container.as_deref(), path.object.as_deref());
        let hash = ring_client
            .hash
            .object(&path.account, container.unwrap_or_default(), object.unwrap_or_default());
        let partition = ring.partition_of(&hash.0);
        let mut headers = timed_headers(world.clock.now());
        headers.insert("x-backend-storage-policy-index", HeaderValue::from(policy.0));
        let parents = containers.primaries(above);
        let names = ["x-container-host", "x-container-partition", "x-container-device"];
        let devices = ring.primaries(partition);
        let to_each = (0..devices.len())
            .map(|number| told_of(&headers, names, &parents, above, number))
            .collect();
        let answers = ring_client
            .delete_at_each(&devices, partition, path.clone(), to_each)
            .await;
        judge(&path, &answers, &[404, 409], ("objects", statsd))
    }

    /// Deletes an empty container everywhere; its account at `accounts` is told.
    pub(super) async fn remove_container(
        &self,
        world: &World,
        accounts: &[&Device],
        above: Partition,
        path: EntityPath,
        statsd: &Statsd,
    ) -> Removal {
        let ring_client = &self.containers;
        let ring = ring_client.ring.load_full();
        let partition = partition_of_container(ring_client, &ring, &path);
        let mut headers = timed_headers(world.clock.now());
        headers.insert("x-account-override-deleted", HeaderValue::from_static("yes"));
        let names = ["x-account-host", "x-account-partition", "x-account-device"];
        let devices = ring.primaries(partition);
        let to_each = (0..devices.len())
            .map(|number| told_of(&headers, names, accounts, above, number))
            .collect();
        let answers = ring_client
            .delete_at_each(&devices, partition, path.clone(), to_each)
            .await;
        judge(&path, &answers, &[404], ("containers", statsd))
    }
}

fn count_code(statsd: &Statsd, status: StatusCode) {
    statsd.count(format_args!("return_codes.{}", status.as_u16() / 100), 1);
}

/// What came of it; `statsd` is told of each answer, and of the things, by their name.
fn judge(path: &EntityPath, answers: &[Answer], gone: &[u16], (things, statsd): (&str, &Statsd)) -> Removal {
    let is_gone = |answer: &&Answer| {
        let status = answer.answer.as_ref().map(|response| response.status().as_u16());
        answer.is_success() || status.is_ok_and(|status| gone.contains(&status))
    };
    for answer in answers.iter().filter(|answer| !is_gone(answer)) {
        let (place, why) = (&answer.place, answer.why());
        tracing::info!("{NAME}: {place} did not delete {}: {why}", path.path());
        statsd.count(format_args!("{things}_failures"), 1);
    }
    for response in answers.iter().filter_map(|answer| answer.answer.as_ref().ok()) {
        count_code(statsd, response.status());
    }
    let done = answers.iter().filter(is_gone).count();
    let (removal, what) = match done {
        done if done * 2 > answers.len() => (Removal::Done, "deleted"),
        0 => (Removal::Left, "remaining"),
        _ => (Removal::Left, "possibly_remaining"),
    };
    statsd.count(format_args!("{things}_{what}"), 1);
    removal
}

fn partition_of_container(ring_client: &RingClient, ring: &Ring, path: &EntityPath) -> Partition {
    let name = path.container.as_deref().unwrap_or_default();
    ring.partition_of(&ring_client.hash.container(&path.account, name).0)
}

fn own_headers() -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(10);
    headers.insert("user-agent", user_agent(NAME));
    headers.insert("x-backend-allow-reserved-names", HeaderValue::from_static("true"));
    headers.insert("x-backend-use-replication-network", HeaderValue::from_static("true"));
    headers
}

fn timed_headers(now: Timestamp) -> HeaderMap {
    let mut headers = own_headers();
    headers.insert("x-timestamp", text(&now.internal()));
    headers
}

/// With the server of the level above that the server of replica `number` is to tell.
fn told_of(
    headers: &HeaderMap,
    [host, part, name]: [&'static str; 3],
    parents: &[&Device],
    partition: Partition,
    number: usize,
) -> HeaderMap {
    let mut headers = headers.clone();
    if let Some(parent) = parents.get(number % parents.len().max(1)) {
        headers.insert(host, text(&format!("{}:{}", parent.ip, parent.port)));
        headers.insert(part, HeaderValue::from(partition.0));
        headers.insert(name, text(&parent.device));
    }
    headers
}

fn text(value: &str) -> HeaderValue {
    HeaderValue::from_str(value).unwrap_or(HeaderValue::from_static(""))
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use peer::{Body, Call, Peers, Response, Service, Timeouts};
    use placement::RingBuilder;
    use std::time::Duration;
    use vocabulary::HashPrefix;

    #[test]
    fn what_cannot_be_read_is_no_empty_container() {
        let names = |body: &[u8]| understood(body).map(|rows| rows.into_iter().map(|row| row.name).collect::<Vec<_>>());
        assert_eq!(names(b""), Ok(vec![]));
        assert_eq!(names(b"[]"), Ok(vec![]));
        assert_eq!(names(br#"[{"name": "o"}]"#), Ok(vec!["o".to_owned()]));
        for rubbish in [&b"rubbish"[..], b"{}", b"[{\"name\": \"o\"}", b"[7]", b"\0"] {
            assert!(names(rubbish).is_err());
        }
    }

    struct Stalling;

    #[async_trait::async_trait]
    impl Service for Stalling {
        async fn call(&self, _: Call) -> Response {
            Response::new(Body::stream(futures_util::stream::pending(), Some(100)))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn servers_that_stall_in_their_listing_cost_a_time_out_each() {
        let mut builder = RingBuilder::new(4, 3.0, 1).unwrap();
        for zone in 0..3 {
            let replication_ip = format!("127.0.0.{zone}");
            let (ip, replication_port) = (replication_ip.clone(), 6201);
            let device = Device {
                zone,
                weight: 1.0,
                ip,
                replication_ip,
                replication_port,
                ..Device::default()
            };
            builder.add(device).unwrap();
        }
        builder.rebalance(1, 0).unwrap();
        let mut peers = Peers::new(World::real());
        for zone in 0..3 {
            peers.register(&format!("127.0.0.{zone}"), 6201, Arc::new(Stalling));
        }
        let patience = Duration::from_secs(10);
        let containers = RingClient {
            ring: Arc::new(ArcSwap::from_pointee(Ring::new(builder.to_ring().unwrap()))),
            hash: HashPrefix::new("a", "b").unwrap(),
            peers: Arc::new(peers),
            timeouts: Timeouts {
                connect: patience,
                response: patience,
            },
        };
        let below = ReaperTargets {
            containers,
            objects: BTreeMap::new(),
        };
        let began = tokio::time::Instant::now();
        let page = below
            .page(&EntityPath::split("a/c").unwrap(), "", &Statsd::default())
            .await;
        assert!(page.is_none(), "nobody said what is in the container");
        assert_eq!(began.elapsed().as_secs(), 30);
    }
}
