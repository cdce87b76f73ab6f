//! Rules that find what is wrong with a cluster, and the order in which that is worth changing.
//!
//! Always holds: a cause has its figures with where each was read, a remedy that can be typed, what is gained and what
//! it costs; causes stand by gain per cost, and of equal ones by name. A rule without the figures that it needs says
//! nothing.
//!
//! | gain, in points | is |
//! |---|---|
//! | [`DATA`] × share | of all objects that are lost by what may happen any day |
//! | [`SERVICE`] × share | of servers, devices or requests that fail now |
//! | [`LATE`] × share | of replicas, rows or copies that are not where they should be |
//! | [`SPEED`] × share | of capacity or throughput that there would be more |
//!
//! A cost is in hours: of work, of moving data (an hour of which counts as a tenth, as no one waits for it), and
//! [`PURCHASE`] for what has to be bought.
//!
//! | causes | file |
//! |---|---|
//! | rings: replicas, zones, partitions | `causes/placement.rs` |
//! | room: weights, devices, growth | `causes/room.rs` |
//! | daemons: replication, updates, damage | `causes/upkeep.rs` |
//! | servers, caches, limits, containers | `causes/serving.rs` |
//! | clocks | `causes/clocks.rs` |
//! | processors, drives, workers | `causes/load.rs` |

mod clocks;
mod load;
mod placement;
mod room;
mod serving;
mod upkeep;

pub(super) use upkeep::all_pending;

use super::ClusterSight;
use super::arguments::LookArguments;
use super::capacity::used;
use serde::Serialize;

/// Points, as the table above says.
const DATA: f64 = 1000.0;
const SERVICE: f64 = 300.0;
const LATE: f64 = 100.0;
const SPEED: f64 = 100.0;
/// Hours that ordering and mounting something is taken for.
const PURCHASE: f64 = 40.0;
/// No work is done in less.
const SHORTEST_WORK: f64 = 0.25;
/// Things that a text names one by one; JSON has all of them.
pub(super) const NAMED: usize = 8;

/// A figure, and where it was read.
#[derive(Debug, Clone, Serialize)]
pub(super) struct CauseEvidence {
    pub figure: String,
    pub read_at: String,
}

/// Something to change.
#[derive(Debug, Clone, Serialize)]
pub(super) struct LookCause {
    /// `two-replicas-only`, for example.
    pub name: &'static str,
    pub evidence: Vec<CauseEvidence>,
    /// Commands and options.
    pub remedy: Vec<String>,
    /// What is gained, in words and in points.
    pub gain: String,
    pub points: f64,
    /// Hours of work, bytes that move, whether something has to be bought.
    pub work_hours: f64,
    pub moved_bytes: f64,
    pub is_bought: bool,
    /// All of that in hours.
    pub cost_hours: f64,
    /// Points for an hour.
    pub rank: f64,
}

impl LookCause {
    /// With its gain, and nothing else yet.
    fn new(name: &'static str, points: f64, gain: impl Into<String>) -> Self {
        Self {
            name,
            evidence: vec![],
            remedy: vec![],
            gain: gain.into(),
            points,
            work_hours: SHORTEST_WORK,
            moved_bytes: 0.0,
            is_bought: false,
            cost_hours: 0.0,
            rank: 0.0,
        }
    }

    #[must_use]
    fn seen(mut self, figure: impl Into<String>, read_at: impl Into<String>) -> Self {
        self.evidence.push(CauseEvidence {
            figure: figure.into(),
            read_at: read_at.into(),
        });
        self
    }

    #[must_use]
    fn seen_all(mut self, all: Vec<CauseEvidence>) -> Self {
        self.evidence.extend(all);
        self
    }

    #[must_use]
    fn cure(mut self, step: impl Into<String>) -> Self {
        let step = step.into();
        // Servers of one node may need the same.
        if !self.remedy.contains(&step) {
            self.remedy.push(step);
        }
        self
    }

    #[must_use]
    fn work(mut self, hours: f64) -> Self {
        self.work_hours = hours.max(SHORTEST_WORK);
        self
    }

    #[must_use]
    fn moving(mut self, bytes: f64) -> Self {
        self.moved_bytes = bytes.max(0.0);
        self
    }

    #[must_use]
    fn bought(mut self) -> Self {
        self.is_bought = true;
        self
    }

    fn rank(mut self, bytes_an_hour: f64) -> Self {
        let purchase = if self.is_bought { PURCHASE } else { 0.0 };
        self.cost_hours = self.work_hours + self.moved_bytes / bytes_an_hour / 10.0 + purchase;
        self.rank = self.points / self.cost_hours;
        self
    }
}

/// A rule, and what it looks for.
type LookRule = (&'static str, fn(&ClusterSight, &LookArguments) -> Vec<LookCause>);

/// All rules.
pub(super) const RULES: [LookRule; 23] = [
    ("servers that do not answer", serving::silent_servers),
    ("servers without recon", serving::no_recon),
    ("rings that differ", serving::rings_differ),
    ("swift.conf that differs", serving::conf_differs),
    ("clocks", clocks::clocks_off),
    ("memcached", serving::memcached),
    ("refused connections and requests", serving::refused),
    ("a hot container", serving::hot_container),
    ("listings on the drives of objects", serving::listings_beside_objects),
    ("processors that are full", load::processors),
    ("drives slower than their equals", load::slow_drives),
    ("workers of OpenStack's servers", load::few_workers),
    ("replicas", placement::few_replicas),
    ("zones and servers", placement::few_places),
    ("replicas that lie together", placement::together),
    ("partitions", placement::few_partitions),
    ("balance of rings", placement::unbalanced),
    ("weights against sizes", room::weights),
    ("devices that are away or failing", room::devices),
    ("capacity", room::capacity),
    ("replication", upkeep::replication),
    ("listing updates", upkeep::updates),
    ("quarantine and missing copies", upkeep::damage),
];

/// Everything that is found, what is gained most for its cost first.
pub(super) fn ranked(sight: &ClusterSight, arguments: &LookArguments) -> Vec<LookCause> {
    let devices = sight.servers.iter().flat_map(|server| server.devices.iter().flatten());
    let devices = devices.filter(|device| device.is_mounted).count().max(1);
    let bytes_an_hour = arguments.max_move * devices as f64;
    let found = RULES.iter().flat_map(|(_, rule)| rule(sight, arguments));
    let mut found: Vec<LookCause> = found.map(|cause| cause.rank(bytes_an_hour)).collect();
    found.sort_by(|one, other| other.rank.total_cmp(&one.rank).then_with(|| one.name.cmp(other.name)));
    found
}

/// A share in percent.
fn percent(share: f64) -> String {
    match share {
        0.1.. => format!("{:.0} %", share * 100.0),
        _ => format!("{:.1} %", share * 100.0),
    }
}

/// Bytes in use on all devices of objects.
fn stored(sight: &ClusterSight) -> f64 {
    used(sight).1
}

fn evidence(figure: impl Into<String>, read_at: impl Into<String>) -> CauseEvidence {
    CauseEvidence {
        figure: figure.into(),
        read_at: read_at.into(),
    }
}
