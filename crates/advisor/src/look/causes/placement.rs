//! What rings alone say: replicas, places, partitions, balance.

use super::super::ClusterSight;
use super::super::arguments::LookArguments;
use super::super::rings::{RingSight, RingUse};
use super::{DATA, LookCause, SPEED, evidence, percent, stored};
use std::collections::BTreeMap;

/// Replicas of partitions that a device should hold.
const PARTS_PER_DEVICE: f64 = 100.0;
/// How far devices may be off what their weights ask for.
const UNEVEN: f64 = 0.1;
/// Partitions that lie badly: fewer are rounding.
const FEW: f64 = 0.05;
/// Copies of an object that outlive the loss of a drive and of another one while it is rebuilt.
const SAFE_REPLICAS: f64 = 3.0;

/// The commands that follow any change of builders. A ring is to be written although no partition has to move.
fn rebalance(cause: LookCause, rings: &[&RingSight]) -> LookCause {
    let cause = rings.iter().fold(cause, |cause, ring| {
        cause.cure(format!("{} rebalance --force", ring.command()))
    });
    cause.cure("copy the *.ring.gz to every node; when `martlet recon -r` says that replication is done, rebalance again until nothing moves")
}

fn path(ring: &RingSight) -> String {
    ring.path.display().to_string()
}

/// The share of what is lost with a ring: all objects with those of accounts and containers, or with the only policy.
fn share_of(rings: &[&RingSight], sight: &ClusterSight) -> f64 {
    if rings.iter().any(|ring| ring.ring_use != RingUse::Object) {
        return 1.0;
    }
    let policies = sight
        .rings
        .iter()
        .filter(|ring| ring.ring_use == RingUse::Object)
        .count();
    rings.len() as f64 / policies.max(1) as f64
}

pub(super) fn few_replicas(sight: &ClusterSight, _: &LookArguments) -> Vec<LookCause> {
    let is_few = |ring: &&RingSight| !ring.is_erasure && ring.replicas() < SAFE_REPLICAS;
    let rings: Vec<&RingSight> = sight.rings.iter().filter(is_few).collect();
    let Some(least) = rings.iter().map(|ring| ring.replicas()).min_by(f64::total_cmp) else {
        return vec![];
    };
    let share = if least < 2.0 { 1.0 } else { 0.3 };
    let gain = match least < 2.0 {
        true => "an object outlives the loss of its drive",
        false => "an object outlives the loss of a second drive, and one that is out of date can be outvoted",
    };
    let mut cause = LookCause::new("two-replicas-only", DATA * share * share_of(&rings, sight), gain)
        .seen_all(
            rings
                .iter()
                .map(|ring| evidence(format!("{}: {} replicas", ring.name, ring.replicas()), path(ring)))
                .collect(),
        )
        .work(1.0)
        .moving(stored(sight) * (SAFE_REPLICAS / least.max(1.0) - 1.0));
    for ring in &rings {
        cause = cause.cure(format!("{} set_replicas 3", ring.command()));
    }
    vec![rebalance(cause, &rings)]
}

