//! Which objects there were when, as far as a log tells, and which of its requests can be replayed therefore.
//!
//! | the log has, of an object | was seen before: nothing | it is there | it is gone |
//! |---|---|---|---|
//! | a write | there now | there now | there now |
//! | a success of another kind | made beforehand | as it is | left out |
//! | 404 | was not there | left out | is not there |
//!
//! Always holds: requests are in the order in which they began; an object that is made beforehand is as long as its
//! first whole reading before it is written or deleted, and otherwise as its longest range.

use super::line::{self, LoggedRequest};
use crate::workload::replayed_log::{LoggedKind, ReplayedLog};
use crate::workload::script::ScriptStep;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A request of the log.
struct Entry {
    start: u64,
    size: u64,
    container: u32,
    /// 0 for requests to containers.
    object: u32,
    status: u16,
    kind: LoggedKind,
}

/// What is known of an object at a time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    Nothing,
    There,
    Gone,
}

/// An object of the log.
#[derive(Clone, Copy)]
struct LoggedObject {
    container: u32,
    /// Of its first whole reading, before it was written or deleted.
    whole: Option<u64>,
    longest_range: u64,
    /// It was written or deleted: what is read from then on says nothing about what was there before.
    is_changed: bool,
    known: Known,
    may_be_left: bool,
}

/// Reads a log line by line.
#[derive(Default)]
pub(super) struct LogHistory {
    entries: Vec<Entry>,
    containers: HashMap<Box<str>, u32>,
    objects: HashMap<Box<str>, u32>,
    left_out: BTreeMap<String, u64>,
}

impl LogHistory {
    /// Requests so far.
    pub fn count(&self) -> usize {
        self.entries.len()
    }

    /// Takes a line.
    pub fn take(&mut self, text: &str) {
        let text = line::message(text);
        let taken = match line::read(&text) {
            Some(request) => self.request(&request),
            None => Err("not lines of an access log".to_owned()),
        };
        if let Err(why) = taken {
            self.leave_out(why);
        }
    }

    fn leave_out(&mut self, why: String) {
        *self.left_out.entry(why).or_default() += 1;
    }

    fn request(&mut self, request: &LoggedRequest<'_>) -> Result<(), String> {
        let is_on_object = !request.object.is_empty();
        let to = match (request.account, request.container, is_on_object) {
            ("", ..) => return Err("not of Swift's API".to_owned()),
            _ if request.is_internal => return Err("of the proxy itself".to_owned()),
            (_, "", _) => return Err("to accounts".to_owned()),
            (.., true) => "to objects",
            (.., false) => "to containers",
        };
        let kind = LoggedKind::of(request.method, is_on_object).ok_or_else(|| match request.method {
            "COPY" | "DELETE" | "POST" | "OPTIONS" => format!("{} {to}", request.method),
            _ => format!("other methods {to}"),
        })?;
        let is_absent = request.status == 404 && kind.is_on_objects() && kind != LoggedKind::Write;
        if !kind.succeeded(request.status) && !is_absent {
            return Err(format!("status {}", request.status));
        }
        let name = format!("{}/{}", request.account, request.container);
        let container = numbered(&mut self.containers, name);
        let object = match is_on_object {
            true => numbered(
                &mut self.objects,
                format!("{}/{}/{}", request.account, request.container, request.object),
            ),
            false => 0,
        };
        self.entries.push(Entry {
            start: request.start,
            size: match kind {
                LoggedKind::Write => request.received,
                LoggedKind::Read => request.sent,
                _ => 0,
            },
            container,
            object,
            status: request.status,
            kind,
        });
        Ok(())
    }

