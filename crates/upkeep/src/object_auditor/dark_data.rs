//! The watcher `swift#dark_data`: objects that no container lists.
//!
//! An object is dark when every primary of its container has answered and none lists it. Whatever else
//! is the case, it is left in peace: one server that does not answer makes everything unknown, and so does one whose
//! database is newer than the object, of another policy, or being cut into shards.
//! Always holds: objects younger than `grace_age` are not asked about; shards are followed where the
//! container names them, and the container is asked for its own rows then, which the sharder has not moved yet.
//! Deliberately absent: doing something about it; that is the auditor's.

use crate::RingClient;
use crate::ring_client::{context_of, target};
use futures_util::future::join_all;
use http::{HeaderMap, HeaderName, HeaderValue};
use peer::message::ReadContainer;
use peer::message::header_names::{
    X_ALLOW_RESERVED_NAMES, X_BACKEND_TIMESTAMP, X_POLICY_INDEX, X_RECORD_TYPE, X_SHARDING_STATE,
};
use peer::{Call, Response};
use placement::Device;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use vocabulary::names::quote;
use vocabulary::{EntityPath, Partition, PolicyIndex, Timestamp};
use world::World;

/// An answer with one row is far shorter.
const LONGEST_ANSWER: u64 = 1 << 20;
/// Shards of shards of shards do not exist.
const DEEPEST: usize = 4;

/// What is done about dark data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DarkDataAction {
    /// A line in the log.
    Log,
    /// The object is removed, without a tombstone.
    Delete,
    /// The object goes to quarantine.
    Quarantine,
}

/// Asks containers about objects.
pub struct DarkData {
    world: World,
    containers: RingClient,
    action: DarkDataAction,
    grace_age: Duration,
    unknown: u64,
    okay: u64,
    dark: u64,
}

/// What the containers say of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listedness {
    /// One lists it, or it is too young to be asked about.
    Listed,
    Unlisted,
    /// A server did not answer.
    Unknown,
}

/// What one container server says.
enum ContainerAnswer {
    Listed,
    Unlisted,
    Shard(EntityPath),
}

impl DarkData {
    /// Asks `containers` about objects older than `grace_age`.
    pub fn new(world: World, containers: RingClient, action: DarkDataAction, grace_age: Duration) -> Self {
        Self {
            world,
            containers,
            action,
            grace_age,
            unknown: 0,
            okay: 0,
            dark: 0,
        }
    }

    /// What is done about dark data.
    pub(super) fn action(&self) -> DarkDataAction {
        self.action
    }

    /// What containers say of an object.
    pub(super) async fn look(&self, name: &str, newest: Timestamp, policy: PolicyIndex) -> Listedness {
        let known_after = newest.as_f64() + self.grace_age.as_secs_f64();
        if known_after >= self.world.clock.now().as_f64() {
            return Listedness::Listed;
        }
        let path = name.strip_prefix('/').and_then(|path| EntityPath::split(path).ok());
        match path {
            Some(EntityPath {
                account,
                container: Some(container),
                object: Some(object),
            }) => {
                let container = EntityPath::account(account).with_container(container);
                let newest = Some(newest);
                let asked = AskedAbout {
                    object: &object,
                    newest,
                    policy,
                };
                self.ask(container, asked).await
            }
            _ => Listedness::Unknown,
        }
    }

    /// Counts an object for the line at the end of the pass.
    pub(super) fn add(&mut self, listed: Listedness) {
        match listed {
            Listedness::Listed => self.okay += 1,
            Listedness::Unlisted => self.dark += 1,
            Listedness::Unknown => self.unknown += 1,
        }
    }

    /// At the end of a pass.
    pub(super) fn conclude(&mut self) {
        let (unknown, okay, dark) = (self.unknown, self.okay, self.dark);
        tracing::info!("total unknown {unknown} ok {okay} dark {dark}");
        (self.unknown, self.okay, self.dark) = (0, 0, 0);
    }

    async fn ask(&self, container: EntityPath, about: AskedAbout<'_>) -> Listedness {
        let (mut asked, mut next) = (BTreeSet::new(), vec![container]);
        let mut is_shard = false;
        for _ in 0..DEEPEST {
            let mut shards = vec![];
            for container in std::mem::take(&mut next) {
                // Asked again, its own rows count.
                let kind = match asked.insert(container.path()) {
                    true => "auto",
                    false => "object",
                };
                // Shards are made of rows that were there before.
                let newest = about.newest.filter(|_| !is_shard);
                let about = AskedAbout { newest, ..about };
                let answers = self.ask_primaries(&container, about, kind).await;
                if answers
                    .iter()
                    .flatten()
                    .any(|answer| matches!(answer, ContainerAnswer::Shard(_)))
                {
                    shards.push(container);
                }
                for answer in answers {
                    match answer {
                        None => return Listedness::Unknown,
                        Some(ContainerAnswer::Listed) => return Listedness::Listed,
                        Some(ContainerAnswer::Unlisted) => {}
                        Some(ContainerAnswer::Shard(shard)) if shards.contains(&shard) => {}
                        Some(ContainerAnswer::Shard(shard)) => shards.push(shard),
                    }
                }
            }
            if shards.is_empty() {
                return Listedness::Unlisted;
            }
            (next, is_shard) = (shards, true);
        }
        Listedness::Unknown
    }

