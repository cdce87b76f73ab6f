//! One run, from the workload to its report.
//!
//! Always holds: a mistake in the workload, a store that cannot be reached and a container of other users are
//! reported before anything is made; a run that is interrupted reports what it has, and says so.

use crate::arguments::RunArguments;
use crate::drivers::message::{RunOrder, StoreRedirection};
use crate::load::{LoadOptions, LoadWatch};
use crate::observe;
use crate::progress::StageProgress;
use crate::record::RecordFile;
use crate::replay;
use crate::report::{Manifest, RunReport, StageReport, cosbench, html, terminal};
use crate::stage_runner::StageRunner;
use crate::store::auth::{Trust, open};
use crate::store::{Store, guard};
use crate::workload::masked::without_secrets;
use crate::workload::mistake::WorkloadMistake;
use crate::workload::named::{self, Extent};
use crate::workload::parameters::Parameters;
use crate::workload::{Endpoint, Stage, Work, WorkKind, Workload, cosbench as cosbench_format, own_format};
use operator_tools::{Console, ToolStatus};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use vocabulary::Fault;
use world::World;

/// Files of workloads that are longer are refused.
const LONGEST_WORKLOAD: u64 = 16 << 20;
/// How often a run looks whether there is something to show.
const LOOK: Duration = Duration::from_millis(250);

/// A workload and the text it was read from.
pub fn read_workload(world: &World, name: &str, extent: &Extent) -> Result<(Workload, String), Fault> {
    let path = Path::new(name);
    let wrong = |mistake: WorkloadMistake| Fault::caller(mistake.to_string());
    if world.files.info(path).is_err() {
        let source = named::text(name, extent).map_err(wrong)?;
        let workload = own_format::parse(&source).map_err(wrong)?;
        return Ok((replay::expand(world, workload)?, source));
    }
    let read = world.files.read(path, LONGEST_WORKLOAD);
    let bytes = read.map_err(|error| Fault::caller(format!("{name}: {error}")))?;
    let source = String::from_utf8(bytes).map_err(|_| Fault::caller(format!("{name}: expected text in UTF-8")))?;
    Ok((replay::expand(world, parse_workload(&source, name)?)?, source))
}

/// The workload that a text is; mistakes are those of the file of this name.
pub fn parse_workload(source: &str, name: &str) -> Result<Workload, Fault> {
    let parsed = match source.trim_start().starts_with('<') {
        true => cosbench_format::parse(source),
        false => own_format::parse(source),
    };
    parsed.map_err(|mistake| Fault::caller(mistake.in_file(name).to_string()))
}

/// A run that can begin: nothing has been made yet.
pub struct Prepared {
    /// What is to be done.
    pub workload: Workload,
    source: String,
    /// This process, or drivers.
    pub runner: StageRunner,
    /// As the command line says.
    pub options: LoadOptions,
}

/// What is got ready before anything is made, unless the user has had enough before.
pub async fn unless_interrupted<T>(
    preparation: impl Future<Output = Result<T, Fault>>,
    interrupted: impl Future<Output = ()>,
) -> Result<T, Fault> {
    tokio::select! {
        prepared = preparation => prepared,
        () = interrupted => Err(Fault::caller("interrupted before anything was made")),
    }
}

/// Reads the workload, opens its stores and looks at their containers, here or on the drivers.
pub async fn prepare(arguments: &RunArguments, world: &World) -> Result<Prepared, Fault> {
    let (workload, source) = read_workload(world, &arguments.workload, &arguments.extent.extent())?;
    workload.observation.allow(arguments.allow_actions)?;
    let base = cosbench::base_name(&workload.name, arguments.run);
    let csv = arguments.csv.as_ref().map(|folder| folder.join(format!("{base}.csv")));
    for path in arguments.json.iter().chain(&arguments.html).chain(&csv) {
        if world.files.info(path).is_ok() {
            let path = path.display();
            return Err(Fault::caller(format!(
                "{path} is there already: reports go into new files"
            )));
        }
    }
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let options = LoadOptions {
        threads: arguments.threads.unwrap_or(cores).max(1),
        seed: arguments.seed.unwrap_or_else(|| world.random.next_u64() >> 11),
        verifies: arguments.verify,
    };
    let order = order_of(arguments, &source, options.seed);
    let workload = ordered_workload(workload, &order)?;
    let mut runner = match StageRunner::fleet(&arguments.fleet, world, &workload, &order).await? {
        Some(fleet) => fleet,
        None => {
            let trust = Trust {
                insecure: arguments.insecure,
                cafile: arguments.cafile.clone(),
            };
            let stores = open_stores(world, &workload, &trust, arguments.anything_goes).await?;
            StageRunner::here(stores, options.clone())
        }
    };
    if let Some(path) = &arguments.record {
        runner.record(world, &RecordFile::create(world, path)?)?;
    }
    Ok(Prepared {
        workload,
        source,
        runner,
        options,
    })
}

