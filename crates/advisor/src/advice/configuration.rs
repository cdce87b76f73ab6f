//! Configuration files of an answer's servers, and the commands that make its rings.
//!
//! The files are those of docs/operating/production-cluster.md, for the numbers of the answer: `swift.conf` and rings
//! go to every machine, `proxy-server.conf` to gateways, the others to storage nodes.
//! Always holds: addresses are examples, and each file says so; secrets and the user's key are drawn anew each time,
//! and are in files that only their owner may read; a file that is there is not written over.

use crate::inventory::PurchaseInventory;
use crate::measure::scratch::make_folders;
use crate::model::workload::Protection;
use crate::search::design::ClusterDesign;
use crate::text_files::not_written;
use std::fmt::Write;
use std::io;
use std::path::Path;
use vocabulary::Fault;
use world::World;
use world::files::Purpose;

/// Hours until a partition may move again: longer than a pass of replicators takes.
const MIN_PART_HOURS: u32 = 24;
/// Nodes of a network whose last number they are.
const NODES_OF_NETWORK: u32 = 200;
/// What each file begins with.
const ADDRESSES: &str = "# By `martlet advise`. Addresses are examples: gateways are 10.0.0.1 and so on, storage nodes 10.1.0.1 \
                         and so on.\n";
/// Servers with their ports.
const SERVERS: [(&str, u16); 3] = [("object", 6200), ("container", 6201), ("account", 6202)];
/// Filters of the gateway, what they are called in `use`, and their options.
const FILTERS: [(&str, &str, &str); 16] = [
    ("catch_errors", "catch_errors", ""),
    ("gatekeeper", "gatekeeper", ""),
    ("healthcheck", "healthcheck", ""),
    ("proxy-logging", "proxy_logging", ""),
    ("cache", "memcache", "memcache_servers = MEMCACHE\n"),
    ("listing_formats", "listing_formats", ""),
    ("bulk", "bulk", ""),
    ("tempurl", "tempurl", ""),
    ("ratelimit", "ratelimit", ""),
    (
        "tempauth",
        "tempauth",
        "user_admin_admin = KEY .admin .reseller_admin\n",
    ),
    ("copy", "copy", ""),
    ("container-quotas", "container_quotas", ""),
    ("account-quotas", "account_quotas", ""),
    ("slo", "slo", ""),
    ("dlo", "dlo", ""),
    ("symlink", "symlink", ""),
];

fn secret(world: &World) -> String {
    format!("{:016x}{:016x}", world.random.next_u64(), world.random.next_u64())
}

fn address(network: u32, number: u32) -> String {
    format!(
        "10.{network}.{}.{}",
        number / NODES_OF_NETWORK,
        number % NODES_OF_NETWORK + 1
    )
}

/// Writes all files of a design into a folder.
pub fn write(
    world: &World,
    inventory: &PurchaseInventory,
    design: &ClusterDesign,
    part_power: Option<u64>,
    folder: &Path,
) -> Result<(), Fault> {
    let Protection::Replicas(replicas) = design.protection(inventory) else {
        let why = "configuration: Martlet's servers do not serve erasure codes: offer replicas in [[protection]]";
        return Err(Fault::caller(why));
    };
    let Some(part_power) = part_power else {
        return Err(Fault::caller(
            "configuration: the ring builder has no plan for this design",
        ));
    };
    make_folders(world, folder)?;
    let mut files = vec![
        ("swift.conf".to_owned(), swift_conf(&secret(world), &secret(world))),
        (
            "proxy-server.conf".to_owned(),
            proxy_conf(design.counts.gateways, &secret(world)),
        ),
        ("rings.sh".to_owned(), rings(inventory, design, part_power, replicas)),
    ];
    for (server, port) in SERVERS {
        files.push((format!("{server}-server.conf"), storage_conf(server, port)));
    }
    for (name, text) in files {
        let path = folder.join(name);
        private(world, &path, &text).map_err(|error| {
            if error.kind() == io::ErrorKind::AlreadyExists {
                let why = "it is there already: name another folder";
                return Fault::caller(format!("{}: {why}", path.display()));
            }
            let _ = world.files.remove_file(&path);
            not_written(&path, &error)
        })?;
    }
    Ok(())
}

fn private(world: &World, path: &Path, text: &str) -> io::Result<()> {
    let file = world.files.open(path, Purpose::Create)?;
    file.make_private()?;
    file.write_all_at(text.as_bytes(), 0)
}

