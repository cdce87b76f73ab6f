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

use super::figures::Figures;
use super::line::{Answer, Line};
use super::{Found, Ground};
use crate::open_device::OpenDevice;
use listing_engine::wire::{Numbered, Summary};
use listing_engine::{Direction, ShardRange, Snapshot, SyncPoint};
use placement::Device;
use serde_json::{Value, json};
use std::time::Duration;

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
    pub(super) ground: &'p Ground,
    pub(super) device: &'p OpenDevice,
    /// The region of the device, if the ring knows it.
    pub(super) region: Option<u32>,
    pub(super) partition: u32,
    pub(super) found: Found,
    /// Something has changed here meanwhile that those who are done may not have.
    pub(super) overtaken: bool,
    pub(super) figures: Figures,
}

impl Push<'_> {
    /// Brings `node` up to date.
    pub(super) async fn to(&mut self, node: &Device) -> Pushed {
        let ground = self.ground;
        let line = Line {
            ground,
            node,
            partition: self.partition,
            hash: self.found.broker.location().hash_hex(),
        };
        let pushed = match line.ask(self.found.info.summary.to_sync()).await {
            Ok(answer) if answer.status.as_u16() == 507 => Err(None),
            Ok(answer) if answer.status.as_u16() == 404 => {
                self.send_whole(&line, &answer, "complete_rsync").await.map_err(Some)
            }
            Ok(answer) if answer.status.is_success() => self.compared(&line, &answer).await.map_err(Some),
            Ok(answer) => Err(Some(answer.status.to_string())),
            Err(error) => Err(Some(error)),
        };
        let what = || self.found.broker.location().db_file();
        let why = match pushed {
            Ok(()) => return Pushed::Done,
            Err(why) => why,
        };
        self.figures.lacks(node);
        match why {
            None => {
                tracing::warn!("{}: the device of {} is out of service", ground.name, line.place());
                Pushed::NoDevice
            }
            Some(why) => {
                tracing::warn!(
                    "{}: {} is not level with {}: {why}",
                    ground.name,
                    line.place(),
                    what().display()
                );
                Pushed::Failed
            }
        }
    }

    async fn compared(&mut self, line: &Line<'_>, answer: &Answer) -> Result<(), String> {
        let theirs = read(&answer.body).and_then(|told: Value| Summary::from_answer(&told));
        let theirs = theirs.ok_or("its answer to sync is none")?;
        self.learn(&theirs).await?;
        if let Some(ranges) = theirs
            .shard_max_row
            .filter(|_| self.found.info.info.container.is_some())
        {
            self.exchange_shard_ranges(line, ranges).await?;
        }
        if self.found.state != "unsharded" {
            // Rows of a container that is being sharded are its sharder's to move.
            return Ok(());
        }
        self.send_rows_or_whole(line, answer, &theirs).await
    }

    /// Takes over what is newer there.
    async fn learn(&mut self, theirs: &Summary) -> Result<(), String> {
        let (broker, told, now) = (self.found.broker.clone(), theirs.clone(), self.ground.world.clock.now());
        let learnt = self.device.run(move || broker.learn(&told, now)).await;
        let (before, after) = learnt.ok_or("our own database failed")?;
        self.overtaken |= before.summary != self.found.info.summary;
        self.found.info = after;
        Ok(())
    }

    async fn exchange_shard_ranges(&self, line: &Line<'_>, their_greatest: i64) -> Result<(), String> {
        let broker = self.found.broker.clone();
        let mine = self.device.run(move || broker.shard_ranges()).await;
        let mine: Vec<Value> = mine
            .ok_or("our own database failed")?
            .iter()
            .map(ShardRange::to_json)
            .collect();
        if !mine.is_empty() {
            let id = &self.found.info.summary.id;
            expect_success(
                line.ask(vec![json!("merge_shard_ranges"), json!(mine), json!(id)])
                    .await,
            )?;
        }
        if their_greatest < 0 {
            return Ok(());
        }
        let answer = expect_success(line.ask(vec![json!("get_shard_ranges")]).await)?;
        let ranges: Option<Vec<Value>> = read(&answer.body);
        let ranges: Option<Vec<ShardRange>> = ranges.and_then(|list| list.iter().map(ShardRange::from_json).collect());
        let ranges = ranges.ok_or("its shard ranges are none")?;
        let broker = self.found.broker.clone();
        let merged = self.device.run(move || broker.merge_shard_ranges(&ranges)).await;
        merged.ok_or_else(|| "our own database failed".to_owned())
    }

    async fn send_rows_or_whole(&mut self, line: &Line<'_>, answer: &Answer, theirs: &Summary) -> Result<(), String> {
        let mine = self.found.info.summary.clone();
        let (broker, id) = (self.found.broker.clone(), theirs.id.clone());
        let known = self
            .device
            .run(move || broker.sync_point(&id, Direction::Outgoing))
            .await;
        let known = known.ok_or("our own database failed")?;
        // A point behind our last row is of rows that are not here any more (the file was set back, say), or is made up.
        let said = [known, theirs.point].into_iter().filter(|point| *point <= mine.max_row);
        let point = said.max().unwrap_or(-1);
        if point == mine.max_row {
            self.figures.no_change += 1;
            return Ok(());
        }
        if theirs.hash == mine.hash {
            self.figures.hashmatch += 1;
            return self.remember(&theirs.id, point).await;
        }
        let behind = mine.max_row.saturating_sub(theirs.max_row);
        let per_diff = i64::try_from(self.ground.options.per_diff).unwrap_or(i64::MAX);
        if behind > per_diff && theirs.max_row < mine.max_row / 2 {
            self.figures.remote_merge += 1;
            match self.send_whole(line, answer, "rsync_then_merge").await {
                Ok(()) => return Ok(()),
                // Without a way for the whole, rows bring it nearer, too.
                Err(why) => tracing::info!("{}: {}: {why}; sending rows", self.ground.name, line.place()),
            }
        }
        self.figures.diff += 1;
        self.send_rows(line, theirs, point).await
    }

    async fn send_rows(&mut self, line: &Line<'_>, theirs: &Summary, mut point: i64) -> Result<(), String> {
        let id = self.found.info.summary.id.clone();
        let mut rows = self.rows_behind(point).await?;
        for _ in 0..self.ground.options.max_diffs {
            let Some(last) = rows.last() else { break };
            point = last.id;
            let items: Vec<Value> = rows.iter().map(Numbered::to_json).collect();
            expect_success(line.ask(vec![json!("merge_items"), json!(items), json!(id)]).await)?;
            rows = self.rows_behind(point).await?;
        }
        if !rows.is_empty() {
            self.figures.diff_capped += 1;
            self.remember(&theirs.id, point).await?;
            return Err("it has fallen far behind; more rows go with the next pass".into());
        }
        let broker = self.found.broker.clone();
        let points = self.device.run(move || broker.sync_points(Direction::Incoming)).await;
        let points: Vec<Value> = points
            .ok_or("our own database failed")?
            .iter()
            .map(SyncPoint::to_json)
            .collect();
        expect_success(line.ask(vec![json!("merge_syncs"), json!(points)]).await)?;
        self.remember(&theirs.id, point).await
    }

    async fn rows_behind(&self, point: i64) -> Result<Vec<Numbered>, String> {
        let (broker, count) = (self.found.broker.clone(), self.ground.options.per_diff.max(1));
        let rows = self.device.run(move || broker.rows_since(point, count)).await;
        rows.ok_or_else(|| "our own database failed".to_owned())
    }

    async fn remember(&self, remote_id: &str, point: i64) -> Result<(), String> {
        let known = SyncPoint {
            remote_id: remote_id.to_owned(),
            point,
        };
        let broker = self.found.broker.clone();
        let noted = self
            .device
            .run(move || broker.merge_sync_points(&[known], Direction::Outgoing))
            .await;
        noted.ok_or_else(|| "our own database failed".to_owned())
    }

    /// Sends the whole database, then says what is to be done with it.
    async fn send_whole(&mut self, line: &Line<'_>, answer: &Answer, then: &str) -> Result<(), String> {
        if self.found.state != "unsharded" {
            return Err("databases that are being sharded are not sent".into());
        }
        self.figures.rsync += u64::from(then == "complete_rsync");
        let snapshot = self.snapshot().await?;
        let id = self.found.info.summary.id.clone();
        let sent = match answer.takes_databases {
            true => line.send_database(self.device, snapshot.path(), &id).await,
            false => {
                let other_region = self.region.is_some_and(|region| region != line.node.region);
                let rsync = &self.ground.rsync;
                rsync.send(snapshot.path(), line.node, &id, other_region).await
            }
        };
        // Removing a large file takes its time, too; should it fail, the next sweep finds it.
        let _ = self.device.thread.run(move || drop(snapshot)).await;
        sent?;
        let rows = u64::try_from(self.found.info.summary.max_row).unwrap_or(0);
        let patience = self
            .ground
            .ring_client
            .timeouts
            .response
            .max(Duration::from_secs(rows / MERGED_PER_SECOND));
        let file = format!("{}.db", self.found.broker.location().hash_hex());
        let arguments = match then {
            "complete_rsync" => vec![json!(then), json!(id), json!(file)],
            _ => vec![json!(then), json!(id)],
        };
        expect_success(line.ask_patiently(arguments, patience).await).map(|_| ())
    }

    async fn snapshot(&self) -> Result<Snapshot, String> {
        let unique = format!("{:016x}", self.ground.world.random.next_u64());
        let broker = self.found.broker.clone();
        let taken = self.device.run(move || broker.snapshot(&unique)).await;
        taken.ok_or_else(|| "our own database failed".to_owned())
    }
}

fn read<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    serde_json::from_slice(bytes).ok()
}

fn expect_success(answer: Result<Answer, String>) -> Result<Answer, String> {
    let answer = answer?;
    match answer.status.is_success() {
        true => Ok(answer),
        false => Err(answer.status.to_string()),
    }
}
