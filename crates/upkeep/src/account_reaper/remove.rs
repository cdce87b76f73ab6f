//! What the reaper asks of container and object servers: lists and deletions, straight to each of them.
//!
//! Always holds: all replicas of a thing are deleted as of the same moment, each sending to other servers of
//! the level above; an answer that something is gone already is as good as its deletion; what a lock of S3's holds
//! (`vocabulary::object_lock`) is not asked to go.
//! Requests compared with those of OpenStack Swift 2.38.3's reaper.

use super::NAME;
use crate::faults::ToFault;
use crate::internal_client::ListedItem;
use crate::peer_failures::PeerFailures;
use crate::ring_client::{NodeResponse, RingClient, context_of, target};
use arc_swap::ArcSwap;
use bytes::Bytes;
use futures_util::future::join_all;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use peer::Call;
use peer::message::header_names::{X_ALLOW_RESERVED_NAMES, X_OBJECT_LEGAL_HOLD, X_OBJECT_RETENTION, X_POLICY_INDEX};
use peer::message::{
    DeleteContainer, DeleteObject, HeaderField, ReadContainer, ReadObject, RequestContext, RowTargets, UpdateNode,
    UpdateTargets,
};
use placement::{Device, Ring};
use std::collections::BTreeMap;
use std::sync::Arc;
use telemetry::Statsd;
use vocabulary::names::quote;
use vocabulary::object_lock::{ObjectLock, bucket_of};
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
    /// Too many servers did not take the deletion.
    Left,
}

/// Where answers are counted, and failures noted.
#[derive(Clone, Copy)]
pub(super) struct ReaperRecord<'a> {
    pub(super) statsd: &'a Statsd,
    pub(super) failures: &'a PeerFailures,
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
    /// What a container lists behind `marker`; an empty page when it is gone. `None` when no server could say.
    pub(super) async fn page(&self, container: &EntityPath, marker: &str, record: ReaperRecord<'_>) -> Option<Page> {
        let ring_client = &self.containers;
        let ring = ring_client.ring.load_full();
        let partition = ring_client.partition_of(&ring, container);
        let path = Arc::new(container.clone());
        let mut everywhere_gone = true;
        for device in ring.primaries(partition) {
            let read = ReadContainer {
                query: format!("format=json&marker={}", quote(marker).replace('/', "%2F")),
                headers: own_headers(),
                ..ReadContainer::new(target(device, partition, &path))
            };
            let NodeResponse { place, response, .. } = ring_client.send_one(device, Call::new(context(), read)).await;
            let response = match response {
                Ok(response) => response,
                Err(error) => {
                    record.failures.note_at(place, container.path(), error.to_string());
                    everywhere_gone = false;
                    continue;
                }
            };
            record.count_code(response.status());
            if response.status().is_success() {
                let policy = header(response.headers(), &X_POLICY_INDEX);
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
                        let why = format!("a listing cannot be read: {why}");
                        record.failures.note_at(place, container.path(), why);
                        everywhere_gone = false;
                        continue;
                    }
                };
                let names = listed.into_iter().map(|row| row.name).collect();
                return Some(Page { policy, names });
            }
            let is_gone = response.status() == StatusCode::NOT_FOUND;
            if !is_gone {
                record
                    .failures
                    .note_at(place, container.path(), response.status().to_string());
            }
            everywhere_gone &= is_gone;
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
        record: ReaperRecord<'_>,
    ) -> Removal {
        let Some(ring) = self.objects.get(&policy).map(|ring| ring.load_full()) else {
            let why = format_args!("policy {policy} does not exist here; left alone");
            record.failures.note_item(path.path(), why);
            return Removal::Left;
        };
        let ring_client = &self.containers;
        let containers = ring_client.ring.load_full();
        let above = ring_client.partition_of(&containers, &path);
        let (container, object) = (path.container.as_deref(), path.object.as_deref());
        let hash = ring_client
            .hash
            .object(&path.account, container.unwrap_or_default(), object.unwrap_or_default());
        let partition = ring.partition_of(&hash.0);
        let (now, headers) = (world.clock.now(), own_headers());
        let parents = containers.primaries(above);
        let devices = ring.primaries(partition);
        let delete = |number, target| DeleteObject {
            timestamp: now.into(),
            policy: policy.into(),
            rows: RowTargets {
                containers: parent_of(number, &parents, above),
                ..RowTargets::default()
            },
            headers: headers.clone(),
            next_part_power: HeaderField::from_option(ring.data().next_part_power().map(u64::from)),
            ..DeleteObject::new(target)
        };
        let place = (partition, path.clone());
        let may_be_locked = container.is_some_and(|container| bucket_of(container) != container);
        if may_be_locked && let Some(why) = self.reason_to_stay(&devices, &place, policy, now).await {
            record.failures.note_item(path.path(), why);
            record.statsd.count(format_args!("objects_remaining"), 1);
            return Removal::Left;
        }
        let responses = ring_client
            .send(&context(), &devices, place, Bytes::new(), delete)
            .await;
        record.judge(&path, &responses, &[404, 409], "objects")
    }

    /// Why an object must not go: a server says that a lock of S3's holds it, or too few say what they know of one. A
    /// server that has missed the lock would take a deletion, and replication would carry that to the others.
    async fn reason_to_stay(
        &self,
        devices: &[&Device],
        (partition, path): &(Partition, EntityPath),
        policy: PolicyIndex,
        now: Timestamp,
    ) -> Option<String> {
        let path = Arc::new(path.clone());
        let asked = devices.iter().map(|device| {
            let read = ReadObject {
                policy: policy.into(),
                opens_expired: true,
                headers: own_headers(),
                head_only: true,
                ..ReadObject::new(target(device, *partition, &path))
            };
            self.containers.send_one(device, Call::new(context(), read))
        });
        let (mut lock, mut known) = (ObjectLock::default(), 0);
        for answer in join_all(asked).await {
            let Ok(response) = answer.response else { continue };
            if response.status().is_success() || response.status() == StatusCode::NOT_FOUND {
                known += 1;
                let value = |name| response.headers().get(name).map(HeaderValue::as_bytes);
                lock = lock.merged(ObjectLock::read(value(X_OBJECT_RETENTION), value(X_OBJECT_LEGAL_HOLD)));
            }
        }
        if lock.is_held(now, false) {
            return Some("held by its retention or legal hold (S3's object lock); it stays".to_owned());
        }
        let is_known = known * 2 > devices.len();
        (!is_known)
            .then(|| format!("only {known} of its servers say whether an object lock holds it; it stays for now"))
    }

    /// Deletes an empty container everywhere; its account at `accounts` is updated.
    pub(super) async fn remove_container(
        &self,
        world: &World,
        accounts: &[&Device],
        above: Partition,
        path: EntityPath,
        record: ReaperRecord<'_>,
    ) -> Removal {
        let ring_client = &self.containers;
        let ring = ring_client.ring.load_full();
        let partition = ring_client.partition_of(&ring, &path);
        let (now, headers) = (world.clock.now(), own_headers());
        let devices = ring.primaries(partition);
        let delete = |number, target| DeleteContainer {
            timestamp: now.into(),
            accounts: parent_of(number, accounts, above),
            overrides_deleted: Some(HeaderValue::from_static("yes")),
            headers: headers.clone(),
            ..DeleteContainer::new(target)
        };
        let place = (partition, path.clone());
        let responses = ring_client
            .send(&context(), &devices, place, Bytes::new(), delete)
            .await;
        record.judge(&path, &responses, &[404], "containers")
    }
}