/// What the command line says of a run, as drivers get it.
fn order_of(arguments: &RunArguments, source: &str, seed: u64) -> RunOrder {
    RunOrder {
        source: source.to_owned(),
        redirection: StoreRedirection {
            storage: arguments.storage.clone(),
            auth: arguments.auth.clone(),
            user: arguments.user.clone(),
            key: arguments.key.clone(),
            policy: arguments.policy.clone(),
        },
        insecure: arguments.insecure,
        verifies: arguments.verify,
        anything_goes: arguments.anything_goes,
        seed,
        stages: arguments.stages.clone(),
        name: String::new(),
        clock_is_ahead: 0,
        records: arguments.record.is_some(),
        replays: false,
    }
}

/// The workload with the stages that are run, on the store that is loaded.
pub fn ordered_workload(mut workload: Workload, order: &RunOrder) -> Result<Workload, Fault> {
    if !order.stages.is_empty() {
        let is_there = |name: &&String| workload.stages.iter().any(|stage| stage.name == **name);
        if let Some(missing) = order.stages.iter().find(|name| !is_there(name)) {
            let all: Vec<&str> = workload.stages.iter().map(|stage| stage.name.as_str()).collect();
            return Err(Fault::caller(format!(
                "--stages {missing}: the workload has {}",
                all.join(", ")
            )));
        }
        workload.stages.retain(|stage| order.stages.contains(&stage.name));
    }
    for work in workload.stages.iter_mut().flat_map(|stage| &mut stage.works) {
        redirect(work, &order.redirection)?;
    }
    Ok(workload)
}

/// Opens the stores of a workload, by stage, then by work, and looks at their containers unless anything goes.
pub async fn open_stores(
    world: &World,
    workload: &Workload,
    trust: &Trust,
    anything_goes: bool,
) -> Result<Vec<Vec<Store>>, Fault> {
    let mut opened: Vec<(Endpoint, Endpoint, Store)> = vec![];
    let mut stores = vec![];
    for stage in &workload.stages {
        let mut of_stage = vec![];
        for work in &stage.works {
            let known = opened
                .iter()
                .find(|(auth, storage, _)| (auth, storage) == (&work.auth, &work.storage));
            let store = match known {
                Some((_, _, store)) => store.clone(),
                None => {
                    let store = open(world, &work.auth, &work.storage, trust).await?;
                    opened.push((work.auth.clone(), work.storage.clone(), store.clone()));
                    store
                }
            };
            if !anything_goes {
                guard::check(world, &store, work).await?;
            }
            of_stage.push(store);
        }
        stores.push(of_stage);
    }
    Ok(stores)
}

/// Puts what the command line says of the store in place of what the workload says.
fn redirect(work: &mut Work, arguments: &StoreRedirection) -> Result<(), Fault> {
    if let Some(storage) = &arguments.storage {
        let (kind, parameters) = storage.split_once(':').unwrap_or((storage, ""));
        let parameters =
            Parameters::parse(parameters).map_err(|mistake| Fault::caller(format!("--storage: {mistake}")))?;
        work.storage = Endpoint {
            kind: kind.to_owned(),
            parameters,
        };
    }
    if let Some(auth) = &arguments.auth {
        let mut parameters = Parameters::default();
        parameters.set("auth_url", auth);
        for (name, value) in [("username", &arguments.user), ("password", &arguments.key)] {
            if let Some(value) = value {
                parameters.set(name, value);
            }
        }
        work.auth = Endpoint {
            kind: "tempauth".to_owned(),
            parameters,
        };
        if arguments.storage.is_none() && work.storage.kind != "swift" {
            work.storage = Endpoint {
                kind: "swift".to_owned(),
                parameters: Parameters::default(),
            };
        }
    }
    if work.storage.kind.is_empty() && work.kind != WorkKind::Delay {
        return Err(Fault::caller(
            "the workload names no storage: add a [storage] or <storage>, or say -A URL -U USER -K KEY",
        ));
    }
    if let Some(policy) = &arguments.policy {
        work.storage.parameters.set("policy", policy);
    }
    Ok(())
}

