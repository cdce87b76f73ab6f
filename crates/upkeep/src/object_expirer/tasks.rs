//! The expirer's queue: names of its containers and tasks, and whose they are.
//!
//! A task is a row `TIMESTAMP-account/container/object` in a container of the hidden account whose name is
//! the beginning of the time it holds; what is to be deleted without asking when it expires has a content
//! type of its own. Source: Swift's `doc/source/overview_expiring_objects.rst`, and what OpenStack Swift 2.38.3's
//! expirer asked for and answered when it was given such queues.
//! Always holds: any name is a task or none.

use crate::work_share::WorkShare;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use vocabulary::names::unquote;
use vocabulary::{EntityPath, Timestamp};

/// The content type of a task that a client has asked for, rather than an object's own expiry.
const ASYNC: &str = "application/async-deleted";

/// One thing to delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Task {
    /// The container of the queue that has it.
    pub(super) queue: Arc<str>,
    /// Its name there.
    pub(super) name: String,
    /// When it is to go.
    pub(super) due: Timestamp,
    /// The object.
    pub(super) target: EntityPath,
    /// Whatever the object says of its own expiry.
    pub(super) is_async: bool,
}

impl Task {
    /// Reads a row of the queue; `None` when it is no task.
    pub(super) fn read(queue: &Arc<str>, name: String, content_type: &str) -> Option<Self> {
        let (due, target) = name.split_once('-')?;
        let due = due.parse().ok()?;
        let target = EntityPath::split(target).ok().filter(|path| path.object.is_some())?;
        Some(Self {
            queue: queue.clone(),
            due,
            target,
            is_async: content_type == ASYNC,
            name,
        })
    }

    /// Whether it falls to this part of the work.
    pub(super) fn belongs_to(&self, share: WorkShare) -> bool {
        share.has_name(&format!("{}/{}", self.queue, self.name))
    }
}

/// Whether a container of the queue may have tasks that are due.
pub(super) fn is_due(container: &str, now: Timestamp) -> Option<bool> {
    let from: u64 = container.trim().parse().ok()?;
    Some(from <= now.seconds())
}

/// Tasks of one container after the other become tasks of all containers in turn, so many at a time: the servers of
/// none are asked for everything at once. Those of a container of the queue stay near each other, for their rows go
/// together.
pub(super) fn in_turn(mut tasks: VecDeque<Task>, at_a_time: usize) -> VecDeque<Task> {
    let mut ordered = VecDeque::with_capacity(tasks.len());
    while !tasks.is_empty() {
        let some = tasks.drain(..at_a_time.clamp(1, tasks.len()));
        take_turns(some, &mut ordered);
    }
    ordered
}

fn take_turns(tasks: impl Iterator<Item = Task>, ordered: &mut VecDeque<Task>) {
    let mut by_container: BTreeMap<(String, Option<String>), VecDeque<Task>> = BTreeMap::new();
    for task in tasks {
        let key = (task.target.account.clone(), task.target.container.clone());
        by_container.entry(key).or_default().push_back(task);
    }
    while !by_container.is_empty() {
        by_container.retain(|_, tasks| {
            ordered.extend(tasks.pop_front());
            !tasks.is_empty()
        });
    }
}

/// `delay_reaping_…`: how long what has expired stays, by account, and by container.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Delays(BTreeMap<(String, Option<String>), Duration>);

impl Delays {
    /// Takes an option: its name behind the prefix, and its value. `None` when it is no delay.
    pub fn add(&mut self, name: &str, seconds: &str) -> Option<()> {
        let (account, container) = match name.split_once('/') {
            Some((account, container)) => (account, Some(container)),
            None => (name, None),
        };
        let account = unquote(account).ok().filter(|account| !account.is_empty())?;
        let container = match container {
            Some(container) => Some(unquote(container).ok().filter(|name| !name.is_empty())?),
            None => None,
        };
        let delay = Duration::try_from_secs_f64(seconds.trim().parse().ok()?).ok()?;
        self.0.insert((account, container), delay);
        Some(())
    }

