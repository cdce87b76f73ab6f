//! Object-expirer: objects whose time is over.
//!
//! Every object with an `X-Delete-At` has a task in the queue, a hidden account. What is due is deleted
//! on the condition that the object still says so, in batches by the object servers (`delete_batches.rs`) or else one
//! by one through upkeep's own gateway; then the task's row is taken out of the queue, those of a container in one
//! request to each of its servers.
//! Always holds: a row goes only after its object has gone, was never there for longer than the reclaim
//! age, or has something newer in its place; and, where tombstones do not last, after all of the object's servers have
//! said so, as one that was away would bring the object back; an object is deleted as of its own deletion time, so that
//! what was written later stays; after a crash between the two the object is deleted once more, in vain.
//! Deliberately absent: who writes the tasks (`object-server`, the gateway's large objects).
//! Tests: `tasks.rs`, `tests/object_expirer.rs`, `tests/interop/test_object_expirer.py`.

mod agreement;
mod batches;
mod delete_batches;
mod learnt;
mod listing;
mod rows;
mod single_delete;
mod tasks;

use crate::internal_client::InternalClient;
use crate::ring_client::RingClient;
use crate::{PassProgress, ReconFile, UpkeepJob, UpkeepStep};
use agreement::BatchOutcome;
pub use delete_batches::ObjectServers;
use futures_util::StreamExt;
use futures_util::stream;
use learnt::ExpirerKnowledge;
use listing::Listing;
use serde_json::{Value, json};
use single_delete::MAY_COME_BACK;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
pub use tasks::Delays;
use tasks::{Task, in_turn};
use telemetry::Statsd;
use vocabulary::{EntityPath, Timestamp};
use world::World;

const NAME: &str = "object-expirer";
/// Tasks that are listed at once, about. Half as many are enough to begin with.
const MAX_WAITING: usize = 20_000;
/// Tasks of a part of a step at most, and for each deletion at the same time.
const MOST_OF_PART: usize = 4096;
const EACH: usize = 512;
/// Parts of a step at most. More would keep it from ending in the time that is left after SIGTERM, and rows would stay
/// whose objects have gone.
const PARTS: usize = 2;

/// What an operator can say.
#[derive(Debug, Clone)]
pub struct ExpirerOptions {
    /// The hidden account of the queue.
    pub account: String,
    /// Deletions at the same time.
    pub concurrency: usize,
    /// Tasks per second at most, so that a step is not larger; 0 for no limit.
    pub per_second: f64,
    /// In how many parts the work is divided; 0 for one.
    pub processes: u64,
    /// Which of them this is.
    pub process: u64,
    /// How long an object that cannot be found is looked for again.
    pub reclaim_age: Duration,
    /// How often a pass that takes long is logged.
    pub report_interval: Duration,
    /// Rows of a listing's page at most (`container_listing_limit`).
    pub listing_limit: usize,
    /// What has expired stays so long.
    pub delays: Delays,
    /// Leave the queue to others.
    pub idle: bool,
}

/// Goes over the queue.
pub struct ObjectExpirer {
    world: World,
    client: InternalClient,
    /// For what the next pass tries again.
    once: InternalClient,
    containers: RingClient,
    /// For deletions in batches; `None` where all go through the gateway.
    objects: Option<ObjectServers>,
    options: ExpirerOptions,
    statsd: Statsd,
    /// `None` between passes.
    pass: Option<Pass>,
    /// The oldest task of the last pass that is still there.
    oldest: Option<Timestamp>,
}

/// What is left of a pass.
struct Pass {
    began: Duration,
    reported: Duration,
    done: u64,
    containers: VecDeque<String>,
    listings: VecDeque<Listing>,
    /// Waiting, not in turn yet.
    listed: VecDeque<Task>,
    /// Waiting, in turn.
    tasks: VecDeque<Task>,
    /// The oldest of all that are waiting.
    oldest_waiting: Option<Timestamp>,
    /// The oldest of all that stay.
    oldest_left: Option<Timestamp>,
    known: ExpirerKnowledge,
}

impl Pass {
    fn new(containers: VecDeque<String>, began: Duration) -> Self {
        Self {
            began,
            reported: began,
            done: 0,
            containers,
            listings: VecDeque::new(),
            listed: VecDeque::new(),
            tasks: VecDeque::new(),
            oldest_waiting: None,
            oldest_left: None,
            known: ExpirerKnowledge::default(),
        }
    }
}

/// What came of some tasks.
#[derive(Default)]
struct StepPart {
    done: u64,
    failed: u64,
    /// The oldest of those that stay.
    oldest_left: Option<Timestamp>,
}

impl StepPart {
    fn leave<'a>(&mut self, tasks: impl IntoIterator<Item = &'a Task>) {
        for task in tasks {
            self.failed += 1;
            note_oldest(&mut self.oldest_left, task.due);
        }
    }
}

/// What becomes of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TaskOutcome {
    /// Its row can go.
    Finished,
    /// It stays for a later pass.
    Left,
}

