//! SSYNC, the sending side; the lines are `peer::ssync`'s.
//!
//! Always holds: what is given back as taken was offered, and the receiver said at the end that nothing
//! of it is missing; a receiver that wishes for what was not offered, or for more, is not believed; it has
//! `http_timeout` for whatever it is to say next, for all its wishes, and for each piece that it takes.

use super::offers::{Objects, offer};
use super::tasks::PartitionTask;
use super::{NAME, Shared};
use crate::faults::ToFault;
use crate::ring_client::place;
use bytes::{Bytes, BytesMut};
use http::StatusCode;
use peer::ssync::{ERROR, Lines, MISSING_END, MISSING_START, UPDATES_END, UPDATES_START, Wish};
use peer::{Body, Feed};
use placement::Device;
use std::sync::Arc;
use vocabulary::{Fault, PathHash, Timestamp};

/// Pieces on their way.
const PIECES: usize = 8;
/// About so many bytes of lines go out together.
const PIECE: usize = 64 * 1024;
/// Lines of one who has stopped listening that are read for the reason.
const LAST_WORDS: usize = 100;
/// Empty lines in a row that are passed over; servers say two.
const EMPTY_LINES: usize = 100;
/// Suffixes that are offered together, so that an exchange stays within bounds.
pub(super) const TOGETHER: usize = 256;

/// The sender's end of an exchange.
pub(super) struct Exchange<'a> {
    pub(super) shared: &'a Shared,
    pub(super) task: &'a PartitionTask,
    feed: Feed,
    lines: Lines,
    waiting: BytesMut,
}

impl Shared {
    /// Brings `node` what is under these suffixes; what it has then.
    pub(super) async fn send(
        self: &Arc<Self>,
        task: &PartitionTask,
        node: &Device,
        suffixes: &[String],
    ) -> Result<Objects, Fault> {
        let mut taken = Objects::new();
        for suffixes in suffixes.chunks(TOGETHER) {
            let objects = task.local.objects(task.key, suffixes, self.horizon()).await?;
            taken.extend(self.transfer(task, node, suffixes, objects).await?);
        }
        Ok(taken)
    }

    /// Brings `node` these objects, which are all that is under these suffixes, no more than [`TOGETHER`]; what it has
    /// then.
    pub(super) async fn transfer(
        &self,
        task: &PartitionTask,
        node: &Device,
        suffixes: &[String],
        mut objects: Objects,
    ) -> Result<Objects, Fault> {
        match &self.rsync {
            Some(rsync) => self.by_rsync(rsync, task, node, suffixes).await?,
            None => {
                let missed = self.by_ssync(task, node, &objects).await?;
                objects.retain(|hash, _| !missed.contains(hash));
            }
        }
        Ok(objects)
    }

    pub(super) fn horizon(&self) -> Timestamp {
        let now = self.world.clock.now().seconds();
        Timestamp::from_seconds(now.saturating_sub(self.options.reclaim_age.as_secs()))
    }

    /// The objects that were wished for in vain.
    async fn by_ssync(&self, task: &PartitionTask, node: &Device, objects: &Objects) -> Result<Vec<PathHash>, Fault> {
        let (feed, body) = Body::channel(PIECES, None);
        let response = self.ssync(task.key, node, body).await?;
        if response.status() != StatusCode::OK {
            let status = response.status();
            return Err(Fault::peer(format!("SSYNC was answered with {status}")));
        }
        let mut exchange = Exchange {
            shared: self,
            task,
            feed,
            lines: Lines::new(&self.world, response.into_body(), self.options.http_timeout),
            waiting: BytesMut::new(),
        };
        exchange.offer(objects).await?;
        let wishes = exchange.wishes(objects).await?;
        if !wishes.is_empty() {
            tracing::debug!(
                "{NAME}: {} lacks {} of {} objects",
                place(node),
                wishes.len(),
                objects.len()
            );
        }
        exchange.fulfil(wishes, objects).await
    }
}

