//! Figures that others have already: pools, connections, upkeep, what daemons left in `recon_cache_path`.
//!
//! Always holds: no two rows of a metric have the same labels.

use memcache::Memcache;
use peer::http_server::Open;
use peer::{ServerRefusal, ServerRefusals, Silence};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;
use std::hash::Hash;
use std::path::PathBuf;
use std::sync::Arc;
use telemetry::metrics::catalogue::{
    ASYNC_PENDING, ASYNC_PENDING_AGE, CONNECTIONS, CONNECTIONS_LIMIT, EXPIRED_AGE, MEMCACHED_FAILURES, POOL_LIMIT,
    POOL_RUNNING, POOL_WAITING, RECON_AGE, RECON_SECONDS, REFUSED, SILENCES, SILENT_DEVICES, UPKEEP_DONE,
    UPKEEP_FAILED, UPKEEP_OLDEST, UPKEEP_PASSES, UPKEEP_SECONDS, UPKEEP_UNDER_WAY,
};
use telemetry::metrics::{MetricsPage, MetricsSource, Role};
use upkeep::{Daemon, DaemonStatus, PASSES};
use world::workers::Load;
use world::{Clock, WatchedThreads, World};

/// A larger file holds no figures.
const LIMIT: u64 = 16 << 20;

/// Threads for what blocks.
pub(super) struct PoolMetrics(pub(super) Arc<WatchedThreads>);

impl MetricsSource for PoolMetrics {
    fn report(&self, page: &mut MetricsPage) {
        let mut by_name: BTreeMap<String, Load> = BTreeMap::new();
        for load in self.0.loads() {
            match by_name.get_mut(&load.name) {
                Some(sum) => {
                    sum.running += load.running;
                    sum.waiting += load.waiting;
                    sum.limit = sum.limit.saturating_add(load.limit);
                }
                None => drop(by_name.insert(load.name.clone(), load)),
            }
        }
        for (name, load) in by_name {
            page.whole(&POOL_RUNNING, &[&name], load.running as u64);
            page.whole(&POOL_WAITING, &[&name], load.waiting as u64);
            page.whole(&POOL_LIMIT, &[&name], load.limit as u64);
        }
    }
}

/// Connections of a role.
pub struct ConnectionMetrics {
    /// Whose.
    pub role: Role,
    /// How many.
    pub open: Open,
    /// How many there may be.
    pub limit: usize,
    /// What was not served.
    pub refusals: ServerRefusals,
}

impl MetricsSource for ConnectionMetrics {
    fn report(&self, page: &mut MetricsPage) {
        page.whole(&CONNECTIONS, &[self.role.word()], self.open.count());
        page.whole(&CONNECTIONS_LIMIT, &[self.role.word()], self.limit as u64);
        for refusal in ServerRefusal::ALL {
            page.whole(
                &REFUSED,
                &[self.role.word(), refusal.word()],
                self.refusals.count(refusal),
            );
        }
    }
}

/// Devices of storage servers that a server of this process asks.
pub struct SilenceMetrics<K> {
    /// Which server asks.
    pub role: Role,
    /// Which of them are silent.
    pub silence: Arc<Silence<K>>,
}

impl<K: Clone + Eq + Hash + Display + Send + Sync> MetricsSource for SilenceMetrics<K> {
    fn report(&self, page: &mut MetricsPage) {
        let role = self.role.word();
        page.whole(&SILENCES, &[role], self.silence.times());
        page.whole(&SILENT_DEVICES, &[role], self.silence.silent() as u64);
    }
}

/// The memcached servers of a gateway.
pub struct MemcacheMetrics(pub Arc<Memcache>);

impl MetricsSource for MemcacheMetrics {
    fn report(&self, page: &mut MetricsPage) {
        let mut servers = BTreeMap::new();
        for (server, failures) in self.0.failures() {
            *servers.entry(server).or_insert(0) += failures;
        }
        for (server, failures) in servers {
            page.whole(&MEMCACHED_FAILURES, &[server], failures);
        }
    }
}

/// Upkeep of this process.
pub struct Daemons {
    clock: Arc<dyn Clock>,
    all: Vec<(String, DaemonStatus)>,
    /// What single daemons have besides.
    own: Vec<Arc<dyn MetricsSource>>,
}

impl Daemons {
    /// These, under names of their own.
    pub fn of<'a>(world: &World, daemons: impl IntoIterator<Item = &'a Daemon>) -> Self {
        let mut own = Vec::new();
        let mut times: HashMap<&str, u32> = HashMap::new();
        let named = daemons.into_iter().map(|daemon| {
            own.extend(daemon.metrics());
            let time = times.entry(daemon.name()).or_default();
            *time += 1;
            let name = match time {
                1 => daemon.name().to_owned(),
                time => format!("{}-{time}", daemon.name()),
            };
            (name, daemon.status())
        });
        let all = named.collect();
        Self {
            clock: world.clock.clone(),
            all,
            own,
        }
    }
}

impl MetricsSource for Daemons {
    fn report(&self, page: &mut MetricsPage) {
        self.own.iter().for_each(|source| source.report(page));
        let now = self.clock.now().as_f64();
        for (name, status) in &self.all {
            let progress = status.progress();
            let labels: &[&str] = &[name];
            page.whole(&UPKEEP_PASSES, labels, progress.passes);
            page.whole(&UPKEEP_UNDER_WAY, labels, progress.since.is_some().into());
            page.whole(&UPKEEP_DONE, labels, progress.done);
            page.whole(&UPKEEP_FAILED, labels, progress.failed);
            if progress.last_pass.is_some() {
                page.real(&UPKEEP_SECONDS, labels, progress.seconds());
            }
            if let Some(oldest) = progress.oldest {
                page.real(&UPKEEP_OLDEST, labels, (now - oldest.as_f64()).max(0.0));
            }
        }
    }
}