impl Prepared {
    /// Refuses stages that end when devices are full: only a run looks at devices meanwhile.
    pub fn without_filling(self) -> Result<Self, Fault> {
        match self.workload.stages.iter().find(|stage| stage.full.is_some()) {
            None => Ok(self),
            Some(stage) => Err(Fault::caller(format!(
                "stage {}: devices are filled by `martlet bench run` alone, with --stages: fill them before",
                stage.name
            ))),
        }
    }

    /// Runs all stages and reports.
    pub async fn run(
        mut self,
        arguments: &RunArguments,
        world: &World,
        console: &mut Console<'_>,
        interrupted: impl Future<Output = ()>,
    ) -> io::Result<ToolStatus> {
        let mut report = self.empty_report(world);
        let mut interrupted = std::pin::pin!(interrupted);
        let mut status = ToolStatus::SUCCESS;
        for line in self.lines_before() {
            console.say(line)?;
        }
        for at in 0..self.workload.stages.len() {
            let stage = self.workload.stages[at].clone();
            if report.interrupted && !(arguments.clean_up && cleans_up(&stage)) {
                continue;
            }
            let until = interrupted.as_mut();
            match self
                .stage(at, &stage, world, console, &mut report.interrupted, until)
                .await?
            {
                Ok(stage) => {
                    console.say(terminal::stage_text(&stage).trim_end())?;
                    console.out.flush()?;
                    report.stages.push(stage);
                }
                Err(fault) => {
                    console.complain(fault)?;
                    status = ToolStatus::FAILURE;
                    break;
                }
            }
            if !stage.closure_delay.is_zero() && !report.interrupted {
                tokio::select! {
                    () = world.clock.sleep(stage.closure_delay) => {}
                    () = &mut interrupted => report.interrupted = true,
                }
            }
        }
        report.drivers = self.runner.driver_reports();
        if end_record(self.runner.dismiss().await, console)? != ToolStatus::SUCCESS {
            status = ToolStatus::FAILURE;
        }
        if !report.drivers.is_empty() {
            console.say(terminal::drivers_text(&report.drivers).trim_end())?;
        }
        if report.interrupted {
            let left = if arguments.clean_up {
                "the stages that clean up were run"
            } else {
                "what was made is still there"
            };
            console.complain(format_args!(
                "interrupted: what is reported was measured until then; {left}"
            ))?;
        }
        if let Err(fault) = write_files(arguments, world, &report) {
            console.complain(fault)?;
            return Ok(ToolStatus::FAILURE);
        }
        let observed_failure = report.stages.iter().any(|stage| stage.observed.has_failed());
        let mut works = report.stages.iter().flat_map(|stage| &stage.works);
        match works.any(|work| work.has_failed) || observed_failure || report.interrupted || report.lacks_drivers() {
            true => Ok(ToolStatus::FAILURE),
            false => Ok(status),
        }
    }

    /// Runs one stage, and says how far it is; stops it when the run is interrupted, if it was not before.
    async fn stage(
        &mut self,
        at: usize,
        stage: &Stage,
        world: &World,
        console: &mut Console<'_>,
        is_interrupted: &mut bool,
        mut interrupted: std::pin::Pin<&mut impl Future<Output = ()>>,
    ) -> io::Result<Result<StageReport, Fault>> {
        let (watch, notices) = (Arc::new(LoadWatch::default()), self.runner.notices());
        let mut progress = StageProgress::new(stage, console.shows_progress, world.clock.elapsed());
        let running = self.runner.run_stage(world, at, stage, &watch);
        let running = observe::around(&self.workload.observation, world, stage, &watch, running);
        let mut running = std::pin::pin!(running);
        let finished = loop {
            tokio::select! {
                finished = &mut running => break finished,
                () = &mut interrupted, if !*is_interrupted => {
                    *is_interrupted = true;
                    watch.stop();
                }
                () = world.clock.sleep(LOOK) => {
                    for line in notices.take() {
                        clear(console)?;
                        console.complain(line)?;
                    }
                    if let Some(line) = progress.line(&watch, world.clock.elapsed()) {
                        show(console, &line)?;
                    }
                }
            }
        };
        clear(console)?;
        for line in notices.take() {
            console.complain(line)?;
        }
        Ok(finished)
    }
}

