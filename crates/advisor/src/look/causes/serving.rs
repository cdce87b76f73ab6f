//! Servers that are away or differ, caches, limits that refuse, containers that are written to alone.

use super::super::ClusterSight;
use super::super::arguments::LookArguments;
use super::super::exposition;
use super::super::gateways::GatewaySight;
use super::super::rings::RingUse;
use super::super::servers::ServerSight;
use super::{CauseEvidence, DATA, LookCause, SERVICE, SPEED, evidence, percent};
use std::collections::{BTreeSet, HashMap};

/// Rows that say something about how containers are written to.
const ENOUGH_ROWS: u64 = 200;
/// A container that gets more of them is hot.
const HOT_SHARE: f64 = 0.5;
/// Rows a second from which on one container is a limit: in less than three days it has [`MANY_ROWS`].
const HOT_RATE: f64 = 5.0;
/// Rows of a container that is too large, as OpenStack's documentation of sharding takes it ("container sharding").
const MANY_ROWS: f64 = 1e6;
/// Requests that may be refused before that is a cause.
const REFUSED: f64 = 0.001;
/// Rows a second for each device of listings that the drives of objects notice.
const NOTICED_ROWS: f64 = 5.0;

pub(super) fn silent_servers(sight: &ClusterSight, _: &LookArguments) -> Vec<LookCause> {
    let gateways: Vec<&GatewaySight> = sight.gateways.iter().filter(|one| one.silence.is_some()).collect();
    let servers = sight
        .servers
        .iter()
        .filter(|one| one.silence.is_some() && !sight.is_one_process());
    let servers: Vec<&ServerSight> = servers.collect();
    let silent = gateways.len() + servers.len();
    if silent == 0 {
        return vec![];
    }
    let asked = sight.gateways.iter().filter(|one| one.conf.is_none()).count() + sight.servers.len();
    let share = silent as f64 / asked.max(1) as f64;
    let of_gateways = gateways.iter().map(|one| {
        evidence(
            format!("gateway {}: {}", one.place, one.silence.as_deref().unwrap_or_default()),
            format!("http://{}", one.place),
        )
    });
    let of_servers = servers.iter().map(|one| {
        let why = one.silence.as_deref().unwrap_or_default();
        evidence(
            format!("{} server {}: {why}", one.ring_use.word(), one.place()),
            one.url(""),
        )
    });
    let gain = format!(
        "{} of the servers serve again: fewer handoffs, time-outs and listing updates that wait",
        percent(share)
    );
    let mut cause = LookCause::new("server-does-not-answer", SERVICE * share, gain)
        .seen_all(of_gateways.chain(of_servers).collect());
    for server in servers.iter().take(3) {
        let word = server.ring_use.word();
        cause = cause.cure(format!("on {}: systemctl status martlet-{word} (OpenStack's: swift-init {word}-server status); start it, or kill it where it hangs, and read its log", server.ip));
    }
    if sight.gateways.iter().all(|one| one.conf.is_some()) && servers.len() == sight.servers.len() {
        cause = cause.cure("where `martlet up` serves them: name its address with --gateway");
    }
    for gateway in gateways.iter().take(3) {
        cause = cause.cure(format!(
            "on {}: systemctl status martlet-proxy (OpenStack's: swift-init proxy-server status)",
            gateway.place
        ));
    }
    vec![cause]
}

pub(super) fn no_recon(sight: &ClusterSight, _: &LookArguments) -> Vec<LookCause> {
    let is_mute = |one: &&ServerSight| one.silence.is_none() && !one.has_answered;
    let mute: Vec<&ServerSight> = sight.servers.iter().filter(is_mute).collect();
    let Some(first) = mute.first() else { return vec![] };
    let shown = mute
        .iter()
        .map(|one| evidence(one.refusal.clone().unwrap_or_default(), one.url("")));
    let cause = LookCause::new(
        "no-recon",
        5.0,
        "this look, `martlet recon` and monitors see the server",
    )
    .seen_all(shown.collect())
    .cure(format!(
        "recon in the pipeline of {}-server.conf: [pipeline:main] pipeline = healthcheck recon {0}-server",
        first.ring_use.word()
    ));
    vec![cause]
}

