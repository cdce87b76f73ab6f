//! A partition that belongs here: its suffix hashes beside those of its other primaries.
//!
//! What differs is sent; whether it is ours or theirs that is older shows then. A primary whose drive is
//! out (507) is stood in for by a handoff, as for a client's write.

use super::jobs::Job;
use super::{Fate, NAME, Shared, place};
use crate::circle::user_agent;
use futures_util::future::join_all;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use object_engine::{PartitionKey, Rehash, SuffixHashes};
use peer::{Address, Body, Call, Response, Timeouts};
use pickle::Limits;
use placement::Device;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// Longer than the hashes of all suffixes there are.
const LONGEST_ANSWER: u64 = 1 << 20;

type Hashes = BTreeMap<String, String>;

/// What a node holds of the partition.
enum Theirs {
    Hashes(Hashes),
    /// Its drive is out.
    Out,
}

impl Shared {
    /// Compares, and sends what differs.
    pub(super) async fn compare(self: &Arc<Self>, job: &Job, listed: bool) -> Fate {
        let ours = match self.rehash(job, vec![], listed).await {
            Ok(found) => found,
            Err(error) => return self.failed(job, None, &error),
        };
        self.tally.hashed(ours.hashes.len(), ours.computed);
        let Some(ring) = self.ring(job.key.policy) else {
            return Fate::Left;
        };
        let mut nodes = ring.primaries(job.key.partition);
        nodes.retain(|node| node.id != job.own.id);
        let asked = join_all(
            nodes
                .into_iter()
                .map(|node| async move { (node, self.ask(job, node).await) }),
        )
        .await;
        let mut handoffs = ring.handoffs(job.key.partition);
        let mut ours = ours.hashes;
        let mut fate = Fate::Same;
        for (node, answer) in asked {
            let (mut node, mut answer) = (node, answer);
            while let Ok(Theirs::Out) = answer {
                self.tally.failed(node);
                // No one to stand in: the drive comes back, or the ring is changed.
                let Some(next) = handoffs.next().filter(|next| next.id != job.own.id) else {
                    break;
                };
                node = next;
                answer = self.ask(job, node).await;
            }
            fate = match answer {
                Ok(Theirs::Out) => Fate::Left,
                Ok(Theirs::Hashes(theirs)) => self.settle(job, node, &mut ours, &theirs, fate).await,
                Err(error) => self.failed(job, Some(node), &error),
            };
        }
        if fate != Fate::Left {
            self.tally.succeeded();
        }
        fate
    }

    /// Sends `node` what it lacks.
    async fn settle(
        self: &Arc<Self>,
        job: &Job,
        node: &Device,
        ours: &mut Hashes,
        theirs: &Hashes,
        before: Fate,
    ) -> Fate {
        // What we have recorded may be out of date, when something else than requests has been at work. Of what they have
        // nothing of, all is sent that is found.
        let doubtful = |suffix: &String| theirs.contains_key(suffix);
        let rehashed = self.hash_again(job, ours, differing(ours, theirs), doubtful).await;
        if let Err(error) = rehashed {
            return self.failed(job, None, &error);
        }
        let suffixes = differing(ours, theirs);
        if suffixes.is_empty() {
            self.tally.matched();
            return before;
        }
        self.tally.synced(suffixes.len());
        let sent = match self.send(job, node, &suffixes).await {
            Ok(sent) => sent,
            Err(error) => return self.failed(job, Some(node), &error),
        };
        let found: HashSet<String> = sent.keys().map(|hash| hash.suffix()).collect();
        let rehashed = self
            .hash_again(job, ours, suffixes, |suffix| !found.contains(suffix))
            .await;
        match (rehashed, before) {
            (Err(error), _) => self.failed(job, None, &error),
            (Ok(()), Fate::Left) => Fate::Left,
            (Ok(()), _) => Fate::Done,
        }
    }

