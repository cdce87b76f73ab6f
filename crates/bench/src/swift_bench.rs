//! `martlet bench swift`: what swift-bench does, with its options and its output, at the speed of the load of this
//! program.
//!
//! Containers are made, objects written, read and deleted, and the containers deleted. A line about each phase stands
//! on standard error as swift-bench writes it, so that what reads its output reads this one.
//! Always holds: only containers that this program has made are written to; an interrupted run deletes what it made,
//! unless its options leave it there. Times in the lines are in UTC.
//! Deliberately absent: `swift-bench-client`.

pub mod options;
mod phase;

use crate::benchmark::unless_interrupted;
use crate::content::{ContentKey, Contents};
use crate::figures::{Failure, RequestOutcome};
use crate::load::LoadWatch;
use crate::store::auth::{Trust, open, open_object_server};
use crate::store::object_server::DirectObjectServer;
use crate::store::{RequestDetail, Store, StoreRequest, StoreSession, guard};
use crate::workload::parameters::Parameters;
use crate::workload::{Endpoint, OperationKind};
use operator_tools::{Console, ToolStatus};
use options::{SwiftBenchArguments, SwiftBenchOptions};
use phase::{BenchPhase, MadeObject, PhaseResult, PhaseWork, container_name};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use vocabulary::Fault;
use world::World;

/// From the start of a phase to the first line about how far it is.
const FIRST_LINE: Duration = Duration::from_secs(2);
/// Between two further ones.
const NEXT_LINE: Duration = Duration::from_secs(15);
/// Bytes that are read at a time from containers.
const BUFFER: usize = 16 << 10;

/// Does what the command line and its file say.
pub async fn run(
    arguments: &SwiftBenchArguments,
    world: &World,
    console: &mut Console<'_>,
    interrupted: impl Future<Output = ()>,
) -> io::Result<ToolStatus> {
    let mut interrupted = std::pin::pin!(interrupted);
    let prepared = match SwiftBenchOptions::of(arguments) {
        Ok(options) => unless_interrupted(SwiftBench::open(world, arguments, options), interrupted.as_mut()).await,
        Err(fault) => Err(fault),
    };
    let bench = match prepared {
        Ok(bench) => bench,
        Err(fault) => return console.complain(fault).map(|()| ToolStatus::FAILURE),
    };
    let is_stopped = Arc::new(LoadWatch::default());
    let done = {
        let mut running = std::pin::pin!(bench.run(console, &is_stopped));
        loop {
            tokio::select! {
                done = &mut running => break done,
                () = &mut interrupted, if !is_stopped.is_stopped() => is_stopped.stop(),
            }
        }
    };
    match done {
        Err(SwiftBenchStop::Io(error)) => Err(error),
        Err(SwiftBenchStop::Fault(fault)) => console.complain(fault).map(|()| ToolStatus::FAILURE),
        Ok(()) if is_stopped.is_stopped() => {
            let left = if bench.options.deletes {
                "what was made was deleted"
            } else {
                "what was made is still there"
            };
            console.complain(format_args!("interrupted: {left}"))?;
            Ok(ToolStatus::FAILURE)
        }
        Ok(()) => Ok(ToolStatus::SUCCESS),
    }
}

/// Why a run ends early.
enum SwiftBenchStop {
    Fault(Fault),
    Io(io::Error),
}

impl From<Fault> for SwiftBenchStop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<io::Error> for SwiftBenchStop {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// A run that can begin: nothing has been made yet.
struct SwiftBench<'a> {
    world: &'a World,
    options: SwiftBenchOptions,
    store: Store,
    contents: Arc<Contents>,
    /// What names of containers begin with.
    base: String,
    says_latencies: bool,
}

impl<'a> SwiftBench<'a> {
    async fn open(
        world: &'a World,
        arguments: &SwiftBenchArguments,
        options: SwiftBenchOptions,
    ) -> Result<Self, Fault> {
        let trust = Trust {
            insecure: arguments.insecure,
            cafile: arguments.cafile.clone(),
        };
        let store = open_store(world, &options, &trust).await?;
        let base = options.container_name.clone().unwrap_or_else(|| {
            let random = || world.random.next_u64();
            format!("{:016x}{:016x}", random(), random())
        });
        if options.container_name.is_some() && options.direct.is_none() {
            let names: Vec<String> = (0..options.containers)
                .map(|number| container_name(&base, number))
                .collect();
            if let Some(name) = guard::container_of_others(world, &store, &names).await? {
                return Err(Fault::caller(format!(
                    "container {name} is there, and no benchmark of this program has made it: choose another \
                     --container-name"
                )));
            }
        }
        Ok(Self {
            world,
            options,
            store,
            contents: Arc::new(Contents::new()),
            base,
            says_latencies: arguments.latencies,
        })
    }