/// Servers whose checksum of a file is another than the one here.
fn differing(sight: &ClusterSight, is_it: impl Fn(&str) -> bool) -> Vec<(&ServerSight, &str, &str, &str)> {
    let own: HashMap<&str, &str> = sight
        .own_sums
        .iter()
        .map(|(name, sum)| (name.as_str(), sum.as_str()))
        .collect();
    let servers = sight
        .servers
        .iter()
        .flat_map(|server| server.sums.iter().map(move |(name, sum)| (server, name, sum)));
    servers
        .filter(|(_, name, _)| is_it(name))
        .filter_map(|(server, name, sum)| {
            let own = own.get(name.as_str())?;
            (own != sum).then_some((server, name.as_str(), sum.as_str(), *own))
        })
        .collect()
}

pub(super) fn rings_differ(sight: &ClusterSight, arguments: &LookArguments) -> Vec<LookCause> {
    let off = differing(sight, |name| name.ends_with(".ring.gz"));
    differ(
        sight,
        arguments,
        "rings-differ",
        &off,
        SERVICE,
        "requests and replicators look where data is",
    )
}

pub(super) fn conf_differs(sight: &ClusterSight, arguments: &LookArguments) -> Vec<LookCause> {
    let off = differing(sight, |name| name == "swift.conf");
    let gain =
        "hash path and policies are the same everywhere: otherwise what one node writes is not found by the others";
    differ(sight, arguments, "swift-conf-differs", &off, DATA * 0.5, gain)
}

fn differ(
    sight: &ClusterSight,
    arguments: &LookArguments,
    name: &'static str,
    off: &[(&ServerSight, &str, &str, &str)],
    points: f64,
    gain: &str,
) -> Vec<LookCause> {
    if off.is_empty() {
        return vec![];
    }
    let hosts: BTreeSet<(&str, u16)> = off
        .iter()
        .map(|(server, ..)| (server.ip.as_str(), server.port))
        .collect();
    let share = hosts.len() as f64 / sight.servers.len().max(1) as f64;
    let shown = off.iter().map(|(server, file, sum, own)| {
        let url = if *file == "swift.conf" {
            "/recon/swiftconfmd5"
        } else {
            "/recon/ringmd5"
        };
        let (sum, own) = (short(sum), short(own));
        evidence(
            format!(
                "{} server {}: {file} is {sum}…, here it is {own}…",
                server.ring_use.word(),
                server.place()
            ),
            server.url(url),
        )
    });
    let files: BTreeSet<&str> = off.iter().map(|(_, file, ..)| *file).collect();
    let files: Vec<String> = files
        .iter()
        .map(|file| arguments.swift_dir.join(file).display().to_string())
        .collect();
    let mut cause = LookCause::new(name, points * share, gain).seen_all(shown.collect());
    cause = match hosts.len() == sight.servers.len() {
        true => cause.cure(format!(
            "all servers have another one: copy theirs here, or these to them, whichever is newer: {}",
            files.join(" ")
        )),
        false => {
            let ips: BTreeSet<&str> = hosts.iter().map(|(ip, _)| *ip).collect();
            ips.iter().take(super::NAMED).fold(cause, |cause, ip| {
                cause.cure(format!("scp {} {ip}:/etc/swift/", files.join(" ")))
            })
        }
    };
    if name == "swift-conf-differs" {
        cause = cause
            .cure("then restart the servers of those nodes: swift.conf is read at start")
            .work(0.5);
    }
    vec![cause]
}

/// The start of a checksum, whatever was sent for one.
fn short(sum: &str) -> String {
    sum.chars().take(8).collect()
}

