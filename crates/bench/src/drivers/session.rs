//! A driver's side of one run: orders come in, figures go out.
//!
//! Always holds: an order is checked before anything is done or held for it; works begin when the order says, and say
//! when they did; the load ends when the controller says so or is gone.

use super::channel::{DriverChannel, FrameSender};
use super::message::{
    CountedOperation, DoneWork, DriverTime, FromDriver, ProgressCounts, RunOrder, StageOrder, ToDriver, WorkOrder,
    wall_micros,
};
use super::replay_pieces::ReplayInPieces;
use super::shared::DriverShared;
use crate::benchmark::{open_stores, ordered_workload, parse_workload};
use crate::content::Contents;
use crate::load::{LoadOptions, LoadPart, LoadWatch, WorkResult, run_part};
use crate::record::{OperationRecorder, Recording};
use crate::replay;
use crate::store::Store;
use crate::store::auth::Trust;
use crate::workload::replayed_log::ReplayedLog;
use crate::workload::{Arrivals, Work, WorkEnd, Workload};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use vocabulary::Fault;
use world::World;

/// Workers of a stage that one driver runs.
const MOST_WORKERS: u64 = 100_000;
/// Steps over time that one work has.
const MOST_STEPS: u128 = 1_000_000;
/// Of anything that an order says of time.
const LONGEST_TIME: Duration = Duration::from_secs(10 * 366 * 24 * 3600);
/// Between an order and the beginning of its works.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// Between two reports on how far a stage is.
const PROGRESS: Duration = Duration::from_millis(500);

/// A run as a driver sees it.
pub(super) struct DriverSession {
    shared: Arc<DriverShared>,
    channel: DriverChannel,
    opened: Option<OpenedRun>,
}

/// A work of an order that can be done.
struct CheckedWork {
    order: WorkOrder,
    /// The work with the end and the rate of this driver's part.
    part: Arc<Work>,
}

/// A stage that has ended.
struct DoneStage {
    began: Duration,
    /// How long threads waited for the record.
    waited: Duration,
    results: Vec<(usize, WorkResult)>,
}

/// A run whose stages can begin.
struct OpenedRun {
    workload: Workload,
    /// By stage, then by work.
    stores: Vec<Vec<Store>>,
    contents: Arc<Contents>,
    options: LoadOptions,
    /// The name of this driver, and how far its clock is ahead, where every operation is recorded.
    records: Option<(String, i64)>,
}

impl DriverSession {
    pub(super) fn new(shared: Arc<DriverShared>, channel: DriverChannel) -> Self {
        Self {
            shared,
            channel,
            opened: None,
        }
    }

    /// Until the controller ends the connection.
    pub(super) async fn run(mut self) -> io::Result<()> {
        while let Some(message) = self.channel.next_message().await? {
            match message {
                ToDriver::Clock => self.say(&FromDriver::Clock(self.time())).await?,
                ToDriver::Order(order) => self.open(&order).await?,
                ToDriver::Stage(order) => self.stage(&order).await?,
                // The stage that is meant has ended meanwhile.
                ToDriver::Stop => {}
                ToDriver::Replay(_) => return Err(io::Error::other("a message came that was not due")),
            }
        }
        Ok(())
    }

