//! What clients did and which replies they got, and what may therefore be seen.
//!
//! Every body begins with its path and number, so that one seen anywhere tells where it belongs. Each write
//! has its timestamp from the clock of the gateway it went through.

use bytes::Bytes;
use std::fmt;
use std::time::Duration;
use vocabulary::Timestamp;

/// What a client wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WriteVerb {
    /// This body.
    Put(Bytes),
    /// New metadata.
    Post,
    /// Nothing is there any more.
    Delete,
}

/// What the client knows of its write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteOutcome {
    /// Nothing for certain.
    Unknown,
    /// Its reply was that the write is done.
    Acknowledged,
    /// It cut its upload short: such a body must never be seen.
    CutShort,
}

/// One write.
#[derive(Debug, Clone)]
pub struct ClientWrite {
    /// Number of its path.
    pub path: usize,
    /// What was written.
    pub verb: WriteVerb,
    /// Its timestamps: the client's, or those that its gateway gave it, which may have sent it again.
    pub times: Vec<Timestamp>,
    /// What came of it.
    pub fate: WriteOutcome,
    /// From when to when the client waited for its reply.
    pub span: (Duration, Option<Duration>),
    /// The node of its gateway, and the time there when the reply came.
    pub gateway: (usize, Timestamp),
}

impl ClientWrite {
    /// The time with which it was sent last.
    pub fn at(&self) -> Timestamp {
        self.times.last().copied().unwrap_or(Timestamp::ZERO)
    }

    /// Whether it had its reply before `other` was begun.
    fn precedes(&self, other: &Self) -> bool {
        self.span.1.is_some_and(|end| end < other.span.0)
    }
}

/// A promise that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation(pub String);

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What is seen of a path: its newest part on any node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SeenState {
    /// The newest body, by number of its write, and its time.
    pub body: Option<(usize, Timestamp)>,
    /// The newest deletion.
    pub deleted: Option<Timestamp>,
    /// The newest of all timestamps.
    pub newest: Option<Timestamp>,
}

impl SeenState {
    /// What of it counts: the body that no deletion follows, else the deletion; and the newest of all.
    pub fn state(&self) -> (Option<usize>, Option<Timestamp>, Option<Timestamp>) {
        let exists = |(_, at): &(usize, Timestamp)| self.deleted.is_none_or(|deleted| deleted < *at);
        match self.body.filter(exists) {
            Some((number, _)) => (Some(number), None, self.newest),
            None => (None, self.deleted, self.deleted),
        }
    }
}

/// All writes of a run.
#[derive(Debug, Default)]
pub struct WriteHistory {
    /// The paths that are written to: account, container, object.
    pub paths: Vec<(String, String, String)>,
    /// In the order in which they were begun.
    pub writes: Vec<ClientWrite>,
}

impl WriteHistory {
    /// The body of write number `number`: `size` bytes or a few more.
    pub fn body(&self, path: usize, number: usize, size: usize) -> Bytes {
        let mut body = format!("{:?} {number}\n", self.paths[path]).into_bytes();
        let mut state = number as u32;
        while body.len() < size {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            body.extend_from_slice(&state.to_le_bytes());
        }
        body.into()
    }

    /// Whose body it is that a client or node was served whole.
    pub fn recognise(&self, path: usize, bytes: &Bytes) -> Result<usize, Violation> {
        let name = &self.paths[path];
        let found = self
            .writes
            .iter()
            .position(|write| write.verb == WriteVerb::Put(bytes.clone()));
        match found.map(|number| (number, &self.writes[number])) {
            None => Err(Violation(format!(
                "{name:?}: {} bytes that nobody wrote{}",
                bytes.len(),
                self.likeness(bytes)
            ))),
            Some((_, write)) if write.path != path => {
                Err(Violation(format!("{name:?}: the body of {:?}", self.paths[write.path])))
            }
            Some((_, write)) if write.fate == WriteOutcome::CutShort => {
                Err(Violation(format!("{name:?}: the body of an upload that was cut short")))
            }
            Some((number, _)) => Ok(number),
        }
    }

    /// Which body of that length they come nearest to, and where they part.
    fn likeness(&self, bytes: &Bytes) -> String {
        let bodies = self
            .writes
            .iter()
            .enumerate()
            .filter_map(|(number, write)| match &write.verb {
                WriteVerb::Put(body) if body.len() == bytes.len() => Some((number, body)),
                _ => None,
            });
        let alike = |body: &Bytes| body.iter().zip(bytes).filter(|(one, other)| one == other).count();
        let Some((number, body)) = bodies.max_by_key(|(_, body)| alike(body)) else {
            return String::new();
        };
        let parted: Vec<usize> = (0..body.len()).filter(|at| body[*at] != bytes[*at]).collect();
        let (first, last) = (parted.first().unwrap_or(&0), parted.last().unwrap_or(&0));
        format!(", like write {number} but for {} from {first} to {last}", parted.len())
    }