pub(super) fn few_places(sight: &ClusterSight, _: &LookArguments) -> Vec<LookCause> {
    let several = || sight.rings.iter().filter(|ring| ring.active().count() > 1);
    let alone: Vec<&RingSight> = several().filter(|ring| ring.servers == 1).collect();
    let one_zone: Vec<&RingSight> = several().filter(|ring| ring.servers > 1 && ring.zones == 1).collect();
    let few = |ring: &&RingSight| ring.servers > 1 && ring.zones > 1 && (ring.zones as f64) < ring.replicas().min(3.0);
    let few: Vec<&RingSight> = several().filter(few).collect();
    let shown = |rings: &[&RingSight]| {
        let shown = |ring: &&RingSight| {
            let (zones, servers, devices) = (ring.zones, ring.servers, ring.active().count());
            evidence(
                format!("{}: {zones} zone(s), {servers} server(s), {devices} devices", ring.name),
                path(ring),
            )
        };
        rings.iter().map(shown).collect()
    };
    let mut found = vec![];
    if !alone.is_empty() {
        let gain = "objects stay readable when a server is away, and outlive its loss";
        let cause = LookCause::new("one-server", DATA * 0.3 * share_of(&alone, sight), gain).seen_all(shown(&alone));
        let first = alone[0].command();
        let cause = cause.cure(format!(
            "two more servers, in zones of their own: {first} add r1z2-IP:PORT/DEVICE WEIGHT"
        ));
        found.push(
            rebalance(cause, &alone)
                .work(8.0)
                .moving(stored(sight) * 2.0 / 3.0)
                .bought(),
        );
    }
    if !one_zone.is_empty() {
        let gain = "objects outlive the loss of a rack, a room or a power feed, and most stay readable without it";
        let cause =
            LookCause::new("one-zone", DATA * 0.3 * share_of(&one_zone, sight), gain).seen_all(shown(&one_zone));
        let cause = one_zone.iter().fold(cause, |cause, ring| spread(cause, ring));
        found.push(rebalance(cause, &one_zone).work(2.0).moving(stored(sight) * 2.0 / 3.0));
    }
    if !few.is_empty() {
        let gain = "the loss of a zone leaves a majority of each object's replicas";
        let cause = LookCause::new("too-few-zones", DATA * 0.1 * share_of(&few, sight), gain).seen_all(shown(&few));
        let cause = cause.cure(format!(
            "{} set_zone SERVER_IP 3 for a third of the servers, where they have a rack or a power feed of their own",
            few[0].command()
        ));
        found.push(rebalance(cause, &few).work(4.0).moving(stored(sight) / 3.0));
    }
    found
}

/// Servers in turn in three zones.
fn spread(cause: LookCause, ring: &RingSight) -> LookCause {
    let mut servers: BTreeMap<&str, u32> = BTreeMap::new();
    for slot in ring.active() {
        let next = servers.len() as u32 % 3 + 1;
        servers.entry(&slot.ip).or_insert(next);
    }
    let changes: Vec<String> = servers
        .iter()
        .filter(|(_, zone)| **zone > 1)
        .map(|(ip, zone)| format!("{ip} {zone}"))
        .collect();
    let places = "by racks or power feeds: in turn is an example";
    cause.cure(format!(
        "{} set_zone {} --yes   # {places}",
        ring.command(),
        changes.join(" ")
    ))
}

pub(super) fn together(sight: &ClusterSight, _: &LookArguments) -> Vec<LookCause> {
    let is_bad = |ring: &&RingSight| ring.servers > 1 && (ring.crowded > FEW || ring.on_one_server > FEW / 10.0);
    let rings: Vec<&RingSight> = sight.rings.iter().filter(is_bad).collect();
    let Some(worst) = rings
        .iter()
        .map(|ring| ring.crowded * 0.1 + ring.on_one_server * 0.3)
        .max_by(f64::total_cmp)
    else {
        return vec![];
    };
    let shown = |ring: &&RingSight| {
        let (crowded, alone) = (percent(ring.crowded), percent(ring.on_one_server));
        evidence(
            format!(
                "{}: {crowded} of its partitions have more replicas in one zone than they need, {alone} have all on one server",
                ring.name
            ),
            path(ring),
        )
    };
    let gain = "the loss of a zone or a server takes fewer replicas of an object";
    let mut cause = LookCause::new("replicas-together", DATA * worst * share_of(&rings, sight), gain)
        .seen_all(rings.iter().map(shown).collect())
        .work(1.0)
        .moving(stored(sight) * worst);
    for ring in &rings {
        cause = cause.cure(format!("{} dispersion -v", ring.command()));
        cause = cause.cure(format!(
            "{} set_overload 10%   # where a zone is too small for its share",
            ring.command()
        ));
    }
    vec![rebalance(cause, &rings)]
}

