//! Clocks: the newest timestamp wins, so that a wrong clock makes old data new.

use super::super::ClusterSight;
use super::super::arguments::LookArguments;
use super::super::clocks::{CLOSE_CLOCKS, ClockOffset, right_time};
use super::{CauseEvidence, LookCause, SERVICE, evidence};
use std::collections::BTreeSet;

/// How a distance is said.
fn shown(seconds: f64) -> String {
    let size = match seconds.abs() {
        size @ ..120.0 => format!("{size:.1} s"),
        size @ ..7200.0 => format!("{:.0} min", size / 60.0),
        size @ ..172_800.0 => format!("{:.1} h", size / 3600.0),
        size => format!("{:.0} days", size / 86_400.0),
    };
    format!("{size} {}", if seconds > 0.0 { "ahead" } else { "behind" })
}

pub(super) fn clocks_off(sight: &ClusterSight, _: &LookArguments) -> Vec<LookCause> {
    let of_gateways = sight.gateways.iter().filter_map(|one| {
        let (what, read_at) = (format!("gateway {}", one.place), format!("http://{}", one.place));
        Some((one.host.as_str(), what, read_at, one.clock?))
    });
    let of_servers = sight.servers.iter().filter_map(|one| {
        let what = format!("{} server {}", one.ring_use.word(), one.place());
        Some((one.ip.as_str(), what, one.url("/recon/time"), one.clock?))
    });
    let all: Vec<_> = of_gateways.chain(of_servers).collect();
    let right = right_time(
        all.iter().map(|(host, .., clock)| (*host, *clock)),
        &sight.own_addresses,
    );
    let is_off = |clock: ClockOffset| clock.distance(right).abs() > CLOSE_CLOCKS;
    let (mut seen, mut hosts): (Vec<CauseEvidence>, BTreeSet<&str>) = (vec![], BTreeSet::new());
    for (host, what, read_at, clock) in all.iter().filter(|(.., clock)| is_off(*clock)) {
        let off = shown(clock.distance(right));
        seen.push(evidence(
            format!("{what}: its clock is {off} at least"),
            read_at.clone(),
        ));
        hosts.insert(host);
    }
    if is_off(ClockOffset::NONE) {
        let off = shown(ClockOffset::NONE.distance(right));
        let what = format!("this machine: its clock is {off} at least, by those of most servers");
        seen.push(evidence(what, "this machine's clock"));
        hosts.insert("this machine");
    }
    if seen.is_empty() {
        return vec![];
    }
    let share = seen.len() as f64 / (all.len() + 1) as f64;
    let gain = "the newest write wins: with a wrong clock an older one does, deleted objects come back or expire at the wrong time";
    let cause = LookCause::new("clock-off", SERVICE * share.max(0.05), gain).seen_all(seen);
    let cause = hosts.iter().take(super::NAMED).fold(cause, |cause, host| {
        cause.cure(format!(
            "on {host}: systemctl enable --now chrony && chronyc makestep; chronyc tracking says what it follows"
        ))
    });
    let note = "a clock that was ahead has written timestamps from the future: max_clock_skew in proxy-server.conf decides what becomes of writes that meet them";
    vec![cause.cure(note)]
}