    async fn run(&self, console: &mut Console<'_>, stop: &LoadWatch) -> Result<(), SwiftBenchStop> {
        let options = &self.options;
        if options.direct.is_none() {
            self.make_containers(console).await?;
        }
        let put = PhaseWork::Put {
            sizes: options.sizes,
            containers: options.containers,
        };
        let made = self
            .phase(console, put, options.objects, options.concurrency[0], Some(stop))
            .await?
            .made;
        let made = Arc::new(made);
        if options.gets > 0 && !stop.is_stopped() {
            let get = PhaseWork::Get(made.clone());
            self.phase(console, get, options.gets, options.concurrency[1], Some(stop))
                .await?;
        }
        if !options.deletes {
            return Ok(());
        }
        if options.delay > 0 && !stop.is_stopped() {
            self.line(
                console,
                "INFO",
                format_args!("Delay before DELETE request {} sec", options.delay),
            )?;
            self.wait(Duration::from_secs(options.delay), stop).await;
        }
        self.delete(console, made).await
    }

    /// Deletes objects and containers.
    async fn delete(&self, console: &mut Console<'_>, made: Arc<Vec<MadeObject>>) -> Result<(), SwiftBenchStop> {
        let (count, concurrency) = (made.len() as u64, self.options.concurrency[2]);
        // What was made is deleted, although the run was interrupted.
        self.phase(console, PhaseWork::Delete(made), count, concurrency, None)
            .await?;
        if self.options.direct.is_some() {
            return Ok(());
        }
        self.say_version(console)?;
        self.delete_containers(console, self.options.containers).await
    }

    /// Deletes the first ones of the containers.
    async fn delete_containers(&self, console: &mut Console<'_>, count: u32) -> Result<(), SwiftBenchStop> {
        for (name, outcome) in self.ask_containers(OperationKind::DeleteContainer, count).await {
            let why = match outcome.failure {
                // Others' objects are in it.
                None | Some(Failure::Status(409)) => continue,
                Some(Failure::Status(status)) => format!("Got http status '{status}'."),
                Some(failure) => format!("Got {failure}."),
            };
            self.line(
                console,
                "WARNING",
                format_args!("Unable to delete container '{name}'. {why}"),
            )?;
        }
        Ok(())
    }

    async fn make_containers(&self, console: &mut Console<'_>) -> Result<(), SwiftBenchStop> {
        if let Some(policy) = &self.options.policy {
            self.line(
                console,
                "INFO",
                format_args!("Creating containers with storage policy: {policy}"),
            )?;
        }
        self.say_version(console)?;
        let asked = self
            .ask_containers(OperationKind::MakeContainer, self.options.containers)
            .await;
        let Some((name, outcome)) = asked.last() else {
            return Ok(());
        };
        let Some(failure) = outcome.failure else { return Ok(()) };
        if self.options.deletes {
            // The last one, too: it may be there although its answer was not that.
            let count = u32::try_from(asked.len()).unwrap_or(self.options.containers);
            self.delete_containers(console, count).await?;
        }
        Err(Fault::peer(format!("container {name} could not be made: {failure}")).into())
    }

    /// The same of the first containers, one after the other; those that are made, up to one that cannot be.
    async fn ask_containers(&self, kind: OperationKind, count: u32) -> Vec<(String, RequestOutcome)> {
        let mut session = StoreSession::new(self.store.clone(), self.world.clone(), self.contents.clone(), BUFFER);
        let mut outcomes = vec![];
        for number in 0..count {
            let name = container_name(&self.base, number);
            let request = StoreRequest {
                kind,
                container: &name,
                object: "",
                size: 0,
                body: ContentKey::ZEROS,
                chunked: false,
                verifies: false,
                file: None,
                detail: RequestDetail::default(),
            };
            let outcome = session.ask(&request, self.world.clock.elapsed()).await;
            let has_failed = outcome.failure.is_some();
            outcomes.push((name, outcome));
            if has_failed && kind == OperationKind::MakeContainer {
                break;
            }
        }
        outcomes
    }

