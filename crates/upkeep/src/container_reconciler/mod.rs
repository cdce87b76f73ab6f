//! Container-reconciler: objects in another policy than that of their container.
//!
//! When a container is created under two policies at once, one of them wins; what was written under the
//! other in the meantime stands in a queue. Each object is moved to the right policy, or deleted there,
//! and removed from the wrong one; then its row is taken out of the queue.
//! Always holds: what is moved keeps its time but for an offset, so that what clients write later wins;
//! the object is in the right place, unless it has expired, before it is removed from the wrong one, and that before
//! its row goes;
//! after a crash in between the rest is still to do.
//! Deliberately absent: who fills the queue (the container-replicator).
//! Tests: `record.rs`, `tests/interop/test_container_reconciler.py`.

mod record;

use crate::failure_memory::FailureMemory;
use crate::internal_client::{InternalClient, InternalRequest, UnexpectedStatus, is_of_object};
use crate::peer_failures::PeerFailures;
use crate::ring_client::{NodeResponse, RingClient, context_of};
use crate::work_share::WorkShare;
use crate::{UpkeepJob, UpkeepStep};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use listing_engine::better_policy;
use listing_engine::wire::{PolicyClaim, Summary};
use peer::message::header_names::{
    X_ALLOW_RESERVED_NAMES, X_BACKEND_DELETE_TIMESTAMP, X_BACKEND_PUT_TIMESTAMP, X_BACKEND_TIMESTAMP,
    X_CRYPTO_AS_STORED, X_DELETE_AT, X_OPEN_EXPIRED, X_POLICY_INDEX, X_STATUS_CHANGED_AT,
};
use peer::message::{ReadContainer, RowChange, UpdateContainer};
pub use record::ACCOUNT as MISPLACED_OBJECTS;
use record::{FoundVersion, Move, Record, container_of, judge_destination, judge_source, later};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use vocabulary::{EntityPath, Policies, PolicyIndex, Timestamp};
use world::World;

const NAME: &str = "container-reconciler";

/// What an operator can say.
#[derive(Debug, Clone)]
pub struct ReconcilerOptions {
    /// The hidden account of the queue.
    pub account: String,
    /// How long an object that cannot be found is looked for again.
    pub reclaim_age: Duration,
    /// Objects at the same time.
    pub concurrency: usize,
    /// In how many parts the work is divided; 0 for one.
    pub processes: u64,
    /// Which of them this is.
    pub process: u64,
    /// What this cluster has: no server is asked for others.
    pub policies: Policies,
}

/// Goes over the queue.
pub struct ContainerReconciler {
    world: World,
    client: InternalClient,
    /// For what the next pass tries again.
    once: InternalClient,
    containers: RingClient,
    options: ReconcilerOptions,
    /// `None` between passes.
    pass: Option<Pass>,
    oldest: Option<Timestamp>,
    failures: PeerFailures,
    /// Of requests about a policy's objects, in this pass.
    failing: FailureMemory<PolicyIndex>,
}

/// What is left of a pass.
#[derive(Default)]
struct Pass {
    containers: VecDeque<String>,
    listing: Option<(String, String)>,
    records: VecDeque<(String, Record)>,
    oldest_left: Option<Timestamp>,
}

/// Not now, but in the next pass; and why.
struct Later(String);

impl From<UnexpectedStatus> for Later {
    fn from(error: UnexpectedStatus) -> Self {
        Later(error.answer())
    }
}

impl ContainerReconciler {
    /// Moves objects through `client`, which must neither decrypt nor follow nor compose anything.
    pub fn new(world: World, client: InternalClient, containers: RingClient, options: ReconcilerOptions) -> Self {
        Self {
            world,
            once: client.once(),
            client,
            containers,
            options,
            pass: None,
            oldest: None,
            failures: PeerFailures::new(NAME),
            failing: FailureMemory::default(),
        }
    }

    fn queue(&self, container: &str) -> EntityPath {
        EntityPath::account(self.options.account.as_str()).with_container(container)
    }

