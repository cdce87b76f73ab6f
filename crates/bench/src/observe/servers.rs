//! Figures of the servers, asked for once a second while a stage runs.
//!
//! | source | what it has |
//! |---|---|
//! | metrics | processor time (`process_cpu_seconds_total`), memory, free room of devices (Martlet's) |
//! | recon | load of the machine (`/recon/load`), used room of devices (`/recon/diskusage`) |
//! | processes | processor time, memory and bytes written, of all that match, from `/proc` |
//!
//! Always holds: a source that fails, or is slow, is counted, and neither the load nor other sources wait for it.
//! Counters that fall (a server began anew) count from 0.

use crate::report::StageReport;
use crate::report::observed::{ServerPoint, ServerReport};
use crate::store::http::{Outgoing, StoreConnection};
use crate::workload::own_format::observation::ServerSource;
use peer::Url;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use tokio::sync::watch::Receiver;
use world::World;

/// How often servers are asked.
const EVERY: Duration = Duration::from_secs(1);
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_millis(900);
/// Between two looks that rates are made from, in seconds.
const SHORTEST: f64 = 0.3;
/// Bytes that are read at a time.
const BUFFER: usize = 16 << 10;
/// Files of `/proc` that are longer are not read to their end.
const LONGEST_FILE: usize = 64 << 10;
/// Ticks of processor time in a second, as `/proc` counts them on every Linux that programs see.
const TICKS: f64 = 100.0;

/// All servers of a workload.
pub(super) struct Servers<'a> {
    world: &'a World,
    begun: Duration,
    all: Vec<Watched>,
}

/// One server, and what was seen of it.
struct Watched {
    source: ServerSource,
    /// Processor time and bytes written of each source of them, as they were last seen.
    last: BTreeMap<String, Counters>,
    /// What all of those have grown by.
    total: Counters,
    points: Vec<ServerPoint>,
    failures: u64,
    last_failure: Option<String>,
}

/// Counters of a process.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Counters {
    cpu: f64,
    written: f64,
    has_cpu: bool,
    has_written: bool,
}

/// What one look has found.
#[derive(Default)]
struct Look {
    counters: BTreeMap<String, Counters>,
    memory: Option<f64>,
    load: Option<f64>,
    used: Option<f64>,
    failures: Vec<String>,
}

impl<'a> Servers<'a> {
    /// With nothing seen yet.
    pub fn new(sources: &[ServerSource], world: &'a World, begun: Duration) -> Self {
        let watched = |source: &ServerSource| Watched {
            source: source.clone(),
            last: BTreeMap::new(),
            total: Counters::default(),
            points: vec![],
            failures: 0,
            last_failure: None,
        };
        Self {
            world,
            begun,
            all: sources.iter().map(watched).collect(),
        }
    }

    /// Asks all servers once a second until the stage is over, and then once more.
    pub async fn ask_until(&mut self, mut is_over: Receiver<bool>) {
        if self.all.is_empty() {
            return;
        }
        loop {
            let over = *is_over.borrow_and_update();
            let next = self.world.clock.elapsed() + EVERY;
            self.ask().await;
            if over {
                return;
            }
            let left = next.saturating_sub(self.world.clock.elapsed());
            tokio::select! {
                _ = is_over.changed() => {}
                () = self.world.clock.sleep(left) => {}
            }
        }
    }

    async fn ask(&mut self) {
        let world = self.world;
        let looks = self.all.iter().map(|watched| look(world, &watched.source));
        let looks = futures_util::future::join_all(looks).await;
        let at = world.clock.elapsed().saturating_sub(self.begun).as_secs_f64();
        for (watched, look) in self.all.iter_mut().zip(looks) {
            watched.take(at, look);
        }
    }

    /// What was seen, beside what the load has done meanwhile.
    pub fn reports(self, stage: &StageReport) -> Vec<ServerReport> {
        let all: Vec<_> = stage
            .works
            .iter()
            .flat_map(|work| &work.over_time)
            .flat_map(|one| &one.operations)
            .collect();
        let requests: u64 = all.iter().map(|one| one.succeeded).sum();
        let stored: u64 = (stage.works.iter())
            .flat_map(|work| {
                let over_time = work
                    .over_time
                    .iter()
                    .flat_map(|interval| work.operations.iter().zip(&interval.operations));
                over_time.filter(|(operation, _)| matches!(operation.kind.as_str(), "write" | "filewrite"))
            })
            .map(|(_, one)| one.bytes)
            .sum();
        self.all
            .into_iter()
            .map(|watched| watched.report(requests, stored))
            .collect()
    }
}