impl ObjectExpirer {
    /// Deletes through `client`, and takes rows out of the queue at `containers`.
    pub fn new(world: World, client: InternalClient, containers: RingClient, options: ExpirerOptions) -> Self {
        Self {
            world,
            once: client.once(),
            client,
            containers,
            objects: None,
            options,
            statsd: Statsd::default(),
            pass: None,
            oldest: None,
        }
    }

    /// Has objects deleted by their servers in batches where it can.
    pub fn in_batches(self, objects: ObjectServers) -> Self {
        Self {
            objects: Some(objects),
            ..self
        }
    }

    fn queue(&self, container: &str) -> EntityPath {
        EntityPath::account(self.options.account.as_str()).with_container(container)
    }

    /// Does some tasks, part after part. Where several deletions may be under way, so may two parts: while the rows of
    /// one are taken out, and its last servers are waited for, objects of the other are deleted.
    async fn work(&self, pass: &mut Pass) -> UpkeepStep {
        let (step, part) = self.batch();
        let count = step.min(pass.tasks.len());
        let tasks: Vec<Task> = pass.tasks.drain(..count).collect();
        let at_once = self.options.concurrency.clamp(1, 2);
        let parts: Vec<_> = (tasks.chunks(part))
            .map(|part| self.carry_out(part, &pass.known, self.options.concurrency.div_ceil(at_once).max(1)))
            .collect();
        let parts: Vec<StepPart> = stream::iter(parts).buffer_unordered(at_once).collect().await;
        let (mut done, mut failed) = (0, 0);
        for part in parts {
            done += part.done;
            failed += part.failed;
            part.oldest_left
                .into_iter()
                .for_each(|due| note_oldest(&mut pass.oldest_left, due));
        }
        pass.done += done;
        UpkeepStep::Did { done, failed }
    }

    /// First the objects, then the rows of finished tasks: those of the batches do not wait for the gateway.
    async fn carry_out(&self, tasks: &[Task], known: &ExpirerKnowledge, at_once: usize) -> StepPart {
        let mut part = StepPart::default();
        let (resolved, others) = self.delete_in_batches(tasks, known, at_once).await;
        self.finish(resolved, &mut part, known, at_once).await;
        let resolved = self.delete_singly(others, known, at_once).await;
        self.finish(resolved, &mut part, known, at_once).await;
        part
    }

    /// Takes out the rows of what is finished.
    async fn finish(
        &self,
        tasks: Vec<(&Task, TaskOutcome)>,
        part: &mut StepPart,
        known: &ExpirerKnowledge,
        at_once: usize,
    ) {
        let mut finished: BTreeMap<&str, Vec<&Task>> = BTreeMap::new();
        for (task, fate) in tasks {
            match fate {
                TaskOutcome::Finished => finished.entry(&task.queue).or_default().push(task),
                TaskOutcome::Left => part.leave([task]),
            }
        }
        let removals = finished.into_iter().map(|(queue, tasks)| async move {
            let removed = self.remove_rows(queue, &tasks, known).await;
            (removed, tasks)
        });
        let removals: Vec<_> = removals.collect();
        let mut removals = stream::iter(removals).buffer_unordered(at_once);
        while let Some((removed, tasks)) = removals.next().await {
            match removed {
                true => part.done += tasks.len() as u64,
                false => part.leave(tasks),
            }
        }
    }

