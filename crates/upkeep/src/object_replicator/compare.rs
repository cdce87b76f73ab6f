//! A partition that belongs here: its suffix hashes beside those of its other primaries.
//!
//! What differs is sent; whether it is ours or theirs that is older shows then. A primary whose drive is
//! out (507) is stood in for by a handoff, as for a client's write.

use super::offers::{Objects, is_needed};
use super::ssync::TOGETHER;
use super::tasks::PartitionTask;
use super::{Fate, NAME, Shared};
use crate::faults::ToFault;
use crate::ring_client::place;
use futures_util::future::join_all;
use http::StatusCode;
use object_engine::{Hashes, Rehash, SeenVersions, Suffix, SuffixHashes, Versions, decode_hashes, suffix_hash};
use placement::Device;
use std::collections::BTreeMap;
use std::sync::Arc;
use vocabulary::{Fault, FaultKind};

/// Longer than the hashes of all suffixes there are.
const LONGEST_ANSWER: u64 = 1 << 20;

/// What a node holds of the partition.
enum Theirs {
    Hashes(Hashes),
    /// Its drive is out.
    Out,
}

impl Shared {
    /// Compares, and sends what differs.
    pub(super) async fn compare(self: &Arc<Self>, task: &PartitionTask, listed: bool) -> Fate {
        let mut ours = match self.rehash(task, vec![], listed).await {
            Ok(found) => found,
            Err(error) => return self.failed(task, None, &error),
        };
        self.tally.hashed(ours.hashes.len(), ours.computed);
        let Some(ring) = self.ring(task) else {
            return Fate::Left;
        };
        let mut nodes = ring.primaries(task.key.partition);
        nodes.retain(|node| node.id != task.own.id);
        let asked = join_all(
            nodes
                .into_iter()
                .map(|node| async move { (node, self.hashes_at(task, node).await) }),
        )
        .await;
        let mut handoffs = ring.handoffs(task.key.partition);
        let (mut fate, mut whole) = (Fate::Same, 0);
        if ours.unreadable > 0 {
            // The engine has said what; the other suffixes go on.
            self.tally.failed(&task.own);
            fate = Fate::Left;
        }
        for (node, answer) in asked {
            let (mut node, mut answer) = (node, answer);
            while let Ok(Theirs::Out) = answer {
                self.tally.failed(node);
                let here = format!("{}/{}", task.local.name, task.key.partition);
                let out = Fault::peer("REPLICATE was answered with 507: its drive is out; a handoff stands in");
                self.peer_failures.note(node, here, &out);
                // No one to stand in: the drive comes back, or the ring is changed.
                let Some(next) = handoffs.next().filter(|next| next.id != task.own.id) else {
                    break;
                };
                node = next;
                answer = self.hashes_at(task, node).await;
            }
            let here = match answer {
                Ok(Theirs::Out) => Fate::Left,
                Ok(Theirs::Hashes(theirs)) => self.bring(task, node, &mut ours, &theirs).await,
                Err(error) => self.failed(task, Some(node), &error),
            };
            whole += usize::from(here != Fate::Left);
            fate = match (fate, here) {
                (Fate::Left, _) | (_, Fate::Left) => Fate::Left,
                (Fate::Done, _) | (_, Fate::Done) => Fate::Done,
                (Fate::Same, Fate::Same) => Fate::Same,
            };
        }
        self.tally.succeeded(whole);
        fate
    }

    /// Sends `node` what it lacks.
    async fn bring(
        self: &Arc<Self>,
        task: &PartitionTask,
        node: &Device,
        ours: &mut SuffixHashes,
        theirs: &Hashes,
    ) -> Fate {
        let (mut doubtful, mut sent) = (vec![], 0);
        for suffixes in differing(&ours.hashes, theirs).chunks(TOGETHER) {
            match self
                .bring_some(task, node, suffixes, (&*ours, theirs), (&mut doubtful, &mut sent))
                .await
            {
                Ok(()) => {}
                Err(error) => return self.failed(task, Some(node), &error),
            }
        }
        if let Err(error) = self.hash_again(task, ours, doubtful).await {
            return self.failed(task, None, &error);
        }
        match sent {
            0 => {
                self.tally.matched();
                Fate::Same
            }
            _ => Fate::Done,
        }
    }

