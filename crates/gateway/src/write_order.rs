//! Whether a write has come after what is stored.
//!
//! A server that has something newer refuses a write (409), or says so beside a 2xx that left some of it out. If that
//! is ahead of this gateway's clock then a clock is wrong, and not the client late: the write is sent again, once, with
//! a time after it. What is too far ahead to be followed (`max_clock_skew`) is reported, and the client gets 503 with
//! the reason. Something newer that is not ahead was written while the request was under way: an ordinary race, decided
//! by the verb as OpenStack decides it.
//! Always holds: a write with its sender's own time (container sync, upkeep) is sent once and not judged here; one with
//! this gateway's time that storage has not taken is acknowledged only if a later one ran beside it.

use crate::backend::Reply;
use crate::write_clock::{Distance, WriteClock, WriteTime, header_timestamp};
use http::HeaderValue;
use peer::message::header_names::X_BACKEND_TIMESTAMP;
use request_pipeline::{Response, reply};
use std::time::Duration;
use vocabulary::{EntityPath, Timestamp};

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
            (Distance::Past, _) => Ok(true),
            (Distance::TooFar(distance), _) => Err(refuse(clock, path, distance)),
            (Distance::Ahead, None) => {
                clock.count_resent();
                tracing::debug!(
                    "{} was written ahead of this gateway's clock: its write is sent again",
                    path.path()
                );
                self.timestamp = clock.next();
                self.answered = Some(answered);
                Ok(false)
            }
            // All had answered before: what is newer now has been written since.
            (Distance::Ahead, Some(before)) if before >= replicas => Ok(true),
            (Distance::Ahead, Some(_)) => Err(again("Something newer is stored. Please try again.", 1)),
        }
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
            };
            let newer = order.newer(&[reply]);
            assert_eq!(newer, at.filter(|_| expected), "{status} {seconds:?}");
        }
    }
}
