//! One run: objects are made without limits, limits are set, `martlet bench` loads, processor time is looked at.
//!
//! Always holds: processor time is that of a part of the time in which requests were counted, so that neither the start
//! nor the end of the load is in it.

use super::cluster::{LimitedCluster, NodeUse, ProcessorUse};
use super::limits::LimitedDriveWork;
use super::namespaces::OWN_GROUP;
use super::plan::{CONTAINERS, MeasurePlan, PlannedRun};
use super::scratch::ScratchFolder;
use crate::fit::runs;
use crate::model::limits::Resource;
use crate::text_files::{read_text, write_text};
use serde_json::Value;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
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
    /// What was busy meanwhile; none without control groups.
    pub busy: Option<BusyShares>,
}

/// What was busy while requests were counted.
#[derive(Debug, Clone, PartialEq)]
pub struct BusyShares {
    /// Processors.
    pub processors: ProcessorUse,
    /// Of each kind of limited device the busiest one, as a share of its limit.
    pub devices: Vec<(Resource, f64)>,
    /// What all limited drives did in a second.
    pub drives: LimitedDriveWork,
}

/// A file that is removed when this is dropped, unless it has moved.
pub struct Draft {
    /// Where it is removed.
    pub world: World,
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
    let (endpoints, first, inside) = (cluster.endpoints(), cluster.first_gateway(), cluster.inside());
    for left in [&prepares, &workload, &prepared] {
        // From a run that is made again.
        let _ = world.files.remove_file(left);
    }
    // By one gateway: another one that was asked for a container just before that was made may not know it for seconds.
    write_text(world, &prepares, &workload_text(plan, run, &first))?;
    write_text(world, &workload, &workload_text(plan, run, &endpoints))?;
    // Where limits are to limit, the load does not wait for other programs; without root it could not.
    let first_in_line: &[&str] = match cluster.used() {
        Some(_) => &["nice", "-n", "-10"],
        None => &[],
    };
    let bench = |workload: &Path, stages: &str, output: &Path| {
        let mut words = inside
            .iter()
            .map(String::as_str)
            .chain(first_in_line.iter().copied())
            .chain(["setpriv", "--pdeathsig", "KILL"]);
        let mut command = Command::new(words.next().unwrap_or("setpriv"));
        command.args(words).arg(program).args(["bench", "run"]);
        command.arg(workload).args(["--stages", stages, "--json"]).arg(output);
        command
            .process_group(OWN_GROUP)
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
    known(busy.as_ref(), cluster, run)?;
    Ok(LoadedRun {
        run: run.clone(),
        measured: measured(run, &read_text(world, &manifest.path)?)?,
        manifest,
        busy,
    })
}

/// Requests a second and p99 of a report.
fn measured(run: &PlannedRun, report: &str) -> Result<(f64, f64), Fault> {
    let what = runs::MeasuredCluster::plain(run.gateways, run.storage_nodes, "");
    let read = runs::runs(&run.name, report, &what).map_err(|fault| fault.within(&run.name))?;
    let none = || Fault::caller(format!("{}: there is no run in its report", run.name));
    read.first().map(|one| (one.rate, one.p99)).ok_or_else(none)
}

/// An error when processor time is not known though there are control groups: nothing tells then what limited the run.
fn known(busy: Option<&BusyShares>, cluster: &LimitedCluster, run: &PlannedRun) -> Result<(), Fault> {
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
) -> Result<Option<BusyShares>, Fault> {
    let begun = world.clock.elapsed();
    let mut seen: Vec<(f64, NodeUse)> = vec![];
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

fn busy(seen: &[(f64, NodeUse)]) -> Option<BusyShares> {
    let ((from, first), (until, last)) = (seen.first()?, seen.last()?);
    let lasted = until - from;
    let mut devices: Vec<(Resource, f64)> = vec![];
    for ((resource, before), (_, now)) in first.devices.iter().zip(&last.devices) {
        let share = (now - before) / lasted;
        match devices.iter_mut().find(|(known, _)| known == resource) {
            Some((_, most)) => *most = most.max(share),
            None => devices.push((*resource, share)),
        }
    }
    (lasted > 0.0).then(|| BusyShares {
        processors: ProcessorUse {
            gateways: (last.processors.gateways - first.processors.gateways) / lasted,
            storage: (last.processors.storage - first.processors.storage) / lasted,
        },
        devices,
        drives: last.drives.with(first.drives, |now, before| (now - before) / lasted),
    })
}

fn workload_text(plan: &MeasurePlan, run: &PlannedRun, endpoints: &[String]) -> String {
    let prefix = format!("cprefix = \"measure-{}-\"", run.size);
    let (objects, size) = (plan.objects, format!("sizes = \"c({})B\"", run.size));
    let reads = plan.read_percent();
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

#[cfg(test)]
mod tests {
    use super::{LimitedDriveWork, NodeUse, ProcessorUse, busy};
    use crate::model::limits::Resource;

    #[test]
    fn processor_time_is_that_between_the_first_and_the_last_look() {
        let used = |gateways, storage| NodeUse {
            processors: ProcessorUse { gateways, storage },
            devices: vec![(Resource::Drives, gateways), (Resource::Drives, storage)],
            drives: LimitedDriveWork {
                reads: 100.0 * storage,
                ..LimitedDriveWork::default()
            },
        };
        let seen = [(2.0, used(1.0, 5.0)), (3.0, used(1.1, 5.1)), (4.0, used(1.4, 5.6))];
        let found = busy(&seen).unwrap();
        assert!((found.processors.gateways - 0.2).abs() < 1e-9 && (found.processors.storage - 0.3).abs() < 1e-9);
        assert!(
            (found.drives.reads - 30.0).abs() < 1e-9 && found.drives.writes == 0.0,
            "{found:?}"
        );
        // The busiest of a kind.
        assert!(matches!(found.devices[..], [(Resource::Drives, share)] if (share - 0.3).abs() < 1e-9));
        assert_eq!((busy(&seen[..1]), busy(&[])), (None, None));
    }
}