pub(super) fn memcached(sight: &ClusterSight, _: &LookArguments) -> Vec<LookCause> {
    let mut found = vec![];
    for conf in sight.gateways.iter().filter_map(|one| one.conf.as_ref()) {
        let path = conf.path.display().to_string();
        let away: Vec<_> = conf
            .caches
            .iter()
            .filter_map(|(server, why)| Some((server, why.as_ref()?)))
            .collect();
        let is_missing = !conf.has_cache || conf.caches.is_empty();
        // The one process of `martlet up` has all that it would share.
        if is_missing && sight.is_one_process() {
            continue;
        }
        if is_missing {
            let cause = LookCause::new("no-memcached", SPEED * 0.3, "requests do without a look at the account and the container each")
                .seen("the pipeline has no cache", path)
                .cure("memcached on each gateway, [filter:cache] use = egg:swift#memcache, memcache_servers = GATEWAY1:11211,GATEWAY2:11211, and cache before the filters of authentication in the pipeline")
                .work(1.0);
            found.push(cause);
        } else if !away.is_empty() {
            let share = away.len() as f64 / conf.caches.len() as f64;
            let shown = away.iter().map(|(server, why)| {
                evidence(
                    format!("memcached {server}: {why}"),
                    format!("{path}, and a connection from here"),
                )
            });
            let names: Vec<&str> = away
                .iter()
                .take(super::NAMED)
                .map(|(server, _)| server.as_str())
                .collect();
            let gain = format!(
                "{} of tokens, accounts and containers are asked for once, not with each request",
                percent(share)
            );
            let cause = LookCause::new("memcached-away", SPEED * 0.5 * share, gain)
                .seen_all(shown.collect())
                .cure(format!(
                    "start memcached at {} (systemctl start memcached; -l says where it listens)",
                    names.join(", ")
                ))
                .cure(format!("or take it out of memcache_servers in {}", conf.path.display()));
            found.push(cause);
        }
    }
    let failing = failing_caches(sight);
    if !failing.is_empty() && found.is_empty() {
        let cause = LookCause::new(
            "memcached-away",
            SPEED * 0.5,
            "tokens, accounts and containers are asked for once, not with each request",
        )
        .seen_all(failing)
        .cure("martlet_memcached_failures_total names the server: start it, or take it out of memcache_servers");
        found.push(cause);
    }
    found
}

/// Calls to memcached that failed between two looks.
fn failing_caches(sight: &ClusterSight) -> Vec<CauseEvidence> {
    let failing = sight.gateways.iter().filter_map(|one| {
        let grown = grown(one.pages.as_ref()?, "martlet_memcached_failures_total", "").filter(|grown| *grown > 0.0)?;
        Some(evidence(
            format!("{grown:.0} calls to memcached failed between two looks"),
            format!("http://{}/metrics", one.place),
        ))
    });
    failing.collect()
}

/// What a counter grew by between two looks; one that fell began anew.
fn grown(pages: &(String, String), name: &str, label: &str) -> Option<f64> {
    let (before, now) = (
        exposition::sum(&pages.0, name, label),
        exposition::sum(&pages.1, name, label)?,
    );
    let before = before.unwrap_or(0.0);
    Some(if now < before { now } else { now - before })
}

/// Reasons of refusals, and the option that decides.
const REFUSALS: [(&str, &str, &str); 4] = [
    (
        "reason=\"connections\"",
        "connections that found no room",
        "max_connections (and LimitNOFILE of the unit)",
    ),
    (
        "reason=\"requests\"",
        "requests that found no place within 10 s",
        "max_clients, or one more gateway",
    ),
    (
        "reason=\"address\"",
        "connections past those of one address",
        "max_connections_per_address, or max_connections_spared for balancers",
    ),
    (
        "reason=\"account\"",
        "requests past those of one account",
        "max_requests_per_account",
    ),
];

pub(super) fn refused(sight: &ClusterSight, _: &LookArguments) -> Vec<LookCause> {
    let of_gateways = sight.gateways.iter().filter_map(|one| {
        Some((
            &one.pages.as_ref()?.1,
            one.place.clone(),
            "proxy-server.conf".to_owned(),
        ))
    });
    let of_servers = sight.servers.iter().filter_map(|one| {
        let conf = format!("{}-server.conf", one.ring_use.word());
        Some((one.metrics.as_ref()?, one.place(), conf))
    });
    let (mut shown, mut cures, mut worst) = (vec![], BTreeSet::new(), 0.0_f64);
    for (page, place, conf) in of_gateways.chain(of_servers) {
        let served = exposition::sum(page, "martlet_requests_total", "").unwrap_or(0.0);
        for (reason, what, option) in REFUSALS {
            let count = exposition::sum(page, "martlet_refused_total", reason).unwrap_or(0.0);
            let share = count / (served + count).max(1.0);
            if share < REFUSED {
                continue;
            }
            let limit = match reason.contains("connections") {
                true => exposition::sum(page, "martlet_connections_limit", "")
                    .map_or_else(String::new, |limit| format!("; {limit:.0} may be open")),
                false => String::new(),
            };
            shown.push(evidence(
                format!("{count:.0} {what}, {} of all{limit}", percent(share)),
                format!("http://{place}/metrics"),
            ));
            cures.insert(format!("raise {option} in {conf} of {place}"));
            worst = worst.max(share);
        }
    }
    if shown.is_empty() {
        return vec![];
    }
    let cause = LookCause::new(
        "limits-refuse",
        SERVICE * worst,
        format!("{} of what clients ask is served instead of refused", percent(worst)),
    );
    vec![
        cures
            .into_iter()
            .take(super::NAMED)
            .fold(cause.seen_all(shown), LookCause::cure),
    ]
}

