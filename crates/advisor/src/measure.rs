//! Measured configurations of limited processes on this machine: `martlet advise measure`.
//!
//! Comes in: a [`plan`](plan::MeasurePlan). For each number of gateways and storage nodes this program is started as
//! gateways and as account, container and object servers, each node in a control group that limits its processors and,
//! where the plan says so, with drives and a network of its own that are limited as well. `martlet bench` loads them
//! through the gateways or a balancer. Goes out: manifests and what they loaded, which `martlet advise fit` reads.
//! Always holds: each result says that processes of one machine were measured, what limited them and what did not;
//! limits hold while the load runs, not while objects are made; no process, control group, namespace, mount or data
//! stays behind, however the command ends; what a killed command left is removed by the next one.
//! Deliberately absent: the load itself (`bench` makes it, started as a program), delays of networks.
//!
//! | question | file |
//! |---|---|
//! | what is measured | `measure/plan.rs` |
//! | how many storage nodes are enough, and cheapest | `measure/sample.rs` |
//! | control groups of version 1 and 2 | `measure/limits.rs` |
//! | drives: loop devices, file systems | `measure/devices.rs` |
//! | networks: bridge, interfaces, token buckets | `measure/network.rs` |
//! | namespaces that end by themselves | `measure/namespaces.rs` |
//! | configuration, rings, processes and their end | `measure/cluster.rs` |
//! | one run of `martlet bench`, what was busy meanwhile | `measure/load.rs` |
//! | whether limits limited it, what stood for what | `measure/outcome.rs` |
//! | folders of a measurement, leftovers | `measure/scratch.rs` |
//! | what a plan asks of this machine, one measurement at a time | `measure/machine.rs` |

pub mod cluster;
mod devices;
pub mod limits;
pub mod load;
mod machine;
mod namespaces;
mod network;
mod outcome;
pub mod plan;
pub mod sample;
pub mod scratch;

use crate::arguments::MeasureArguments;
use crate::fit;
use crate::fit::runs::MeasuredCluster;
use crate::inventory::PurchaseInventory;
use crate::text_files::{read_text, write_text};
use cluster::LimitedCluster;
use limits::ControlGroups;
use load::LoadedRun;
use operator_tools::{Console, ToolStatus};
use plan::{MeasurePlan, MeasuredPrices, PlannedRun};
use sample::{SampledGrowth, SampledNodes};
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
    let mut plan = read_plan(world, &line.plan)?;
    // Mounts are known by what links lead to.
    plan.folder = absolute(world, &plan.folder).map_err(|fault| fault.within("folder"))?;
    let prices = line.sample.then(|| sample::check(&plan)).transpose();
    let prices = prices.map_err(|fault| fault.within(line.plan.display()))?;
    if line.unlimited && plan.balancer.is_some() {
        return Err(Fault::caller(format!(
            "{}: the plan or its inventory has a balancer, which stands in a network of its own: leave it or --unlimited \
             out",
            line.plan.display()
        )));
    }
    let processors = cluster::allowed_processors(world)?.len();
    let note = machine::check(world, &plan, processors, !line.unlimited);
    let note = note.map_err(|fault| fault.within(line.plan.display()))?;
    let _only = machine::only_measurement()?;
    note.map_or(Ok(()), |note| tell(console, &note))?;
    let program = match &line.program {
        Some(program) => absolute(world, program)?,
        None => absolute(world, Path::new(RUNNING))?,
    };
    scratch::make_folders(world, &line.output)?;
    let output = absolute(world, &line.output)?;
    scratch::remove_leftovers(world, &plan.folder);
    let groups = match line.unlimited {
        true => None,
        false => Some(ControlGroups::make(world, plan.drive.is_some())?),
    };
    let measurement = Measurement {
        world,
        plan: &plan,
        program,
        output,
        groups,
    };
    match prices {
        Some(prices) => {
            let text = measurement.sample(&prices, console).await?;
            tell(console, text.trim_end())?;
        }
        None => {
            for (gateways, nodes, repeat) in plan.clusters() {
                measurement.cluster((gateways, nodes, repeat), console).await?;
            }
        }
    }
    tell(
        console,
        &format!("next: martlet advise fit {}/*.json", line.output.display()),
    )
}