    /// Whether what is seen in the end is what was acknowledged, or something newer that was attempted.
    pub fn judge(&self, path: usize, seen: &SeenState) -> Result<(), Violation> {
        let name = &self.paths[path];
        let body = seen.body.map(|(_, at)| at);
        let exists = body.filter(|at| seen.deleted.is_none_or(|deleted| deleted < *at));
        let state = exists.or(seen.deleted);
        for (number, write) in self.writes.iter().enumerate().filter(|(_, write)| write.path == path) {
            if write.fate != WriteOutcome::Acknowledged {
                continue;
            }
            let (reached, what) = match &write.verb {
                WriteVerb::Put(_) => (state, "PUT"),
                WriteVerb::Delete => (state, "DELETE"),
                // A deletion ends what a POST said, whichever came first.
                WriteVerb::Post if exists.is_none() => continue,
                WriteVerb::Post => (seen.newest, "POST"),
            };
            if reached.is_none_or(|reached| reached < write.at()) {
                let state = match (exists, seen.deleted) {
                    (Some(at), _) => format!("the body of {at}"),
                    (None, Some(at)) => format!("the deletion of {at}"),
                    (None, None) => "nothing".into(),
                };
                return Err(Violation(format!(
                    "{name:?}: {what} {number} of {} was acknowledged, and what is there is {state}",
                    write.at()
                )));
            }
        }
        Ok(())
    }
}

impl WriteHistory {
    /// Whether `after` is `before` with the metadata of a newer POST. A `.meta` may lie where the body has not come
    /// yet: no reader counts it there, and replication brings it to the body.
    pub fn has_gained_metadata(&self, path: usize, before: &SeenState, after: &SeenState) -> bool {
        let ((was, _, old), (is, _, new)) = (before.state(), after.state());
        let mut posts = (self.writes.iter()).filter(|write| write.path == path && write.verb == WriteVerb::Post);
        was.is_some() && was == is && new > old && posts.any(|post| new.is_some_and(|at| post.times.contains(&at)))
    }
}