/// What daemons of this machine left for monitors.
pub struct ReconFigures {
    /// Reads the files.
    pub world: World,
    /// `recon_cache_path`.
    pub directory: PathBuf,
    /// Which of the files.
    pub files: Vec<&'static str>,
}

/// File, daemon, name of when its last pass ended, of how long that took, and seconds in a unit of the latter.
type PoolRow = (&'static str, &'static str, &'static str, &'static str, f64);

const DAEMONS: &[PoolRow] = &[
    (
        "object.recon",
        "object-replicator",
        "object_replication_last",
        "object_replication_time",
        60.0,
    ),
    (
        "object.recon",
        "object-updater",
        "object_updater_last",
        "object_updater_sweep",
        1.0,
    ),
    (
        "object.recon",
        "object-reconstructor",
        "object_reconstruction_last",
        "object_reconstruction_time",
        60.0,
    ),
    (
        "container.recon",
        "container-replicator",
        "replication_last",
        "replication_time",
        1.0,
    ),
    (
        "container.recon",
        "container-sharder",
        "sharding_last",
        "sharding_time",
        1.0,
    ),
    (
        "account.recon",
        "account-replicator",
        "replication_last",
        "replication_time",
        1.0,
    ),
];

impl ReconFigures {
    fn read(&self, file: &str) -> Map<String, Value> {
        let read = self.world.files.read(&self.directory.join(file), LIMIT);
        let parsed = read.map(|bytes| serde_json::from_slice(&bytes).unwrap_or_default());
        parsed.unwrap_or_default()
    }
}

/// A daemon's last pass, as far as its file says.
#[derive(Clone, Copy, Default)]
struct LastPass {
    last: Option<f64>,
    seconds: Option<f64>,
}

/// The last pass of each daemon: what OpenStack's names say, or what ours says of itself, whichever is later.
fn passes(file: &str, figures: &Map<String, Value>) -> BTreeMap<String, LastPass> {
    let number = |name: &str| figures.get(name).and_then(Value::as_f64);
    let named = DAEMONS.iter().filter(|row| row.0 == file);
    let mut passes: BTreeMap<String, LastPass> = named
        .map(|(_, daemon, last, took, unit)| {
            let seconds = number(took).map(|took| took * unit);
            let last = number(last);
            ((*daemon).to_owned(), LastPass { last, seconds })
        })
        .collect();
    for (daemon, parsed) in figures.get(PASSES).and_then(Value::as_object).into_iter().flatten() {
        let number = |name: &str| parsed.get(name).and_then(Value::as_f64);
        let known = passes.entry(daemon.clone()).or_default();
        if number("last") >= known.last {
            *known = LastPass {
                last: number("last"),
                seconds: number("seconds"),
            };
        }
    }
    passes
}

impl MetricsSource for ReconFigures {
    fn report(&self, page: &mut MetricsPage) {
        let now = self.world.clock.now().as_f64();
        for file in &self.files {
            let figures = self.read(file);
            let number = |name: &str| figures.get(name).and_then(Value::as_f64);
            for (daemon, pass) in passes(file, &figures) {
                if let Some(last) = pass.last {
                    page.real(&RECON_AGE, &[&daemon], (now - last).max(0.0));
                }
                if let Some(seconds) = pass.seconds {
                    page.real(&RECON_SECONDS, &[&daemon], seconds);
                }
            }
            if let Some(stats) = figures.get("object_updater_stats") {
                let stat = |name: &str| stats.get(name).and_then(Value::as_f64);
                // The record's own time: an age was true when it was written.
                let age = stat("failures_oldest_timestamp").map_or(0.0, |oldest| (now - oldest).max(0.0));
                page.real(&ASYNC_PENDING_AGE, &[], age);
                if let Some(count) = stat("failures_account_container_count") {
                    page.real(&ASYNC_PENDING, &[], count);
                }
            }
            if let Some(age) = number("object_expiration_oldest_age") {
                page.real(&EXPIRED_AGE, &[], age);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_daemons_left_is_reported() {
        let root = tempfile::tempdir().unwrap();
        let oldest = World::real().clock.now().as_f64() - 50.0;
        let figures = format!(
            "{{\"object_updater_stats\": {{\"failures_oldest_timestamp\": {oldest}, \"failures_account_container_count\": 2}}, \
             \"object_replication_time\": 0.5, \"object_replication_last\": {oldest}, \"object_expiration_oldest_age\": 3.5}}"
        );
        std::fs::write(root.path().join("object.recon"), figures).unwrap();
        std::fs::write(root.path().join("account.recon"), "rubbish").unwrap();
        let source = ReconFigures {
            world: World::real(),
            directory: root.path().to_owned(),
            files: vec!["object.recon", "container.recon", "account.recon"],
        };
        let mut page = MetricsPage::default();
        source.report(&mut page);
        let text = page.write();
        for line in [
            "martlet_async_pending_oldest_seconds 5",
            "martlet_async_pending_containers 2",
            "martlet_daemon_last_pass_seconds{daemon=\"object-replicator\"} 30",
            "martlet_daemon_last_pass_age_seconds{daemon=\"object-replicator\"} 5",
            "martlet_expired_oldest_seconds 3.5",
        ] {
            assert!(text.lines().any(|there| there.starts_with(line)), "{line}\n{text}");
        }
    }
}