    /// What can be replayed, as it came, and why requests and lines are left out, with how many of them.
    pub fn finish(mut self) -> (ReplayedLog, BTreeMap<String, u64>) {
        self.entries.sort_by_key(|entry| entry.start);
        let mut objects = self.read_sizes();
        let (mut operations, mut requests, mut prepared) = (vec![], vec![], vec![]);
        let mut begun = None;
        for entry in std::mem::take(&mut self.entries) {
            let mut step = ScriptStep {
                at: 0,
                size: entry.size,
                container: entry.container,
                object: entry.object,
                operation: 0,
                is_range: entry.status == 206 && entry.size > 0,
                is_absent: entry.status == 404,
            };
            // Requests to containers have no object.
            if let Some(object) = entry.object.checked_sub(1).and_then(|at| objects.get_mut(at as usize)) {
                match object.after(&entry) {
                    Ok(false) => {}
                    Ok(true) => prepared.push(ScriptStep {
                        size: object.whole.unwrap_or(object.longest_range),
                        is_range: false,
                        ..step
                    }),
                    Err(why) => {
                        self.leave_out(why.to_owned());
                        continue;
                    }
                }
            }
            step.at = entry.start - *begun.get_or_insert(entry.start);
            let place = operations.iter().position(|kind| *kind == entry.kind);
            // There are fewer kinds than a byte counts.
            step.operation = place.unwrap_or_else(|| {
                operations.push(entry.kind);
                operations.len() - 1
            }) as u8;
            requests.push(step);
        }
        let replayed = ReplayedLog {
            requests: requests.into(),
            operations,
            prepared: prepared.into(),
            deleted: deletions(&objects),
            // As many names as requests at most, which are fewer than numbers of this size count.
            containers: self.containers.len() as u32,
            objects: self.objects.len() as u32,
        };
        (replayed, self.left_out)
    }

    /// How long objects were, by their numbers less one.
    fn read_sizes(&self) -> Vec<LoggedObject> {
        let none = LoggedObject {
            container: 0,
            whole: None,
            longest_range: 0,
            is_changed: false,
            known: Known::Nothing,
            may_be_left: false,
        };
        let mut objects = vec![none; self.objects.len()];
        for entry in &self.entries {
            let at = entry.object.checked_sub(1).map(|at| at as usize);
            let Some(object) = at.and_then(|at| objects.get_mut(at)) else {
                continue;
            };
            object.container = entry.container;
            match (entry.kind, entry.status) {
                (LoggedKind::Write | LoggedKind::Delete, _) => object.is_changed = true,
                (LoggedKind::Read, 200) if !object.is_changed && object.whole.is_none() => {
                    object.whole = Some(entry.size);
                }
                (LoggedKind::Read, 206) if !object.is_changed => {
                    object.longest_range = object.longest_range.max(entry.size);
                }
                _ => {}
            }
        }
        objects
    }
}

impl LoggedObject {
    /// What a request makes of it: whether it has to be there beforehand; why the request cannot be replayed.
    fn after(&mut self, entry: &Entry) -> Result<bool, &'static str> {
        let is_absent = entry.status == 404;
        let (next, is_made_before) = match (entry.kind, is_absent, self.known) {
            (LoggedKind::Write, ..) => (Known::There, false),
            (_, true, Known::There) => return Err("404 of objects that should be there"),
            (_, true, _) => (Known::Gone, false),
            (_, false, Known::Gone) => return Err("of objects that should be gone"),
            (LoggedKind::Delete, false, before) => (Known::Gone, before == Known::Nothing),
            (_, false, before) => (Known::There, before == Known::Nothing),
        };
        self.known = next;
        self.may_be_left |= is_made_before || next == Known::There;
        Ok(is_made_before)
    }
}

/// All objects that the replay makes.
fn deletions(objects: &[LoggedObject]) -> Arc<[ScriptStep]> {
    let made = (1..).zip(objects).filter(|(_, object)| object.may_be_left);
    let deletion = |(number, object): (u32, &LoggedObject)| ScriptStep {
        at: 0,
        size: 0,
        container: object.container,
        object: number,
        operation: 0,
        is_range: false,
        is_absent: false,
    };
    made.map(deletion).collect()
}

/// The number of a name, from 1 on.
fn numbered(names: &mut HashMap<Box<str>, u32>, name: String) -> u32 {
    // As many names as requests at most, which are fewer than a number of this size counts.
    let next = names.len() as u32 + 1;
    *names.entry(name.into_boxed_str()).or_insert(next)
}
