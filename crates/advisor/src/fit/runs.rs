//! Measured configurations: manifests of `martlet bench run --json`, each with what the cluster was.
//!
//! A manifest does not say what stands behind the address that it loaded. That is in a small file beside it, whose name
//! is the manifest's with `.cluster.toml` in place of `.json`.
//! Always holds: runs that were interrupted, that failed, whose client was the limit, or that were open loops are
//! refused, with the reason; and so is a report whose figures contradict each other, as one that was changed by hand.

use super::device_limits::DeviceLimits;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use vocabulary::Fault;

/// Figures of a report that say the same differ by a smaller share.
const SAME_FIGURE: f64 = 0.01;

/// What stood behind the address.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredCluster {
    /// How many gateways.
    pub gateways: u32,
    /// How many storage nodes.
    pub storage_nodes: u32,
    /// What it was, in words: machines, or processes of one machine with limits.
    pub what: String,
    /// Copies of an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pieces: Option<u32>,
    /// Processors of one gateway, and of one storage node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway_processors: Option<f64>,
    /// See `gateway_processors`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_processors: Option<f64>,
    /// Processors of all gateways that were busy, on average, and of all storage nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateways_busy: Option<f64>,
    /// See `gateways_busy`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_busy: Option<f64>,
    /// Operations a second that read, of all limited drives, with metadata in memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drive_reads: Option<f64>,
    /// Operations a second that wrote, without those of the file system's journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drive_writes: Option<f64>,
    /// What its drives, networks and balancer bear, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<DeviceLimits>,
}

impl MeasuredCluster {
    /// One of whose processors nothing is known.
    pub fn plain(gateways: u32, storage_nodes: u32, what: impl Into<String>) -> Self {
        Self {
            gateways,
            storage_nodes,
            what: what.into(),
            pieces: None,
            gateway_processors: None,
            storage_processors: None,
            gateways_busy: None,
            storage_busy: None,
            drive_reads: None,
            drive_writes: None,
            limits: None,
        }
    }
}

/// One configuration and what was measured of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MeasuredRun {
    /// The manifest's name.
    pub name: String,
    /// What stood behind the address.
    pub cluster: MeasuredCluster,
    /// Bytes of a body, on average.
    pub size: f64,
    /// Of all requests, from 0 to 1.
    pub write_share: f64,
    /// Requests under way at a time.
    pub workers: f64,
    /// Requests a second.
    pub rate: f64,
    /// Seconds.
    pub p99: f64,
}

fn number(value: &Value, key: &str) -> Result<f64, Fault> {
    let found = value
        .get(key)
        .and_then(Value::as_f64)
        .filter(|number| number.is_finite());
    found.ok_or_else(|| Fault::caller(format!("expected a report of `bench run --json`: {key} is no number")))
}

fn list<'v>(value: &'v Value, key: &str) -> Result<&'v Vec<Value>, Fault> {
    let found = value.get(key).and_then(Value::as_array);
    found.ok_or_else(|| Fault::caller(format!("expected a report of `bench run --json`: {key} is no list")))
}

/// What stood behind the address, from its file's text.
pub fn cluster(text: &str) -> Result<MeasuredCluster, Fault> {
    let read: MeasuredCluster = toml::from_str(text).map_err(|error| Fault::caller(error.to_string().trim_end()))?;
    if read.gateways == 0 || read.storage_nodes == 0 || read.pieces == Some(0) {
        return Err(Fault::caller(
            "gateways, storage_nodes, pieces: expected 1 or more of each",
        ));
    }
    read.limits.map_or(Ok(()), |limits| limits.check())?;
    let numbers = [
        read.gateway_processors,
        read.storage_processors,
        read.gateways_busy,
        read.storage_busy,
    ];
    for (key, operations) in [("drive_reads", read.drive_reads), ("drive_writes", read.drive_writes)] {
        if let Some(operations) = operations.filter(|one| !(one.is_finite() && *one >= 0.0)) {
            return Err(Fault::caller(format!("{key} = {operations}: expected 0 or more")));
        }
    }
    match numbers.into_iter().flatten().all(|one| one.is_finite() && one > 0.0) {
        true => Ok(read),
        false => Err(Fault::caller(
            "gateway_processors, storage_processors, gateways_busy, storage_busy: expected numbers above 0",
        )),
    }
}

