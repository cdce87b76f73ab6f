//! Room: weights that do not fit sizes, devices that are away or failing, the end of capacity.

use super::super::ClusterSight;
use super::super::arguments::LookArguments;
use super::super::capacity::{KnownDevices, RingRoom, outlook};
use super::super::rings::{RingSight, RingUse};
use super::{DATA, LookCause, SERVICE, SPEED, evidence, percent, stored};
use ring_builder::size::shown as bytes;

/// Capacity that is worth a change of weights.
const WORTH: f64 = 0.1;
/// Days before capacity ends from which on it is a cause.
const SOON: f64 = 90.0;
/// Devices whose weights are said in one command.
const MOST_WEIGHTS: usize = 100;
/// Devices this large have weights in GB, smaller ones in MB.
const LARGE: f64 = 10e9;

pub(super) fn weights(sight: &ClusterSight, _: &LookArguments) -> Vec<LookCause> {
    let devices = KnownDevices::of(sight);
    let off = |ring: &'_ RingSight| {
        let room = devices.room(ring)?;
        let weights: f64 = ring.active().map(|slot| slot.weight).sum();
        let by_weight = room
            .sizes
            .iter()
            .map(|(slot, size)| size / (slot.weight / weights).max(f64::MIN_POSITIVE));
        let by_weight = by_weight.fold(f64::INFINITY, f64::min);
        let more = room.possible / by_weight - 1.0;
        (more >= WORTH).then_some((room, more))
    };
    let rings: Vec<_> = sight.rings.iter().filter_map(|ring| Some((ring, off(ring)?))).collect();
    let Some(most) = rings.iter().map(|(_, (_, more))| *more).max_by(f64::total_cmp) else {
        return vec![];
    };
    let gain = format!(
        "the cluster holds {} more before the first device is full",
        percent(most)
    );
    let mut cause = LookCause::new("weights-not-by-size", SPEED * most.min(1.0), gain).work(1.0);
    for (ring, (room, more)) in &rings {
        cause = cause
            .seen(
                format!(
                    "{}: {} is full first ({} now), when {} of {} are stored; by size it would be {}",
                    ring.name,
                    room.first,
                    percent(room.first_full),
                    bytes(room.usable),
                    bytes(room.size),
                    bytes(room.possible)
                ),
                format!("{} and /recon/diskusage of the servers", ring.path.display()),
            )
            .seen_all(most_off(ring, room))
            .moving(room.used * (more / (1.0 + more)) / 2.0)
            .cure(format!("{} set_weight {} --yes", ring.command(), by_size(room)));
        cause = cause.cure(format!("{} rebalance", ring.command()));
    }
    vec![cause.cure(
        "copy the rings to every node; on a cluster that is in use, in the steps that `ramp … --target-weight` says",
    )]
}

/// The devices that have most weight for their size.
fn most_off(ring: &RingSight, room: &RingRoom) -> Vec<super::CauseEvidence> {
    let (weights, size): (f64, f64) = (room.sizes.iter().map(|(slot, _)| slot.weight).sum(), room.size);
    let mut all: Vec<_> = room
        .sizes
        .iter()
        .map(|(slot, own)| (slot.weight / weights / (own / size), slot, own))
        .collect();
    all.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.id.cmp(&other.1.id)));
    let over = all.into_iter().filter(|(ratio, ..)| *ratio > 1.0 + WORTH).take(3);
    over.map(|(_, slot, own)| {
        evidence(
            format!(
                "d{} has {} of all weight and {} of all room ({})",
                slot.id,
                percent(slot.weight / weights),
                percent(own / size),
                bytes(*own)
            ),
            format!(
                "{}, http://{}/recon/diskusage",
                ring.path.display(),
                super::super::inquiry::place(&slot.ip, slot.port)
            ),
        )
    })
    .collect()
}

/// Weights that are sizes, as `set_weight` takes them.
fn by_size(room: &RingRoom) -> String {
    let largest = room.sizes.iter().map(|(_, size)| *size).fold(0.0, f64::max);
    let unit = if largest >= LARGE { 1e9 } else { 1e6 };
    let all = room
        .sizes
        .iter()
        .take(MOST_WEIGHTS)
        .map(|(slot, size)| format!("d{} {:.0}", slot.id, (size / unit).max(1.0)));
    all.collect::<Vec<_>>().join(" ")
}

