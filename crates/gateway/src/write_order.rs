//! Whether a write has come after what is stored.
//!
//! A server that has something newer refuses a write (409), or says so beside a 2xx that left some of it out. If that
//! is ahead of this gateway's clock then a clock is wrong, and not the client late: the write is sent again, once, with
//! a time after it. What is too far ahead to be followed (`max_clock_skew`) is reported, and the client gets 503 with
//! the reason. Something newer that is not ahead was written while the request was under way, by a clock that is right;
//! by one that is off by less than the request has taken, it may have ended before the request began. So a write that
//! is older by [`CLOSE`] at most is sent again as well. One that is older by more is an ordinary race, decided by the
//! verb as OpenStack decides it: a request that hung, and that its client has given up and replaced by another one long
//! ago, must not win over that because it is sent again.
//! Always holds: a write with its sender's own time (container sync, upkeep) is sent once and not judged here; one with
//! this gateway's time that storage has not taken is acknowledged only if a later one ran beside it.

use crate::backend::Reply;
use crate::server_clocks::ClockDiffers;
use crate::write_clock::{Distance, WriteClock, WriteTime, header_timestamp};
use http::HeaderValue;
use peer::message::header_names::X_BACKEND_TIMESTAMP;
use request_pipeline::{Response, reply};
use std::time::Duration;
use vocabulary::timestamp::TICKS_PER_SECOND;
use vocabulary::{EntityPath, Timestamp};

/// By how much the clocks of gateways are taken to differ, in ticks. Time servers keep them far closer; clients wait
/// longer before they give a request up.
const CLOSE: u64 = TICKS_PER_SECOND;

/// Seconds after which a client may find another gateway, or a clock that was corrected.
const CLOCK_RETRY_AFTER: u64 = 5;

/// The longest that a client is asked to wait.
const MAX_RETRY_AFTER: u64 = 3600;

impl WriteTime {
    /// Whether it was sent once only, and may be sent again.
    pub(crate) fn is_first(&self) -> bool {
        self.is_own && self.answered.is_none()
    }

    /// The replies to a deletion as its client is to understand them: where the first sending has deleted something,
    /// the second finds nothing.
    pub(crate) fn as_one_deletion(&self, mut replies: Vec<Reply>) -> Vec<Reply> {
        if self.answered.is_some() {
            let missing = replies.iter_mut().filter(|reply| reply.status == 404);
            missing.for_each(|reply| reply.status = 204);
        }
        replies
    }

    /// The newest time at which `replies` say that something has been written since.
    pub(crate) fn newer(&self, replies: &[Reply]) -> Option<Timestamp> {
        let newer = |reply: &Reply| {
            let is_conflict = match reply.status {
                409 => true,
                200..=299 => false,
                _ => return None,
            };
            let at = header_timestamp(&reply.headers, &X_BACKEND_TIMESTAMP)?;
            (at > self.timestamp || (is_conflict && at == self.timestamp)).then_some(at)
        };
        replies.iter().filter_map(newer).max()
    }

    /// Whether the replies stand, `answered` of so many replicas having answered at all. If not, the write is to be
    /// sent again with the time that it has now.
    pub(crate) fn is_final(
        &mut self,
        clock: &WriteClock,
        path: &EntityPath,
        replies: &[Reply],
        answered: (usize, usize),
    ) -> Result<bool, Response> {
        let newer = if self.is_own { self.newer(replies) } else { None };
        newer.map_or(Ok(true), |newer| self.pass(clock, path, newer, answered))
    }

    /// The same when it is known that `newer` is stored.
    pub(crate) fn pass(
        &mut self,
        clock: &WriteClock,
        path: &EntityPath,
        newer: Timestamp,
        (answered, replicas): (usize, usize),
    ) -> Result<bool, Response> {
        match (clock.measure(newer), self.answered) {
            (Distance::TooFar(distance), _) => Err(refuse(clock, path, distance)),
            (Distance::Past, None) if newer.ticks().saturating_sub(self.timestamp.ticks()) <= CLOSE => {
                tracing::debug!(
                    "{} was written just after a write began, which is sent again",
                    path.path()
                );
                self.send_again(clock, answered);
                Ok(false)
            }
            (Distance::Past, _) => Ok(true),
            (Distance::Ahead, None) => {
                clock.count_resent();
                tracing::debug!(
                    "{} was written ahead of this gateway's clock: its write is sent again",
                    path.path()
                );
                self.send_again(clock, answered);
                Ok(false)
            }
            // All had answered before: what is newer now has been written since.
            (Distance::Ahead, Some(before)) if before >= replicas => Ok(true),
            (Distance::Ahead, Some(_)) => Err(again("Something newer is stored. Please try again.", 1)),
        }
    }
}

