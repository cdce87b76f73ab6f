//! A store in this process whose behaviour is known, so that it shows what the tool makes of it.
//!
//! Parameters are COSBench's (`size`, `delay`, `errors`) and some more:
//!
//! | parameter | means |
//! |---|---|
//! | `size=1024` | bytes of an object that is read |
//! | `delay=10` | milliseconds that each request takes |
//! | `errors=0` | the first so many requests fail |
//! | `capacity=0` | requests a second that it serves, one after the other; without a limit when 0 |
//! | `stall=5:1` | from the fifth second on it serves nothing for one second |
//!
//! Always holds: requests are served in the order in which they came, where the capacity has a limit.

use super::StoreRequest;
use super::composite::requests_of_upload;
use crate::figures::Failure;
use crate::workload::OperationKind;
use crate::workload::mistake::WorkloadMistake;
use crate::workload::parameters::Parameters;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use world::World;

/// The store.
pub struct Mock {
    size: u64,
    delay: Duration,
    /// Requests that are still to fail.
    errors: AtomicU64,
    /// Nanoseconds for one request at full capacity.
    turn: Option<u64>,
    /// By the world's clock.
    stall: Option<(Duration, Duration)>,
    /// When the last request that came is served, in nanoseconds.
    busy_until: AtomicU64,
    /// When it was made.
    since: Duration,
}

impl Mock {
    /// As its parameters say.
    pub fn new(world: &World, parameters: &Parameters) -> Result<Self, WorkloadMistake> {
        parameters.allow(&[
            "size",
            "delay",
            "errors",
            "logging",
            "printing",
            "profiling",
            "capacity",
            "stall",
        ])?;
        let capacity = match parameters.get("capacity") {
            None => 0.0,
            Some(text) => text
                .parse()
                .ok()
                .filter(|rate: &f64| (0.0..=1e9).contains(rate))
                .ok_or_else(|| WorkloadMistake::value("capacity", text, "requests a second"))?,
        };
        let since = world.clock.elapsed();
        let stall = parameters.get("stall").map(|text| {
            let (at, length) = text.split_once(':').unwrap_or((text, ""));
            let seconds = |word: &str| {
                word.parse()
                    .ok()
                    .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
            };
            let both = seconds(at).zip(seconds(length));
            both.ok_or_else(|| WorkloadMistake::value("stall", text, "START:LENGTH in seconds, 5:1 for example"))
        });
        Ok(Self {
            size: parameters.number("size")?.unwrap_or(1024),
            delay: Duration::from_millis(parameters.number("delay")?.unwrap_or(10)),
            errors: AtomicU64::new(parameters.number("errors")?.unwrap_or(0)),
            turn: (capacity > 0.0).then_some((1e9 / capacity) as u64),
            stall: stall.transpose()?.map(|(at, length)| (since + at, since + at + length)),
            busy_until: AtomicU64::new(0),
            since,
        })
    }

    /// Serves an operation, which may take several requests.
    pub async fn serve(&self, world: &World, request: &StoreRequest<'_>) -> Result<(u64, Option<Duration>), Failure> {
        if let (OperationKind::Write, Some(part_size)) = (request.kind, request.detail.part_size) {
            for _ in 1..requests_of_upload(request.size, part_size) {
                self.answer(world, request).await?;
            }
        }
        self.answer(world, request).await
    }

    /// Serves a request: bytes of its body, and when its answer began.
    pub async fn answer(&self, world: &World, request: &StoreRequest<'_>) -> Result<(u64, Option<Duration>), Failure> {
        let now = world.clock.elapsed();
        let begins = match self.stall {
            Some((from, to)) if (from..to).contains(&now) => to,
            _ => now,
        };
        let served = match self.turn {
            None => begins,
            Some(turn) => self.since + Duration::from_nanos(self.take_turn(begins.saturating_sub(self.since), turn)),
        };
        let ends = served + self.delay;
        if ends > now {
            world.clock.sleep(ends - now).await;
        }
        let fails = |left: u64| left.checked_sub(1);
        if self
            .errors
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, fails)
            .is_ok()
        {
            return Err(Failure::Status(500));
        }
        let bytes = match (request.kind, request.detail.range) {
            (kind, _) if kind.sends_body() => request.size,
            (OperationKind::Post | OperationKind::Copy, _) => 0,
            // Of what lies behind the end nothing comes.
            (_, Some(span)) => span.last.saturating_add(1).min(self.size).saturating_sub(span.first),
            _ => self.size,
        };
        Ok((bytes, Some(world.clock.elapsed())))
    }

    /// Waits behind those that came before; answers when it is done, in nanoseconds.
    fn take_turn(&self, begins: Duration, turn: u64) -> u64 {
        let begins = u64::try_from(begins.as_nanos()).unwrap_or(u64::MAX);
        let next = |busy_until: u64| busy_until.max(begins).saturating_add(turn);
        let before = self
            .busy_until
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |until| Some(next(until)));
        // The update always gives a new value.
        next(before.unwrap_or(begins))
    }
}
