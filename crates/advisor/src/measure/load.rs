//! One run: objects are made without limits, limits are set, `martlet bench` loads, processor time is looked at.
//!
//! Always holds: processor time is that of a part of the time in which requests were counted, so that neither the start
//! nor the end of the load is in it.

use super::cluster::{LimitedCluster, ProcessorUse};
use super::plan::{CONTAINERS, MeasurePlan, PlannedRun};
use super::scratch::ScratchFolder;
use crate::fit::runs;
use crate::model::estimate::readable;
use crate::text_files::{read_text, write_text};
use serde_json::Value;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use vocabulary::Fault;
use world::World;

/// How often the load is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// Left out at both ends of what is counted.
const MARGIN: f64 = 0.5;

/// A run that has been made.
pub struct LoadedRun {
    /// Which.
    pub run: PlannedRun,
    /// The report of `bench`, not yet at its place.
    pub manifest: Draft,
    /// Requests a second, and the 99th percentile in seconds.
    pub measured: (f64, f64),
    /// Processors that were busy meanwhile; none without control groups.
    pub busy: Option<ProcessorUse>,
}

/// A file that is removed when this is dropped, unless it has moved.
pub struct Draft {
    world: World,
    /// Where it is.
    pub path: PathBuf,
}

impl Drop for Draft {
    fn drop(&mut self) {
        let _ = self.world.files.remove_file(&self.path);
    }
}

/// A process that is ended when it is dropped.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // Both do nothing when it has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn failed(error: &io::Error) -> Fault {
    Fault::caller(format!("bench: {error}"))
}

/// Loads a cluster.
pub async fn load(
    world: &World,
    plan: &MeasurePlan,
    program: &Path,
    (cluster, folder): (&mut LimitedCluster, &ScratchFolder),
    run: &PlannedRun,
    output: &Path,
) -> Result<LoadedRun, Fault> {
    let manifest = Draft {
        world: world.clone(),
        path: output.join(format!(".{}.manifest", run.name)),
    };
    // From a command that was killed.
    let _ = world.files.remove_file(&manifest.path);
    let file = |ending: &str| folder.path.join(format!("{}.{ending}", run.name));
    let (prepares, workload, prepared) = (file("prepare.toml"), file("load.toml"), file("prepared.json"));
    let endpoints = cluster.endpoints();
    for left in [&prepares, &workload, &prepared] {
        // From a run that is made again.
        let _ = world.files.remove_file(left);
    }
    // By one gateway: another one that was asked for a container just before that was made may not know it for seconds.
    write_text(
        world,
        &prepares,
        &workload_text(plan, run, &endpoints[..endpoints.len().min(1)]),
    )?;
    write_text(world, &workload, &workload_text(plan, run, &endpoints))?;
    let bench = |workload: &Path, stages: &str, output: &Path| {
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL"])
            .arg(program)
            .args(["bench", "run"]);
        command.arg(workload).args(["--stages", stages, "--json"]).arg(output);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        command.spawn().map(Ended).map_err(|error| failed(&error))
    };
    cluster.limit(false)?;
    wait(
        world,
        &prepared,
        bench(&prepares, "init,prepare", &prepared)?,
        cluster,
        None,
    )
    .await?;
    cluster.limit(true)?;
    let window = f64::from(plan.warm_up)..f64::from(plan.warm_up + plan.seconds);
    let child = bench(&workload, "main", &manifest.path)?;
    let done = wait(world, &manifest.path, child, cluster, Some(window)).await;
    cluster.limit(false)?;
    let busy = done?;
    known(busy, cluster, run)?;
    let report = read_text(world, &manifest.path)?;
    let what = runs::MeasuredCluster::plain(run.gateways, run.storage_nodes, "");
    let read = runs::runs(&run.name, &report, &what).map_err(|fault| fault.within(&run.name))?;
    let Some(one) = read.first() else {
        return Err(Fault::caller(format!("{}: there is no run in its report", run.name)));
    };
    Ok(LoadedRun {
        run: run.clone(),
        manifest,
        measured: (one.rate, one.p99),
        busy,
    })
}

/// An error when processor time is not known though there are control groups: nothing tells then what limited the run.
fn known(busy: Option<ProcessorUse>, cluster: &LimitedCluster, run: &PlannedRun) -> Result<(), Fault> {
    match busy.is_none() && cluster.used().is_some() {
        true => Err(Fault::caller(format!(
            "{}: its processor time was looked at less than twice: measure longer, on a machine that does nothing else",
            run.name
        ))),
        false => Ok(()),
    }
}