/// Replicas of partitions that a device holds on average.
fn each(ring: &RingSight) -> f64 {
    ring.all_parts() / ring.active().count().max(1) as f64
}

/// By how much the device that is off most holds more than its weight asks for.
fn overfull(ring: &RingSight) -> (f64, String) {
    let weights: f64 = ring.active().map(|slot| slot.weight).sum();
    let over = ring.active().map(|slot| {
        // No device holds two replicas of a partition.
        let wanted = (ring.all_parts() * slot.weight / weights).min(f64::from(ring.ring.partition_count()));
        (
            slot.parts as f64 / wanted - 1.0,
            format!("d{} {}:{}/{}", slot.id, slot.ip, slot.port, slot.device),
        )
    });
    over.max_by(|one, other| one.0.total_cmp(&other.0)).unwrap_or_default()
}

pub(super) fn few_partitions(sight: &ClusterSight, _: &LookArguments) -> Vec<LookCause> {
    // With fewer devices than replicas each holds all partitions.
    let is_few = |ring: &&RingSight| ring.active().count() as f64 > ring.replicas() && each(ring) < PARTS_PER_DEVICE;
    let rings: Vec<&RingSight> = sight.rings.iter().filter(is_few).collect();
    let uneven = |ring: &&RingSight| overfull(ring).0.max(1.0 / each(ring));
    let Some(worst) = rings.iter().map(uneven).max_by(f64::total_cmp) else {
        return vec![];
    };
    let shown = |ring: &&RingSight| {
        let ((over, device), each, power) = (overfull(ring), each(ring), ring.ring.part_power());
        evidence(
            format!(
                "{}: part power {power}, {each:.0} replicas of partitions for each device; {device} holds {} more than its weight asks for",
                ring.name,
                percent(over.max(0.0))
            ),
            path(ring),
        )
    };
    let gain = format!(
        "devices fill evenly: the cluster holds up to {} more before the first is full",
        percent(worst)
    );
    let mut cause = LookCause::new("too-few-partitions", SPEED * worst, gain)
        .seen_all(rings.iter().map(shown).collect())
        .work(4.0);
    for ring in &rings {
        let wanted = (ring.active().count() as f64 * PARTS_PER_DEVICE / ring.replicas())
            .log2()
            .ceil();
        let command = ring.command();
        let steps = wanted - f64::from(ring.ring.part_power());
        cause = match ring.ring_use {
            RingUse::Object => cause.cure(format!(
                "{command} prepare_increase_partition_power   # {steps:.0} times, to part power {wanted:.0}, each with the relinker as rings.md says"
            )),
            _ => cause.cure(format!(
                "accounts and containers cannot be moved to more partitions: make {} with part power {wanted:.0} in the next cluster", ring.name
            )),
        };
    }
    vec![cause]
}

pub(super) fn unbalanced(sight: &ClusterSight, _: &LookArguments) -> Vec<LookCause> {
    let is_off = |ring: &&RingSight| each(ring) >= PARTS_PER_DEVICE && overfull(ring).0 > UNEVEN;
    let rings: Vec<&RingSight> = sight.rings.iter().filter(is_off).collect();
    let Some(worst) = rings.iter().map(|ring| overfull(ring).0).max_by(f64::total_cmp) else {
        return vec![];
    };
    let shown = |ring: &&RingSight| {
        let (over, device) = overfull(ring);
        evidence(
            format!(
                "{}: {device} holds {} more than its weight asks for",
                ring.name,
                percent(over)
            ),
            path(ring),
        )
    };
    let gain = format!(
        "the cluster holds up to {} more before the first device is full",
        percent(worst)
    );
    let cause = LookCause::new("ring-out-of-balance", SPEED * worst.min(1.0), gain)
        .seen_all(rings.iter().map(shown).collect())
        .work(1.0)
        .moving(stored(sight) * worst.min(1.0) / 2.0);
    vec![rebalance(cause, &rings)]
}
