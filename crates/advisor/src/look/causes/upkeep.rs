//! Daemons: replication that does not end, listing updates that pile up, damage.

use super::super::ClusterSight;
use super::super::arguments::LookArguments;
use super::super::exposition;
use super::super::rings::RingUse;
use super::super::servers::ServerSight;
use super::{DATA, LATE, LookCause, evidence, percent};

/// Replication that ended longer ago is late: seconds.
const REPLICATION_LATE: f64 = 86_400.0;
/// The same of the object-updater, whose passes take minutes.
const UPDATER_LATE: f64 = 6.0 * 3600.0;
/// Updates that wait on a cluster that bears them, and by how many they may grow between two looks.
const MANY_PENDING: f64 = 1000.0;
const GROWN_PENDING: f64 = 100.0;
/// Updates that wait when listings are useless.
const ALL_LATE: f64 = 10_000.0;

/// Since when, in words, by the clock of the server that wrote it down.
fn ago(now: f64, when: f64) -> String {
    match (now - when).max(0.0) {
        _ if when == 0.0 => "no pass has ended yet".to_owned(),
        seconds @ ..7200.0 => format!("the last pass ended {:.0} min ago", seconds / 60.0),
        seconds => format!("the last pass ended {:.0} h ago", seconds / 3600.0),
    }
}

/// The names of hosts, each once.
fn hosts(servers: &[&ServerSight]) -> String {
    let mut all: Vec<&str> = servers.iter().map(|server| server.ip.as_str()).collect();
    all.dedup();
    let more = all.len().saturating_sub(super::NAMED);
    all.truncate(super::NAMED);
    match more {
        0 => all.join(", "),
        more => format!("{} and {more} more", all.join(", ")),
    }
}

pub(super) fn replication(sight: &ClusterSight, _: &LookArguments) -> Vec<LookCause> {
    let mut found = vec![];
    let (mut late, mut asked) = (vec![], 0);
    for server in &sight.servers {
        let Some(when) = server.replicated else { continue };
        asked += 1;
        if server.time(sight.at) - when > REPLICATION_LATE {
            late.push(server);
        }
    }
    if late.is_empty() {
        return found;
    }
    let share = late.len() as f64 / f64::from(asked.max(1));
    let has_objects = late.iter().any(|server| server.ring_use == RingUse::Object);
    let shown = |server: &&ServerSight| {
        let word = server.ring_use.word();
        let url = server.url(&format!("/recon/replication/{word}"));
        evidence(
            format!(
                "{word}-replicator: {}",
                ago(server.time(sight.at), server.replicated.unwrap_or(0.0))
            ),
            url,
        )
    };
    let points = LATE * share * if has_objects { 3.0 } else { 1.0 };
    let gain = format!(
        "what {} of the servers hold is repaired, and brought where rings say",
        percent(share)
    );
    let mut cause = LookCause::new("replication-does-not-end", points, gain)
        .seen_all(late.iter().map(shown).collect())
        .work(0.5);
    for ring_use in [RingUse::Object, RingUse::Container, RingUse::Account] {
        let own: Vec<_> = late
            .iter()
            .filter(|server| server.ring_use == ring_use)
            .copied()
            .collect();
        if !own.is_empty() {
            let word = ring_use.word();
            cause = cause.cure(format!(
                "on {}: systemctl start martlet-{word}-replicator (OpenStack's: swift-init {word}-replicator start)",
                hosts(&own)
            ));
        }
    }
    if has_objects {
        cause = cause.cure("where it runs: its log names the peers that fail; `concurrency`, `replicator_workers` and `interval` in [object-replicator] decide how long a pass takes");
    }
    found.push(cause);
    found
}

/// Updates that wait on a server, and where that was read. Metrics are as of a minute ago, recon's as of the last pass.
fn pending(server: &ServerSight) -> (f64, String) {
    let counted = server
        .metrics
        .as_deref()
        .and_then(|page| exposition::sum(page, "martlet_async_pending", ""));
    match (counted, server.pending) {
        (Some(counted), reported) if counted >= reported.unwrap_or(0.0) => (counted, server.url("/metrics")),
        (_, Some(reported)) => (reported, server.url("/recon/async")),
        (..) => (0.0, server.url("/recon/async")),
    }
}

/// Of all object servers.
pub(in crate::look) fn all_pending(sight: &ClusterSight) -> f64 {
    let servers = sight.servers.iter().filter(|server| server.ring_use == RingUse::Object);
    servers.map(|server| pending(server).0).sum()
}