fn swift_conf(prefix: &str, suffix: &str) -> String {
    format!(
        "# By `martlet advise`. The same on every machine; the two secrets decide where data lies: never change them.\n\
         [swift-hash]\nswift_hash_path_prefix = {prefix}\nswift_hash_path_suffix = {suffix}\n\n\
         [storage-policy:0]\nname = standard\ndefault = yes\n"
    )
}

fn proxy_conf(gateways: u32, key: &str) -> String {
    let names: Vec<&str> = FILTERS.iter().map(|(name, _, _)| *name).collect();
    // Requests that features make themselves are logged, too.
    let mut text = format!(
        "{ADDRESSES}[DEFAULT]\nbind_ip = 0.0.0.0\nbind_port = 8080\n\n[pipeline:main]\npipeline = {} proxy-logging \
         proxy-server\n\n[app:proxy-server]\nuse = egg:swift#proxy\naccount_autocreate = true\n",
        names.join(" ")
    );
    let memcache: Vec<String> = (0..gateways).map(|at| format!("{}:11211", address(0, at))).collect();
    for (name, egg, options) in FILTERS {
        let options = options.replace("MEMCACHE", &memcache.join(",")).replace("KEY", key);
        // Writing to memory does not fail.
        let _ = write!(text, "\n[filter:{name}]\nuse = egg:swift#{egg}\n{options}");
    }
    text
}

fn storage_conf(server: &str, port: u16) -> String {
    let daemons = match server {
        "object" => {
            "[object-replicator]\nsync_method = ssync\n\n[object-auditor]\n\n[object-updater]\n\n[object-expirer]\n\
             dequeue_from_legacy = true\n"
        }
        "container" => "[container-replicator]\n\n[container-auditor]\n\n[container-updater]\n",
        _ => "[account-replicator]\n\n[account-auditor]\n\n[account-reaper]\n",
    };
    format!(
        "# By `martlet advise`. The same on every storage node; drives are mounted below `devices`.\n\
         [DEFAULT]\nbind_ip = 0.0.0.0\nbind_port = {port}\ndevices = /srv/node\n\n\
         [pipeline:main]\npipeline = healthcheck recon {server}-server\n\n\
         [app:{server}-server]\nuse = egg:swift#{server}\n\n[filter:healthcheck]\nuse = egg:swift#healthcheck\n\n\
         [filter:recon]\nuse = egg:swift#recon\n\n{daemons}"
    )
}

/// Listings lie on drives of their own where there are such: `l1` and so on beside `d1` and so on.
fn rings(inventory: &PurchaseInventory, design: &ClusterDesign, part_power: u64, replicas: u32) -> String {
    let (nodes, zones) = (
        design.counts.storage,
        inventory.wanted.zones.clamp(1, design.counts.storage.max(1)),
    );
    let objects = ("d", design.recipe.drives, inventory.drives[design.recipe.drive].size);
    let listings = design
        .recipe
        .listing
        .map_or(objects, |(kind, count)| ("l", count, inventory.drives[kind].size));
    let mut text = "#!/bin/sh\n".to_owned()
        + ADDRESSES
        + "# Makes the rings in the current folder; MARTLET names the program.\n\
                    set -e\nm=${MARTLET:-martlet}\n";
    for (server, port) in SERVERS {
        let is_object = server == "object";
        let ((letter, drives, size), copies) = match is_object {
            true => (objects, replicas),
            false => (listings, inventory.listing_replicas),
        };
        let mut say = |line: String| {
            // Writing to memory does not fail.
            let _ = writeln!(text, "$m ring-builder {server}.builder {line}");
        };
        say(format!("create {part_power} {copies} {MIN_PART_HOURS}"));
        for node in 0..nodes {
            let (zone, host) = (node % zones + 1, address(1, node));
            // Weights are gigabytes, so that drives of other sizes can come later.
            let weight = (size / 1e9).round().max(1.0);
            let words = (1..=drives).map(|drive| format!("r1z{zone}-{host}:{port}/{letter}{drive} {weight}"));
            say(format!("add {}", words.collect::<Vec<_>>().join(" ")));
        }
        say("rebalance".to_owned());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{address, proxy_conf, storage_conf};

    #[test]
    fn files_hold_what_the_answer_says() {
        let proxy = proxy_conf(2, "a-key");
        assert!(proxy.contains("memcache_servers = 10.0.0.1:11211,10.0.0.2:11211\n"));
        assert!(proxy.contains("user_admin_admin = a-key .admin"));
        assert!(!proxy.contains("MEMCACHE") && !proxy.contains("KEY"));
        assert!(storage_conf("account", 6202).contains("[account-reaper]"));
        assert_eq!(
            (address(1, 0), address(1, 450)),
            ("10.1.0.1".to_owned(), "10.1.2.51".to_owned())
        );
    }
}