/// Waits for a load, and says how many processors were busy in a part of its time.
async fn wait(
    world: &World,
    report: &Path,
    mut child: Ended,
    cluster: &mut LimitedCluster,
    window: Option<std::ops::Range<f64>>,
) -> Result<Option<ProcessorUse>, Fault> {
    let begun = world.clock.elapsed();
    let mut seen: Vec<(f64, ProcessorUse)> = vec![];
    loop {
        let ended = child.0.try_wait().map_err(|error| failed(&error))?;
        let now = (world.clock.elapsed() - begun).as_secs_f64();
        let is_inside = window
            .as_ref()
            .is_some_and(|window| (window.start + MARGIN..window.end - MARGIN).contains(&now));
        if let Some(used) = cluster.used().filter(|_| is_inside) {
            seen.push((now, used));
        }
        match ended {
            Some(status) if status.success() => break,
            Some(status) => {
                let mut output = String::new();
                // It says little, which waits in the pipe.
                let read = child.0.stderr.take().map(|mut pipe| pipe.read_to_string(&mut output));
                read.transpose().map_err(|error| failed(&error))?;
                return Err(Fault::caller(format!(
                    "bench ended with {status}: {}{}",
                    output.trim(),
                    why(world, report)
                )));
            }
            None => cluster.check()?,
        }
        world.clock.sleep(LOOK).await;
    }
    Ok(busy(&seen))
}

/// What failed, as a report says it.
fn why(world: &World, report: &Path) -> String {
    let text = read_text(world, report).unwrap_or_default();
    let report: Value = serde_json::from_str(&text).unwrap_or_default();
    let list = |value: &Value, key: &str| value.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let works: Vec<Value> = list(&report, "stages")
        .iter()
        .flat_map(|stage| list(stage, "works"))
        .collect();
    let failures = works.iter().filter_map(|work| {
        let failures = work
            .get("total")?
            .get("failures")?
            .as_object()
            .filter(|all| !all.is_empty())?;
        Some(format!(
            " {}: {}",
            work.get("kind")?.as_str()?,
            Value::Object(failures.clone())
        ))
    });
    failures.collect()
}

fn busy(seen: &[(f64, ProcessorUse)]) -> Option<ProcessorUse> {
    let ((from, first), (until, last)) = (seen.first()?, seen.last()?);
    let lasted = until - from;
    (lasted > 0.0).then(|| ProcessorUse {
        gateways: (last.gateways - first.gateways) / lasted,
        storage: (last.storage - first.storage) / lasted,
    })
}

fn workload_text(plan: &MeasurePlan, run: &PlannedRun, endpoints: &[String]) -> String {
    let prefix = format!("cprefix = \"measure-{}-\"", run.size);
    let (objects, size) = (plan.objects, format!("sizes = \"c({})B\"", run.size));
    let reads = (plan.reads * 100.0).round();
    let mut operations = String::new();
    let mut add = |kind: &str, ratio: f64, rest: &str| {
        if ratio > 0.0 {
            let names = format!("{prefix}, containers = \"u(1,{CONTAINERS})\", objects = \"u(1,{objects})\"");
            operations += &format!("    {{ type = \"{kind}\", ratio = {ratio}, {names}{rest} }},\n");
        }
    };
    add("read", reads, "");
    add("write", 100.0 - reads, &format!(", {size}"));
    let special = |kind: &str, rest: &str| {
        format!(
            "[[stage]]\nname = \"{kind}\"\ntype = \"{kind}\"\n{prefix}\nworkers = 4\ncontainers = \
             \"r(1,{CONTAINERS})\"\n{rest}\n"
        )
    };
    [
        format!("name = \"{}\"\ndescription = \"limited processes of one machine\"\n\n", run.name),
        // The first address says which account it is, too.
        format!(
            "[storage]\ntype = \"swift\"\nstorage_url = \"{}\"\nendpoints = \"{}\"\n\n",
            endpoints.first().map_or("", String::as_str),
            endpoints.join(",")
        ),
        special("init", ""),
        special("prepare", &format!("objects = \"r(1,{objects})\"\n{size}\n")),
        format!(
            "[[stage]]\nname = \"main\"\nworkers = {}\nrampup = \"{}s\"\nruntime = \"{}s\"\noperations = [\n{operations}]\n",
            run.workers,
            plan.warm_up,
            plan.warm_up + plan.seconds
        ),
    ]
    .concat()
}

/// Of what a closed loop must use at least, the share below which something else was the limit.
const LIMITED: f64 = 0.8;