    /// How long an object stays.
    pub(super) fn of(&self, target: &EntityPath) -> Duration {
        if self.0.is_empty() {
            return Duration::ZERO;
        }
        let own = self.0.get(&(target.account.clone(), target.container.clone()));
        let accounts = || self.0.get(&(target.account.clone(), None));
        own.or_else(accounts).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn task(name: &str) -> Option<Task> {
        Task::read(&"1795132795".into(), name.into(), "text/plain")
    }

    #[test]
    fn names_are_tasks_or_none() {
        let read = task("1795197314.12345-a/c/o/p-q").unwrap();
        assert_eq!(read.target.path(), "/a/c/o/p-q");
        assert_eq!(read.due.normal(), "1795197314.12345");
        for none in ["", "bad", "1795197314-a/c", "x-a/c/o", "1795197314-/c/o"] {
            assert_eq!(task(none), None, "{none}");
        }
        let content_type = |text| Task::read(&"1".into(), "1-a/c/o".into(), text).unwrap().is_async;
        assert!(content_type("application/async-deleted"));
        assert!(!content_type("application/async-deleted;swift_x=1"));
    }

    /// The parts that OpenStack Swift 2.38.3's expirer took as process 0, 1 and 2 of 3.
    #[test]
    fn shares_are_openstacks() {
        let parts = [0, 0, 1, 1, 0, 2, 2, 2, 0, 1, 0, 0];
        for (number, part) in parts.into_iter().enumerate() {
            let task = task(&format!("1795197314-a/c/o{number}")).unwrap();
            let takers: Vec<u64> = (0..3)
                .filter(|number| task.belongs_to(WorkShare { number: *number, of: 3 }))
                .collect();
            assert_eq!(takers, [part], "o{number}");
            assert!(
                [0, 1]
                    .iter()
                    .all(|of| task.belongs_to(WorkShare { number: 0, of: *of }))
            );
        }
    }

    #[test]
    fn containers_take_turns() {
        let names = ["1-a/c/1", "1-a/c/2", "1-a/d/1", "1-b/c/1", "1-a/c/3"];
        let ordered = |at_a_time| {
            let tasks = names.iter().map(|name| task(name).unwrap()).collect();
            let ordered = in_turn(tasks, at_a_time).into_iter().map(|task| task.name);
            ordered.collect::<Vec<String>>()
        };
        assert_eq!(ordered(5), ["1-a/c/1", "1-a/d/1", "1-b/c/1", "1-a/c/2", "1-a/c/3"]);
        assert_eq!(ordered(3), ["1-a/c/1", "1-a/d/1", "1-a/c/2", "1-a/c/3", "1-b/c/1"]);
    }

    #[test]
    fn delays_of_containers_win() {
        let mut delays = Delays::default();
        delays.add("AUTH_a", "300.0").unwrap();
        delays.add("AUTH_a/c%2F%C3%B6", "0.5").unwrap();
        for wrong in [("", "1"), ("a/", "1"), ("a", "x"), ("a", "-1"), ("a", "nan")] {
            assert_eq!(delays.add(wrong.0, wrong.1), None, "{wrong:?}");
        }
        let delay = |path: &str| delays.of(&EntityPath::split(path).unwrap()).as_secs_f64();
        assert_eq!((delay("AUTH_a/x/o"), delay("b/c/o")), (300.0, 0.0));
        let odd = EntityPath::account("AUTH_a").with_container("c/ö").with_object("o");
        assert_eq!(delays.of(&odd).as_secs_f64(), 0.5);
    }

    proptest! {
        #[test]
        fn any_name_is_read(name in "\\PC{0,40}", container in "\\PC{0,20}", value in "\\PC{0,10}") {
            let _ = task(&name);
            let _ = is_due(&container, Timestamp::ZERO);
            let _ = Delays::default().add(&name, &value);
        }
    }
}