    /// The containers of the queue: that of this hour first, which the account may not know yet.
    async fn begin(&self) -> Pass {
        let newest = container_of(self.world.clock.now());
        let listed = self.client.queue(&self.options.account, NAME).await;
        let others = listed.into_iter().filter(|name| *name != newest);
        let containers = std::iter::once(newest.clone()).chain(others).collect();
        Pass {
            containers,
            ..Pass::default()
        }
    }

    async fn list(&self, pass: &mut Pass, container: String, marker: String) {
        let path = self.queue(&container);
        let page = match self.client.page(&path, &marker, None).await {
            Ok(page) => page,
            Err(error) => {
                let why = format_args!("{}; the container waits for the next pass", error.answer());
                return self.failures.note_item(error, why);
            }
        };
        let Some(last) = page.last() else {
            if marker.is_empty() && self.is_too_old_for(&container) {
                let ask = InternalRequest::new(Method::DELETE, path);
                if let Err(error) = self.client.tell(&ask, &[2, 404, 409, 412]).await {
                    let why = format_args!("{}; the empty container stays for now", error.answer());
                    self.failures.note_item(error, why);
                }
            }
            return;
        };
        pass.listing = Some((container.clone(), last.name.clone()));
        for row in page {
            match Record::read(&row) {
                Some(record) if self.is_mine(&record) => pass.records.push_back((container.clone(), record)),
                Some(_) => {}
                None => {
                    let what = format_args!("{}/{}", path.path(), row.name);
                    self.failures.note_item(what, "invalid queue record; left alone");
                }
            }
        }
    }

    fn is_mine(&self, record: &Record) -> bool {
        let share = WorkShare {
            number: self.options.process,
            of: self.options.processes,
        };
        share.has_name(&record.path.path())
    }

    fn is_too_old(&self, time: f64) -> bool {
        self.world.clock.now().as_f64() - time > self.options.reclaim_age.as_secs_f64()
    }

    fn is_too_old_for(&self, container: &str) -> bool {
        container.parse().is_ok_and(|time| self.is_too_old(time))
    }

    async fn work(&self, pass: &mut Pass) -> UpkeepStep {
        let concurrency = self.options.concurrency.max(1);
        let count = concurrency.min(pass.records.len());
        let records: Vec<(String, Record)> = pass.records.drain(..count).collect();
        let working = stream::iter(records.into_iter().map(|(container, record)| async move {
            let later = self.reconcile(&container, &record).await.err();
            if let Some(Later(why)) = &later {
                let why = format_args!("{why}; tried again in the next pass");
                self.failures.note_item(record.path.path(), why);
            }
            (record.at, later.is_none())
        }));
        let worked: Vec<(Timestamp, bool)> = working.buffer_unordered(concurrency).collect().await;
        let done = worked.iter().filter(|(_, is_done)| *is_done).count() as u64;
        let left = worked.iter().filter(|(_, is_done)| !is_done).map(|(at, _)| *at);
        pass.oldest_left = left.chain(pass.oldest_left).min();
        let failed = worked.len() as u64 - done;
        UpkeepStep::Did { done, failed }
    }

    /// Puts one object where it belongs.
    async fn reconcile(&self, container: &str, record: &Record) -> Result<(), Later> {
        self.check_policy(record.policy)?;
        let Some(right) = self.right_policy(&record.path).await else {
            return Err(Later("unable to determine the destination policy".to_owned()));
        };
        if right != record.policy {
            self.check_policy(right)?;
            self.move_object(record, right).await?;
        }
        self.take_out(container, record).await
    }

    /// The gateway would look for servers of any policy again and again, and wait for those that are down.
    fn check_policy(&self, policy: PolicyIndex) -> Result<(), Later> {
        if self.options.policies.get(policy).is_none() {
            return Err(Later(format!("swift.conf has no policy {policy}")));
        }
        match self.failing.leaves_out(&policy) {
            true => Err(Later(format!(
                "the servers of policy {policy} have failed several times in this pass"
            ))),
            false => Ok(()),
        }
    }

    /// Remembers whether servers of `policy` could answer.
    fn noted<T>(&self, policy: PolicyIndex, answer: Result<T, UnexpectedStatus>) -> Result<T, Later> {
        let failed = answer.as_ref().is_err_and(|error| error.status >= 500);
        self.failing.note(policy, failed);
        Ok(answer?)
    }