    /// What became of those that batches have resolved, and the others.
    async fn delete_in_batches<'a>(
        &self,
        tasks: &'a [Task],
        known: &ExpirerKnowledge,
        at_once: usize,
    ) -> (Vec<(&'a Task, TaskOutcome)>, Vec<&'a Task>) {
        let Some(servers) = &self.objects else {
            return (vec![], tasks.iter().collect());
        };
        let began = self.world.clock.elapsed();
        let horizon = self.horizon();
        let outcomes = servers.delete(tasks, &self.once, known, at_once, horizon).await;
        let took = self.world.clock.elapsed().saturating_sub(began);
        let (mut resolved, mut others) = (vec![], vec![]);
        for (task, outcome) in tasks.iter().zip(outcomes) {
            let fate = match outcome {
                BatchOutcome::Finished => TaskOutcome::Finished,
                BatchOutcome::Left => TaskOutcome::Left,
                BatchOutcome::MayComeBack => {
                    known.failures.note_item(task.target.path(), MAY_COME_BACK);
                    TaskOutcome::Left
                }
                BatchOutcome::Held => {
                    known.failures.note_item(task.target.path(), HELD);
                    TaskOutcome::Left
                }
                BatchOutcome::Unclear => {
                    others.push(task);
                    continue;
                }
            };
            self.count(fate, took);
            resolved.push((task, fate));
        }
        (resolved, others)
    }

    /// Asks the gateway for each.
    async fn delete_singly<'a>(
        &self,
        tasks: Vec<&'a Task>,
        known: &ExpirerKnowledge,
        at_once: usize,
    ) -> Vec<(&'a Task, TaskOutcome)> {
        let fates = tasks.into_iter().map(|task| async move {
            let began = self.world.clock.elapsed();
            let fate = self.delete(task, known).await;
            self.count(fate, self.world.clock.elapsed().saturating_sub(began));
            (task, fate)
        });
        let fates: Vec<_> = fates.collect();
        stream::iter(fates).buffer_unordered(at_once).collect().await
    }

    fn count(&self, fate: TaskOutcome, took: Duration) {
        self.statsd.increment(match fate {
            TaskOutcome::Finished => "objects",
            TaskOutcome::Left => "errors",
        });
        self.statsd.timing(format_args!("timing"), took);
    }

    /// Tasks of a step, no more than a second's, and of its parts: enough to keep all servers busy and to have several
    /// rows for each container of the queue (there may be a hundred).
    fn batch(&self) -> (usize, usize) {
        let part = self.options.concurrency.saturating_mul(EACH).clamp(1, MOST_OF_PART);
        let step = PARTS * part;
        match self.options.per_second > 0.0 {
            // Beyond what fits, the largest that does.
            true => (step.min(self.options.per_second.ceil() as usize).max(1), part),
            false => (step, part),
        }
    }

    /// Before that tombstones do not last: what a server brings back that is away for long is not deleted again.
    fn horizon(&self) -> Timestamp {
        let age = self.options.reclaim_age.as_secs() / 2;
        Timestamp::from_seconds(self.world.clock.now().seconds().saturating_sub(age))
    }

    fn end(&mut self, pass: &Pass) {
        self.oldest = pass.oldest_left;
        let took = self.world.clock.elapsed().saturating_sub(pass.began);
        if pass.done > 0 {
            let (seconds, done) = (took.as_secs(), pass.done);
            tracing::info!("{NAME}: Pass completed in {seconds}s; {done} objects expired");
        }
    }

    fn report(&self, pass: &mut Pass) {
        let now = self.world.clock.elapsed();
        if now.saturating_sub(pass.reported) >= self.options.report_interval {
            pass.reported = now;
            let (seconds, done) = (now.saturating_sub(pass.began).as_secs(), pass.done);
            tracing::info!("{NAME}: Pass so far {seconds}s; {done} objects expired");
        }
    }
}

/// By the object server's clock it has not expired.
const TOO_EARLY: u16 = 425;
/// Why a task stays of what must not go.
const HELD: &str =
    "an object lock holds it, or most of its servers have not said that none does; it is tried again in the next pass";
/// What TOO_EARLY means.
const CLOCKS_DIFFER: &str = "by the object server's clock this has not expired; one of the two clocks is wrong";

/// Answers to a deletion after which there is nothing left to do: an object with something newer in its place (409) has
/// been seen to.
fn hoped(task: &Task) -> &'static [u16] {
    match task.is_async {
        true => &[2, 409, 404],
        false => &[2, 409],
    }
}

fn note_oldest(oldest: &mut Option<Timestamp>, due: Timestamp) {
    *oldest = Some(oldest.map_or(due, |oldest| oldest.min(due)));
}

#[async_trait::async_trait]
impl UpkeepJob for ObjectExpirer {
    fn name(&self) -> &'static str {
        NAME
    }

    fn set_statsd(&mut self, statsd: Statsd) {
        self.statsd = statsd;
    }

    fn figures(&self, pass: &PassProgress) -> Option<(ReconFile, Value)> {
        let age = |oldest: Timestamp| self.world.clock.now().as_f64() - oldest.as_f64();
        let figures = json!({
            "object_expiration_pass": pass.seconds(),
            "expired_last_pass": pass.done,
            "object_expiration_oldest_age": pass.oldest.map(age),
        });
        Some((ReconFile::Object, figures))
    }

    fn oldest(&self) -> Option<Timestamp> {
        let waiting = self.pass.as_ref().and_then(|pass| pass.oldest_waiting);
        let left = self.pass.as_ref().map_or(self.oldest, |pass| pass.oldest_left);
        [waiting, left].into_iter().flatten().min()
    }

    async fn step(&mut self) -> UpkeepStep {
        if self.options.idle {
            return UpkeepStep::PassOver;
        }
        let mut pass = match self.pass.take() {
            Some(pass) => pass,
            None => self.begin().await,
        };
        self.report(&mut pass);
        let step = if !pass.tasks.is_empty() {
            let step = self.work(&mut pass).await;
            if pass.tasks.is_empty() {
                pass.oldest_waiting = None;
            }
            step
        } else if pass.listed.len() >= MAX_WAITING / 2 {
            pass.tasks = in_turn(std::mem::take(&mut pass.listed), MOST_OF_PART);
            UpkeepStep::LOOKED
        } else if !(pass.listings.is_empty() && pass.containers.is_empty()) {
            self.list_some(&mut pass).await;
            UpkeepStep::LOOKED
        } else if !pass.listed.is_empty() {
            pass.tasks = in_turn(std::mem::take(&mut pass.listed), MOST_OF_PART);
            UpkeepStep::LOOKED
        } else {
            self.end(&pass);
            pass.known.failures.report();
            return UpkeepStep::PassOver;
        };
        self.pass = Some(pass);
        step
    }
}
