//! Objects deleted in batches: what is due on a device goes there in one request (`peer::deletes`), past the gateway.
//!
//! Only where all is as usual: the container is known and whole, every primary of the object is a server that takes
//! such requests, and more than half of them say the same good thing, as the gateway would want it. Everything else is
//! left to the gateway, which sees it as if no batch had been sent.
//! Always holds: no more than [`BATCH`] objects in a request and no more requests to each of the replicas at the same
//! time than configured; what is remembered of containers and servers (`learnt.rs`) ends with the pass.
//! Deliberately absent: rows of the queue, refusals and what they mean.

use super::learnt::{ExpirerKnowledge, KnownContainer, ServerAddress};
use super::tasks::Task;
use super::{CLOCKS_DIFFER, TOO_EARLY};
use crate::internal_client::{InternalClient, InternalRequest, is_among};
use crate::ring_client::{context_of, json_body, target};
use arc_swap::ArcSwap;
use futures_util::StreamExt;
use futures_util::stream::iter;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use peer::deletes::{self, MAX_STATUSES, OneDelete};
use peer::message::header_names::{X_POLICY_INDEX, X_SHARDING_STATE};
use peer::message::{DeleteObject, DeleteObjects, HeaderField, RowTargets, UpdateNode, UpdateTargets};
use peer::{Body, Call, PartitionTarget, PeerError, Peers, Response, Target, Timeouts};
use placement::{Device, Ring};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use vocabulary::{EntityPath, HashPrefix, Partition, PolicyIndex, Timestamp};

/// Objects in one request.
const BATCH: usize = 128;

/// How long the answer to an empty batch is waited for, while everything waits.
const QUESTION: Duration = Duration::from_secs(5);

/// The way to the object servers themselves.
#[derive(Clone)]
pub struct ObjectServers {
    /// The rings of the policies whose objects are replicas.
    pub rings: BTreeMap<PolicyIndex, Arc<ArcSwap<Ring>>>,
    /// The ring of those who list them.
    pub containers: Arc<ArcSwap<Ring>>,
    /// The cluster's path secrets.
    pub hash: HashPrefix,
    /// The way to them.
    pub peers: Arc<Peers>,
    /// How long to wait for each.
    pub timeouts: Timeouts,
}

/// A request on its way: for which device, and of which tasks.
struct DeleteBatch {
    server: ServerAddress,
    device: String,
    policy: PolicyIndex,
    tasks: Vec<usize>,
    deletes: Vec<OneDelete>,
}

/// Where the replicas of a task's object are.
struct ObjectPlace {
    task: usize,
    policy: PolicyIndex,
    ring: Arc<Ring>,
    partition: Partition,
}

impl ObjectPlace {
    fn primaries(&self) -> Vec<&Device> {
        self.ring.primaries(self.partition)
    }
}

fn server_of(device: &Device) -> ServerAddress {
    (device.replication_ip.clone(), device.replication_port)
}

impl ObjectServers {
    /// Deletes what can be deleted in batches; what became of each task.
    pub(super) async fn delete(
        &self,
        tasks: &[Task],
        client: &InternalClient,
        known: &ExpirerKnowledge,
        at_once: usize,
    ) -> Vec<BatchOutcome> {
        self.learn_containers(tasks, client, known, at_once).await;
        let places: Vec<ObjectPlace> = (tasks.iter().enumerate())
            .filter_map(|(number, task)| self.place(number, task, known))
            .collect();
        self.learn_servers(&places, known, at_once).await;
        let takes = |device: &&Device| known.takes_batches(&server_of(device));
        let mut replicas = vec![0; tasks.len()];
        let mut batches = DeleteBatches::default();
        for place in &places {
            let primaries = place.primaries();
            if primaries.iter().all(takes) {
                replicas[place.task] = primaries.len();
                self.add(place, &primaries, &tasks[place.task], &mut batches);
            }
        }
        let sent = batches.all().into_iter().map(|batch| self.send(batch, known));
        let mut answers: Vec<Vec<u16>> = vec![vec![]; tasks.len()];
        // An object is at several servers, which are asked at the same time as those who are asked for each by itself.
        let copies = replicas.iter().copied().max().unwrap_or_default().max(1);
        let mut sending = iter(sent).buffer_unordered(at_once.saturating_mul(copies));
        while let Some((batch, statuses)) = sending.next().await {
            for (task, status) in batch.tasks.into_iter().zip(statuses) {
                answers[task].push(status);
            }
        }
        let answered = tasks.iter().zip(&answers).zip(replicas);
        answered
            .map(|((task, statuses), replicas)| match self.has_no_ring(task, known) {
                true => BatchOutcome::Left,
                false => BatchOutcome::of(task, statuses, replicas),
            })
            .collect()
    }