pub(super) fn updates(sight: &ClusterSight, _: &LookArguments) -> Vec<LookCause> {
    let servers = || {
        sight
            .servers
            .iter()
            .filter(|server| server.ring_use == RingUse::Object && server.has_answered)
    };
    let is_late = |server: &&ServerSight| {
        server
            .updated
            .is_some_and(|when| server.time(sight.at) - when > UPDATER_LATE)
    };
    let idle: Vec<&ServerSight> = servers().filter(is_late).collect();
    let waiting = all_pending(sight);
    let waits_on_idle: f64 = idle.iter().map(|server| pending(server).0).sum();
    let grown = sight
        .earlier
        .as_ref()
        .map_or(0.0, |earlier| waiting - earlier.seen.pending);
    let gain = format!("{waiting:.0} rows appear in listings, and container and account counters are right");
    let shown = |server: &&ServerSight| {
        let (count, url) = pending(server);
        let last = server.updated.map_or_else(String::new, |when| {
            format!("; object-updater: {}", ago(server.time(sight.at), when))
        });
        (count > 0.0 || is_late(server)).then(|| evidence(format!("{count:.0} updates wait{last}"), url))
    };
    if !idle.is_empty() {
        let share = idle.len() as f64 / servers().count().max(1) as f64;
        let points =
            LATE * ((waits_on_idle / ALL_LATE).min(1.0) * 3.0 + if waits_on_idle > 0.0 { 0.5 } else { 0.1 } * share);
        let gain = if waiting > 0.0 {
            gain
        } else {
            "rows that a container server misses come later instead of never".to_owned()
        };
        let cause = LookCause::new("object-updater-does-not-run", points, gain)
            .seen_all(idle.iter().filter_map(shown).collect())
            .cure(format!(
                "on {}: systemctl start martlet-object-updater (OpenStack's: swift-init object-updater start)",
                hosts(&idle)
            ));
        return vec![cause];
    }
    if waiting < MANY_PENDING && grown < GROWN_PENDING {
        return vec![];
    }
    let points = LATE * (waiting / ALL_LATE).clamp(0.1, 3.0);
    let mut cause = LookCause::new("updates-pile-up", points, gain)
        .seen_all(servers().collect::<Vec<_>>().iter().filter_map(shown).collect());
    if let Some(earlier) = sight.earlier.as_ref().filter(|_| grown > 0.0) {
        cause = cause.seen(
            format!("{grown:.0} more than in the earlier look"),
            earlier.path.clone(),
        );
    }
    let cause = cause
        .cure("container servers answer too late or not at all: see the causes beside this one, and the object-updater's log, which names them")
        .cure("[object-updater] concurrency = 8, updater_workers = 2 in object-server.conf, where container servers have time to spare")
        .work(1.0);
    vec![cause]
}

pub(super) fn damage(sight: &ClusterSight, _: &LookArguments) -> Vec<LookCause> {
    let mut found = vec![];
    let aside: Vec<&ServerSight> = sight
        .servers
        .iter()
        .filter(|server| server.quarantined.is_some_and(|count| count > 0.0))
        .collect();
    if !aside.is_empty() {
        let all: f64 = aside.iter().filter_map(|server| server.quarantined).sum();
        let shown = |server: &&ServerSight| {
            evidence(
                format!(
                    "{:.0} damaged {}s were put aside",
                    server.quarantined.unwrap_or(0.0),
                    server.ring_use.word()
                ),
                server.url("/recon/quarantined"),
            )
        };
        let gain = "the drive that damages data is known before it damages more";
        let cause = LookCause::new("quarantined", LATE * (all / 1000.0).clamp(0.02, 1.0), gain)
            .seen_all(aside.iter().map(shown).collect())
            .cure("look which device has them (martlet recon -q; /srv/node/*/quarantined), test that drive, and remove what replication has replaced")
            .work(1.0);
        found.push(cause);
    }
    let missing: Vec<_> = sight.dispersion.iter().filter(|one| one.found < one.expected).collect();
    let worst = missing
        .iter()
        .map(|one| 1.0 - one.found / one.expected)
        .max_by(f64::total_cmp);
    if let Some(worst) = worst {
        let shown = missing.iter().map(|one| {
            let lost = one.expected - one.found;
            evidence(
                format!(
                    "{}: {lost:.0} of {:.0} copies of the sample are missing",
                    one.what, one.expected
                ),
                one.path.clone(),
            )
        });
        let cause = LookCause::new("copies-missing", DATA * worst, format!("{} of all copies are where they should be", percent(worst)))
            .seen_all(shown.collect())
            .cure("martlet dispersion-report --debug names the servers that lack them: bring those and their replicators back")
            .work(1.0);
        found.push(cause);
    }
    found
}
