//! What is to become of one connection: decided from what it did between two looks at it.
//!
//! Always holds: time in which the server has work to do, and not the client, is not held against the client; a client
//! that moves `min_rate` bytes a second is never ended for being slow.

use crate::activity::{Activity, Phase};
use std::time::Duration;

/// A request that moves fewer bytes a second while its client is waited for needs no seat.
const SEAT_RATE: u64 = 64 * 1024;
/// Over less time the rate of a request says nothing.
const SHORTEST: Duration = Duration::from_millis(100);
/// How long the service may take to answer a client that is too slow.
const TO_ANSWER: Duration = Duration::from_secs(5);

/// How long a connection may take for what.
#[derive(Debug, Clone)]
pub(crate) struct WatchLimits {
    /// From the first byte of a head to its last.
    pub(crate) head: Duration,
    /// Between requests.
    pub(crate) idle: Duration,
    /// Bytes a second that a client has to move; 0 for any.
    pub(crate) min_rate: u64,
    /// Over so much time in which it is waited for.
    pub(crate) window: Duration,
}

/// See the module's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionVerdict {
    Stay,
    /// It only waits for its client, and others wait for a seat.
    GiveUpSeat,
    /// It moves again.
    TakeSeat,
    /// Nothing came for too long.
    Idle,
    /// The head is not whole in time.
    Late,
    /// Too few bytes move.
    Slow,
}

/// What was seen of a connection, and when.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// The request that the rest is about.
    request: u32,
    at: Duration,
    moved: u64,
    parked: bool,
    /// Time in which the client was waited for, since [`Watch::moved_before`].
    waited: Duration,
    moved_before: u64,
    slow: Option<Duration>,
    counted: bool,
}

impl Watch {
    pub(crate) fn is_parked(&self) -> bool {
        self.parked
    }

    pub(crate) fn park(&mut self, activity: &Activity) {
        self.parked = activity.give_up_seat();
    }

    pub(crate) fn unpark(&mut self) {
        self.parked = false;
    }

    pub(crate) fn is_slow_for_the_first_time(&mut self) -> bool {
        !std::mem::replace(&mut self.counted, true)
    }

    pub(crate) fn look(
        &mut self,
        activity: &Activity,
        limits: &WatchLimits,
        now: Duration,
        pressed: bool,
    ) -> ConnectionVerdict {
        let age = now.saturating_sub(Duration::from_millis(activity.since()));
        match activity.phase() {
            Phase::Idle if age > limits.idle && !activity.has_bytes() => ConnectionVerdict::Idle,
            Phase::Head if age > limits.head => ConnectionVerdict::Late,
            Phase::Idle | Phase::Head => {
                self.parked = false;
                ConnectionVerdict::Stay
            }
            Phase::Request => self.look_at_request(activity, limits, now, pressed),
        }
    }

    fn look_at_request(
        &mut self,
        activity: &Activity,
        limits: &WatchLimits,
        now: Duration,
        pressed: bool,
    ) -> ConnectionVerdict {
        let moved = activity.moved();
        if self.request != activity.requests() {
            *self = Self {
                request: activity.requests(),
                at: now,
                moved,
                moved_before: moved,
                ..Self::default()
            };
            return ConnectionVerdict::Stay;
        }
        if self.slow.is_some_and(|since| now.saturating_sub(since) > TO_ANSWER) {
            return ConnectionVerdict::Slow;
        }
        let time = now.saturating_sub(self.at);
        if time < SHORTEST {
            return ConnectionVerdict::Stay;
        }
        let waits = activity.waits_for_client();
        let is_fast = !waits || rate(moved.saturating_sub(self.moved), time) >= SEAT_RATE;
        (self.at, self.moved) = (now, moved);
        if waits {
            self.waited += time;
        }
        if self.waited >= limits.window {
            let moved = moved.saturating_sub(std::mem::replace(&mut self.moved_before, moved));
            if rate(moved, std::mem::take(&mut self.waited)) < limits.min_rate && self.slow.is_none() {
                self.slow = Some(now);
                return ConnectionVerdict::Slow;
            }
        }
        match (is_fast, self.parked) {
            (true, true) => ConnectionVerdict::TakeSeat,
            (false, false) if pressed => ConnectionVerdict::GiveUpSeat,
            _ => ConnectionVerdict::Stay,
        }
    }
}

/// Bytes a second.
fn rate(bytes: u64, time: Duration) -> u64 {
    let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1);
    bytes.saturating_mul(1000) / millis
}