impl Exchange<'_> {
    async fn offer(&mut self, objects: &Objects) -> Result<(), Fault> {
        self.line(MISSING_START).await?;
        for (hash, versions) in objects {
            self.line(&offer(*hash, versions).line()).await?;
        }
        self.line(MISSING_END).await?;
        self.flush().await
    }

    async fn wishes(&mut self, objects: &Objects) -> Result<Vec<(PathHash, Wish)>, Fault> {
        self.expect(MISSING_START).await?;
        let shared = self.shared;
        shared.in_time(self.wished(objects)).await
    }

    async fn wished(&mut self, objects: &Objects) -> Result<Vec<(PathHash, Wish)>, Fault> {
        let mut wishes = vec![];
        loop {
            let line = heard(&mut self.lines).await?;
            if line == MISSING_END {
                return Ok(wishes);
            }
            let (hash, wish) = Wish::parse(&line).map_err(|error| Fault::peer(error.to_string()))?;
            if !objects.contains_key(&hash) || wishes.len() >= objects.len() {
                return Err(Fault::peer(format!("it wishes for what was not offered: {line:?}")));
            }
            wishes.push((hash, wish));
        }
    }

    /// The objects that could not be sent.
    async fn fulfil(mut self, wishes: Vec<(PathHash, Wish)>, offered: &Objects) -> Result<Vec<PathHash>, Fault> {
        let mut missed = vec![];
        self.line(UPDATES_START).await?;
        let mut wishes = &wishes[..];
        while !wishes.is_empty() {
            let found = self.look(wishes, offered).await?;
            let (these, later) = wishes.split_at(found.len());
            for ((hash, wish), state) in these.iter().zip(found) {
                if !self.requests(wish, state).await? {
                    missed.push(*hash);
                }
            }
            wishes = later;
        }
        self.line(UPDATES_END).await?;
        self.flush().await?;
        let Self {
            shared,
            feed,
            mut lines,
            ..
        } = self;
        feed.finish().await;
        shared.expect(&mut lines, UPDATES_START).await?;
        shared.expect(&mut lines, UPDATES_END).await?;
        // The end of the answer, so that the connection can be used again.
        drop(lines.next().await);
        Ok(missed)
    }

    /// Says a line, together with others.
    pub(super) async fn line(&mut self, line: &str) -> Result<(), Fault> {
        self.pieces(&[line.as_bytes(), b"\r\n"]).await
    }

    /// Says what these make, together with others.
    pub(super) async fn pieces(&mut self, pieces: &[&[u8]]) -> Result<(), Fault> {
        pieces.iter().for_each(|piece| self.waiting.extend_from_slice(piece));
        match self.waiting.len() < PIECE {
            true => Ok(()),
            false => self.flush().await,
        }
    }

    /// Says bytes, together with what is still to be said.
    pub(super) async fn bytes(&mut self, bytes: Bytes) -> Result<(), Fault> {
        if bytes.len() < PIECE {
            return self.pieces(&[&bytes]).await;
        }
        self.flush().await?;
        self.say(bytes).await
    }

    async fn flush(&mut self) -> Result<(), Fault> {
        match self.waiting.is_empty() {
            true => Ok(()),
            false => {
                let bytes = self.waiting.split().freeze();
                self.say(bytes).await
            }
        }
    }

    async fn say(&mut self, bytes: Bytes) -> Result<(), Fault> {
        let patience = self.shared.options.http_timeout;
        match self.shared.world.timeout(patience, self.feed.send(bytes)).await {
            Ok(true) => Ok(()),
            Err(late) => Err(late.to_fault()),
            // It does not listen any more; it may have said why.
            Ok(false) => {
                let shared = self.shared;
                shared.in_time(self.last_words()).await?;
                Err(Fault::peer("it does not listen any more"))
            }
        }
    }

    /// An error is what it said.
    async fn last_words(&mut self) -> Result<(), Fault> {
        for _ in 0..LAST_WORDS {
            heard(&mut self.lines).await?;
        }
        Ok(())
    }

    async fn expect(&mut self, wanted: &str) -> Result<(), Fault> {
        self.shared.expect(&mut self.lines, wanted).await
    }
}

impl Shared {
    /// The outcome of listening, if it comes in time.
    async fn in_time<T>(&self, listening: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
        let heard = self.world.timeout(self.options.http_timeout, listening).await;
        heard.unwrap_or_else(|late| Err(late.to_fault()))
    }

    async fn expect(&self, lines: &mut Lines, wanted: &str) -> Result<(), Fault> {
        match self.in_time(heard(lines)).await? {
            line if line == wanted => Ok(()),
            line => Err(Fault::peer(format!("it said {line:?} instead of {wanted}"))),
        }
    }
}

/// The next line that is not empty. A peer that sends too many empty lines is not listened to any longer.
async fn heard(lines: &mut Lines) -> Result<String, Fault> {
    for _ in 0..EMPTY_LINES {
        let line = lines.next().await.map_err(|error| Fault::peer(error.to_string()))?;
        let line = line.ok_or_else(|| Fault::peer("it ended too early"))?;
        let line = String::from_utf8_lossy(&line).into_owned();
        if line.starts_with(ERROR) {
            return Err(Fault::peer(line));
        }
        if !line.is_empty() {
            return Ok(line);
        }
    }
    Err(Fault::peer("it says empty lines without end"))
}