impl Watched {
    fn take(&mut self, at: f64, look: Look) {
        let is_first = self.points.is_empty();
        let mut grown = Counters::default();
        for (name, now) in look.counters {
            let before = self.last.insert(name, now);
            // A process that is new since the last look has done all of it since then.
            let before = match (before, is_first) {
                (Some(before), _) => before,
                (None, true) => now,
                (None, false) => Counters::default(),
            };
            let growth = |now: f64, before: f64| if now < before { now } else { now - before };
            grown.cpu += growth(now.cpu, before.cpu);
            grown.written += growth(now.written, before.written);
            grown.has_cpu |= now.has_cpu;
            grown.has_written |= now.has_written;
        }
        let since = self.points.last().map_or(0.0, |point| point.at);
        let seconds = (at - since).max(1e-3);
        // Ticks of processor time are too coarse for a moment.
        let is_long = !is_first && seconds >= SHORTEST;
        let rate = |has: bool, growth: f64| (has && is_long).then_some(growth / seconds);
        self.total.cpu += grown.cpu;
        self.total.written += grown.written;
        self.total.has_cpu |= grown.has_cpu;
        self.total.has_written |= grown.has_written;
        self.failures += look.failures.len() as u64;
        self.last_failure = look.failures.into_iter().last().or(self.last_failure.take());
        self.points.push(ServerPoint {
            at,
            cores: rate(grown.has_cpu, grown.cpu),
            written: rate(grown.has_written, grown.written),
            memory: look.memory,
            load: look.load,
            used: look.used,
        });
    }

    fn report(self, requests: u64, stored: u64) -> ServerReport {
        let of = |all: u64, has: bool, value: f64| (has && all > 0).then(|| value / all as f64);
        let used: Vec<f64> = self.points.iter().filter_map(|point| point.used).collect();
        ServerReport {
            name: self.source.name,
            cpu: self.total.has_cpu.then_some(self.total.cpu),
            cpu_per_request: of(requests, self.total.has_cpu, self.total.cpu * 1000.0),
            written: self.total.has_written.then_some(self.total.written),
            written_per_stored: of(stored, self.total.has_written, self.total.written),
            used_growth: used.first().zip(used.last()).map(|(first, last)| last - first),
            failures: self.failures,
            last_failure: self.last_failure,
            points: self.points,
        }
    }
}

async fn look(world: &World, source: &ServerSource) -> Look {
    let mut look = Look::default();
    let recon = |path: &str| {
        source
            .recon
            .as_ref()
            .map(|base| format!("{}/{path}", base.trim_end_matches('/')))
    };
    let (metrics, load, disks) = futures_util::join!(
        optional(world, source.metrics.clone()),
        optional(world, recon("load")),
        optional(world, recon("diskusage")),
    );
    if let Some(answer) = metrics {
        look.take_metrics(answer, source.processes.is_none());
    }
    if let Some(answer) = load {
        let read = |json: &Value| json["1m"].as_f64();
        look.load = look.json(answer, read);
    }
    if let Some(answer) = disks {
        let read = |json: &Value| Some(json.as_array()?.iter().filter_map(|disk| disk["used"].as_f64()).sum());
        look.used = look.json(answer, read);
    }
    if let Some(text) = &source.processes {
        look.take_processes(world, text);
    }
    look
}

impl Look {
    /// Processor time counts unless the same processes are looked at in `/proc`.
    fn take_metrics(&mut self, answer: Result<String, String>, counts_cpu: bool) {
        let text = match answer {
            Ok(text) => text,
            Err(why) => return self.failures.push(why),
        };
        let sum = |name: &str| samples(&text, name).reduce(|one, other| one + other);
        if let Some(cpu) = sum("process_cpu_seconds_total").filter(|_| counts_cpu) {
            let counters = Counters {
                cpu,
                has_cpu: true,
                ..Counters::default()
            };
            self.counters.insert("metrics".to_owned(), counters);
        }
        self.memory = sum("process_resident_memory_bytes");
        let room = sum("martlet_device_bytes").zip(sum("martlet_device_free_bytes"));
        self.used = room.map(|(all, free)| all - free);
    }

    fn json(&mut self, answer: Result<String, String>, read: impl Fn(&Value) -> Option<f64>) -> Option<f64> {
        let read = |text: String| {
            let json: Value = serde_json::from_str(&text).map_err(|error| format!("recon: {error}"))?;
            read(&json).ok_or_else(|| "recon: no such figure in the answer".to_owned())
        };
        match answer.and_then(read) {
            Ok(value) => Some(value),
            Err(why) => {
                self.failures.push(why);
                None
            }
        }
    }

