//! Objects deleted in batches: what is due on a device goes there in one request (`peer::deletes`), past the gateway.
//!
//! Only where all is as usual: the container is known and whole, every primary of the object is a server that takes
//! such requests, and more than half of them say the same good thing, as the gateway would want it. Everything else is
//! left to the gateway, which sees it as if no batch had been sent.
//! All servers are asked twice: first what a deletion would come to, then, where they agree (`agreement.rs`), for the
//! deletion. A deletion that a client has asked for needs no agreement, unless an object lock may hold what is to go.
//! Always holds: no server deletes what has expired before the others have answered; no more requests to each of the
//! replicas at the same time than configured; what is remembered of containers and servers (`learnt.rs`) ends with the
//! pass.
//! Deliberately absent: which request takes what (`batches.rs`), rows of the queue, refusals.

use super::agreement::{BatchOutcome, ReplicaAnswers};
use super::batches::{BatchPlace, DeleteBatch, DeleteBatches, TaskReplica, server_of};
use super::learnt::{ExpirerKnowledge, KnownContainer, ServerAddress};
use super::tasks::Task;
use crate::internal_client::{InternalClient, InternalRequest, is_among};
use crate::ring_client::{context_of, json_body, target};
use arc_swap::ArcSwap;
use futures_util::StreamExt;
use futures_util::stream::iter;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use peer::deletes::{self, CheckedDelete, MAX_STATUSES, OneDelete};
use peer::message::header_names::{X_BUCKET_LOCK, X_POLICY_INDEX, X_SHARDING_STATE};
use peer::message::{DeleteObject, DeleteObjects, HeaderField, RowTargets, UpdateNode, UpdateTargets};
use peer::{Body, Call, PartitionTarget, PeerError, Peers, Response, Target, Timeouts};
use placement::{Device, Ring};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use vocabulary::object_lock::bucket_of;
use vocabulary::{EntityPath, HashPrefix, Partition, PolicyIndex, Timestamp};

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

impl ObjectServers {
    /// Deletes what can be deleted in batches; what became of each task. Tombstones of before `horizon` do not last.
    pub(super) async fn delete(
        &self,
        tasks: &[Task],
        client: &InternalClient,
        known: &ExpirerKnowledge,
        at_once: usize,
        horizon: Timestamp,
    ) -> Vec<BatchOutcome> {
        self.learn_containers(tasks, client, known, at_once).await;
        let places: Vec<ObjectPlace> = (tasks.iter().enumerate())
            .filter_map(|(number, task)| self.place(number, task, known))
            .collect();
        self.learn_servers(&places, known, at_once).await;
        let takes = |device: &&Device| known.takes_batches(&server_of(device));
        let mut answers = vec![ReplicaAnswers::default(); tasks.len()];
        let (mut checks, mut deletes) = (DeleteBatches::default(), DeleteBatches::default());
        for place in &places {
            let (primaries, task) = (place.primaries(), &tasks[place.task]);
            if primaries.iter().all(takes) {
                answers[place.task] = ReplicaAnswers::none(primaries.len());
                let batches = match task.is_async && !may_hold(task, known) {
                    true => &mut deletes,
                    false => &mut checks,
                };
                self.add(place, &primaries, task, batches);
            }
        }
        let checked = self.send_all(checks.all(true), known, at_once, &mut answers).await;
        for batch in checked {
            add_agreed(batch, tasks, &answers, &mut deletes);
        }
        self.send_all(deletes.all(false), known, at_once, &mut answers).await;
        let answered = tasks.iter().zip(&answers);
        answered
            .map(|(task, answers)| match self.has_no_ring(task, known) {
                true => BatchOutcome::Left,
                false => match BatchOutcome::of(task, answers, horizon) {
                    // The gateway would ask for no agreement either.
                    BatchOutcome::Unclear if task.is_async && may_hold(task, known) => BatchOutcome::Held,
                    outcome => outcome,
                },
            })
            .collect()
    }