    /// Hashes those of our suffixes once more that are doubtful.
    async fn hash_again(
        &self,
        job: &Job,
        ours: &mut Hashes,
        mut suffixes: Vec<String>,
        is_doubtful: impl Fn(&String) -> bool,
    ) -> Result<(), String> {
        suffixes.retain(is_doubtful);
        if suffixes.is_empty() {
            return Ok(());
        }
        let found = self.rehash(job, suffixes, false).await?;
        self.tally.hashed(0, found.computed);
        *ours = found.hashes;
        Ok(())
    }

    async fn rehash(&self, job: &Job, suffixes: Vec<String>, list: bool) -> Result<SuffixHashes, String> {
        let key = job.key;
        let hashing = move |engine: &dyn object_engine::ObjectEngine| {
            let suffixes = &suffixes;
            engine.replica().suffix_hashes(key, Rehash { suffixes, list })
        };
        job.local.run(hashing).await
    }

    /// Asks a node for its hashes.
    async fn ask(&self, job: &Job, node: &Device) -> Result<Theirs, String> {
        let response = self.replicate(job.key, node, "").await?;
        match response.status() {
            StatusCode::OK => {}
            StatusCode::INSUFFICIENT_STORAGE => return Ok(Theirs::Out),
            status => return Err(format!("REPLICATE was answered with {status}")),
        }
        let reading = response.into_body().collect(LONGEST_ANSWER);
        let body = self.world.timeout(self.options.http_timeout, reading).await;
        let body = body
            .map_err(|late| late.to_string())?
            .map_err(|error| error.to_string())?;
        let value = pickle::loads(&body, &Limits::default()).map_err(|error| error.to_string())?;
        let entries = value.entries().ok_or("its hashes are not a dictionary")?;
        let hash = |(suffix, hash): &(pickle::Value, pickle::Value)| {
            Some((suffix.text()?.to_owned(), hash.text().unwrap_or_default().to_owned()))
        };
        Ok(Theirs::Hashes(entries.iter().filter_map(hash).collect()))
    }

    /// Sends REPLICATE, with the suffixes that have been changed by other means than requests.
    pub(super) async fn replicate(&self, key: PartitionKey, node: &Device, rest: &str) -> Result<Response, String> {
        let call = Call {
            method: Method::from_bytes(b"REPLICATE").map_err(|error| error.to_string())?,
            address: partition_address(key, node, rest),
            query: String::new(),
            headers: headers(key),
            body: Body::empty(),
            interim: None,
        };
        // Hashing takes its time.
        let timeouts = Timeouts {
            connect: self.options.conn_timeout,
            response: self.options.node_timeout.max(self.options.http_timeout),
        };
        let (ip, port) = (&node.replication_ip, node.replication_port);
        let sent = self.circle.peers.send(ip, port, call, timeouts).await;
        sent.map_err(|error| error.to_string())
    }

    /// Notes that a partition has to wait for a later pass.
    pub(super) fn failed(&self, job: &Job, node: Option<&Device>, why: &str) -> Fate {
        let here = format!("{}/{}", job.local.name, job.key.partition);
        match node {
            Some(node) => {
                self.tally.failed(node);
                tracing::warn!("{NAME}: {here} to {}: {why}", place(node));
            }
            None => {
                self.tally.failed(&job.own);
                tracing::error!("{NAME}: {here}: {why}");
            }
        }
        Fate::Left
    }
}

pub(super) fn partition_address(key: PartitionKey, node: &Device, rest: &str) -> Address {
    Address::Partition {
        device: node.device.clone(),
        partition: key.partition,
        rest: rest.to_owned(),
    }
}

pub(super) fn headers(key: PartitionKey) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(3);
    headers.insert("x-backend-storage-policy-index", HeaderValue::from(key.policy.0));
    headers.insert("user-agent", user_agent(NAME));
    headers
}

/// The suffixes of which a node has nothing, or something else.
fn differing(ours: &Hashes, theirs: &Hashes) -> Vec<String> {
    let differs = |(suffix, hash): &(&String, &String)| theirs.get(*suffix) != Some(hash);
    ours.iter().filter(differs).map(|(suffix, _)| suffix.clone()).collect()
}