    /// Sends what is under these suffixes, and notes those of which we have recorded something else than is there:
    /// something else than requests may have been at work. Those sent are added to `sent`.
    async fn bring_some(
        self: &Arc<Self>,
        task: &PartitionTask,
        node: &Device,
        suffixes: &[Suffix],
        (ours, theirs): (&SuffixHashes, &Hashes),
        (doubtful, sent): (&mut Vec<String>, &mut usize),
    ) -> Result<(), Fault> {
        let mut objects = self.objects(task, suffixes, &ours.seen).await?;
        let found = hashes_of(&objects);
        let is_doubtful = |suffix: &&Suffix| {
            found
                .get(suffix)
                .is_none_or(|hash| ours.hashes.get(suffix) != Some(hash))
        };
        doubtful.extend(suffixes.iter().filter(is_doubtful).map(Suffix::to_string));
        let lacking = differing(&found, theirs);
        if lacking.is_empty() {
            return Ok(());
        }
        if *sent == 0 {
            self.tally.sent();
        }
        *sent += lacking.len();
        objects.retain(|hash, _| lacking.binary_search(&Suffix::of(*hash)).is_ok());
        self.tally.synced(lacking.len());
        let names: Vec<String> = lacking.iter().map(Suffix::to_string).collect();
        self.transfer(task, node, &names, objects).await?;
        Ok(())
    }

    /// What is under these suffixes, some of which have been looked at already.
    async fn objects(&self, task: &PartitionTask, suffixes: &[Suffix], seen: &SeenVersions) -> Result<Objects, Fault> {
        let unseen = suffixes.iter().filter(|suffix| !seen.contains_key(suffix));
        let unseen: Vec<String> = unseen.map(Suffix::to_string).collect();
        let horizon = self.horizon();
        let mut objects = task.local.objects(task.key, &unseen, horizon).await?;
        let seen = suffixes.iter().filter_map(|suffix| seen.get(suffix)).flatten();
        objects.extend(seen.filter(|(_, versions)| is_needed(versions, horizon)).copied());
        Ok(objects)
    }

    /// Hashes these suffixes once more.
    async fn hash_again(
        &self,
        task: &PartitionTask,
        ours: &mut SuffixHashes,
        suffixes: Vec<String>,
    ) -> Result<(), Fault> {
        if suffixes.is_empty() {
            return Ok(());
        }
        let found = self.rehash(task, suffixes, false).await?;
        self.tally.hashed(0, found.computed);
        ours.hashes = found.hashes;
        Ok(())
    }

    async fn rehash(&self, task: &PartitionTask, suffixes: Vec<String>, list: bool) -> Result<SuffixHashes, Fault> {
        let key = task.key;
        let hashing = move |engine: &dyn object_engine::ObjectEngine| {
            let suffixes = &suffixes;
            let rehash = Rehash {
                suffixes,
                list,
                seen: true,
            };
            engine.replica().suffix_hashes(key, rehash)
        };
        task.local.run(hashing).await
    }

    /// Asks a node for its hashes.
    async fn hashes_at(&self, task: &PartitionTask, node: &Device) -> Result<Theirs, Fault> {
        let response = self.replicate(task.key, node, "").await?;
        match response.status() {
            StatusCode::OK => {}
            StatusCode::INSUFFICIENT_STORAGE => return Ok(Theirs::Out),
            status => return Err(Fault::peer(format!("REPLICATE was answered with {status}"))),
        }
        let reading = response.into_body().collect(LONGEST_ANSWER);
        let body = self.world.timeout(self.options.http_timeout, reading).await;
        let body = body
            .map_err(|late| late.to_fault())?
            .map_err(|error| error.to_fault())?;
        let hashes = decode_hashes(&body).map_err(|error| Fault::peer(error.to_string()))?;
        Ok(Theirs::Hashes(hashes))
    }

    /// Notes that a partition has to wait for a later pass.
    pub(super) fn failed(&self, task: &PartitionTask, node: Option<&Device>, fault: &Fault) -> Fate {
        let here = format!("{}/{}", task.local.name, task.key.partition);
        match node {
            Some(node) => {
                self.tally.failed(node);
                match fault.kind {
                    FaultKind::Peer => self.peer_failures.note(node, here, fault),
                    _ => tracing::warn!("{NAME}: {here} to {}: {fault}", place(node)),
                }
            }
            None => {
                self.tally.failed(&task.own);
                match fault.kind {
                    // A drive at fault fails everything that is on it.
                    FaultKind::Device => {
                        let (device, partition) = (task.local.name.clone(), task.key.partition.to_string());
                        self.peer_failures.note_at(device, partition, fault.to_string());
                    }
                    _ => tracing::error!("{NAME}: {here}: {fault}"),
                }
            }
        }
        Fate::Left
    }
}

/// The hashes of the suffixes in which there are objects.
fn hashes_of(objects: &Objects) -> Hashes {
    let mut suffixes: BTreeMap<Suffix, Vec<&Versions>> = BTreeMap::new();
    for (hash, versions) in objects {
        suffixes.entry(Suffix::of(*hash)).or_default().push(versions);
    }
    let hashed = suffixes.into_iter();
    hashed.map(|(suffix, objects)| (suffix, suffix_hash(objects))).collect()
}

/// The suffixes of which a node has nothing, or something else.
fn differing(ours: &Hashes, theirs: &Hashes) -> Vec<Suffix> {
    let differs = |(suffix, hash): &(&Suffix, &_)| theirs.get(*suffix) != Some(*hash);
    ours.iter().filter(differs).map(|(suffix, _)| *suffix).collect()
}