    /// Sends batches; what their servers answer takes the place of earlier answers.
    async fn send_all(
        &self,
        batches: Vec<DeleteBatch>,
        known: &ExpirerKnowledge,
        at_once: usize,
        answers: &mut [ReplicaAnswers],
    ) -> Vec<DeleteBatch> {
        // An object is at several servers, which are asked at the same time as those who are asked for each by itself.
        let copies = answers.iter().map(|answers| answers.statuses.len()).max();
        let at_once = at_once.saturating_mul(copies.unwrap_or_default().max(1));
        let sent = batches.into_iter().map(|batch| self.send(batch, known));
        let sent: Vec<_> = sent.collect();
        let mut sending = iter(sent).buffer_unordered(at_once);
        let mut done = vec![];
        while let Some((batch, answered)) = sending.next().await {
            for (number, TaskReplica { task, replica }) in batch.replicas.iter().enumerate() {
                answers[*task].note(*replica, answered.get(number).copied());
            }
            done.push(batch);
        }
        done
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

    /// Asks each server that is not known yet whether it can check deletions: one that cannot would delete at once.
    async fn learn_servers(&self, places: &[ObjectPlace], known: &ExpirerKnowledge, at_once: usize) {
        let now = self.peers.world().clock.elapsed();
        let mut new: BTreeMap<ServerAddress, DeleteBatch> = BTreeMap::new();
        for place in places {
            for device in place.primaries() {
                let server = server_of(device);
                if known.is_to_be_asked(&server, now) {
                    let batch = || DeleteBatch::question(BatchPlace::of(device, place.policy));
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
            let task = place.task;
            batches.add(
                BatchPlace::of(device, place.policy),
                TaskReplica { task, replica },
                delete,
            );
        }
    }

    /// What is answered to all in the batch, or nothing; whether its server takes batches is noted.
    async fn send(&self, batch: DeleteBatch, known: &ExpirerKnowledge) -> (DeleteBatch, Vec<CheckedDelete>) {
        let answered = self.ask(&batch, known).await;
        let now = self.peers.world().clock.elapsed();
        known.note(&batch.server, batch.deletes.is_empty(), answered.is_some(), now);
        (batch, answered.unwrap_or_default())
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
        let body = Body::whole(batch.body());
        let call = Call::new(context_of(super::NAME), deletes).with_body(body);
        let (ip, port) = &batch.server;
        let timeouts = Timeouts {
            response: match batch.deletes.is_empty() {
                true => self.timeouts.response.min(QUESTION),
                false => self.timeouts.response,
            },
            ..self.timeouts
        };
        self.peers.send(ip, *port, call, timeouts).await
    }

    async fn ask(&self, batch: &DeleteBatch, known: &ExpirerKnowledge) -> Option<Vec<CheckedDelete>> {
        let why = match self.sent(batch).await {
            Ok(response) if response.status() == http::StatusCode::OK => {
                let body = response.into_body();
                let body = (body.collect_within(self.peers.world(), MAX_STATUSES, self.timeouts.response)).await;
                if let Some(answered) = body.ok().and_then(|body| answers_in(&body, batch)) {
                    let statuses = answered.iter().map(|one| one.status);
                    batch.note_early(statuses, &known.failures);
                    return Some(answered);
                }
                "not the statuses of what it was asked".to_owned()
            }
            Ok(response) => response.status().to_string(),
            Err(error) => error.to_string(),
        };
        let (name, (ip, port), device) = (super::NAME, &batch.server, &batch.device);
        match batch.deletes.len() {
            0 => tracing::debug!("{name}: {ip}:{port} takes deletions one by one: {why}"),
            count => {
                let what = format!("{count} deletions at once on {device}");
                known.failures.note_at(format!("{ip}:{port}"), what, why);
            }
        }
        None
    }
}

/// Whether an object lock may hold what is to be deleted.
fn may_hold(task: &Task, known: &ExpirerKnowledge) -> bool {
    let container = known.container(&container_of(&task.target));
    container.is_some_and(|container| container.may_hold)
}

pub(super) fn container_of(target: &EntityPath) -> EntityPath {
    EntityPath {
        object: None,
        ..target.clone()
    }
}

/// The deletions of a batch that was only checked, where the object's servers agree; not at a server that has nothing
/// to delete, or did not say.
fn add_agreed(batch: DeleteBatch, tasks: &[Task], answers: &[ReplicaAnswers], deletes: &mut DeleteBatches) {
    let (server, policy) = (batch.server, batch.policy);
    for (of, delete) in batch.replicas.into_iter().zip(batch.deletes) {
        let answers = &answers[of.task];
        let deletes_something = answers.statuses[of.replica].is_some_and(|status| is_among(status, &[2]));
        if deletes_something && answers.agree(&tasks[of.task]) {
            let (server, device) = (server.clone(), batch.device.clone());
            deletes.add(BatchPlace { server, device, policy }, of, delete);
        }
    }
}

/// What a server has answered to a batch.
fn answers_in(body: &[u8], batch: &DeleteBatch) -> Option<Vec<CheckedDelete>> {
    let count = batch.deletes.len();
    if batch.only_checks {
        return deletes::decode_checked(body, count);
    }
    let done = |status| CheckedDelete {
        status,
        tombstone: None,
    };
    let statuses = deletes::decode_statuses(body, count)?;
    Some(statuses.into_iter().map(done).collect())
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

fn has_lock(bucket: &Response) -> bool {
    let lock = bucket.headers().get(X_BUCKET_LOCK);
    lock.is_some_and(|lock| !lock.is_empty())
}

/// What a gateway says of a container that is there.
async fn look_at(client: &InternalClient, path: &EntityPath) -> Option<KnownContainer> {
    let response = client
        .ask(&InternalRequest::new(Method::HEAD, path.clone()), &[2])
        .await
        .ok()?;
    let header = |name: HeaderName| response.headers().get(name)?.to_str().ok();
    let bucket = bucket_of(path.container.as_deref()?);
    let may_hold = match path.container.as_deref() == Some(bucket) {
        true => has_lock(&response),
        false => {
            let bucket = EntityPath::account(&path.account).with_container(bucket);
            let found = client.ask(&InternalRequest::new(Method::HEAD, bucket), &[2, 404]).await;
            found.map_or(true, |found| has_lock(&found))
        }
    };
    Some(KnownContainer {
        may_hold,
        policy: PolicyIndex(header(X_POLICY_INDEX)?.parse().ok()?),
        is_whole: matches!(header(X_SHARDING_STATE), None | Some("unsharded")),
    })
}