impl LoadedRun {
    /// Why the limits that were set were not what limited the run; none where they were, or where there were none.
    ///
    /// With W requests under way on G gateways and N storage nodes the busiest kind is busy for W / (W + G + N - 1) of
    /// its time at least, as all nodes' times are at most equal (balanced job bounds: J. Zahorjan and others, 1982). A
    /// run in which it was much less was limited by something else, such as other programs on this machine.
    pub fn unlimited(&self, plan: &MeasurePlan) -> Option<String> {
        let busy = self.busy?;
        let count = |one: u32| f64::from(one);
        let (gateways, nodes) = (count(self.run.gateways), count(self.run.storage_nodes));
        let gateways_used = busy.gateways / (gateways * plan.gateway.processors);
        let nodes_used = busy.storage / (nodes * plan.storage.processors);
        let workers = count(self.run.workers);
        let least = LIMITED * workers / (workers + gateways + nodes - 1.0);
        (gateways_used.max(nodes_used) < least).then(|| {
            format!(
                "{}: gateways used {:.0} % and storage nodes {:.0} % of their limits, so that something else limited it: \
                 measure with more workers or lower limits, on a machine that does nothing else",
                self.run.name,
                gateways_used * 100.0,
                nodes_used * 100.0
            )
        })
    }

    /// A line about it.
    pub fn line(&self) -> String {
        let (rate, p99) = self.measured;
        let busy = self.busy.map_or(String::new(), |busy| {
            let each = |seconds: f64| readable(seconds / rate * 1e3);
            format!(
                ", processor time of gateways {} ms and of storage {} ms each",
                each(busy.gateways),
                each(busy.storage)
            )
        });
        format!(
            "{}: {} requests/s, p99 {} ms{busy}",
            self.run.name,
            readable(rate),
            readable(p99 * 1e3)
        )
    }

    /// What was loaded, for `martlet advise fit`.
    pub fn cluster(&self, plan: &MeasurePlan) -> String {
        let (gateways, nodes) = (self.run.gateways, self.run.storage_nodes);
        let (of_gateway, of_storage) = (plan.gateway.processors, plan.storage.processors);
        let limits = match self.busy {
            Some(_) => format!(
                "control groups limit each gateway to {of_gateway} and each storage node to {of_storage} processors"
            ),
            None => "nothing limits their processors".to_owned(),
        };
        let mut text = format!(
            "gateways = {gateways}\nstorage_nodes = {nodes}\nwhat = \"processes of one machine: {limits}; neither disks \
             (data lie in {}) nor networks are limited; {} replicas on {} folders of each node\"\npieces = {}\n",
            plan.folder.display(),
            plan.replicas,
            plan.drives,
            plan.replicas
        );
        if let Some(busy) = self.busy {
            text += &format!(
                "gateway_processors = {of_gateway}\nstorage_processors = {of_storage}\ngateways_busy = {:.6}\n\
                 storage_busy = {:.6}\n",
                busy.gateways, busy.storage
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::{Draft, LoadedRun, ProcessorUse, busy};
    use crate::measure::plan::MeasurePlan;
    use std::path::PathBuf;
    use world::World;

    #[test]
    fn a_run_that_something_else_limited_is_known() {
        let plan = "gateways = [1]\nstorage_nodes = [4]\nsizes = [4096]\nworkers = [64]\n[gateway]\nprocessors = 0.2\n\
                    [storage]\nprocessors = 0.1\n";
        let plan = MeasurePlan::read(plan).unwrap();
        let run = |gateways, storage| LoadedRun {
            run: plan.runs(1, 4, 1).remove(0),
            manifest: Draft {
                world: World::real(),
                path: PathBuf::from("/nowhere"),
            },
            measured: (1000.0, 0.1),
            busy: Some(ProcessorUse { gateways, storage }),
        };
        assert_eq!(run(0.19, 0.21).unlimited(&plan), None);
        assert_eq!(run(0.06, 0.38).unlimited(&plan), None);
        let why = run(0.0616, 0.1006).unlimited(&plan).unwrap();
        assert!(why.contains("gateways used 31 % and storage nodes 25 %"), "{why}");
    }

    #[test]
    fn processor_time_is_that_between_the_first_and_the_last_look() {
        let used = |gateways, storage| ProcessorUse { gateways, storage };
        let seen = [(2.0, used(1.0, 5.0)), (3.0, used(1.1, 5.1)), (4.0, used(1.4, 5.6))];
        let found = busy(&seen).unwrap();
        assert!((found.gateways - 0.2).abs() < 1e-9 && (found.storage - 0.3).abs() < 1e-9);
        assert_eq!((busy(&seen[..1]), busy(&[])), (None, None));
    }
}
