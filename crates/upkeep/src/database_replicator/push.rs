//! Bringing one replica up to date with ours: compare, then send what it lacks in the cheapest way.
//!
//! | the other | what is sent |
//! |---|---|
//! | has all our rows, or rows with the same hash | nothing |
//! | lacks some rows | these, `per_diff` at a time |
//! | has less than half and is far behind | the whole database, which takes its own along |
//! | has no database | the whole database |
//!
//! Always holds: success means that all we had when the pass came to this database is there.

use super::context::{Context, FoundDatabase};
use super::figures::Figures;
use super::replica_client::{ReplicaClient, ReplicaResponse};
use crate::open_device::OpenDevice;
use http::StatusCode;
use listing_engine::wire::{Numbered, Summary};
use listing_engine::{Broker, Direction, ShardRange, Snapshot, SyncPoint, is_sharded};
use placement::Device;
use serde_json::{Value, json};
use std::time::Duration;
use vocabulary::{Fault, FaultKind, Partition};

/// Rows per second that the other side merges at least.
const MERGED_PER_SECOND: u64 = 2_000;

/// What became of one replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pushed {
    /// It has everything.
    Done,
    /// It has not, or did not say so.
    Failed,
    /// Its device is out of service: another may stand in.
    NoDevice,
}

/// One database on its way to its other replicas.
pub(super) struct Push<'p> {
    pub(super) context: &'p Context,
    pub(super) device: &'p OpenDevice,
    /// The region of the device, if the ring knows it.
    pub(super) region: Option<u32>,
    pub(super) partition: Partition,
    pub(super) found: FoundDatabase,
    /// Something has changed here meanwhile that those who are done may not have.
    pub(super) overtaken: bool,
    pub(super) figures: Figures,
}