pub(super) fn devices(sight: &ClusterSight, _: &LookArguments) -> Vec<LookCause> {
    let mut away = vec![];
    let (mut parts, mut all_parts) = (0.0, 0.0_f64);
    for ring in &sight.rings {
        all_parts += ring.all_parts();
        for slot in ring.slots.iter().filter(|slot| slot.parts > 0) {
            let at = |server: &&super::super::servers::ServerSight| {
                server.ring_use == ring.ring_use && server.ip == slot.ip && server.port == slot.port
            };
            let Some(server) = sight.servers.iter().find(at) else {
                continue;
            };
            let Some(devices) = &server.devices else { continue };
            let known = devices.iter().find(|device| device.name == slot.device);
            // Where none is a mount point, devices are directories on purpose (mount_check = false).
            let are_mounts = devices.iter().any(|device| device.is_mounted);
            let why = match known {
                None => "is not there",
                Some(device) if are_mounts && !device.is_mounted => "is not mounted",
                Some(_) => continue,
            };
            parts += slot.parts as f64;
            let what = format!(
                "{}: d{} {} {why} and should hold {} replicas of partitions",
                ring.name, slot.id, slot.device, slot.parts
            );
            away.push((ring, slot, evidence(what, server.url("/recon/diskusage"))));
        }
    }
    let mut found = vec![];
    if let Some((ring, slot, _)) = away.first() {
        let (command, id) = (ring.command(), slot.id);
        let gain = format!(
            "{} of all replicas are where they should be again",
            percent(parts / all_parts.max(1.0))
        );
        let cause = LookCause::new("device-away", SERVICE * (parts / all_parts.max(1.0)).max(0.01), gain)
            .cure(format!(
                "mount it on {}: mount /srv/node/{}; the kernel's log says why it went (martlet drive-audit)",
                slot.ip, slot.device
            ))
            .cure(format!(
                "or, when it is broken: {command} set_weight d{id} 0, {command} rebalance, copy the ring to every node"
            ))
            .work(0.5);
        found.push(cause.seen_all(away.iter().map(|(.., evidence)| evidence.clone()).collect()));
    }
    found.extend(failing_drives(sight));
    found
}

fn failing_drives(sight: &ClusterSight) -> Option<LookCause> {
    let failing = sight.servers.iter().filter(|server| server.ring_use == RingUse::Object);
    let failing: Vec<_> = failing
        .filter(|server| server.drive_errors.is_some_and(|errors| errors > 0.0))
        .collect();
    if failing.is_empty() {
        return None;
    }
    let shown = failing.iter().map(|server| {
        evidence(
            format!("{:.0} errors of drives", server.drive_errors.unwrap_or(0.0)),
            server.url("/recon/driveaudit"),
        )
    });
    let share = failing.len() as f64 / sight.servers.len() as f64;
    let cause = LookCause::new(
        "failing-drives",
        DATA * 0.05 * share,
        "a drive is emptied before it fails",
    )
    .seen_all(shown.collect())
    .cure("on those nodes: martlet drive-audit /etc/swift/drive-audit.conf names the drives; replace them")
    .work(2.0);
    Some(cause)
}

pub(super) fn capacity(sight: &ClusterSight, arguments: &LookArguments) -> Vec<LookCause> {
    let all = outlook(sight, arguments);
    let ending = all
        .iter()
        .filter_map(|one| Some((one, one.days.filter(|days| *days < SOON)?)));
    let Some((first, days)) = ending.min_by(|one, other| one.1.total_cmp(&other.1)) else {
        return vec![];
    };
    let Some(ring) = sight.rings.iter().find(|ring| ring.name == first.ring) else {
        return vec![];
    };
    let growth = first
        .growth
        .map_or_else(String::new, |growth| format!(", {} a day more", bytes(growth.max(0.0))));
    let gain = match days < 1.0 {
        true => "devices have room for uploads again",
        false => "devices have room for uploads when it is needed",
    };
    // Full devices refuse uploads; the closer that is, the more it is worth.
    let points = SERVICE * (1.0 - days / SOON);
    let cause = LookCause::new("capacity-ends", points, gain)
        .seen(
            format!(
                "{}: {} of {} are in use{growth}; {} is full first, {} now: {days:.0} days until devices are {} full",
                first.ring,
                bytes(first.used),
                bytes(first.size),
                first.first,
                percent(first.first_full),
                percent(arguments.fill)
            ),
            format!("/recon/diskusage of the servers, growth from {}", first.growth_from),
        )
        .cure(format!("{} add r1zZONE-IP:PORT/DEVICE WEIGHT for each new device, then look again: it says the steps in which they come in", ring.command()))
        .cure("or what can be deleted: expiry (X-Delete-After), lifecycle rules, old versions")
        .work(8.0)
        .moving(stored(sight) / 4.0)
        .bought();
    vec![cause]
}