    async fn say(&self, message: &FromDriver) -> io::Result<()> {
        match self.channel.sender.send(message).await {
            true => Ok(()),
            false => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn time(&self) -> DriverTime {
        let clock = &self.shared.world.clock;
        DriverTime {
            wall: wall_micros(clock.now()),
            elapsed: u64::try_from(clock.elapsed().as_micros()).unwrap_or(u64::MAX),
        }
    }

    /// Opens stores; says whether the stages can begin.
    async fn open(&mut self, order: &RunOrder) -> io::Result<()> {
        let replayed = if order.replays {
            Some(self.replayed().await?)
        } else {
            None
        };
        let opened = tokio::select! {
            opened = OpenedRun::of(&self.shared, order, replayed) => opened,
            // Nothing is due: the controller is gone, or is none.
            other = self.channel.next() => return Err(other.err().unwrap_or(io::ErrorKind::UnexpectedEof.into())),
        };
        match opened {
            Ok(opened) => {
                self.shared.say(format!("{}: {}", order.name, opened.workload.name));
                self.opened = Some(opened);
                self.say(&FromDriver::Ready).await
            }
            Err(fault) => self.say(&FromDriver::Refused { why: fault.to_string() }).await,
        }
    }

    /// What is replayed, once all of it has come.
    async fn replayed(&mut self) -> io::Result<ReplayedLog> {
        let mut pieces = ReplayInPieces::default();
        loop {
            let piece = match self.channel.next_message().await? {
                Some(ToDriver::Replay(piece)) => piece,
                Some(_) => return Err(io::Error::other("a message came that was not due")),
                None => return Err(io::ErrorKind::UnexpectedEof.into()),
            };
            let taken = pieces.take(piece);
            if let Some(all) = taken.map_err(|why| io::Error::other(format!("the log cannot be replayed: {why}")))? {
                return Ok(all);
            }
        }
    }

    /// Does its part of a stage, and sends what came of it.
    async fn stage(&mut self, order: &StageOrder) -> io::Result<()> {
        match self.load(order).await? {
            Err(fault) => self.say(&FromDriver::Refused { why: fault.to_string() }).await,
            Ok(done) => {
                for (work, result) in &done.results {
                    self.tell(*work, result).await?;
                }
                let (began, waited) = (done.began, done.waited);
                self.say(&FromDriver::StageDone { began, waited }).await
            }
        }
    }

    /// Runs the works of an order, and sends how far they are; ends them when the controller says so or is gone.
    async fn load(&mut self, order: &StageOrder) -> io::Result<Result<DoneStage, Fault>> {
        let works = match self.checked(order) {
            Ok(works) => works,
            Err(fault) => return Ok(Err(fault)),
        };
        // An order was there: `checked` has looked.
        let Some(opened) = &self.opened else {
            return Ok(Err(Fault::peer("no run")));
        };
        let recording = match opened.recording(&self.shared.world, &self.channel.sender) {
            Ok(recording) => recording,
            Err(fault) => return Ok(Err(fault)),
        };
        let (world, sender) = (&self.shared.world, self.channel.sender.clone());
        let watch = Arc::new(LoadWatch::default());
        let recorder = recording.as_ref().map(Recording::recorder);
        let mut running = std::pin::pin!(opened.run(world, order, &works, recorder, &watch));
        let mut sent = (0, 0, 0);
        let mut gone = None;
        let results = loop {
            tokio::select! {
                results = &mut running => break results,
                message = self.channel.next_message(), if gone.is_none() => match message {
                    Ok(Some(ToDriver::Stop)) => watch.stop(),
                    Ok(Some(_)) => gone = Some(io::Error::other("a message came that was not due")),
                    Ok(None) => gone = Some(io::ErrorKind::UnexpectedEof.into()),
                    Err(error) => gone = Some(error),
                },
                () = world.clock.sleep(PROGRESS) => tell_progress(&sender, &watch, &mut sent),
            }
            if gone.is_some() {
                watch.stop();
            }
        };
        if let Some(error) = gone {
            return Err(error);
        }
        tell_progress(&sender, &watch, &mut sent);
        let waited = match recording {
            Some(recording) => recording.finish().await?,
            None => Duration::ZERO,
        };
        let numbers = works.iter().map(|work| work.order.work);
        Ok(results.map(|(began, results)| DoneStage {
            began,
            waited,
            results: numbers.zip(results).collect(),
        }))
    }

    /// The works of an order with their parts of them, if all of it can be done.
    fn checked(&self, order: &StageOrder) -> Result<Vec<CheckedWork>, Fault> {
        let wrong = |what: &str| Fault::peer(format!("the order for a stage is wrong: {what}"));
        let opened = self.opened.as_ref().ok_or_else(|| wrong("no run"))?;
        let stages = &opened.workload.stages;
        let stage = stages.get(order.stage).ok_or_else(|| wrong("no such stage"))?;
        if order.begins > self.shared.world.clock.elapsed() + LONGEST_WAIT {
            return Err(wrong("it begins too late"));
        }
        let mut workers = 0;
        let mut works: Vec<CheckedWork> = vec![];
        for ordered in &order.works {
            let mut work = stage
                .works
                .get(ordered.work)
                .ok_or_else(|| wrong("no such work"))?
                .clone();
            work.workers = ordered.workers;
            if works.iter().any(|one| one.order.work == ordered.work) || !ordered.share.fits(&work) {
                return Err(wrong("no such part of a work"));
            }
            workers += u64::from(ordered.share.workers);
            (work.end, work.arrivals) = (ordered.end, ordered.arrivals);
            (work.ramp_up, work.ramp_down) = (ordered.ramp_up, ordered.ramp_down);
            check_times(&work).map_err(&wrong)?;
            works.push(CheckedWork {
                order: *ordered,
                part: Arc::new(ordered.share.of(&work)),
            });
        }
        if workers > MOST_WORKERS {
            return Err(Fault::peer(format!(
                "{workers} workers in one stage are more than the {MOST_WORKERS} that one driver has: use more drivers"
            )));
        }
        Ok(works)
    }

    /// All figures of a work, one operation at a time.
    async fn tell(&self, work: usize, result: &WorkResult) -> io::Result<()> {
        self.say(&FromDriver::WorkDone(DoneWork {
            work,
            measured: result.measured,
            cpu: result.cpu,
            lasted: result.lasted,
            threads: result.threads,
        }))
        .await?;
        let counted = [(None, &result.figures.counted)].into_iter();
        let steps = result.figures.over_time.iter().enumerate();
        for (step, operations) in counted.chain(steps.map(|(step, figures)| (Some(step), figures))) {
            for (operation, figures) in operations.iter().enumerate() {
                if let Some(counted) = CountedOperation::of(work, step, operation, figures) {
                    self.say(&FromDriver::Counted(counted)).await?;
                }
            }
        }
        Ok(())
    }
}

/// What was counted since the last time.
fn tell_progress(sender: &FrameSender, watch: &LoadWatch, sent: &mut (u64, u64, u64)) {
    let (so_far, recent) = (watch.so_far(), watch.take_recent());
    let counts = ProgressCounts {
        succeeded: so_far.0 - sent.0,
        failed: so_far.1 - sent.1,
        bytes: so_far.2 - sent.2,
        latency: recent.counts(),
    };
    if sender.send_if_idle(&FromDriver::Progress(counts)) {
        *sent = so_far;
    } else {
        watch.add_recent(&recent);
    }
}

/// Whether the times and rates of a work can be reckoned with.
fn check_times(work: &Work) -> Result<(), &'static str> {
    let rate = match work.arrivals {
        Arrivals::AsAnswered => 1.0,
        Arrivals::Constant(rate) | Arrivals::Poisson(rate) => rate,
    };
    let runtime = match work.end {
        WorkEnd::After(runtime) => runtime,
        _ => Duration::ZERO,
    };
    if !(rate > 0.0 && rate <= 1e9) {
        return Err("its rate cannot be");
    }
    if [runtime, work.ramp_up, work.ramp_down]
        .iter()
        .any(|time| *time > LONGEST_TIME)
    {
        return Err("it lasts too long");
    }
    let steps = (runtime + work.ramp_up + work.ramp_down).as_nanos() / work.interval.as_nanos().max(1);
    if steps > MOST_STEPS {
        return Err("its interval is too short for its runtime");
    }
    Ok(())
}

impl OpenedRun {
    async fn of(shared: &DriverShared, order: &RunOrder, replayed: Option<ReplayedLog>) -> Result<Self, Fault> {
        let mut workload = parse_workload(&order.source, "")?;
        if workload.replay.is_some() != replayed.is_some() {
            return Err(Fault::peer(
                "the order for a run is wrong: a replay has a log, and nothing else has one",
            ));
        }
        if let Some(replayed) = replayed {
            replay::apply(&mut workload, replayed);
        }
        let workload = ordered_workload(workload, order)?;
        for work in workload.stages.iter().flat_map(|stage| &stage.works) {
            for folder in work
                .operations
                .iter()
                .filter_map(|operation| operation.files.as_deref())
            {
                check_folder(shared, folder)?;
            }
        }
        let trust = Trust {
            insecure: order.insecure,
            ..shared.trust.clone()
        };
        let stores = open_stores(&shared.world, &workload, &trust, order.anything_goes).await?;
        Ok(Self {
            workload,
            stores,
            contents: Arc::new(Contents::new()),
            options: LoadOptions {
                threads: shared.threads,
                seed: order.seed,
                verifies: order.verifies,
            },
            records: order.records.then(|| (order.name.clone(), order.clock_is_ahead)),
        })
    }