/// Where nothing but clocks goes wrong.
impl WriteHistory {
    /// Whether each acknowledged write has won, or one has that did not precede it, whatever the clocks said. One whose
    /// time is not ahead of the gateway's when that answers passes for one beside the write: a gateway cannot tell a
    /// race from a clock that is off by less than a request takes. So does one that was refused, whose messages may
    /// reach servers later. A deletion that loses to another deletion has what it asked for.
    pub fn judge_order(&self, path: usize, seen: &SeenState) -> Result<(), Violation> {
        let (body, deleted, newest) = seen.state();
        // A DELETE may have the time of the POST that it ends.
        let winner = |at: Option<Timestamp>, deletes: bool| {
            let is_it = |write: &ClientWrite| (write.verb == WriteVerb::Delete) == deletes && write.path == path;
            at.and_then(|at| (self.writes.iter()).position(|write| is_it(write) && write.times.contains(&at)))
        };
        let rules = body.or_else(|| winner(deleted, true));
        for (number, write) in self.writes.iter().enumerate().filter(|(_, write)| write.path == path) {
            let winner = match &write.verb {
                _ if write.fate != WriteOutcome::Acknowledged => continue,
                // A deletion ends what a POST said, whichever came first.
                WriteVerb::Post if body.is_none() => continue,
                WriteVerb::Post => winner(newest, false),
                _ => rules,
            };
            let is_wrong = |winner: usize| {
                let other = &self.writes[winner];
                // Messages of one that was refused may be under way still.
                let is_over = other.fate == WriteOutcome::Acknowledged && other.precedes(write);
                let both_delete = write.verb == WriteVerb::Delete && other.verb == WriteVerb::Delete;
                winner != number && !both_delete && is_over && other.at() > write.gateway.1
            };
            if winner.is_none_or(is_wrong) {
                return Err(Violation(format!(
                    "{:?}: write {number} was acknowledged and {winner:?} has won, which came before",
                    self.paths[path]
                )));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(writes: &[(WriteVerb, u64, WriteOutcome)]) -> WriteHistory {
        let path = ("a".to_owned(), "c".to_owned(), "o".to_owned());
        let write = |(verb, at, fate): &(WriteVerb, u64, WriteOutcome)| ClientWrite {
            path: 0,
            verb: verb.clone(),
            times: vec![Timestamp::from_seconds(*at)],
            fate: *fate,
            span: (Duration::from_secs(*at), Some(Duration::from_secs(*at + 1))),
            gateway: (0, Timestamp::from_seconds(*at + 1)),
        };
        WriteHistory {
            paths: vec![path],
            writes: writes.iter().map(write).collect(),
        }
    }

    #[test]
    fn what_was_acknowledged_binds_and_what_was_tried_may_be() {
        use WriteOutcome::{Acknowledged, Unknown};
        let put = |text: &'static str| WriteVerb::Put(Bytes::from_static(text.as_bytes()));
        let history = history(&[
            (put("a"), 1, Acknowledged),
            (put("b"), 2, Unknown),
            (WriteVerb::Delete, 3, Acknowledged),
            (put("c"), 4, Unknown),
        ]);
        let seen = |body: Option<usize>, deleted: Option<u64>| SeenState {
            body: body.map(|number| (number, history.writes[number].at())),
            deleted: deleted.map(Timestamp::from_seconds),
            newest: None,
        };
        for (body, deleted, fine) in [
            (None, Some(3), true),
            (Some(3), Some(3), true),
            (Some(3), None, true),
            (Some(1), Some(3), true),
            (Some(1), None, false),
            (Some(0), None, false),
            (None, None, false),
        ] {
            assert_eq!(
                history.judge(0, &seen(body, deleted)).is_ok(),
                fine,
                "{body:?} {deleted:?}"
            );
        }
        assert_eq!(history.recognise(0, &Bytes::from_static(b"b")), Ok(1));
        assert!(history.recognise(0, &Bytes::from_static(b"x")).is_err());
    }

    #[test]
    fn replication_may_bring_the_metadata_of_a_post_and_nothing_else() {
        use WriteOutcome::{Acknowledged, Unknown};
        let put = WriteVerb::Put(Bytes::from_static(b"a"));
        let history = history(&[
            (put.clone(), 1, Acknowledged),
            (WriteVerb::Post, 3, Unknown),
            (put, 4, Unknown),
        ]);
        let seen = |body: usize, newest: u64| SeenState {
            body: Some((body, history.writes[body].at())),
            deleted: None,
            newest: Some(Timestamp::from_seconds(newest)),
        };
        let gained = |after| history.has_gained_metadata(0, &seen(0, 1), &after);
        assert!(gained(seen(0, 3)));
        assert!(!gained(seen(0, 4)), "the time of a PUT");
        assert!(!gained(seen(2, 3)), "another body");
        assert!(!history.has_gained_metadata(0, &seen(0, 3), &seen(0, 1)), "lost");
    }

    #[test]
    fn a_write_may_lose_to_one_beside_it_and_to_none_before_it() {
        use WriteOutcome::Acknowledged;
        let put = |text: &'static str| WriteVerb::Put(Bytes::from_static(text.as_bytes()));
        let mut history = history(&[(put("a"), 9, Acknowledged), (put("b"), 3, Acknowledged)]);
        let a_won = SeenState {
            body: Some((0, Timestamp::from_seconds(9))),
            ..SeenState::default()
        };
        let seconds = |begun, ended| (Duration::from_secs(begun), Some(Duration::from_secs(ended)));
        for (a, b, fine) in [((1, 2), (3, 4), false), ((1, 4), (3, 5), true), ((3, 4), (1, 2), true)] {
            history.writes[0].span = seconds(a.0, a.1);
            history.writes[1].span = seconds(b.0, b.1);
            assert_eq!(history.judge_order(0, &a_won).is_ok(), fine, "{a:?} {b:?}");
        }
        (history.writes[0].span, history.writes[1].span) = (seconds(1, 2), seconds(3, 4));
        history.writes[1].gateway.1 = Timestamp::from_seconds(10);
        assert_eq!(history.judge_order(0, &a_won), Ok(()), "it passes for a race");
    }

    #[test]
    fn a_deletion_may_lose_to_a_deletion_before_it_and_a_body_may_not() {
        use WriteOutcome::Acknowledged;
        let won = |at| SeenState {
            deleted: Some(Timestamp::from_seconds(at)),
            ..SeenState::default()
        };
        for (last, fine) in [
            (WriteVerb::Delete, true),
            (WriteVerb::Put(Bytes::from_static(b"a")), false),
        ] {
            let mut history = history(&[(WriteVerb::Delete, 9, Acknowledged), (last, 3, Acknowledged)]);
            for (write, begun) in history.writes.iter_mut().zip([1, 3]) {
                write.span = (Duration::from_secs(begun), Some(Duration::from_secs(begun + 1)));
            }
            assert_eq!(history.judge_order(0, &won(9)).is_ok(), fine);
        }
    }
}