impl Push<'_> {
    /// Brings `node` up to date.
    pub(super) async fn to(&mut self, node: &Device) -> Pushed {
        let context = self.context;
        let replica = ReplicaClient {
            context,
            node,
            partition: self.partition,
            hash: self.found.broker.location().hash_hex(),
        };
        let pushed = match replica.ask(self.found.info.summary.to_sync()).await {
            Ok(response) if response.status == StatusCode::INSUFFICIENT_STORAGE => {
                self.figures.lacks(node);
                let file = self.found.broker.location().db_file();
                context.peer_failures.note(
                    node,
                    file.display(),
                    format_args!("device {} is out of service", node.device),
                );
                return Pushed::NoDevice;
            }
            Ok(response) if response.status == StatusCode::NOT_FOUND => {
                self.send_whole(&replica, &response, "complete_rsync").await
            }
            Ok(response) => match response.success() {
                Ok(response) => self.compared(&replica, &response).await,
                Err(fault) => Err(fault),
            },
            Err(fault) => Err(fault),
        };
        let Err(fault) = pushed else { return Pushed::Done };
        self.figures.lacks(node);
        let file = self.found.broker.location().db_file();
        match fault.kind {
            FaultKind::Peer => context.peer_failures.note(node, file.display(), fault),
            _ => tracing::warn!(
                "{}: {} is not level with {}: {fault}",
                context.name,
                replica.place(),
                file.display()
            ),
        }
        Pushed::Failed
    }

    /// Runs `work` on our own database, on the thread of its device.
    async fn ours<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Broker) -> Result<T, listing_engine::Error> + Send + 'static,
    ) -> Result<T, Fault> {
        let broker = self.found.broker.clone();
        let done = self.device.try_run(move || work(&broker)).await;
        done.map_err(|fault| fault.within("our own database failed"))
    }

    /// [`Self::ours`] of the database that this pass found: one that has taken its place meanwhile numbers its rows
    /// anew, so that points of the one say nothing of the other.
    async fn found_one<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Broker) -> Result<T, listing_engine::Error> + Send + 'static,
    ) -> Result<T, Fault> {
        let id = self.found.info.summary.id.clone();
        let work = move |broker: &Broker| {
            let read = work(broker)?;
            broker.check_is_still(&id)?;
            Ok(read)
        };
        self.ours(work).await
    }

    async fn compared(&mut self, replica: &ReplicaClient<'_>, response: &ReplicaResponse) -> Result<(), Fault> {
        let theirs = read(&response.body).and_then(|sent: Value| Summary::from_answer(&sent));
        let theirs = theirs.ok_or_else(|| Fault::peer("its response to sync is not one"))?;
        self.learn(&theirs).await?;
        if let Some(ranges) = theirs
            .shard_max_row
            .filter(|_| self.found.info.info.container.is_some())
        {
            self.exchange_shard_ranges(replica, ranges).await?;
        }
        if is_sharded(self.found.state) {
            // Rows of a container that is being sharded are its sharder's to move.
            return Ok(());
        }
        self.send_rows_or_whole(replica, response, &theirs).await
    }

    /// Takes over what is newer there.
    async fn learn(&mut self, theirs: &Summary) -> Result<(), Fault> {
        let (theirs, now) = (theirs.clone(), self.context.world.clock.now());
        let (before, after) = self.found_one(move |broker| broker.learn(&theirs, now)).await?;
        self.overtaken |= before.summary != self.found.info.summary;
        self.found.info = after;
        Ok(())
    }

    async fn exchange_shard_ranges(&self, replica: &ReplicaClient<'_>, their_greatest: i64) -> Result<(), Fault> {
        let mine = self.ours(Broker::shard_ranges).await?;
        let mine: Vec<Value> = mine.iter().map(ShardRange::to_json).collect();
        if !mine.is_empty() {
            let id = &self.found.info.summary.id;
            let merge = vec![json!("merge_shard_ranges"), json!(mine), json!(id)];
            replica.ask(merge).await?.success()?;
        }
        if their_greatest < 0 {
            return Ok(());
        }
        let ranges: Option<Vec<Value>> = read(&replica.shard_ranges().await?);
        let ranges: Option<Vec<ShardRange>> = ranges.and_then(|list| list.iter().map(ShardRange::from_json).collect());
        let ranges = ranges.ok_or_else(|| Fault::peer("its shard ranges cannot be read"))?;
        self.ours(move |broker| broker.merge_shard_ranges(&ranges)).await
    }

    async fn send_rows_or_whole(
        &mut self,
        replica: &ReplicaClient<'_>,
        response: &ReplicaResponse,
        theirs: &Summary,
    ) -> Result<(), Fault> {
        let mine = self.found.info.summary.clone();
        let id = theirs.id.clone();
        let known = self
            .found_one(move |broker| broker.sync_point(&id, Direction::Outgoing))
            .await?;
        // A point behind our last row is of rows that are not here any more (the file was set back, say), or is made
        // up.
        let points = [known, theirs.point].into_iter().filter(|point| *point <= mine.max_row);
        let point = points.max().unwrap_or(-1);
        if point == mine.max_row {
            self.figures.no_change += 1;
            return Ok(());
        }
        if theirs.hash == mine.hash {
            self.figures.hashmatch += 1;
            return self.remember(&theirs.id, point).await;
        }
        let behind = mine.max_row.saturating_sub(theirs.max_row);
        let per_diff = i64::try_from(self.context.options.per_diff).unwrap_or(i64::MAX);
        if behind > per_diff && theirs.max_row < mine.max_row / 2 {
            self.figures.remote_merge += 1;
            match self.send_whole(replica, response, "rsync_then_merge").await {
                Ok(()) => return Ok(()),
                // Without a way for the whole, rows bring it nearer, too.
                Err(fault) => tracing::info!("{}: {}: {fault}; sending rows", self.context.name, replica.place()),
            }
        }
        self.figures.diff += 1;
        self.send_rows(replica, theirs, point).await
    }

    async fn send_rows(&mut self, replica: &ReplicaClient<'_>, theirs: &Summary, mut point: i64) -> Result<(), Fault> {
        let id = self.found.info.summary.id.clone();
        // Read before the rows: what a third replica sends meanwhile comes with its point, and may not be among these.
        let points = self.found_one(|broker| broker.sync_points(Direction::Incoming)).await?;
        let mut rows = self.rows_behind(point).await?;
        for _ in 0..self.context.options.max_diffs {
            let Some(last) = rows.last() else { break };
            point = last.id;
            let items: Vec<Value> = rows.iter().map(Numbered::to_json).collect();
            let merge = vec![json!("merge_items"), json!(items), json!(id), json!(theirs.id)];
            replica.ask(merge).await?.success()?;
            rows = self.rows_behind(point).await?;
        }
        if !rows.is_empty() {
            self.figures.diff_capped += 1;
            self.remember(&theirs.id, point).await?;
            return Err(Fault::peer("it has fallen far behind; more rows go with the next pass"));
        }
        let points: Vec<Value> = points.iter().map(SyncPoint::to_json).collect();
        let merge = vec![json!("merge_syncs"), json!(points), json!(theirs.id)];
        replica.ask(merge).await?.success()?;
        self.remember(&theirs.id, point).await
    }

    async fn rows_behind(&self, point: i64) -> Result<Vec<Numbered>, Fault> {
        let count = self.context.options.per_diff.max(1);
        self.found_one(move |broker| broker.rows_since(point, count)).await
    }

    async fn remember(&self, remote_id: &str, point: i64) -> Result<(), Fault> {
        let known = SyncPoint {
            remote_id: remote_id.to_owned(),
            point,
        };
        let id = self.found.info.summary.id.clone();
        self.ours(move |broker| broker.note_sent(&id, &known)).await
    }

    /// Sends the whole database, then says what is to be done with it.
    async fn send_whole(
        &mut self,
        replica: &ReplicaClient<'_>,
        response: &ReplicaResponse,
        then: &str,
    ) -> Result<(), Fault> {
        if self.found.state == "sharding" {
            // It has two files.
            return Err(Fault::caller("databases that are being sharded are not sent"));
        }
        self.figures.rsync += u64::from(then == "complete_rsync");
        let (snapshot, file) = (self.snapshot().await?, self.ours(Broker::file_name).await?);
        let id = self.found.info.summary.id.clone();
        let sent = match response.takes_databases {
            true => replica.send_database(self.device, snapshot.path(), &id).await,
            false => {
                let other_region = self.region.is_some_and(|region| region != replica.node.region);
                let rsync = &self.context.rsync;
                rsync.send(snapshot.path(), replica.node, &id, other_region).await
            }
        };
        // Removing a large file takes its time, too; should it fail, the next sweep finds it.
        let _ = self.device.thread.run(move || drop(snapshot)).await;
        sent?;
        let rows = u64::try_from(self.found.info.summary.max_row).unwrap_or(0);
        let patience = self
            .context
            .ring_client
            .timeouts
            .response
            .max(Duration::from_secs(rows / MERGED_PER_SECOND));
        let arguments = match then {
            "complete_rsync" => vec![json!(then), json!(id), json!(file)],
            _ => vec![json!(then), json!(id)],
        };
        replica.ask_patiently(arguments, patience).await?.success()?;
        Ok(())
    }

    async fn snapshot(&self) -> Result<Snapshot, Fault> {
        let unique = format!("{:016x}", self.context.world.random.next_u64());
        self.found_one(move |broker| broker.snapshot(&unique)).await
    }
}

fn read<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    serde_json::from_slice(bytes).ok()
}