    async fn move_object(&self, record: &Record, right: PolicyIndex) -> Result<(), Later> {
        let head = at(InternalRequest::new(Method::HEAD, record.path.clone()), right);
        let there = self.noted(right, self.once.ask(&head, &[2, 4]).await)?;
        let there = found(there.status(), there.headers(), self.world.clock.now());
        let (step, source) = match judge_destination(record, there) {
            Some(step) => (step, None),
            None => {
                let get = at(InternalRequest::new(Method::GET, record.path.clone()), record.policy);
                let get = get.with(X_OPEN_EXPIRED, "true");
                let source = self.noted(record.policy, self.once.ask(&get, &[2, 4]).await)?;
                let too_old = self.is_too_old(record.at.as_f64());
                let here = found(source.status(), source.headers(), self.world.clock.now());
                (judge_source(record, here, too_old), Some(source))
            }
        };
        let (path, wrong) = (record.path.path(), record.policy);
        match (step, source) {
            (Move::Copy(time), Some(source)) => {
                let (head, body) = source.into_parts();
                let mut put = InternalRequest::new(Method::PUT, record.path.clone());
                put.headers = copied(&head.headers);
                let put = at(put.at(time), right);
                self.noted(right, self.once.upload(&put, body, &[2]).await)?;
                tracing::debug!("{NAME}: {path} moved from policy {wrong} to policy {right}");
            }
            (Move::Delete(time), _) => {
                let delete = at(
                    InternalRequest::new(Method::DELETE, record.path.clone()).at(time),
                    right,
                );
                self.noted(right, self.once.tell(&delete, &[2, 404]).await)?;
            }
            (Move::CleanUp, _) => {}
            (Move::GiveUp, _) => {
                let why = format_args!("not available in policy {wrong} and too old to be looked for again; given up");
                self.failures.note_item(path, why);
                return Ok(());
            }
            _ => {
                return Err(Later(format!("not available in policy {wrong}")));
            }
        }
        let clean = at(
            InternalRequest::new(Method::DELETE, record.path.clone()).at(later(record.at, 1)),
            wrong,
        );
        self.noted(wrong, self.once.tell(&clean, &[2, 404]).await)?;
        Ok(())
    }

    /// The policy that the container has, as most of its servers know it.
    async fn right_policy(&self, path: &EntityPath) -> Option<PolicyIndex> {
        let name = path.container.as_deref()?;
        let container = EntityPath::account(path.account.as_str()).with_container(name);
        let allowed = (X_ALLOW_RESERVED_NAMES, HeaderValue::from_static("true"));
        let headers: Arc<HeaderMap> = Arc::new([allowed].into_iter().collect());
        let head = |target| ReadContainer {
            head_only: true,
            headers: headers.clone(),
            ..ReadContainer::new(target)
        };
        let place = (&container, container.clone());
        let responses = self
            .containers
            .send_to_primaries(&context_of(NAME), place, Bytes::new(), head)
            .await;
        let claims: Vec<Summary> = responses.iter().filter_map(claim).collect();
        if claims.len() * 2 <= responses.len() {
            return None;
        }
        let better = |best: Summary, next: Summary| match better_policy(&best, &next) {
            Some(_) => next,
            None => best,
        };
        // One that has never heard of it knows nothing of its policy.
        let (known, unknown): (Vec<_>, Vec<_>) = claims
            .into_iter()
            .partition(|claim| claim.put_timestamp > Timestamp::ZERO);
        let best = known.into_iter().reduce(better).or(unknown.into_iter().next())?;
        best.claim.map(|claim| claim.policy)
    }

    /// Takes the row out of the queue, at each of its servers.
    async fn take_out(&self, container: &str, record: &Record) -> Result<(), Later> {
        let queue = self.queue(container);
        let path = queue.with_object(record.name.as_str());
        let delete = |target| UpdateContainer {
            change: RowChange::Delete,
            timestamp: record.done_at().into(),
            policy: PolicyIndex::LEGACY.into(),
            ..UpdateContainer::new(target)
        };
        let responses = self
            .containers
            .send_to_primaries(&context_of(NAME), (&queue, path), Bytes::new(), delete)
            .await;
        for response in responses.iter().filter(|response| !response.is_success()) {
            let what = format_args!("{} is to go from the queue", record.name);
            self.failures.note_response(response, what);
        }
        match responses.iter().any(NodeResponse::is_success) {
            true => Ok(()),
            false => Err(Later("no server took it out of the queue".to_owned())),
        }
    }
}

