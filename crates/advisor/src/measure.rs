//! Measured configurations of limited processes on this machine: `martlet advise measure`.
//!
//! Comes in: a [`plan`](plan::MeasurePlan). For each number of gateways and storage nodes this program is started as
//! gateways and as account, container and object servers, each node in a control group that limits its processors.
//! `martlet bench` loads them through the gateways. Goes out: manifests and what they loaded, which `martlet advise
//! fit` reads.
//! Always holds: each result says that processes of one machine were measured, what limited them and what did not;
//! limits hold while the load runs, not while objects are made; no process, control group or data stays behind, however
//! the command ends; what a killed command left is removed by the next one.
//! Deliberately absent: the load itself (`bench` makes it, started as a program), limits of disks and networks.
//!
//! | question | file |
//! |---|---|
//! | what is measured | `measure/plan.rs` |
//! | control groups of version 1 and 2 | `measure/limits.rs` |
//! | configuration, rings, processes and their end | `measure/cluster.rs` |
//! | one run of `martlet bench`, processor time meanwhile | `measure/load.rs` |
//! | folders of a measurement, leftovers | `measure/scratch.rs` |

pub mod cluster;
pub mod limits;
pub mod load;
pub mod plan;
pub mod scratch;

use crate::arguments::MeasureArguments;
use crate::text_files::{read_text, write_text};
use cluster::LimitedCluster;
use limits::ControlGroups;
use load::LoadedRun;
use operator_tools::{Console, ToolStatus};
use plan::{MeasurePlan, PlannedRun};
use scratch::ScratchFolder;
use std::future::poll_fn;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::task::Poll;
use vocabulary::Fault;
use world::World;

/// The program that runs, as Linux shows it.
const RUNNING: &str = "/proc/self/exe";
/// How often a run is made that something else than its limits limits.
const ATTEMPTS: u32 = 4;

/// Measures all that a plan lists, until it is done or `stop` completes.
pub async fn run(
    line: &MeasureArguments,
    world: &World,
    console: &mut Console<'_>,
    stop: impl Future<Output = ()>,
) -> io::Result<ToolStatus> {
    let done = {
        let (mut stop, mut work) = (pin!(stop), pin!(measure(line, world, console)));
        // What was begun is dropped, and with it ended, when it was stopped.
        poll_fn(|context| match stop.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(Fault::caller("interrupted: what was measured until now stays"))),
            Poll::Pending => work.as_mut().poll(context),
        })
        .await
    };
    match done {
        Ok(()) => Ok(ToolStatus::SUCCESS),
        Err(fault) => console.complain(fault).map(|()| ToolStatus::FAILURE),
    }
}

async fn measure(line: &MeasureArguments, world: &World, console: &mut Console<'_>) -> Result<(), Fault> {
    let text = read_text(world, &line.plan)?;
    let plan = MeasurePlan::read(&text).map_err(|fault| fault.within(line.plan.display()))?;
    let program = match &line.program {
        Some(program) => absolute(world, program)?,
        None => absolute(world, Path::new(RUNNING))?,
    };
    scratch::make_folders(world, &line.output)?;
    let output = absolute(world, &line.output)?;
    scratch::remove_leftovers(world, &plan.folder);
    let groups = match line.unlimited {
        true => None,
        false => Some(ControlGroups::make(world)?),
    };
    let known = |name: &str| world.files.info(&output.join(name).with_extension("json")).is_ok();
    for (gateways, nodes, repeat) in plan.clusters() {
        let runs: Vec<PlannedRun> = plan.runs(gateways, nodes, repeat);
        let missing: Vec<&PlannedRun> = runs.iter().filter(|run| !known(&run.name)).collect();
        if missing.is_empty() {
            tell(console, &format!("g{gateways}-s{nodes}-r{repeat}: measured already"))?;
            continue;
        }
        cluster::check_ports(world, &plan, (gateways, nodes)).await?;
        let folder = ScratchFolder::make(world, &plan.folder)?;
        let mut cluster = LimitedCluster::start(world, &plan, &program, &folder, groups.as_ref(), (gateways, nodes))?;
        cluster.wait_until_it_listens().await?;
        for run in missing {
            let found = limited(world, &plan, &program, (&mut cluster, &folder), run, &output, console).await?;
            tell(console, &found.line())?;
            keep(world, &output, &plan, &found)?;
        }
    }
    tell(
        console,
        &format!("next: martlet advise fit {}/*.json", line.output.display()),
    )
}

/// A run that its limits limited; one that something else did is made again.
async fn limited(
    world: &World,
    plan: &MeasurePlan,
    program: &Path,
    (cluster, folder): (&mut LimitedCluster, &ScratchFolder),
    run: &PlannedRun,
    output: &Path,
    console: &mut Console<'_>,
) -> Result<LoadedRun, Fault> {
    for attempt in 1.. {
        let found = load::load(world, plan, program, (&mut *cluster, folder), run, output).await?;
        match found.unlimited(plan) {
            None => return Ok(found),
            Some(why) if attempt == ATTEMPTS => return Err(Fault::caller(why)),
            Some(why) => tell(console, &format!("{why}; measuring it again"))?,
        }
    }
    Err(Fault::caller("measured no time"))
}

/// The manifest is there only when what it loaded is said beside it.
fn keep(world: &World, output: &Path, plan: &MeasurePlan, found: &LoadedRun) -> Result<(), Fault> {
    let name = output.join(&found.run.name);
    let beside = name.with_extension("cluster.toml");
    // From a command that was killed between the two.
    let _ = world.files.remove_file(&beside);
    write_text(world, &beside, &found.cluster(plan))?;
    let moved = world.files.rename(&found.manifest.path, &name.with_extension("json"));
    moved.map_err(|error| Fault::caller(format!("{}: {error}", found.manifest.path.display())))
}

fn absolute(world: &World, path: &Path) -> Result<PathBuf, Fault> {
    let found = world.files.resolve(path);
    found.map_err(|error| Fault::caller(format!("{}: {error}", path.display())))
}

fn tell(console: &mut Console<'_>, line: &str) -> Result<(), Fault> {
    let written = writeln!(console.out, "{line}").and_then(|()| console.out.flush());
    written.map_err(|error| Fault::caller(format!("standard output: {error}")))
}