    /// Whether no server can be asked for any object of the task's policy.
    fn has_no_ring(&self, task: &Task, known: &ExpirerKnowledge) -> bool {
        let Some(container) = known.container(&container_of(&task.target)) else {
            return false;
        };
        let policy = container.policy;
        if self.rings.contains_key(&policy) {
            return false;
        }
        let why = format_args!("policy {policy} is not in swift.conf, or its ring is not here; left for a later pass");
        known.failures.note_item(task.target.path(), why);
        true
    }

    fn place(&self, number: usize, task: &Task, known: &ExpirerKnowledge) -> Option<ObjectPlace> {
        let container = known.container(&container_of(&task.target));
        let policy = container.filter(|container| container.is_whole)?.policy;
        let ring = self.rings.get(&policy)?.load_full();
        let (account, container) = (&task.target.account, task.target.container.as_deref()?);
        let hash = self.hash.object(account, container, task.target.object.as_deref()?);
        let partition = ring.partition_of(&hash.0);
        Some(ObjectPlace {
            task: number,
            policy,
            ring,
            partition,
        })
    }

    async fn learn_containers(
        &self,
        tasks: &[Task],
        client: &InternalClient,
        known: &ExpirerKnowledge,
        at_once: usize,
    ) {
        let named = tasks.iter().map(|task| container_of(&task.target)).collect();
        let mut new: Vec<_> = known.not_yet(named).into_iter().collect();
        new.sort_by_cached_key(EntityPath::path);
        let asked = new.into_iter().map(|path| async move {
            let container = look_at(client, &path).await;
            (path, container)
        });
        let asked: Vec<_> = asked.collect();
        let found: Vec<_> = iter(asked).buffer_unordered(at_once.max(1)).collect().await;
        known.learn(found);
    }

    /// Asks each server that is not known yet with an empty batch.
    async fn learn_servers(&self, places: &[ObjectPlace], known: &ExpirerKnowledge, at_once: usize) {
        let now = self.peers.world().clock.elapsed();
        let mut new: BTreeMap<ServerAddress, DeleteBatch> = BTreeMap::new();
        for place in places {
            for device in place.primaries() {
                let server = server_of(device);
                if known.is_to_be_asked(&server, now) {
                    let batch = || DeleteBatch::new(device, place.policy);
                    new.entry(server).or_insert_with(batch);
                }
            }
        }
        let asked = new.into_values().map(|batch| self.send(batch, known));
        let asked: Vec<_> = asked.collect();
        iter(asked).buffer_unordered(at_once.max(1)).collect::<Vec<_>>().await;
    }

    /// Puts the task into the batches of all its devices.
    fn add(&self, place: &ObjectPlace, primaries: &[&Device], task: &Task, batches: &mut DeleteBatches) {
        let container = task.target.container.as_deref().unwrap_or_default();
        let listing = self.containers.load_full();
        let partition = listing.partition_of(&self.hash.container(&task.target.account, container).0);
        let nodes_of_listing = listing.primaries(partition);
        for (replica, device) in primaries.iter().enumerate() {
            let nodes = nodes_of_listing.iter().skip(replica).step_by(primaries.len().max(1));
            let nodes = nodes.map(|to| UpdateNode {
                ip: to.replication_ip.as_str().into(),
                port: to.replication_port,
                device: to.device.as_str().into(),
            });
            let path = Arc::new(task.target.clone());
            let mut message = delete_of(task, target(device, place.partition, &path));
            message.rows.containers = UpdateTargets::of(partition, nodes.collect());
            let next_part_power = place.ring.data().next_part_power();
            message.next_part_power = HeaderField::from_option(next_part_power.map(u64::from));
            let delete = OneDelete {
                partition: place.partition,
                path: task.target.clone(),
                headers: texts(message.encode()),
            };
            batches.add(device, place.policy, place.task, delete);
        }
    }

    /// The statuses of all in the batch, or none; whether its server takes batches is noted.
    async fn send(&self, batch: DeleteBatch, known: &ExpirerKnowledge) -> (DeleteBatch, Vec<u16>) {
        let statuses = self.ask(&batch, known).await;
        let now = self.peers.world().clock.elapsed();
        known.note(&batch.server, batch.tasks.is_empty(), statuses.is_some(), now);
        (batch, statuses.unwrap_or_default())
    }