/// About what a policy has; what is encrypted stays as it is, as nothing here has the keys of clients.
fn at(mut ask: InternalRequest, policy: PolicyIndex) -> InternalRequest {
    ask.headers.insert(X_CRYPTO_AS_STORED, HeaderValue::from_static("true"));
    ask.headers.insert(X_POLICY_INDEX, HeaderValue::from(policy.0));
    ask
}

fn found(status: StatusCode, headers: &HeaderMap, now: Timestamp) -> FoundVersion {
    let due = headers.get(X_DELETE_AT).and_then(|due| due.to_str().ok()?.parse().ok());
    FoundVersion {
        status: status.as_u16(),
        at: time(headers, &X_BACKEND_TIMESTAMP),
        has_expired: status.is_success() && due.is_some_and(|due: u64| due <= now.seconds()),
    }
}

fn time(headers: &HeaderMap, name: &HeaderName) -> Timestamp {
    let text = headers.get(name).and_then(|value| value.to_str().ok());
    text.and_then(|text| text.parse().ok()).unwrap_or(Timestamp::ZERO)
}

/// All that belongs to an object.
fn copied(headers: &HeaderMap) -> HeaderMap {
    let copied = headers.iter().filter(|(name, _)| is_of_object(name.as_str()));
    copied.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// What a container server says about the policy; `None` when it says nothing.
fn claim(response: &NodeResponse) -> Option<Summary> {
    let response = response.response.as_ref().ok()?;
    if !response.status().is_success() && response.status() != StatusCode::NOT_FOUND {
        return None;
    }
    let headers = response.headers();
    let number = |name: HeaderName| headers.get(name)?.to_str().ok()?.parse::<u64>().ok();
    let policy = number(X_POLICY_INDEX)
        .and_then(|index| u32::try_from(index).ok())
        .unwrap_or(0);
    Some(Summary {
        id: String::new(),
        hash: String::new(),
        max_row: -1,
        created_at: Timestamp::ZERO,
        put_timestamp: time(headers, &X_BACKEND_PUT_TIMESTAMP),
        delete_timestamp: time(headers, &X_BACKEND_DELETE_TIMESTAMP),
        metadata: String::new(),
        claim: Some(PolicyClaim {
            policy: PolicyIndex(policy),
            status_changed_at: time(headers, &X_STATUS_CHANGED_AT),
            count: number(HeaderName::from_static("x-container-object-count")).unwrap_or(0),
        }),
        point: -1,
        shard_max_row: None,
    })
}

#[async_trait::async_trait]
impl UpkeepJob for ContainerReconciler {
    fn name(&self) -> &'static str {
        NAME
    }

    fn oldest(&self) -> Option<Timestamp> {
        let left = self.pass.as_ref().map_or(self.oldest, |pass| pass.oldest_left);
        let waiting = self
            .pass
            .as_ref()
            .and_then(|pass| pass.records.iter().map(|(_, record)| record.at).min());
        left.into_iter().chain(waiting).min()
    }

    async fn step(&mut self) -> UpkeepStep {
        let mut pass = match self.pass.take() {
            Some(pass) => pass,
            None => self.begin().await,
        };
        let mut step = UpkeepStep::LOOKED;
        if !pass.records.is_empty() {
            step = self.work(&mut pass).await;
        } else if let Some((container, marker)) = pass.listing.take() {
            self.list(&mut pass, container, marker).await;
        } else if let Some(container) = pass.containers.pop_front() {
            pass.listing = Some((container, String::new()));
        } else {
            self.oldest = pass.oldest_left;
            self.failures.report();
            self.failing.clear();
            return UpkeepStep::PassOver;
        }
        self.pass = Some(pass);
        step
    }
}
