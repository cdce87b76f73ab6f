//! What a scan has counted: for the log, and for recon as OpenStack Swift's auditor tells it.

use super::Scan;
use crate::{ReconFile, ReconWriter};
use serde_json::{Value, json};
use std::time::Duration;
use vocabulary::Timestamp;
use world::World;

/// ScanCounts since the last report, and since the pass began.
pub(super) struct ScanFigures {
    now: ScanCounts,
    before: ScanCounts,
    began: Duration,
    auditing: Duration,
    since: Timestamp,
    reported: Option<Duration>,
    /// Objects up to each size, and larger ones.
    sizes: Vec<(u64, u64)>,
    larger: u64,
}

#[derive(Default, Clone, Copy)]
struct ScanCounts {
    files: u64,
    quarantined: u64,
    errors: u64,
    bytes: u64,
}

impl ScanCounts {
    fn and(self, other: Self) -> Self {
        Self {
            files: self.files + other.files,
            quarantined: self.quarantined + other.quarantined,
            errors: self.errors + other.errors,
            bytes: self.bytes + other.bytes,
        }
    }
}

/// What an audit came to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AuditVerdict {
    Fine,
    Quarantined,
    Unknown,
}

impl ScanFigures {
    pub(super) fn new(world: &World, sizes: &[u64]) -> Self {
        let mut limits = sizes.to_vec();
        limits.sort_unstable();
        Self {
            now: ScanCounts::default(),
            before: ScanCounts::default(),
            began: world.clock.elapsed(),
            auditing: Duration::ZERO,
            since: world.clock.now(),
            reported: None,
            sizes: limits.into_iter().map(|limit| (limit, 0)).collect(),
            larger: 0,
        }
    }

    pub(super) fn add(&mut self, verdict: AuditVerdict) {
        match verdict {
            AuditVerdict::Fine => self.now.files += 1,
            AuditVerdict::Quarantined => {
                self.now.files += 1;
                self.now.quarantined += 1;
            }
            AuditVerdict::Unknown => self.now.errors += 1,
        }
    }

    pub(super) fn read(&mut self, bytes: u64) {
        self.now.bytes += bytes;
    }

    pub(super) fn worked(&mut self, time: Duration) {
        self.auditing += time;
    }

    pub(super) fn sized(&mut self, size: u64) {
        match self.sizes.iter_mut().find(|(limit, _)| size <= *limit) {
            Some((_, count)) => *count += 1,
            None => self.larger += 1,
        }
    }

    /// Whether a report is due: at once, then every `log_time`.
    pub(super) fn is_due(&self, world: &World, log_time: Duration) -> bool {
        let now = world.clock.elapsed();
        let due = |last: Duration| now.saturating_sub(last) >= log_time;
        self.now.files + self.now.errors > 0 && self.reported.is_none_or(due)
    }

    /// Logs and tells recon what was counted since the last report.
    pub(super) async fn report(&mut self, world: &World, scan: Scan, lane: Option<&str>, recon: &ReconWriter) {
        let now = world.clock.elapsed();
        let ScanCounts {
            files,
            quarantined,
            errors,
            bytes,
        } = self.now;
        let figures = json!({
            "passes": files,
            "quarantined": quarantined,
            "errors": errors,
            "bytes_processed": bytes,
            "start_time": self.since.as_f64(),
            "audit_time": self.auditing.as_secs_f64(),
        });
        tracing::info!(
            "Object audit ({}). Since {}: Locally: {files} passed, {quarantined} quarantined, {errors} errors, \
             {bytes} bytes, Total time: {:.2?}, Auditing time: {:.2?}",
            scan.word(),
            self.since.iso(),
            now.saturating_sub(self.began),
            self.auditing,
        );
        recon.note(ReconFile::Object, entry(scan, lane, figures)).await;
        self.before = self.before.and(self.now);
        self.now = ScanCounts::default();
        self.since = world.clock.now();
        self.reported = Some(now);
    }

    /// The line at the end of a pass, silent when there was nothing.
    pub(super) fn conclude(&self, world: &World, scan: Scan) {
        let all = self.before.and(self.now);
        let took = world.clock.elapsed().saturating_sub(self.began);
        let rate = |count: u64| count as f64 / took.as_secs_f64().max(0.000_001);
        if all.files + all.errors > 0 {
            tracing::info!(
                "Object audit ({}) completed: {took:.2?}. Total quarantined: {}, Total errors: {}, \
                 Total files/sec: {:.2}, Total bytes/sec: {:.2}, Auditing time: {:.2?}",
                scan.word(),
                all.quarantined,
                all.errors,
                rate(all.files),
                rate(all.bytes),
                self.auditing,
            );
        }
        if !self.sizes.is_empty() {
            let mut sizes: serde_json::Map<String, Value> = self
                .sizes
                .iter()
                .map(|(limit, count)| (limit.to_string(), json!(count)))
                .collect();
            sizes.insert("OVER".into(), json!(self.larger));
            let sizes = Value::Object(sizes).to_string();
            tracing::info!("Object audit stats: {sizes}");
        }
    }
}

/// `{"object_auditor_stats_ALL": figures}`; one level deeper when several work side by side.
fn entry(scan: Scan, lane: Option<&str>, figures: Value) -> Value {
    let name = format!("object_auditor_stats_{}", scan.word());
    match lane {
        Some(devices) => json!({ name: { devices: figures } }),
        None => json!({ name: figures }),
    }
}
