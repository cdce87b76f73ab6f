//! Processors that are full, drives that are slow, workers that are too few.

use super::super::ClusterSight;
use super::super::arguments::LookArguments;
use super::super::exposition;
use super::super::rings::RingUse;
use super::super::servers::ServerSight;
use super::{CauseEvidence, LookCause, SPEED, evidence, percent};
use std::collections::BTreeSet;

/// A process that uses a larger share of its processors has none left for a peak.
const FULL: f64 = 0.85;
/// Between two looks at counters, in seconds: less is noise, more is a clock that was set.
const APART: (f64, f64) = (0.5, 30.0);
/// Reads and writes that say something of a drive.
const ENOUGH_OPERATIONS: f64 = 50.0;
/// A drive that takes so many times what its equals take is slow.
const SLOW: f64 = 3.0;
/// Quicker operations are of no concern, in seconds: caches answer them.
const NOTICED: f64 = 0.005;
/// Drives are equals when their sizes differ by a smaller share, and the median needs as many.
const SAME_SIZE: f64 = 0.1;
const FEWEST_EQUALS: usize = 3;

/// Of the processors that a process may run on, the share that it used between two pages, and how many there are.
pub(super) fn busy((first, second): (&str, &str)) -> Option<(f64, f64)> {
    let of = |page, name| exposition::sum(page, name, "");
    let seconds = of(second, "martlet_clock_seconds")? - of(first, "martlet_clock_seconds")?;
    let used = of(second, "process_cpu_seconds_total")? - of(first, "process_cpu_seconds_total")?;
    let processors = of(second, "martlet_processors").filter(|count| *count >= 1.0)?;
    let is_sound = (APART.0..=APART.1).contains(&seconds) && used >= 0.0;
    is_sound.then(|| (used / seconds / processors, processors))
}

pub(super) fn processors(sight: &ClusterSight, _: &LookArguments) -> Vec<LookCause> {
    let of_gateways = sight.gateways.iter().filter_map(|one| {
        let (first, second) = one.pages.as_ref()?;
        Some(("gateway", "proxy".to_owned(), one.place.clone(), busy((first, second))?))
    });
    let of_servers = sight.servers.iter().filter_map(|one| {
        let (first, second) = (one.metrics.as_deref()?, one.metrics_later.as_deref()?);
        Some((
            "server",
            one.ring_use.word().to_owned(),
            one.place(),
            busy((first, second))?,
        ))
    });
    let all: Vec<_> = of_gateways.chain(of_servers).collect();
    let full: Vec<_> = all.iter().filter(|(.., (share, _))| *share > FULL).collect();
    let Some((what, ..)) = full.first() else { return vec![] };
    // Gateways limit all requests, a storage server those of its own devices.
    let alike = |one: &(&str, String, String, (f64, f64))| one.0 == *what;
    let share =
        full.iter().filter(|one| alike(one)).count() as f64 / all.iter().filter(|one| alike(one)).count() as f64;
    let points = SPEED * share * if *what == "gateway" { 1.0 } else { 0.5 };
    let shown = full.iter().map(|(what, word, place, (share, count))| {
        evidence(
            format!(
                "{word} {what} {place}: {} of {count:.0} processor(s) busy",
                percent(*share)
            ),
            format!("http://{place}/metrics, twice"),
        )
    });
    let gain = "requests do not wait for a processor; there is room for more of them";
    let cause = LookCause::new("processor-full", points, gain)
        .seen_all(shown.collect())
        .work(1.0);
    let cause = match *what == "gateway" {
        true => cause.cure("another gateway behind the balancer, or more processors for this one (CPUAffinity= and CPUQuota= of its unit, taskset, limits of its container)"),
        false => cause.cure("more processors for that server (CPUAffinity= and CPUQuota= of its unit, limits of its container), or fewer devices on its node: a storage node more"),
    };
    vec![cause.cure("`martlet advise fit` of runs of `martlet bench` says how many requests one more would bear")]
}

/// What a drive takes for an operation.
struct DriveTime<'s> {
    server: &'s ServerSight,
    device: &'s str,
    size: f64,
    seconds: f64,
    operations: f64,
}

