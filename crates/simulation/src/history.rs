//! What clients did and which replies they got, and what may therefore be seen.
//!
//! Every body begins with its path and number, so that one seen anywhere tells where it belongs. Each write
//! has its timestamp from the clock of the gateway it went through.

use bytes::Bytes;
use std::fmt;
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
    /// Its timestamp.
    pub at: Timestamp,
    /// What came of it.
    pub fate: WriteOutcome,
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
    /// The newest body, by number of its write.
    pub body: Option<usize>,
    /// The newest deletion.
    pub deleted: Option<Timestamp>,
    /// The newest of all timestamps.
    pub newest: Option<Timestamp>,
}

impl SeenState {
    /// What of it counts: the body that no deletion follows, else the deletion; and the newest of all.
    pub fn state(&self, history: &WriteHistory) -> (Option<usize>, Option<Timestamp>, Option<Timestamp>) {
        let exists = |number: &usize| self.deleted.is_none_or(|deleted| deleted < history.writes[*number].at);
        match self.body.filter(exists) {
            Some(number) => (Some(number), None, self.newest),
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
        let body = seen.body.map(|number| self.writes[number].at);
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
            if reached.is_none_or(|reached| reached < write.at) {
                let state = match (exists, seen.deleted) {
                    (Some(at), _) => format!("the body of {at}"),
                    (None, Some(at)) => format!("the deletion of {at}"),
                    (None, None) => "nothing".into(),
                };
                return Err(Violation(format!(
                    "{name:?}: {what} {number} of {} was acknowledged, and what is there is {state}",
                    write.at
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
            at: Timestamp::from_seconds(*at),
            fate: *fate,
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
            body,
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
}