    /// Sends it. A server may hang up on an idle connection just when this comes (RFC 9112, 9.3.1), so that it is sent
    /// again then. What had been done nevertheless is refused the second time, and left to the gateway.
    async fn sent(&self, batch: &DeleteBatch) -> Result<Response, PeerError> {
        match self.send_once(batch).await {
            Err(PeerError::Broken(_)) => self.send_once(batch).await,
            other => other,
        }
    }

    async fn send_once(&self, batch: &DeleteBatch) -> Result<Response, PeerError> {
        let deletes = DeleteObjects {
            policy: batch.policy.into(),
            headers: json_body(),
            ..DeleteObjects::new(PartitionTarget {
                device: batch.device.as_str().into(),
                partition: Partition(0),
                rest: String::new(),
            })
        };
        let body = Body::whole(deletes::encode(&batch.deletes));
        let call = Call::new(context_of(super::NAME), deletes).with_body(body);
        let (ip, port) = &batch.server;
        let timeouts = Timeouts {
            response: match batch.tasks.is_empty() {
                true => self.timeouts.response.min(QUESTION),
                false => self.timeouts.response,
            },
            ..self.timeouts
        };
        self.peers.send(ip, *port, call, timeouts).await
    }

    async fn ask(&self, batch: &DeleteBatch, known: &ExpirerKnowledge) -> Option<Vec<u16>> {
        let why = match self.sent(batch).await {
            Ok(response) if response.status() == http::StatusCode::OK => {
                let body = response.into_body();
                let body = (body.collect_within(self.peers.world(), MAX_STATUSES, self.timeouts.response)).await;
                let statuses = body
                    .ok()
                    .and_then(|body| deletes::decode_statuses(&body, batch.tasks.len()));
                if let Some(statuses) = statuses {
                    batch.note_early(&statuses, known);
                    return Some(statuses);
                }
                "not the statuses of what it was asked".to_owned()
            }
            Ok(response) => response.status().to_string(),
            Err(error) => error.to_string(),
        };
        let (name, (ip, port), device) = (super::NAME, &batch.server, &batch.device);
        match batch.tasks.len() {
            0 => tracing::debug!("{name}: {ip}:{port} takes deletions one by one: {why}"),
            count => {
                let what = format!("{count} deletions at once on {device}");
                known.failures.note_at(format!("{ip}:{port}"), what, why);
            }
        }
        None
    }
}

impl DeleteBatch {
    /// Says that by the clock of its server tasks are not due.
    fn note_early(&self, statuses: &[u16], known: &ExpirerKnowledge) {
        let (ip, port) = &self.server;
        for (_, delete) in statuses
            .iter()
            .zip(&self.deletes)
            .filter(|(status, _)| **status == TOO_EARLY)
        {
            let what = format!("{} on {}", delete.path.path(), self.device);
            known
                .failures
                .note_at(format!("{ip}:{port}"), what, CLOCKS_DIFFER.to_owned());
        }
    }

    fn new(device: &Device, policy: PolicyIndex) -> Self {
        Self {
            server: server_of(device),
            device: device.device.clone(),
            policy,
            tasks: vec![],
            deletes: vec![],
        }
    }
}

/// What is to be deleted on each device of a server: which task, and how.
#[derive(Default)]
struct DeleteBatches(BTreeMap<(ServerAddress, String, PolicyIndex), Vec<(usize, OneDelete)>>);

impl DeleteBatches {
    fn add(&mut self, device: &Device, policy: PolicyIndex, task: usize, delete: OneDelete) {
        let key = (server_of(device), device.device.clone(), policy);
        self.0.entry(key).or_default().push((task, delete));
    }

    /// What is in one partition goes together, for the server takes the lock of a partition once for a batch; the
    /// batches of one device are not next to each other.
    fn all(self) -> Vec<DeleteBatch> {
        let mut in_turn = vec![];
        for ((server, device, policy), mut deletes) in self.0 {
            deletes.sort_by_key(|(_, delete)| delete.partition);
            let mut deletes = deletes.into_iter();
            for turn in 0_usize.. {
                let (tasks, deletes): (Vec<_>, Vec<_>) = deletes.by_ref().take(BATCH).unzip();
                if tasks.is_empty() {
                    break;
                }
                let (server, device) = (server.clone(), device.clone());
                in_turn.push((
                    turn,
                    DeleteBatch {
                        server,
                        device,
                        policy,
                        tasks,
                        deletes,
                    },
                ));
            }
        }
        in_turn.sort_by_key(|(turn, _)| *turn);
        in_turn.into_iter().map(|(_, batch)| batch).collect()
    }
}

pub(super) fn container_of(target: &EntityPath) -> EntityPath {
    EntityPath {
        object: None,
        ..target.clone()
    }
}