/// The runs of a manifest: one for each work of kind `normal`.
pub fn runs(name: &str, manifest: &str, cluster: &MeasuredCluster) -> Result<Vec<MeasuredRun>, Fault> {
    let report: Value = serde_json::from_str(manifest)
        .map_err(|error| Fault::caller(format!("expected a report of `bench run --json`: {error}")))?;
    match report.get("interrupted").and_then(Value::as_bool) {
        Some(false) => {}
        Some(true) => return Err(Fault::caller("the run was interrupted: run it again")),
        None => {
            let why = "expected a report of `bench run --json`: it does not say whether it was interrupted";
            return Err(Fault::caller(why));
        }
    }
    let mut found = vec![];
    for stage in list(&report, "stages")? {
        for work in list(stage, "works")? {
            if work.get("kind").and_then(Value::as_str) == Some("normal") {
                found.push(run(name, work, cluster)?);
            }
        }
    }
    match found.is_empty() {
        true => Err(Fault::caller("there is no work of kind normal in it")),
        false => Ok(found),
    }
}

/// Figures of a report that follow from each other do so. What an older report leaves out is not looked at.
fn agree(work: &Value, total: &Value, latency: &Value) -> Result<(), Fault> {
    let changed = |what: String| {
        Err(Fault::caller(format!(
            "{what}: the report was changed by hand; run it again"
        )))
    };
    let (succeeded, rate) = (number(total, "succeeded")?, number(total, "rate")?);
    let (bytes, workers) = (number(total, "bytes")?, number(work, "workers")?);
    for (what, value) in [
        ("succeeded", succeeded),
        ("rate", rate),
        ("bytes", bytes),
        ("workers", workers),
    ] {
        if value < 0.0 {
            return changed(format!("{what} = {value} is negative"));
        }
    }
    if let Some(seconds) = work
        .get("measured")
        .and_then(Value::as_f64)
        .filter(|seconds| *seconds > 0.0)
        && rate > 0.0
        && !is_close(rate * seconds, succeeded)
    {
        return changed(format!(
            "rate = {rate}, but {succeeded} requests in {seconds} s are {:.1}",
            succeeded / seconds
        ));
    }
    for key in ["succeeded", "bytes"] {
        let parts = list(work, "operations")?
            .iter()
            .filter_map(|one| one.get(key)?.as_f64());
        let (all, of_parts) = (number(total, key)?, parts.clone().sum::<f64>());
        // Only where every operation says it.
        if parts.count() == list(work, "operations")?.len() && !is_close(all, of_parts) {
            return changed(format!("{key} = {all} in all, but its operations have {of_parts}"));
        }
    }
    let p99 = number(latency, "99")?;
    let is_later = |key: &str| {
        latency
            .get(key)
            .and_then(Value::as_f64)
            .is_some_and(|earlier| earlier > p99)
    };
    match ["50", "60", "80", "90", "95"].into_iter().find(|key| is_later(key)) {
        Some(key) => changed(format!("p99 = {p99} ms is less than the {key}th percentile")),
        None => Ok(()),
    }
}

/// The same but for rounding, and for the requests of a fraction of a second.
fn is_close(one: f64, other: f64) -> bool {
    (one - other).abs() <= SAME_FIGURE * one.abs().max(other.abs()) + 1.0
}

fn run(name: &str, work: &Value, cluster: &MeasuredCluster) -> Result<MeasuredRun, Fault> {
    let is = |key: &str| work.get(key).and_then(Value::as_bool).unwrap_or(false);
    if is("has_failed") {
        return Err(Fault::caller(
            "more requests failed than the work accepts: find out why first",
        ));
    }
    if is("client_is_limit") {
        return Err(Fault::caller(
            "the client was the limit: measure with more drivers, or with fewer workers",
        ));
    }
    if work.get("rate").is_some_and(|rate| !rate.is_null()) {
        return Err(Fault::caller(
            "an open loop does not show what a cluster bears: leave `rate` out",
        ));
    }
    let nothing = Value::Null;
    let total = work.get("total").unwrap_or(&nothing);
    let succeeded = number(total, "succeeded")?;
    let latency = total
        .get("latency")
        .and_then(|latency| latency.get("percentiles"))
        .unwrap_or(&nothing);
    let of_writes = list(work, "operations")?.iter().filter(|one| {
        let kind = one.get("kind").and_then(Value::as_str);
        kind.is_some_and(|kind| ["write", "filewrite", "delete", "post", "copy"].contains(&kind))
    });
    let writes = of_writes
        .map(|one| number(one, "succeeded"))
        .sum::<Result<f64, Fault>>()?;
    agree(work, total, latency)?;
    let run = MeasuredRun {
        name: name.to_owned(),
        cluster: cluster.clone(),
        size: number(total, "bytes")? / succeeded.max(1.0),
        write_share: writes / succeeded.max(1.0),
        workers: number(work, "workers")?,
        rate: number(total, "rate")?,
        p99: number(latency, "99")? / 1e3,
    };
    match run.rate > 0.0 && run.p99 > 0.0 && run.workers > 0.0 {
        true => Ok(run),
        false => Err(Fault::caller("nothing succeeded in it")),
    }
}
