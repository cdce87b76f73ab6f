//! A driver's side of one run: orders come in, figures go out.
//!
//! Always holds: an order is checked before anything is done or held for it; works begin when the order says, and say
//! when they did; the load ends when the controller says so or is gone.

use super::channel::{DriverChannel, FrameSender};
use super::message::{
    CountedOperation, DoneWork, DriverTime, FromDriver, ProgressCounts, RunOrder, StageOrder, ToDriver, WorkOrder,
    wall_micros,
};
use super::shared::DriverShared;
use crate::benchmark::{open_stores, ordered_workload, parse_workload};
use crate::content::Contents;
use crate::load::{LoadOptions, LoadWatch, WorkResult, run_share};
use crate::store::Store;
use crate::store::auth::Trust;
use crate::workload::{Arrivals, Work, WorkEnd, Workload};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use vocabulary::Fault;

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

/// A run whose stages can begin.
struct OpenedRun {
    workload: Workload,
    /// By stage, then by work.
    stores: Vec<Vec<Store>>,
    contents: Arc<Contents>,
    options: LoadOptions,
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
        let opened = tokio::select! {
            opened = OpenedRun::of(&self.shared, order) => opened,
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

    /// Does its part of a stage, and tells how far it is and what came of it.
    async fn stage(&mut self, order: &StageOrder) -> io::Result<()> {
        let works = match self.checked(order) {
            Ok(works) => works,
            Err(fault) => return self.say(&FromDriver::Refused { why: fault.to_string() }).await,
        };
        // An order was there: `checked` has looked.
        let Some(opened) = &self.opened else { return Ok(()) };
        let watch = Arc::new(LoadWatch::default());
        let clock = &self.shared.world.clock;
        let running = async {
            let wait = order.begins.saturating_sub(clock.elapsed());
            clock.sleep(wait).await;
            let began = clock.elapsed();
            let running = works.iter().map(|(at, ordered, work)| {
                let store = opened.stores[order.stage][*at].clone();
                let contents = opened.contents.clone();
                run_share(
                    &self.shared.world,
                    work,
                    ordered.share,
                    store,
                    contents,
                    watch.clone(),
                    &opened.options,
                )
            });
            futures_util::future::try_join_all(running)
                .await
                .map(|results| (began, results))
        };
        let mut running = std::pin::pin!(running);
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
                () = clock.sleep(PROGRESS) => tell_progress(&self.channel.sender, &watch, &mut sent),
            }
            if gone.is_some() {
                watch.stop();
            }
        };
        if let Some(error) = gone {
            return Err(error);
        }
        match results {
            Ok((began, results)) => {
                tell_progress(&self.channel.sender, &watch, &mut sent);
                for ((at, _, _), result) in works.iter().zip(&results) {
                    self.tell(*at, result).await?;
                }
                self.say(&FromDriver::StageDone { began }).await
            }
            Err(fault) => self.say(&FromDriver::Refused { why: fault.to_string() }).await,
        }
    }

    /// The works of an order with their parts of them, if all of it can be done.
    fn checked(&self, order: &StageOrder) -> Result<Vec<(usize, WorkOrder, Arc<Work>)>, Fault> {
        let wrong = |what: &str| Fault::peer(format!("the order for a stage is wrong: {what}"));
        let opened = self.opened.as_ref().ok_or_else(|| wrong("no run"))?;
        let stages = &opened.workload.stages;
        let stage = stages.get(order.stage).ok_or_else(|| wrong("no such stage"))?;
        if order.begins > self.shared.world.clock.elapsed() + LONGEST_WAIT {
            return Err(wrong("it begins too late"));
        }
        let mut workers = 0;
        let mut works: Vec<(usize, WorkOrder, Arc<Work>)> = vec![];
        for ordered in &order.works {
            let mut work = stage
                .works
                .get(ordered.work)
                .ok_or_else(|| wrong("no such work"))?
                .clone();
            if works.iter().any(|(at, _, _)| *at == ordered.work) || !ordered.share.fits(&work) {
                return Err(wrong("no such part of a work"));
            }
            workers += u64::from(ordered.share.workers);
            (work.end, work.arrivals) = (ordered.end, ordered.arrivals);
            (work.ramp_up, work.ramp_down) = (ordered.ramp_up, ordered.ramp_down);
            check_times(&work).map_err(&wrong)?;
            works.push((ordered.work, *ordered, Arc::new(ordered.share.of(&work))));
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
    async fn of(shared: &DriverShared, order: &RunOrder) -> Result<Self, Fault> {
        let workload = ordered_workload(parse_workload(&order.source, "")?, order)?;
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
        })
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