    /// Runs a phase, with lines about how far it is.
    async fn phase(
        &self,
        console: &mut Console<'_>,
        work: PhaseWork,
        requests: u64,
        concurrency: u32,
        stop: Option<&LoadWatch>,
    ) -> Result<PhaseResult, SwiftBenchStop> {
        self.say_version(console)?;
        let (clock, watch) = (&self.world.clock, Arc::new(LoadWatch::default()));
        let name = work.name();
        let phase = Arc::new(BenchPhase {
            work,
            store: self.store.clone(),
            contents: self.contents.clone(),
            base: self.base.clone(),
            requests,
            concurrency,
            seed: self.world.random.next_u64(),
            watch: watch.clone(),
            begun: 0.into(),
        });
        let begun = clock.elapsed();
        let mut running = std::pin::pin!(phase::run(self.world, &phase));
        let mut next_line = begun + FIRST_LINE;
        let result = loop {
            tokio::select! {
                result = &mut running => break result?,
                () = clock.sleep(LOOK) => {}
            }
            if stop.is_some_and(LoadWatch::is_stopped) {
                watch.stop();
            }
            if clock.elapsed() >= next_line {
                next_line += NEXT_LINE;
                self.say_progress(console, name, "", &watch, begun)?;
            }
        };
        self.say_progress(console, name, " **FINAL**", &watch, begun)?;
        if self.says_latencies {
            let times = &result.latencies;
            let at = |percent: f64| times.percentile(percent).as_secs_f64() * 1e3;
            let (mean, longest) = (times.mean().as_secs_f64() * 1e3, times.longest().as_secs_f64() * 1e3);
            let (half, p99, p999) = (at(50.0), at(99.0), at(99.9));
            let line = format_args!(
                "{name} latency in ms: mean {mean:.2}, p50 {half:.2}, p99 {p99:.2}, p99.9 {p999:.2}, longest {longest:.2}"
            );
            self.line(console, "INFO", line)?;
        }
        Ok(result)
    }

    /// Waits, unless the run is interrupted.
    async fn wait(&self, time: Duration, stop: &LoadWatch) {
        let until = self.world.clock.elapsed() + time;
        while self.world.clock.elapsed() < until && !stop.is_stopped() {
            let rest = until.saturating_sub(self.world.clock.elapsed());
            self.world.clock.sleep(rest.min(LOOK)).await;
        }
    }

    fn say_progress(
        &self,
        console: &mut Console<'_>,
        name: &str,
        mark: &str,
        watch: &LoadWatch,
        begun: Duration,
    ) -> io::Result<()> {
        let (succeeded, failed, _) = watch.so_far();
        let count = succeeded + failed;
        let took = self.world.clock.elapsed().saturating_sub(begun).as_secs_f64();
        let rate = count as f64 / took.max(1e-9);
        self.line(
            console,
            "INFO",
            format_args!("{count} {name}{mark} [{failed} failures], {rate:.1}/s"),
        )
    }

    fn say_version(&self, console: &mut Console<'_>) -> io::Result<()> {
        self.line(
            console,
            "INFO",
            format_args!("Auth version: {}", self.options.auth_version),
        )
    }

    /// A line as swift-bench logs it.
    fn line(&self, console: &mut Console<'_>, level: &str, text: std::fmt::Arguments<'_>) -> io::Result<()> {
        let now = self.world.clock.now().iso();
        // 2026-11-24T13:05:07.123450 as 2026-11-24 13:05:07,123.
        let (day, time) = now.split_once('T').unwrap_or((&now, ""));
        let (second, fraction) = time.split_once('.').unwrap_or((time, ""));
        let millis = fraction.get(..3).unwrap_or("000");
        console.complain(format_args!("swift-bench {day} {second},{millis} {level} {text}"))
    }
}

/// How often a phase looks whether it was interrupted.
const LOOK: Duration = Duration::from_millis(100);

async fn open_store(world: &World, options: &SwiftBenchOptions, trust: &Trust) -> Result<Store, Fault> {
    if let Some((devices, account)) = &options.direct {
        let devices: Vec<&str> = devices.iter().map(String::as_str).collect();
        let server = DirectObjectServer::new(&devices, account)
            .ok_or_else(|| Fault::caller("use_proxy = no: expected devices = sdb1 sdb2 …"))?;
        return open_object_server(world, &options.url, server);
    }
    let kind = match options.auth_version.as_str() {
        "1" | "1.0" => "tempauth",
        _ => "keystone",
    };
    // Of Keystone 3 swift-bench has the project in the user, too.
    let (project, user) = match options.user.split_once(':') {
        Some((project, user)) if options.auth_version.starts_with('3') => (project, user),
        _ => ("", options.user.as_str()),
    };
    let mut auth = Parameters::default();
    for (name, value) in [
        ("auth_url", options.auth.as_str()),
        ("username", user),
        ("tenant_name", project),
        ("password", &options.key.0),
        ("auth_version", &options.auth_version),
    ] {
        auth.set(name, value);
    }
    let mut storage = Parameters::default();
    if let Some(policy) = &options.policy {
        storage.set("policy", policy);
    }
    if !options.url.is_empty() {
        storage.set("storage_url", &options.url);
    }
    let endpoint = |kind: &str, parameters: Parameters| Endpoint {
        kind: kind.to_owned(),
        parameters,
    };
    open(world, &endpoint(kind, auth), &endpoint("swift", storage), trust).await
}