impl WriteTime {
    /// With a time after all that this gateway has seen; so many replicas have answered before.
    fn send_again(&mut self, clock: &WriteClock, answered: usize) {
        self.timestamp = clock.next_of_a_write();
        self.answered = Some(answered);
    }
}

/// The answer to a write of `path`, where something is stored so far ahead that no write may follow.
fn refuse(clock: &WriteClock, path: &EntityPath, distance: Duration) -> Response {
    clock.count_refused();
    let (max_skew, ahead) = (clock.max_skew.as_secs_f64(), distance.as_secs_f64());
    if let Some(unnamed) = clock.warning_is_due() {
        tracing::warn!(
            "{} holds a version from {ahead:.1} seconds ahead of this gateway's clock, more than max_clock_skew \
             ({max_skew} seconds): its writes are answered with 503. Correct the clocks of the nodes; see 'Clocks' in \
             docs/operating/monitoring.md. {unnamed} more writes were refused since the last warning",
            path.path()
        );
    }
    let text = format!(
        "What is stored here was written {ahead:.1} seconds ahead of this server's clock, more than max_clock_skew \
         ({max_skew} seconds) allows. The write was not made."
    );
    let wait = distance.saturating_sub(clock.max_skew).as_secs().saturating_add(1);
    again(&text, wait.min(MAX_RETRY_AFTER))
}

/// The answer to a write whose time this machine's clock would give, which is wrong.
pub(crate) fn refuse_by_clock(clock: &WriteClock, differs: ClockDiffers) -> Response {
    clock.count_refused();
    let max_skew = clock.max_skew.as_secs();
    let what = match differs.ahead {
        ahead @ 0.. => format!("{ahead} seconds ahead of"),
        behind => format!("{} seconds behind", behind.unsigned_abs()),
    };
    if let Some(unnamed) = clock.warning_is_due() {
        tracing::warn!(
            "this machine's clock is {what} those of most storage servers, more than max_clock_skew ({max_skew} \
             seconds): all writes are answered with 503. Correct the clock that is wrong; see 'Clocks' in \
             docs/operating/monitoring.md. {unnamed} more writes were refused since the last warning"
        );
    }
    let text = format!(
        "The clock of this server is {what} those of the storage servers, more than max_clock_skew ({max_skew} seconds) \
         allows. The write was not made."
    );
    again(&text, CLOCK_RETRY_AFTER)
}

/// 503 with a reason, and when to come again.
fn again(text: &str, seconds: u64) -> Response {
    let mut response = reply::plain(503, text);
    let seconds = HeaderValue::from(seconds);
    response.headers_mut().insert("retry-after", seconds);
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write_clock::tests::machine;
    use telemetry::Statsd;

    /// A request of second 100 meets something newer in second 110.
    #[test]
    fn what_may_have_ended_before_a_write_began_is_passed_once() {
        let path = EntityPath::account("a").with_container("c").with_object("o");
        let after = |ticks: i64| {
            let begun = Timestamp::from_seconds(100).ticks();
            Timestamp::from_ticks(begun.checked_add_signed(ticks).unwrap()).unwrap()
        };
        let second = CLOSE as i64;
        for (newer, sent_again) in [
            (after(0), true),
            (after(1), true),
            (after(second), true),
            (after(second + 1), false),
            (after(10 * second), false),
            (after(10 * second + 1), true),
        ] {
            let clock = WriteClock::new(&machine(110, 0).1, Duration::from_secs(60), Statsd::default());
            let mut time = WriteTime::own(after(0));
            let is_final = time.pass(&clock, &path, newer, (3, 3)).unwrap();
            assert_eq!(is_final, !sent_again, "{newer:?}");
            assert_eq!(time.timestamp > newer, sent_again, "{newer:?}");
            assert!(time.pass(&clock, &path, newer.next_tick(), (3, 3)).unwrap() || !sent_again);
        }
    }

    #[test]
    fn one_row_per_reply() {
        let order = WriteTime::own(Timestamp::from_seconds(100));
        for (status, seconds, expected) in [
            (409, Some(99), false),
            (409, Some(100), true),
            (409, Some(101), true),
            (409, None, false),
            (202, Some(101), true),
            (204, Some(100), false),
            (404, Some(101), false),
            (412, Some(101), false),
        ] {
            let at = seconds.map(Timestamp::from_seconds);
            let value = at.map(|at| HeaderValue::from_str(&at.internal()).unwrap());
            let reply = Reply {
                status,
                headers: value.map(|value| (X_BACKEND_TIMESTAMP, value)).into_iter().collect(),
                body: bytes::Bytes::new(),
                is_primarys: true,
            };
            let newer = order.newer(&[reply]);
            assert_eq!(newer, at.filter(|_| expected), "{status} {seconds:?}");
        }
    }
}
