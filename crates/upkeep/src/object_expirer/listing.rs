//! What is in the queue: its containers, and page by page the tasks in them.
//!
//! What expires at the same time lies in a hundred containers (by default), a share of each listing and drive in each.
//! So they are gone through side by side, a short page of each in its turn: what is deleted together was mostly written
//! together.
//! Always holds: a few containers are listed at the same time at most, and none while enough
//! tasks wait; a container that cannot be listed waits for the next pass.
//! Deliberately absent: what becomes of the tasks.

use super::learnt::ExpirerKnowledge;
use super::tasks::{Task, is_due};
use super::{MAX_WAITING, NAME, ObjectExpirer, Pass, note_oldest};
use crate::internal_client::{InternalRequest, ListedItem};
use crate::work_share::WorkShare;
use futures_util::{StreamExt, stream};
use http::Method;
use std::collections::VecDeque;
use std::sync::Arc;
use vocabulary::{EntityPath, Timestamp};

/// Containers gone through side by side at most.
const SIDE_BY_SIDE: usize = 128;
/// Of these, asked for a page at the same time.
const AT_ONCE: usize = 4;
/// Rows of a page at least and at most, where `container_listing_limit` allows them.
const SHORTEST: usize = 100;
const LONGEST: usize = 1_000;

/// How far a container of the queue has been listed.
pub(super) struct Listing {
    queue: Arc<str>,
    marker: String,
}

/// A page: the tasks that are due and this process's, and where to go on.
#[derive(Default)]
struct Page {
    tasks: Vec<Task>,
    rest: Option<Listing>,
}

impl ObjectExpirer {
    /// Lists the containers that may have something due.
    pub(super) async fn begin(&self) -> Pass {
        let now = self.world.clock.now();
        let mut containers = VecDeque::new();
        for name in self.client.queue(&self.options.account, NAME).await {
            match is_due(&name, now) {
                Some(true) => containers.push_back(name),
                Some(false) => {}
                None => tracing::error!("{NAME}: skipping invalid task container: {name}"),
            }
        }
        let (account, count) = (&self.options.account, containers.len());
        tracing::debug!("{NAME}: Pass beginning for task account {account}; {count} possible containers");
        Pass::new(containers, self.world.clock.elapsed())
    }

    /// Lists the next page of each of some containers.
    pub(super) async fn list_some(&self, pass: &mut Pass) {
        let at_once = self.options.concurrency.clamp(1, AT_ONCE);
        while pass.listings.len() < SIDE_BY_SIDE
            && let Some(container) = pass.containers.pop_front()
        {
            let (queue, marker) = (container.into(), String::new());
            pass.listings.push_back(Listing { queue, marker });
        }
        let rows = MAX_WAITING / pass.listings.len().max(1);
        let rows = rows.clamp(SHORTEST, LONGEST).min(self.options.listing_limit.max(1));
        let pages: Vec<_> = (pass.listings.drain(..))
            .map(|listing| self.list(listing, rows, &pass.known))
            .collect();
        let pages: Vec<Page> = stream::iter(pages).buffered(at_once).collect().await;
        for page in pages {
            for task in page.tasks {
                note_oldest(&mut pass.oldest_waiting, task.due);
                pass.listed.push_back(task);
            }
            pass.listings.extend(page.rest);
        }
    }

    /// A container that has no tasks is removed.
    async fn list(&self, listing: Listing, limit: usize, known: &ExpirerKnowledge) -> Page {
        let path = self.queue(&listing.queue);
        let rows = match self.client.page(&path, &listing.marker, Some(limit)).await {
            Ok(rows) => rows,
            Err(error) => {
                let why = format_args!("{}; the container waits for the next pass", error.answer());
                known.failures.note_item(error, why);
                return Page::default();
            }
        };
        let Some(last) = rows.last() else {
            if listing.marker.is_empty() {
                self.remove_container(path, known).await;
            }
            return Page::default();
        };
        let (queue, marker) = (listing.queue, last.name.clone());
        // Should servers give out fewer than they were asked for, the next pass goes on.
        let is_last = rows.len() < limit;
        let (tasks, all_due) = self.read(&queue, rows, known);
        let rest = (all_due && !is_last).then_some(Listing { queue, marker });
        Page { tasks, rest }
    }

    /// The tasks of a page, and whether the next may have more.
    fn read(&self, queue: &Arc<str>, rows: Vec<ListedItem>, known: &ExpirerKnowledge) -> (Vec<Task>, bool) {
        let now = self.world.clock.now();
        let mut tasks = vec![];
        for row in rows {
            // Rows are in the order of time, unless one's time is written with too many zeros.
            let in_order = |task: &Task| task.due <= now || task.name > now.normal();
            let task = Task::read(queue, row.name.clone(), &row.content_type).filter(in_order);
            let Some(task) = task else {
                let what = format_args!("{}/{}", self.queue(queue).path(), row.name);
                known.failures.note_item(what, "no task; left alone");
                self.statsd.increment("tasks.parse_errors");
                continue;
            };
            if task.due > now {
                return (tasks, false);
            }
            match self.share(&task, now) {
                None => {
                    self.statsd.increment("tasks.assigned");
                    tasks.push(task);
                }
                Some(why) => self.statsd.increment(why),
            }
        }
        (tasks, true)
    }

    /// Why a task is not to be done now, or not here.
    fn share(&self, task: &Task, now: Timestamp) -> Option<&'static str> {
        let share = WorkShare {
            number: self.options.process,
            of: self.options.processes,
        };
        match task.belongs_to(share) {
            false => Some("tasks.skipped"),
            true => self.is_delayed(task, now).then_some("tasks.delayed"),
        }
    }

    fn is_delayed(&self, task: &Task, now: Timestamp) -> bool {
        let delay = self.options.delays.of(&task.target);
        !task.is_async && task.due.as_f64() + delay.as_secs_f64() > now.as_f64()
    }

    /// A task that comes at this moment makes it anew.
    async fn remove_container(&self, path: EntityPath, known: &ExpirerKnowledge) {
        let ask = InternalRequest::new(Method::DELETE, path);
        if let Err(error) = self.client.tell(&ask, &[2, 404, 409]).await {
            let why = format_args!("{}; the empty container stays for now", error.answer());
            known.failures.note_item(error, why);
        }
    }
}
