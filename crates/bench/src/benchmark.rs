//! One run, from the workload to its report.
//!
//! Always holds: a mistake in the workload, a store that cannot be reached and a container of other users are
//! reported before anything is made; a run that is interrupted reports what it has, and says so.

use crate::arguments::RunArguments;
use crate::content::Contents;
use crate::load::{LoadOptions, LoadWatch, run as run_work};
use crate::observe;
use crate::report::{Manifest, RunReport, StageReport, WorkReport, cosbench, html, terminal};
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
/// Between two lines about progress.
const PROGRESS: Duration = Duration::from_secs(1);

/// A workload and the text it was read from.
pub fn read_workload(world: &World, name: &str, extent: &Extent) -> Result<(Workload, String), Fault> {
    let path = Path::new(name);
    let wrong = |mistake: WorkloadMistake| Fault::caller(mistake.to_string());
    if world.files.info(path).is_err() {
        let source = named::text(name, extent).map_err(wrong)?;
        return Ok((own_format::parse(&source).map_err(wrong)?, source));
    }
    let read = world.files.read(path, LONGEST_WORKLOAD);
    let bytes = read.map_err(|error| Fault::caller(format!("{name}: {error}")))?;
    let source = String::from_utf8(bytes).map_err(|_| Fault::caller(format!("{name}: expected text in UTF-8")))?;
    let parsed = match source.trim_start().starts_with('<') {
        true => cosbench_format::parse(&source),
        false => own_format::parse(&source),
    };
    Ok((parsed.map_err(|mistake| wrong(mistake.in_file(name)))?, source))
}

/// A run that can begin: nothing has been made yet.
pub struct Prepared {
    /// What is to be done.
    pub workload: Workload,
    source: String,
    /// By stage, then by work.
    pub stores: Vec<Vec<Store>>,
    /// As the command line says.
    pub options: LoadOptions,
}

/// Reads the workload, opens its stores and looks at their containers.
pub async fn prepare(arguments: &RunArguments, world: &World) -> Result<Prepared, Fault> {
    let (mut workload, source) = read_workload(world, &arguments.workload, &arguments.extent.extent())?;
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
    if !arguments.stages.is_empty() {
        let wanted = |stage: &Stage| arguments.stages.contains(&stage.name);
        if let Some(missing) = arguments
            .stages
            .iter()
            .find(|name| workload.stages.iter().all(|stage| stage.name != **name))
        {
            let all: Vec<&str> = workload.stages.iter().map(|stage| stage.name.as_str()).collect();
            return Err(Fault::caller(format!(
                "--stages {missing}: the workload has {}",
                all.join(", ")
            )));
        }
        workload.stages.retain(wanted);
    }
    for work in workload.stages.iter_mut().flat_map(|stage| &mut stage.works) {
        redirect(work, arguments)?;
    }
    let trust = Trust {
        insecure: arguments.insecure,
        cafile: arguments.cafile.clone(),
    };
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
                    let store = open(world, &work.auth, &work.storage, &trust).await?;
                    opened.push((work.auth.clone(), work.storage.clone(), store.clone()));
                    store
                }
            };
            if !arguments.anything_goes {
                guard::check(world, &store, work).await?;
            }
            of_stage.push(store);
        }
        stores.push(of_stage);
    }
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Ok(Prepared {
        workload,
        source,
        stores,
        options: LoadOptions {
            threads: arguments.threads.unwrap_or(cores).max(1),
            seed: arguments.seed.unwrap_or_else(|| world.random.next_u64() >> 11),
            verifies: arguments.verify,
        },
    })
}

/// Puts what the command line says of the store in place of what the workload says.
fn redirect(work: &mut Work, arguments: &RunArguments) -> Result<(), Fault> {
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
    /// Runs all stages and reports.
    pub async fn run(
        self,
        arguments: &RunArguments,
        world: &World,
        console: &mut Console<'_>,
        interrupted: impl Future<Output = ()>,
    ) -> io::Result<ToolStatus> {
        let (contents, watch) = (Arc::new(Contents::new()), Arc::new(LoadWatch::default()));
        let mut report = self.empty_report(world);
        let mut interrupted = std::pin::pin!(interrupted);
        for (stage, stores) in self.workload.stages.iter().zip(&self.stores) {
            let running = run_stage(world, stage, stores, &contents, &watch, &self.options);
            let running = observe::around(&self.workload.observation, world, stage, running);
            let mut running = std::pin::pin!(running);
            let finished = loop {
                tokio::select! {
                    finished = &mut running => break finished,
                    () = &mut interrupted, if !watch.is_stopped() => watch.stop(),
                    () = world.clock.sleep(PROGRESS), if console.shows_progress => progress(console, stage, &watch)?,
                }
            };
            clear(console)?;
            match finished {
                Ok(stage) => {
                    console.say(terminal::stage_text(&stage).trim_end())?;
                    console.out.flush()?;
                    report.stages.push(stage);
                }
                Err(fault) => {
                    console.complain(fault)?;
                    return Ok(ToolStatus::FAILURE);
                }
            }
            if watch.is_stopped() {
                break;
            }
            if !stage.closure_delay.is_zero() {
                tokio::select! {
                    () = world.clock.sleep(stage.closure_delay) => {}
                    () = &mut interrupted => watch.stop(),
                }
            }
        }
        report.interrupted = watch.is_stopped();
        if report.interrupted {
            console.complain("interrupted: what is reported was measured until then; what was made is still there")?;
        }
        if let Err(fault) = write_files(arguments, world, &report) {
            console.complain(fault)?;
            return Ok(ToolStatus::FAILURE);
        }
        let has_failed = report
            .stages
            .iter()
            .flat_map(|stage| &stage.works)
            .any(|work| work.has_failed)
            || report.stages.iter().any(|stage| stage.observed.has_failed());
        Ok(if has_failed || report.interrupted {
            ToolStatus::FAILURE
        } else {
            ToolStatus::SUCCESS
        })
    }
}

impl Prepared {
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
        }
    }
}

/// Runs the works of a stage side by side.
pub async fn run_stage(
    world: &World,
    stage: &Stage,
    stores: &[Store],
    contents: &Arc<Contents>,
    watch: &Arc<LoadWatch>,
    options: &LoadOptions,
) -> Result<StageReport, Fault> {
    let begun = world.clock.elapsed();
    let works: Vec<Arc<Work>> = stage.works.iter().cloned().map(Arc::new).collect();
    let running = works
        .iter()
        .zip(stores)
        .map(|(work, store)| run_work(world, work, store.clone(), contents.clone(), watch.clone(), options));
    let results = futures_util::future::try_join_all(running).await?;
    Ok(StageReport {
        name: stage.name.clone(),
        works: works
            .iter()
            .zip(&results)
            .map(|(work, result)| WorkReport::of(work, result))
            .collect(),
        lasted: world.clock.elapsed().saturating_sub(begun).as_secs_f64(),
        ..StageReport::default()
    })
}

fn progress(console: &mut Console<'_>, stage: &Stage, watch: &LoadWatch) -> io::Result<()> {
    let (succeeded, failed, bytes) = watch.so_far();
    let name = &stage.name;
    write!(
        console.out,
        "\r{name}: {succeeded} requests, {failed} failed, {:.1} MB\x1b[K",
        bytes as f64 / 1e6
    )?;
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
