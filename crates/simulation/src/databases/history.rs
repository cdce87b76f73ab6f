//! What clients asked of containers, which replicas said that it is done, and what may therefore be seen.

use super::names::{KEYS, NAMES, etag, header, object};
use super::replicas::DatabaseReplica;
use crate::history::Violation;
use listing_engine::ObjectRow;
use vocabulary::Timestamp;

/// What is asked of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContainerVerb {
    /// To be there, with an item of metadata.
    Put { key: usize },
    /// An item of metadata.
    Post { key: usize },
    /// Not to be there.
    Delete,
    /// To list an object.
    Row { name: usize },
    /// To list it no longer.
    NoRow { name: usize },
}

/// One write.
#[derive(Debug, Clone)]
pub(super) struct ContainerWrite {
    pub(super) container: usize,
    pub(super) verb: ContainerVerb,
    pub(super) at: Timestamp,
    /// Replicas that said that it is done and have lost nothing since.
    pub(super) done: usize,
}

/// All writes of a run; their numbers are what they write.
#[derive(Debug, Default)]
pub(super) struct ContainerHistory {
    pub(super) writes: Vec<ContainerWrite>,
}

impl ContainerHistory {
    /// Whether `seen` is what was acknowledged of a container, or something newer that was tried.
    pub(super) fn judge(&self, container: usize, seen: Option<&DatabaseReplica>) -> Result<(), Violation> {
        let broken = |what: String| Err(Violation(format!("container {container}: {what}")));
        let Some(seen) = seen else {
            return match self.newest_done(container, |_| true) {
                None => Ok(()),
                Some(at) => broken(format!("is nowhere, and something of {at} was acknowledged")),
            };
        };
        let is_put = |verb: ContainerVerb| matches!(verb, ContainerVerb::Put { .. } | ContainerVerb::Post { .. });
        self.covers(container, "its creation", seen.put, is_put)?;
        self.covers(container, "its deletion", seen.deleted, |verb| {
            verb == ContainerVerb::Delete
        })?;
        for name in 0..NAMES {
            self.judge_row(container, name, seen.rows.get(&object(name)))?;
        }
        if seen.rows.len() > NAMES {
            return broken(format!("{} rows, and there are {NAMES} names", seen.rows.len()));
        }
        (0..KEYS).try_for_each(|key| self.judge_item(container, key, seen.metadata.get(&header(key))))
    }

    fn writes(
        &self,
        container: usize,
        of: impl Fn(ContainerVerb) -> bool,
    ) -> impl Iterator<Item = (usize, &ContainerWrite)> {
        let all = self.writes.iter().enumerate();
        all.filter(move |(_, write)| write.container == container && of(write.verb))
    }

    fn newest_done(&self, container: usize, of: impl Fn(ContainerVerb) -> bool) -> Option<Timestamp> {
        let done = self.writes(container, of).filter(|(_, write)| write.done > 0);
        done.map(|(_, write)| write.at).max()
    }

    /// What is seen at `seen` was tried, and nothing newer was acknowledged. Tells which write it was.
    fn covers(
        &self,
        container: usize,
        what: &str,
        seen: Timestamp,
        of: impl Fn(ContainerVerb) -> bool + Copy,
    ) -> Result<Option<usize>, Violation> {
        let tried = self.writes(container, of).find(|(_, write)| write.at == seen);
        let broken = |finding: String| Err(Violation(format!("container {container}: {what}: {finding}")));
        match self.newest_done(container, of) {
            Some(newest) if newest > seen => broken(format!("{newest} was acknowledged, {seen} is there")),
            _ if seen != Timestamp::ZERO && tried.is_none() => broken(format!("nobody wrote what is of {seen}")),
            _ => Ok(tried.map(|(number, _)| number)),
        }
    }

    fn judge_row(&self, container: usize, name: usize, seen: Option<&ObjectRow>) -> Result<(), Violation> {
        let of = |verb| verb == ContainerVerb::Row { name } || verb == ContainerVerb::NoRow { name };
        let at = seen.map_or(Timestamp::ZERO, |row| row.timestamp);
        let number = self.covers(container, &object(name), at, of)?;
        let (Some(row), Some(number)) = (seen, number) else {
            return Ok(());
        };
        let deleted = self.writes[number].verb == ContainerVerb::NoRow { name };
        let (size, tag) = match deleted {
            true => (0, "noetag".to_owned()),
            false => (number as u64, etag(number)),
        };
        match (row.deleted, row.size, &row.etag) == (deleted, size, &tag) {
            true => Ok(()),
            false => Err(Violation(format!(
                "container {container}: write {number} became {row:?}"
            ))),
        }
    }

    fn judge_item(&self, container: usize, key: usize, seen: Option<&(String, Timestamp)>) -> Result<(), Violation> {
        let sets = |verb| verb == ContainerVerb::Put { key } || verb == ContainerVerb::Post { key };
        let Some((value, at)) = seen else {
            return self.covers(container, &header(key), Timestamp::ZERO, sets).map(|_| ());
        };
        // A deletion removes what is there.
        let removed = value.is_empty();
        if removed && self.newest_done(container, sets).is_none_or(|newest| newest <= *at) {
            let deletes = |verb| verb == ContainerVerb::Delete;
            let tried = self.writes(container, deletes).any(|(_, write)| write.at == *at);
            return match tried {
                true => Ok(()),
                false => Err(Violation(format!(
                    "container {container}: nobody removed {key} at {at}"
                ))),
            };
        }
        match self.covers(container, &header(key), *at, sets)? {
            Some(number) if *value == number.to_string() => Ok(()),
            found => Err(Violation(format!(
                "container {container}: {key} is {value}, of {found:?}"
            ))),
        }
    }
}