/// Says whether a record is whole, and how long the load waited for it.
pub fn end_record(ended: Result<Duration, Fault>, console: &mut Console<'_>) -> io::Result<ToolStatus> {
    match ended {
        Ok(Duration::ZERO) => Ok(ToolStatus::SUCCESS),
        Ok(waited) => {
            console.complain(format_args!(
                "--record: the file was slower than the load, whose threads waited {waited:.1?} for it in all"
            ))?;
            Ok(ToolStatus::SUCCESS)
        }
        Err(fault) => console.complain(fault).map(|()| ToolStatus::FAILURE),
    }
}

/// Whether a stage only deletes what others have made.
fn cleans_up(stage: &Stage) -> bool {
    let cleans = |work: &Work| matches!(work.kind, WorkKind::Cleanup | WorkKind::Dispose);
    stage.works.iter().all(cleans)
}

impl Prepared {
    /// What is to be said before the first stage.
    fn lines_before(&self) -> Vec<String> {
        let replayed = self.workload.replay.iter().map(|_| self.workload.description.clone());
        replayed.chain(self.runner.lines_before()).collect()
    }

    /// What is known before the first stage.
    fn empty_report(&self, world: &World) -> RunReport {
        RunReport {
            workload: self.workload.name.clone(),
            description: self.workload.description.clone(),
            manifest: Manifest {
                version: env!("CARGO_PKG_VERSION").to_owned(),
                seed: self.options.seed,
                threads: self.options.threads,
                verifies: self.options.verifies,
                begun: world.clock.now().as_f64(),
                source: without_secrets(&self.source),
            },
            stages: vec![],
            interrupted: false,
            drivers: vec![],
        }
    }
}

/// Shows a line about how far a stage is.
fn show(console: &mut Console<'_>, line: &str) -> io::Result<()> {
    if !console.shows_progress {
        return console.complain(line);
    }
    // A line that is wider than the terminal is cut and does not wrap: it could not be replaced then.
    write!(console.out, "\r\x1b[?7l{line}\x1b[?7h\x1b[K")?;
    console.out.flush()
}

/// Removes the line about progress.
fn clear(console: &mut Console<'_>) -> io::Result<()> {
    match console.shows_progress {
        true => write!(console.out, "\r\x1b[K"),
        false => Ok(()),
    }
}

fn write_files(arguments: &RunArguments, world: &World, report: &RunReport) -> Result<(), Fault> {
    if let Some(path) = &arguments.json {
        let text = serde_json::to_string_pretty(report).map_err(|error| Fault::caller(format!("JSON: {error}")))?;
        write_file(world, path, &(text + "\n"))?;
    }
    if let Some(path) = &arguments.html {
        write_file(world, path, &html::page(report)?)?;
    }
    if let Some(folder) = &arguments.csv {
        let made = world.files.make_directory(folder);
        if let Err(error) = made
            && error.kind() != io::ErrorKind::AlreadyExists
        {
            return Err(Fault::caller(format!("{}: {error}", folder.display())));
        }
        for file in cosbench::files(report, arguments.run) {
            let path = folder.join(&file.name);
            match file.heading {
                None => write_file(world, &path, &file.text)?,
                Some(heading) => append(world, &path, heading, &file.text)?,
            }
        }
    }
    Ok(())
}

/// Writes behind what a file has; a new one begins with a line that names the columns.
fn append(world: &World, path: &Path, heading: &str, text: &str) -> Result<(), Fault> {
    let written = || {
        let file = world.files.open(path, world::files::Purpose::Append)?;
        let size = file.info()?.size;
        match size {
            0 => file.write_all_at(format!("{heading}\n{text}").as_bytes(), 0),
            size => file.write_all_at(text.as_bytes(), size),
        }
    };
    written().map_err(|error: io::Error| Fault::caller(format!("{}: {error}", path.display())))
}

/// Writes a new file.
pub fn write_file(world: &World, path: &Path, text: &str) -> Result<(), Fault> {
    let written = || {
        let file = world.files.open(path, world::files::Purpose::Create)?;
        file.set_len(0)?;
        file.write_all_at(text.as_bytes(), 0)
    };
    written().map_err(|error: io::Error| Fault::caller(format!("{}: {error}", path.display())))
}