impl ReaperRecord<'_> {
    fn count_code(self, status: StatusCode) {
        let class = status.as_u16() / 100;
        self.statsd.count(format_args!("return_codes.{class}"), 1);
    }

    /// What came of it; each answer, and the `things` by their name, are counted.
    fn judge(self, path: &EntityPath, responses: &[NodeResponse], gone: &[u16], things: &str) -> Removal {
        let statsd = self.statsd;
        let is_gone = |response: &&NodeResponse| {
            let status = response.status().map(|status| status.as_u16());
            response.is_success() || status.is_some_and(|status| gone.contains(&status))
        };
        for response in responses.iter().filter(|response| !is_gone(response)) {
            self.failures.note_response(response, path.path());
            statsd.count(format_args!("{things}_failures"), 1);
        }
        for status in responses.iter().filter_map(NodeResponse::status) {
            self.count_code(status);
        }
        let done = responses.iter().filter(is_gone).count();
        let (removal, what) = match done {
            done if done * 2 > responses.len() => (Removal::Done, "deleted"),
            0 => (Removal::Left, "remaining"),
            _ => (Removal::Left, "possibly_remaining"),
        };
        statsd.count(format_args!("{things}_{what}"), 1);
        removal
    }
}

fn context() -> RequestContext {
    RequestContext {
        uses_replication_network: true,
        ..context_of(NAME)
    }
}

/// Names that are the cluster's own are the reaper's to use.
fn own_headers() -> Arc<HeaderMap> {
    let allowed = (X_ALLOW_RESERVED_NAMES, HeaderValue::from_static("true"));
    Arc::new([allowed].into_iter().collect())
}

/// The server of the level above that replica `number` sends its row to.
fn parent_of(number: usize, parents: &[&Device], partition: Partition) -> UpdateTargets {
    let parent = parents.get(number % parents.len().max(1));
    let node = parent.map(|parent| UpdateNode {
        ip: parent.ip.as_str().into(),
        port: parent.port,
        device: parent.device.as_str().into(),
    });
    UpdateTargets::of(partition, node.into_iter().collect())
}