    /// What each says, those first who list it; `None` for one that gave no usable answer.
    async fn ask_primaries(
        &self,
        container: &EntityPath,
        about: AskedAbout<'_>,
        kind: &'static str,
    ) -> Vec<Option<ContainerAnswer>> {
        let ring = self.containers.ring.load_full();
        let partition = self.containers.partition_of(&ring, container);
        let primaries = ring.primaries(partition);
        if primaries.is_empty() {
            return vec![None];
        }
        let path = Arc::new(container.clone());
        let calls = primaries
            .iter()
            .map(|device| self.ask_one(device, partition, path.clone(), about, kind));
        let mut answers = join_all(calls).await;
        answers.sort_by_key(|answer| !matches!(answer, Some(ContainerAnswer::Listed)));
        answers
    }

    async fn ask_one(
        &self,
        device: &Device,
        partition: Partition,
        path: Arc<EntityPath>,
        about: AskedAbout<'_>,
        kind: &'static str,
    ) -> Option<ContainerAnswer> {
        // Versions have reserved names.
        let allowed = (X_ALLOW_RESERVED_NAMES, HeaderValue::from_static("true"));
        let headers: HeaderMap = [allowed].into_iter().collect();
        let name = quote(about.object);
        let read = ReadContainer {
            query: format!("format=json&prefix={name}&limit=1&includes={name}&states=listing"),
            record_type: Some(HeaderValue::from_static(kind)),
            headers: Arc::new(headers),
            ..ReadContainer::new(target(device, partition, &path))
        };
        let call = Call::new(context_of(super::NAME), read);
        // A server that serves replication only would not answer.
        let sent = self
            .containers
            .peers
            .send(&device.ip, device.port, call, self.containers.timeouts);
        let patience = self.containers.timeouts.response;
        let response = sent.await.ok().filter(|response| response.status().is_success())?;
        let may_know = about.may_know(response.headers());
        let answer = self
            .world
            .timeout(patience, understand(response, about.object))
            .await
            .ok()??;
        match answer {
            ContainerAnswer::Unlisted | ContainerAnswer::Shard(_) if !may_know => None,
            answer => Some(answer),
        }
    }
}

/// The object that is asked about.
#[derive(Clone, Copy)]
struct AskedAbout<'a> {
    object: &'a str,
    /// When it was written; nothing where that does not count.
    newest: Option<Timestamp>,
    policy: PolicyIndex,
}

impl AskedAbout<'_> {
    /// Whether a database that lists no such object could: not one that was made since the object was written, as
    /// another may have its rows, nor one of another policy, whose reconciler has the object still to move, nor one
    /// that is being cut: some of its rows are in no shard yet, and none of its answers has all others.
    fn may_know(&self, container: &HeaderMap) -> bool {
        let text = |name: HeaderName| container.get(name)?.to_str().ok();
        let made = text(X_BACKEND_TIMESTAMP).and_then(|at| at.parse().ok());
        let is_older = match (made, self.newest) {
            (_, None) => true,
            (made, Some(newest)) => made.is_some_and(|made: Timestamp| made <= newest),
        };
        let policy = text(X_POLICY_INDEX).and_then(|policy| policy.parse().ok());
        let is_being_cut = text(X_SHARDING_STATE) == Some("sharding");
        is_older && policy == Some(self.policy.0) && !is_being_cut
    }
}

async fn understand(response: Response, object: &str) -> Option<ContainerAnswer> {
    let (head, body) = response.into_parts();
    let is_shards = head
        .headers
        .get(X_RECORD_TYPE)
        .is_some_and(|kind| kind.as_bytes() == b"shard");
    if head.status == http::StatusCode::NO_CONTENT {
        return Some(ContainerAnswer::Unlisted);
    }
    let bytes = body.collect(LONGEST_ANSWER).await.ok()?;
    let rows: Value = serde_json::from_slice(&bytes).ok()?;
    let first = rows.as_array()?.first();
    let name = first.and_then(|row| row["name"].as_str());
    match (is_shards, name) {
        (true, Some(name)) => {
            let shard = EntityPath::split(name).ok()?;
            shard.container.as_ref()?;
            Some(ContainerAnswer::Shard(EntityPath { object: None, ..shard }))
        }
        (false, Some(name)) if name == object => Some(ContainerAnswer::Listed),
        // No shard is listed for its name.
        (true, None) => None,
        _ => Some(ContainerAnswer::Unlisted),
    }
}