    /// Those of `/proc` whose command line has the text; not this process, which has it in its own.
    fn take_processes(&mut self, world: &World, text: &str) {
        let mut pids = vec![];
        let listed = world.files.open_directory(Path::new("/proc")).and_then(|folder| {
            folder.list(&mut |name| pids.extend(name.to_str().and_then(|name| name.parse::<u32>().ok())))
        });
        if let Err(error) = listed {
            return self.failures.push(format!("/proc: {error}"));
        }
        let mut memory = 0.0;
        for pid in pids.into_iter().filter(|pid| *pid != std::process::id()) {
            let file = |name: &str| read_start(world, &format!("/proc/{pid}/{name}"));
            let is_it = |line: &String| line.replace('\0', " ").contains(text);
            if !file("cmdline").as_ref().is_some_and(is_it) {
                continue;
            }
            // One that has ended meanwhile has nothing.
            let Some(cpu) = file("stat").and_then(|stat| cpu_of(&stat)) else {
                continue;
            };
            let written = file("io").and_then(|io| field(&io, "write_bytes:"));
            memory += file("status")
                .and_then(|status| field(&status, "VmRSS:"))
                .unwrap_or(0.0)
                * 1024.0;
            let counters = Counters {
                cpu,
                written: written.unwrap_or(0.0),
                has_cpu: true,
                has_written: written.is_some(),
            };
            self.counters.insert(pid.to_string(), counters);
        }
        match self.counters.is_empty() {
            true => self
                .failures
                .push(format!("no process has {text:?} in its command line")),
            false => self.memory = Some(memory),
        }
    }
}

/// The start of a file whose length is not known before it is read, as those of `/proc`.
fn read_start(world: &World, path: &str) -> Option<String> {
    let file = world.files.open(Path::new(path), world::files::Purpose::Read).ok()?;
    let mut bytes = vec![0; LONGEST_FILE];
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(_) => return None,
        }
    }
    Some(String::from_utf8_lossy(&bytes[..filled]).into_owned())
}

/// Processor time in seconds of `/proc/PID/stat`. The name in it may have spaces and brackets.
fn cpu_of(stat: &str) -> Option<f64> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<f64>().ok();
    // Fields 14 and 15 of proc(5); the third one is the first behind the name.
    Some((number(11)? + number(12)?) / TICKS)
}

/// The number behind a name.
fn field(text: &str, name: &str) -> Option<f64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// Values of the samples of a metric, with any labels.
fn samples<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = f64> + 'a {
    text.lines().filter_map(move |line| {
        let rest = line.strip_prefix(name)?;
        let value = match rest.strip_prefix('{') {
            Some(labels) => labels.rsplit_once('}')?.1,
            None => rest.strip_prefix(' ')?,
        };
        value.split_whitespace().next()?.parse().ok()
    })
}

async fn optional(world: &World, address: Option<String>) -> Option<Result<String, String>> {
    let address = address?;
    let asked = world.timeout(PATIENCE, get(world, &address)).await;
    let answer = asked.unwrap_or_else(|_| Err("no answer in time".to_owned()));
    Some(answer.map_err(|why| format!("{address}: {why}")))
}

/// What recon answers below its address.
pub(super) async fn ask_recon(world: &World, recon: &str, what: &str) -> Result<Value, String> {
    let address = format!("{}/{what}", recon.trim_end_matches('/'));
    let asked = world.timeout(PATIENCE, get(world, &address)).await;
    let answer = asked.unwrap_or_else(|_| Err("no answer in time".to_owned()));
    let read = answer.and_then(|text| serde_json::from_str(&text).map_err(|error| error.to_string()));
    read.map_err(|why| format!("{address}: {why}"))
}

async fn get(world: &World, address: &str) -> Result<String, String> {
    let url = Url::parse(address).ok_or("no address")?;
    let mut connection = StoreConnection::open(world, &url, None, BUFFER)
        .await
        .map_err(|why| why.to_string())?;
    let head = format!(
        "GET {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
        url.path(),
        url.authority()
    );
    let outgoing = Outgoing {
        is_head: false,
        head: head.as_bytes(),
        body: None,
        expects: None,
    };
    let mut kept = vec![];
    let answer = connection.exchange_keeping(world, &outgoing, Some(&mut kept)).await;
    let answer = answer.map_err(|why| why.to_string())?;
    let start = kept.len().saturating_sub(answer.bytes as usize);
    match answer.status {
        200 => Ok(String::from_utf8_lossy(&kept[start..]).into_owned()),
        status => Err(format!("status {status}")),
    }
}

#[cfg(test)]
#[path = "servers_tests.rs"]
mod tests;