    /// Begins to record, if the run has a record.
    fn recording(&self, world: &World, sender: &FrameSender) -> Result<Option<Recording>, Fault> {
        let Some((name, ahead)) = &self.records else {
            return Ok(None);
        };
        let sender = sender.clone();
        let sink = move |member| match sender.send_record(member) {
            true => Ok(()),
            false => Err(io::ErrorKind::BrokenPipe.into()),
        };
        Recording::begin(world, name, *ahead, Box::new(sink)).map(Some)
    }

    /// Runs the works of an order from when they are to begin: when that was, and what came of them.
    async fn run(
        &self,
        world: &World,
        order: &StageOrder,
        works: &[CheckedWork],
        recorder: Option<Arc<OperationRecorder>>,
        watch: &Arc<LoadWatch>,
    ) -> Result<(Duration, Vec<WorkResult>), Fault> {
        let wait = order.begins.saturating_sub(world.clock.elapsed());
        world.clock.sleep(wait).await;
        let began = world.clock.elapsed();
        let stage = &self.workload.stages[order.stage].name;
        let running = works.iter().map(|work| {
            let part = LoadPart {
                share: work.order.share,
                records: recorder.clone().map(|recorder| (recorder, stage.clone())),
            };
            let store = self.stores[order.stage][work.order.work].clone();
            let contents = self.contents.clone();
            run_part(world, &work.part, part, store, contents, watch.clone(), &self.options)
        });
        let results = futures_util::future::try_join_all(running).await?;
        Ok((began, results))
    }
}

/// Refuses a folder that this driver was not started to read.
fn check_folder(shared: &DriverShared, folder: &Path) -> Result<(), Fault> {
    let refused = |why: &dyn std::fmt::Display| Fault::caller(format!("files={}: {why}", folder.display()));
    let allowed = shared
        .files
        .as_ref()
        .ok_or_else(|| refused(&"this driver reads no files: start it with --files FOLDER"))?;
    let resolved = shared.world.files.resolve(folder).map_err(|error| refused(&error))?;
    match resolved.starts_with(allowed) {
        true => Ok(()),
        false => Err(refused(&format_args!(
            "this driver reads files below {} alone",
            allowed.display()
        ))),
    }
}