pub(super) fn hot_container(sight: &ClusterSight, _: &LookArguments) -> Vec<LookCause> {
    let Some(log) = &sight.log else { return vec![] };
    let Some((name, used)) = log.hottest() else {
        return vec![];
    };
    let share = used.rows as f64 / log.rows.max(1) as f64;
    let rate = used.rows as f64 / log.seconds();
    let holds = log.hottest_holds.as_ref().map_or(0.0, |(count, _)| *count);
    let is_large = holds >= MANY_ROWS && !log.is_sharded;
    let is_hot = log.rows >= ENOUGH_ROWS && share >= HOT_SHARE && rate >= HOT_RATE && !log.is_sharded;
    if !is_hot && !is_large {
        return vec![];
    }
    // Rows of one container pass its own drives alone, those of many all drives of listings.
    let sets = sight.rings.iter().find(|ring| ring.ring_use == RingUse::Container);
    let sets = sets
        .map_or(1.0, |ring| ring.active().count() as f64 / ring.replicas())
        .max(1.0);
    let gained = (share * (1.0 - 1.0 / (sets + 1.0))).max(if is_large { 0.3 } else { 0.0 });
    let gain = format!("rows go to {sets:.1} times as many drives, and to databases that do not wait for each other");
    let mut cause = LookCause::new("one-hot-container", SPEED * gained, gain).seen(
        format!(
            "{} of {} rows go to {name}, {rate:.0} a second; {} containers are written to",
            used.rows,
            log.rows,
            log.written_containers()
        ),
        log.names.join(", "),
    );
    if let Some((count, url)) = &log.hottest_holds {
        cause = cause.seen(format!("it holds {count:.0} rows"), format!("HEAD {url}"));
    }
    let cause = cause
        .cure("spread names over 16 containers or more: a hash of the name, or the day, behind the container's name")
        .cure("where container servers are OpenStack's: swift-manage-shard-ranges DB find_and_replace 500000 --enable, and container-sharder (Martlet's do not shard yet)")
        .work(4.0);
    vec![cause]
}

pub(super) fn listings_beside_objects(sight: &ClusterSight, _: &LookArguments) -> Vec<LookCause> {
    let Some(log) = &sight.log else { return vec![] };
    let of = |ring_use: RingUse| {
        let rings = sight.rings.iter().filter(move |ring| ring.ring_use == ring_use);
        rings
            .flat_map(|ring| ring.active().map(|slot| (slot.ip.as_str(), slot.device.as_str())))
            .collect::<BTreeSet<_>>()
    };
    let (listings, objects) = (of(RingUse::Container), of(RingUse::Object));
    let shared = listings.intersection(&objects).count();
    let replicas = sight
        .rings
        .iter()
        .find(|ring| ring.ring_use == RingUse::Container)
        .map_or(3.0, |ring| ring.replicas());
    let rate = log.rows as f64 / log.seconds() * replicas / listings.len().max(1) as f64;
    if shared == 0 || rate < NOTICED_ROWS {
        return vec![];
    }
    let share = shared as f64 / listings.len() as f64;
    let cause = LookCause::new("listings-on-drives-of-objects", SPEED * share * (rate / 100.0).min(1.0), "drives of objects have their time for objects")
        .seen(format!("{shared} of {} devices of listings hold objects too", listings.len()), "container.ring.gz, object.ring.gz")
        .seen(format!("{rate:.0} rows a second for each of them"), log.names.join(", "))
        .cure("an SSD in each storage node: add it to container.builder and account.builder, and set the weights of the others there to 0")
        .work(4.0)
        .bought();
    vec![cause]
}
