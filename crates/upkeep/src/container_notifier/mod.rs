//! Container-notifier: delivers the events of buckets to webhooks.
//!
//! The queue is a hidden account: a container for each target and shard, an object for each event (`notification`).
//! Every target has a run of its own under way at most, so that one that hangs delays no other. An event is posted,
//! and its entry goes after an answer of 2xx; an intent, whose write no gateway has confirmed, is looked into first.
//! Always holds: an entry goes only after its event was delivered, or was dropped with a line in the log, or its write
//! was found not to be made; what is delivered twice is alike both times, but for what an intent could not know;
//! memory is that of a page for each target, and of a bounded number of pauses; nothing is sent to an address but
//! those of the operator's file, and no redirect is followed.
//! Deliberately absent: who writes the queue (`features`), the documents (`notification`), the file of targets.
//!
//! | question | file |
//! |---|---|
//! | one run over a target's events | `run.rs` |
//! | a target in a run | `target.rs` |
//! | one event: read, looked into, posted, taken out | `delivery.rs` |
//! | was the write of an intent made | `intent.rs` |
//! | what waits for how long after a failure | `pauses.rs` |
//! | figures | `figures.rs` |
//!
//! Tests: beside the code, `tests/clients/test_boto3_notifications.py`.

mod delivery;
mod figures;
mod intent;
mod pauses;
mod run;
mod target;

use crate::internal_client::InternalClient;
use crate::work_share::WorkShare;
use crate::{PassProgress, ReconFile, UpkeepJob, UpkeepStep};
use figures::{NotifierFigures, TargetFigures};
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use notification::QueueContainer;
use pauses::TargetPauses;
use peer::HttpClient;
use run::TargetRunOutcome;
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use sync_wrapper::SyncWrapper;
pub use target::Webhook;
use target::{ShardPosition, TargetRun};
use telemetry::Statsd;
use telemetry::metrics::MetricsSource;
use vocabulary::Timestamp;
use world::World;

const NAME: &str = "container-notifier";
/// How long a step waits for a run to end.
const STEP: Duration = Duration::from_secs(1);

/// The webhooks that the operator has configured, by name, as of now.
pub type Webhooks = Arc<dyn Fn() -> BTreeMap<String, Arc<Webhook>> + Send + Sync>;

/// What an operator can say.
#[derive(Debug, Clone)]
pub struct NotifierOptions {
    /// The hidden account of the queue.
    pub account: String,
    /// Deliveries to one target at the same time.
    pub concurrency: usize,
    /// How long a delivery may take.
    pub request_timeout: Duration,
    /// Between two tries, at most.
    pub max_backoff: Duration,
    /// After which an event is dropped; zero for never.
    pub max_age: Duration,
    /// How often a target may refuse an event; 0 for no limit.
    pub max_refusals: u32,
    /// After which an intent is looked into.
    pub patience: Duration,
    /// After which an intent is dropped whose write was not made.
    pub grace: Duration,
    /// In how many parts the queue is divided; 0 for one.
    pub processes: u64,
    /// Which of them this is.
    pub process: u64,
}

/// What all runs share.
struct NotifierShared {
    world: World,
    client: InternalClient,
    http: HttpClient,
    options: NotifierOptions,
    figures: Arc<NotifierFigures>,
}

/// A target that has, or had, events.
struct NotifiedTarget {
    pauses: Arc<TargetPauses>,
    is_running: bool,
    /// Since when its oldest event has been waiting.
    oldest: Option<Timestamp>,
    /// Where the last run ended early.
    ended_in: Option<String>,
    /// Where it left shards.
    positions: BTreeMap<String, ShardPosition>,
}

/// Goes over the queue.
pub struct ContainerNotifier {
    shared: Arc<NotifierShared>,
    hooks: Webhooks,
    targets: BTreeMap<String, NotifiedTarget>,
    running: SyncWrapper<FuturesUnordered<BoxFuture<'static, TargetRunOutcome>>>,
    /// When the queue was listed last in this pass; `None` where it is to be listed now.
    listed: Option<Duration>,
    statsd: Statsd,
}

impl ContainerNotifier {
    /// Reads the queue through `client`, posts through `http`.
    pub fn new(
        world: World,
        client: InternalClient,
        http: HttpClient,
        hooks: Webhooks,
        options: NotifierOptions,
    ) -> Self {
        Self {
            shared: Arc::new(NotifierShared {
                world,
                client,
                http,
                options,
                figures: Arc::default(),
            }),
            hooks,
            targets: BTreeMap::new(),
            running: SyncWrapper::new(FuturesUnordered::new()),
            listed: None,
            statsd: Statsd::default(),
        }
    }