/// A plan with the inventory that it names, whose path is relative to it.
fn read_plan(world: &World, path: &Path) -> Result<MeasurePlan, Fault> {
    let text = read_text(world, path)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let inventory = |name: &Path| {
        let path = folder.join(name);
        let read = PurchaseInventory::read(&read_text(world, &path)?);
        read.map_err(|fault| fault.within(path.display()))
    };
    MeasurePlan::read(&text, inventory).map_err(|fault| fault.within(path.display()))
}

/// A measurement that goes on.
struct Measurement<'a> {
    world: &'a World,
    plan: &'a MeasurePlan,
    program: PathBuf,
    output: PathBuf,
    groups: Option<ControlGroups>,
}

impl Measurement<'_> {
    /// Makes the runs of one cluster that are not there yet.
    async fn cluster(
        &self,
        (gateways, nodes, repeat): (u32, u32, u32),
        console: &mut Console<'_>,
    ) -> Result<(), Fault> {
        let (world, plan) = (self.world, self.plan);
        let is_known = |name: &str| world.files.info(&self.output.join(name).with_extension("json")).is_ok();
        let runs: Vec<PlannedRun> = plan.runs(gateways, nodes, repeat);
        let (missing, there): (Vec<&PlannedRun>, Vec<&PlannedRun>) = runs.iter().partition(|run| !is_known(&run.name));
        for run in there {
            let path = self.output.join(&run.name).with_extension("cluster.toml");
            let same = read_text(world, &path).and_then(|text| outcome::check_same(&text, plan, self.groups.is_some()));
            same.map_err(|fault| fault.within(path.display()))?;
        }
        if missing.is_empty() {
            return tell(console, &format!("g{gateways}-s{nodes}-r{repeat}: measured already"));
        }
        // In networks of their own no other program listens.
        let _ports = match self.groups.is_none() || !plan.has_networks() {
            true => Some(cluster::take_ports(world, plan, (gateways, nodes)).await?),
            false => None,
        };
        let folder = ScratchFolder::make(world, &plan.folder)?;
        let (program, groups) = (&self.program, self.groups.as_ref());
        let mut cluster = LimitedCluster::start(world, plan, program, &folder, groups, (gateways, nodes)).await?;
        cluster.wait_until_it_listens().await?;
        for run in missing {
            let found = self.limited((&mut cluster, &folder), run, console).await?;
            tell(console, &found.line())?;
            keep(world, &self.output, plan, &found)?;
        }
        Ok(())
    }

    /// A run that its limits limited; one that something else did is made again.
    async fn limited(
        &self,
        (cluster, folder): (&mut LimitedCluster, &ScratchFolder),
        run: &PlannedRun,
        console: &mut Console<'_>,
    ) -> Result<LoadedRun, Fault> {
        let (world, plan) = (self.world, self.plan);
        for attempt in 1.. {
            let cluster = (&mut *cluster, folder);
            let found = load::load(world, plan, &self.program, cluster, run, &self.output).await?;
            if let Some(why) = found.from_memory(plan) {
                return Err(Fault::caller(why));
            }
            match found.unlimited(plan) {
                None => return Ok(found),
                Some(why) if attempt == ATTEMPTS => return Err(Fault::caller(why)),
                Some(why) => tell(console, &format!("{why}; measuring it again"))?,
            }
        }
        Err(Fault::caller("measured no time"))
    }

    /// Measures more and more storage nodes until throughput stops growing, and says what that showed.
    async fn sample(&self, prices: &MeasuredPrices, console: &mut Console<'_>) -> Result<String, Fault> {
        let plan = self.plan;
        let gateways = plan.gateways.first().copied().unwrap_or(1);
        let mut steps: Vec<SampledNodes> = vec![];
        for nodes in plan.storage_nodes.iter().copied() {
            let mut rates = vec![];
            for repeat in 1..=plan.repeats {
                self.cluster((gateways, nodes, repeat), console).await?;
                for run in plan.runs(gateways, nodes, repeat) {
                    let path = self.output.join(&run.name).with_extension("json");
                    let what = MeasuredCluster::plain(gateways, nodes, "");
                    let runs = fit::runs::runs(&run.name, &read_text(self.world, &path)?, &what);
                    rates.extend(
                        runs.map_err(|fault| fault.within(path.display()))?
                            .iter()
                            .map(|run| run.rate),
                    );
                }
            }
            steps.push(SampledNodes { nodes, rates });
            if sample::growth(&steps) != SampledGrowth::Grows {
                break;
            }
        }
        Ok(sample::text(&steps, plan, prices))
    }
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