/// As the gateway's DELETE is.
fn delete_of(task: &Task, target: Target) -> DeleteObject {
    let due = Timestamp::from_ticks(task.due.ticks()).unwrap_or(task.due);
    DeleteObject {
        timestamp: due.into(),
        rows: RowTargets {
            root_db_state: Some(HeaderValue::from_static("unsharded")),
            cleans_queue: (!task.is_async).then_some(false),
            ..RowTargets::default()
        },
        if_delete_at: match task.is_async {
            true => HeaderField::Absent,
            false => due.into(),
        },
        ..DeleteObject::new(target)
    }
}

fn texts(headers: HeaderMap) -> Vec<(String, String)> {
    let text = |(name, value): (&HeaderName, &HeaderValue)| Some((name.to_string(), value.to_str().ok()?.to_owned()));
    headers.iter().filter_map(text).collect()
}

/// What a gateway says of a container that is there.
async fn look_at(client: &InternalClient, path: &EntityPath) -> Option<KnownContainer> {
    let response = client
        .ask(&InternalRequest::new(Method::HEAD, path.clone()), &[2])
        .await
        .ok()?;
    let header = |name: HeaderName| response.headers().get(name)?.to_str().ok();
    Some(KnownContainer {
        policy: PolicyIndex(header(X_POLICY_INDEX)?.parse().ok()?),
        is_whole: matches!(header(X_SHARDING_STATE), None | Some("unsharded")),
    })
}

/// What became of a task whose servers were asked in batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BatchOutcome {
    /// Its row can go.
    Finished,
    /// Not now: by the clock of a server it is not due, or its policy has no servers here.
    Left,
    /// The gateway has to be asked.
    Unclear,
}

impl BatchOutcome {
    fn of(task: &Task, statuses: &[u16], replicas: usize) -> Self {
        match is_done(task, statuses, replicas) {
            true => Self::Finished,
            false if statuses.contains(&TOO_EARLY) => Self::Left,
            false => Self::Unclear,
        }
    }
}

/// Whether more than half of the replicas say the same, and it is good.
fn is_done(task: &Task, statuses: &[u16], replicas: usize) -> bool {
    let good = |hoped: u16| statuses.iter().filter(|status| is_among(**status, &[hoped])).count();
    let hoped = super::hoped(task);
    replicas > 0 && hoped.iter().any(|hoped| good(*hoped) > replicas / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_full_sorted_and_in_turn() {
        let mut batches = DeleteBatches::default();
        let on = |name: &str| Device {
            device: name.into(),
            ..Device::default()
        };
        let delete = |partition| OneDelete {
            partition,
            path: EntityPath::account("a").with_container("c").with_object("o"),
            headers: vec![],
        };
        for task in 0..BATCH + 1 {
            batches.add(&on("sda"), PolicyIndex(0), task, delete(Partition(1000 - task as u32)));
            batches.add(&on("sdb"), PolicyIndex(0), task, delete(Partition(task as u32)));
        }
        let batches = batches.all();
        let sizes: Vec<_> = batches
            .iter()
            .map(|batch| (batch.device.as_str(), batch.tasks.len()))
            .collect();
        assert_eq!(sizes, [("sda", BATCH), ("sdb", BATCH), ("sda", 1), ("sdb", 1)]);
        assert_eq!((batches[0].tasks[0], batches[2].tasks[0]), (BATCH, 0));
        assert!(batches[0].deletes.is_sorted_by_key(|delete| delete.partition));
    }

    #[test]
    fn most_replicas_must_say_the_same_good_thing() {
        let task = |kind| Task::read(&"1".into(), "1-a/c/o".into(), kind).unwrap();
        let (own, asked) = (task("text/plain"), task("application/async-deleted"));
        for (statuses, replicas, done, done_if_asked) in [
            (&[204, 204, 204][..], 3, true, true),
            (&[204, 204, 507], 3, true, true),
            (&[204, 204], 3, true, true),
            (&[204, 404, 409], 3, false, false),
            (&[409, 409, 204], 3, true, true),
            (&[404, 404, 204], 3, false, true),
            (&[412, 412, 412], 3, false, false),
            (&[204, 404], 2, false, false),
            (&[204], 1, true, true),
            (&[], 0, false, false),
            (&[], 3, false, false),
            (&[425, 204, 204], 3, true, true),
            (&[425, 425, 204], 3, false, false),
        ] {
            assert_eq!(is_done(&own, statuses, replicas), done, "{statuses:?}");
            assert_eq!(is_done(&asked, statuses, replicas), done_if_asked, "{statuses:?}");
        }
    }
}