/// Of each device, its operations since the first look where those are enough, else all that were counted.
fn drive_times(server: &ServerSight) -> Vec<DriveTime<'_>> {
    let Some(first) = server.metrics.as_deref() else {
        return vec![];
    };
    let later = server.metrics_later.as_deref().unwrap_or(first);
    let devices = server.devices.iter().flatten().filter(|device| device.is_mounted);
    let of = |page, name, device: &str| exposition::sum(page, name, &format!("device=\"{device}\""));
    let time = |device: &'_ super::super::servers::ServedDevice| {
        let count = |page| of(page, "martlet_device_operations_total", &device.name);
        let seconds = |page| of(page, "martlet_device_operation_seconds_total", &device.name);
        let grown = (count(later)? - count(first)?, seconds(later)? - seconds(first)?);
        let (operations, seconds) = match grown.0 >= ENOUGH_OPERATIONS && grown.1 >= 0.0 {
            true => grown,
            false => (count(later)?, seconds(later)?),
        };
        (operations >= ENOUGH_OPERATIONS).then(|| (operations, seconds / operations))
    };
    devices
        .filter_map(|device| {
            let (operations, seconds) = time(device)?;
            Some(DriveTime {
                server,
                device: &device.name,
                size: device.size,
                seconds,
                operations,
            })
        })
        .collect()
}

pub(super) fn slow_drives(sight: &ClusterSight, _: &LookArguments) -> Vec<LookCause> {
    let (mut slow, mut count) = (vec![], 0);
    for ring_use in [RingUse::Object, RingUse::Container, RingUse::Account] {
        let servers = sight.servers.iter().filter(|server| server.ring_use == ring_use);
        let all: Vec<DriveTime<'_>> = servers.flat_map(drive_times).collect();
        count += all.len();
        for one in &all {
            let is_equal = |other: &&DriveTime<'_>| (other.size / one.size - 1.0).abs() < SAME_SIZE;
            let mut equals: Vec<f64> = all.iter().filter(is_equal).map(|other| other.seconds).collect();
            equals.sort_by(f64::total_cmp);
            let median = equals[equals.len() / 2];
            if equals.len() >= FEWEST_EQUALS && one.seconds > median * SLOW && one.seconds > NOTICED {
                slow.push(evidence(
                    format!(
                        "{} on {}: {:.1} ms for each of {:.0} reads and writes; its equals take {:.1} ms",
                        one.device,
                        one.server.ip,
                        one.seconds * 1e3,
                        one.operations,
                        median * 1e3
                    ),
                    one.server.url("/metrics"),
                ));
            }
        }
    }
    if slow.is_empty() {
        return vec![];
    }
    // Each request for what lies there waits for it; of a write the slowest of three is not waited for.
    let share = slow.len() as f64 / count.max(1) as f64;
    let cause = LookCause::new(
        "slow-drive",
        SPEED * (share * 3.0).clamp(0.1, 1.0),
        "requests do not wait for a drive that is slower than its equals; such a drive often fails soon",
    )
    .seen_all(slow)
    .cure("on that node: smartctl -a of the drive, and iostat -x 5, which says whether it is slow or has more to do")
    .cure("where it is slow: set its weight to 0 in the builder, rebalance, replace it when it is empty")
    .work(1.0);
    vec![cause]
}

pub(super) fn few_workers(sight: &ClusterSight, _: &LookArguments) -> Vec<LookCause> {
    // One process of Martlet's uses all processors, whatever `workers` says.
    let is_others = sight.gateways.iter().any(|one| one.is_others);
    let others = sight.servers.iter().filter(|one| one.is_others);
    let others: BTreeSet<&str> = others.map(|one| one.ring_use.word()).collect();
    let is_few = |conf: &&super::super::worker_confs::WorkerConf| {
        conf.workers <= 1 && (others.contains(conf.server.as_str()) || (is_others && conf.server == "proxy"))
    };
    let few: Vec<_> = sight.worker_confs.iter().filter(is_few).collect();
    let Some(processors) = sight.processors.filter(|count| *count > 1 && !few.is_empty()) else {
        return vec![];
    };
    let shown: Vec<CauseEvidence> = few
        .iter()
        .map(|conf| {
            let what = format!(
                "{} server: workers = {}: one process, which uses one of {processors} processors",
                conf.server, conf.workers
            );
            evidence(what, conf.path.display().to_string())
        })
        .collect();
    let has_gateway = few.iter().any(|conf| conf.server == "proxy");
    let share = (1.0 - 1.0 / processors as f64) * if has_gateway { 1.0 } else { 0.5 };
    let gain = format!("up to {processors} processors serve instead of one");
    let cause = LookCause::new("too-few-workers", SPEED * share, gain)
        .seen_all(shown)
        .work(0.5);
    let cause = few.iter().fold(cause, |cause, conf| {
        let advice = match conf.server.as_str() {
            "proxy" => "workers = auto",
            "object" => "workers = auto, or servers_per_port = 2 with a port for each device",
            _ => "workers = auto",
        };
        cause.cure(format!(
            "{advice} in [DEFAULT] of {}, then swift-init {}-server reload",
            conf.path.display(),
            conf.server
        ))
    });
    vec![cause]
}