    /// Lists the queue, and begins with every target that has events and neither a run nor a pause.
    async fn begin_runs(&mut self) {
        let shared = &self.shared;
        let now = shared.world.clock.elapsed();
        self.listed = Some(now);
        let hooks = (self.hooks)();
        if hooks.is_empty() && self.targets.is_empty() {
            // Nothing is notified here: no request is made for it.
            return;
        }
        let share = WorkShare {
            number: shared.options.process,
            of: shared.options.processes,
        };
        let mut found: BTreeMap<String, VecDeque<String>> = BTreeMap::new();
        for name in shared.client.queue(&shared.options.account, NAME).await {
            if let Some(container) = QueueContainer::read(&name).filter(|_| share.has_name(&name)) {
                found.entry(container.target).or_default().push_back(name);
            }
        }
        for (name, mut containers) in found {
            let target = self.targets.entry(name.clone()).or_insert_with(|| NotifiedTarget {
                pauses: Arc::default(),
                is_running: false,
                oldest: None,
                ended_in: None,
                positions: BTreeMap::new(),
            });
            if target.is_running || target.pauses.is_paused(now) {
                continue;
            }
            target.is_running = true;
            if let Some(last) = target.ended_in.take() {
                let seen = containers.iter().take_while(|container| **container <= last).count();
                containers.rotate_left(seen);
            }
            let run = TargetRun {
                shared: self.shared.clone(),
                hook: hooks.get(&name).cloned(),
                pauses: target.pauses.clone(),
                name,
                containers,
                positions: std::mem::take(&mut target.positions),
                failures: parking_lot::Mutex::default(),
            };
            self.running.get_mut().push(Box::pin(run.run()));
        }
    }

    fn note(&mut self, outcome: &TargetRunOutcome) -> UpkeepStep {
        if let Some(target) = self.targets.get_mut(&outcome.target) {
            target.is_running = false;
            target.oldest = outcome.oldest;
            target.ended_in.clone_from(&outcome.ended_in);
            target.positions.clone_from(&outcome.positions);
        }
        let TargetFigures {
            delivered,
            failed,
            dropped,
            unmade,
            ..
        } = outcome.figures;
        for (name, count) in [
            ("delivered", delivered),
            ("errors", failed),
            ("dropped", dropped),
            ("unmade", unmade),
        ] {
            if count > 0 {
                self.statsd.count(format_args!("{name}"), count);
            }
        }
        if outcome.has_more {
            self.listed = None;
        }
        UpkeepStep::Did {
            done: delivered + dropped + unmade,
            failed,
        }
    }
}

#[async_trait::async_trait]
impl UpkeepJob for ContainerNotifier {
    fn name(&self) -> &'static str {
        NAME
    }

    fn set_statsd(&mut self, statsd: Statsd) {
        self.statsd = statsd;
    }

    fn metrics(&self) -> Option<Arc<dyn MetricsSource>> {
        Some(self.shared.figures.clone())
    }

    fn oldest(&self) -> Option<Timestamp> {
        self.targets.values().filter_map(|target| target.oldest).min()
    }

    fn figures(&self, pass: &PassProgress) -> Option<(ReconFile, Value)> {
        let sum = self.shared.figures.sum();
        let figures = json!({
            "container_notifier_pass": pass.seconds(),
            "container_notifier": {
                "delivered": sum.delivered,
                "failed": sum.failed,
                "dropped": sum.dropped,
                "pending": sum.pending,
            },
        });
        Some((ReconFile::Container, figures))
    }

    async fn step(&mut self) -> UpkeepStep {
        let now = self.shared.world.clock.elapsed();
        // While a target takes long the others have their turns.
        if self.listed.is_none_or(|listed| now.saturating_sub(listed) >= STEP) {
            self.begin_runs().await;
        }
        if self.running.get_mut().is_empty() {
            self.listed = None;
            return UpkeepStep::PassOver;
        }
        let world = self.shared.world.clone();
        match world.timeout(STEP, self.running.get_mut().next()).await {
            Ok(Some(outcome)) => self.note(&outcome),
            Ok(None) | Err(_) => UpkeepStep::LOOKED,
        }
    }
}

#[cfg(test)]
mod tests;