fn header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use peer::{Body, Peers, Response, Service, Timeouts};
    use placement::RingBuilder;
    use std::sync::Mutex;
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

    /// An object server that says this of the retention of all objects, and notes what it is asked.
    struct Locked {
        retention: Option<&'static str>,
        is_up: bool,
        asked: Arc<Mutex<Vec<&'static str>>>,
    }

    #[async_trait::async_trait]
    impl Service for Locked {
        async fn call(&self, call: Call) -> Response {
            let mut response = Response::new(Body::empty());
            match (call.decoded(peer::message::ServerKind::Object).message, self.is_up) {
                (_, false) => *response.status_mut() = StatusCode::INSUFFICIENT_STORAGE,
                (peer::message::Message::ReadObject(read), true) if read.head_only => {
                    self.asked.lock().unwrap().push("HEAD");
                    let value = self.retention.map(HeaderValue::from_static);
                    let value = value.map(|value| (X_OBJECT_RETENTION, value));
                    response.headers_mut().extend(value);
                }
                (peer::message::Message::DeleteObject(_), true) => {
                    self.asked.lock().unwrap().push("DELETE");
                    *response.status_mut() = StatusCode::NO_CONTENT;
                }
                _ => *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED,
            }
            response
        }
    }

    /// What becomes of an object of which three servers say this, and how many are asked what.
    async fn removed(container: &str, servers: [(Option<&'static str>, bool); 3]) -> (Removal, usize, usize) {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let service = |number: usize| {
            let (retention, is_up) = servers[number];
            let asked = asked.clone();
            Arc::new(Locked {
                retention,
                is_up,
                asked,
            }) as Arc<dyn Service>
        };
        let containers = ring_client(service);
        let objects = [(PolicyIndex::LEGACY, containers.ring.clone())].into_iter().collect();
        let targets = ReaperTargets { containers, objects };
        let (statsd, failures) = (&Statsd::default(), &PeerFailures::new(NAME));
        let record = ReaperRecord { statsd, failures };
        let path = EntityPath::account("a").with_container(container).with_object("o");
        let removal = targets
            .remove_object(&World::real(), PolicyIndex::LEGACY, path, record)
            .await;
        let asked = asked.lock().unwrap();
        let count = |verb| asked.iter().filter(|asked| **asked == verb).count();
        (removal, count("HEAD"), count("DELETE"))
    }

    #[tokio::test]
    async fn what_an_object_lock_holds_is_not_asked_to_go() {
        const HELD: Option<&str> = Some("GOVERNANCE;9000000000;0000000001.00000");
        const ENDED: Option<&str> = Some("COMPLIANCE;1;0000000001.00000");
        let (plain, versions, parts) = ("b", "\0versions\0b", "b+segments");
        for (container, servers, expected) in [
            (plain, [(HELD, true); 3], (Removal::Done, 0, 3)),
            (versions, [(None, true); 3], (Removal::Done, 3, 3)),
            (versions, [(ENDED, true); 3], (Removal::Done, 3, 3)),
            (parts, [(None, true), (None, true), (HELD, true)], (Removal::Left, 3, 0)),
            (
                versions,
                [(None, true), (None, true), (HELD, false)],
                (Removal::Done, 2, 2),
            ),
            (
                versions,
                [(None, true), (HELD, false), (HELD, false)],
                (Removal::Left, 1, 0),
            ),
        ] {
            assert_eq!(removed(container, servers).await, expected, "{container} {servers:?}");
        }
    }

    /// A ring of three devices, and what answers there.
    fn ring_client(service: impl Fn(usize) -> Arc<dyn Service>) -> RingClient {
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
            peers.register(&format!("127.0.0.{zone}"), 6201, service(zone));
        }
        let patience = Duration::from_secs(10);
        RingClient {
            ring: Arc::new(ArcSwap::from_pointee(Ring::new(builder.to_ring().unwrap()))),
            hash: HashPrefix::new("a", "b").unwrap(),
            peers: Arc::new(peers),
            timeouts: Timeouts {
                connect: patience,
                response: patience,
            },
        }
    }

    #[tokio::test(start_paused = true)]
    async fn servers_that_stall_in_their_listing_cost_a_time_out_each() {
        let containers = ring_client(|_| Arc::new(Stalling));
        let below = ReaperTargets {
            containers,
            objects: BTreeMap::new(),
        };
        let began = tokio::time::Instant::now();
        let (statsd, failures) = (&Statsd::default(), &PeerFailures::new(NAME));
        let record = ReaperRecord { statsd, failures };
        let page = below.page(&EntityPath::split("a/c").unwrap(), "", record).await;
        assert!(page.is_none(), "nobody said what is in the container");
        assert_eq!(began.elapsed().as_secs(), 30);
    }
}
