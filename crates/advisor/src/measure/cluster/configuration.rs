//! Configuration and rings of a measured cluster.
//!
//! Always holds: what is written is what an operator would write, with the values that a measurement needs.

use super::super::plan::MeasurePlan;
use ring_builder::{CommandStatus, Invocation, Terminal};
use std::io;
use std::path::Path;
use vocabulary::Fault;
use world::World;

/// An address and a port.
pub type Place<'a> = (&'a str, u16);

/// What requests pass: the filters of a usual gateway, without authentication.
const PIPELINE: &str = "catch_errors gatekeeper healthcheck proxy-logging listing_formats container-quotas \
                        account-quotas slo dlo versioned_writes symlink proxy-logging proxy-server";
/// Filters of it and what they are called in `use`.
const FILTERS: [(&str, &str); 11] = [
    ("catch_errors", "catch_errors"),
    ("gatekeeper", "gatekeeper"),
    ("healthcheck", "healthcheck"),
    ("proxy-logging", "proxy_logging"),
    ("listing_formats", "listing_formats"),
    ("container-quotas", "container_quotas"),
    ("account-quotas", "account_quotas"),
    ("slo", "slo"),
    ("dlo", "dlo"),
    ("versioned_writes", "versioned_writes"),
    ("symlink", "symlink"),
];

/// Hashes with secrets of their own, and one policy.
pub fn swift_conf((prefix, suffix): (u64, u64)) -> String {
    format!(
        "[swift-hash]\nswift_hash_path_prefix = {prefix:016x}\nswift_hash_path_suffix = {suffix:016x}\n\n\
         [storage-policy:0]\nname = measured\ndefault = yes\n"
    )
}

/// One thread, since a processor is shared in time and not in number; the user who runs this.
fn common(etc: &Path, (host, port): Place<'_>) -> String {
    format!(
        "[DEFAULT]\nbind_ip = {host}\nbind_port = {port}\nworkers = 1\nuser = root\nswift_dir = {}\nlog_level = WARNING\n",
        etc.display()
    )
}

/// Of one server of a storage node. What is read from limited drives comes from the drives, and not from memory.
pub fn storage_conf(etc: &Path, srv: &Path, role: &str, place: Place<'_>, is_limited: bool) -> String {
    let uncached = match is_limited && role == "object" {
        true => "keep_cache_size = 0\n",
        false => "",
    };
    format!(
        "{}devices = {}\nmount_check = false\nrecon_cache_path = {}\n\n[pipeline:main]\npipeline = {role}-server\n\n\
         [app:{role}-server]\nuse = egg:swift#{role}\n{uncached}",
        common(etc, place),
        srv.display(),
        srv.with_extension("recon").display()
    )
}

/// Of a gateway.
pub fn proxy_conf(etc: &Path, place: Place<'_>) -> String {
    let mut text = format!(
        "{}\n[pipeline:main]\npipeline = {PIPELINE}\n\n[app:proxy-server]\nuse = egg:swift#proxy\n\
         account_autocreate = true\n",
        common(etc, place)
    );
    for (name, egg) in FILTERS {
        text += &format!("\n[filter:{name}]\nuse = egg:swift#{egg}\n");
    }
    text
}

/// Makes a ring by the operator's commands. Each storage node is a zone.
pub fn ring(
    world: &World,
    plan: &MeasurePlan,
    etc: &Path,
    name: &str,
    place: impl Fn(u32) -> (String, u16),
    nodes: u32,
) -> Result<(), Fault> {
    let builder = etc.join(format!("{name}.builder"));
    let run = |words: &[String]| -> Result<(), Fault> {
        let words: Vec<String> = std::iter::once(builder.display().to_string())
            .chain(words.iter().cloned())
            .collect();
        let (mut out, mut err, mut input) = (vec![], vec![], io::empty());
        let mut terminal = Terminal {
            out: &mut out,
            err: &mut err,
            input: &mut input,
        };
        match Invocation::new("ring-builder", &words).run(world, &mut terminal) {
            CommandStatus::Error => Err(Fault::caller(format!(
                "ring-builder {}: {}{}",
                words.join(" "),
                String::from_utf8_lossy(&out),
                String::from_utf8_lossy(&err)
            ))),
            _ => Ok(()),
        }
    };
    let words = |text: String| text.split_whitespace().map(str::to_owned).collect::<Vec<String>>();
    run(&words(format!("create 8 {} 1", plan.replicas)))?;
    for node in 0..nodes {
        let (host, port) = place(node);
        for drive in 0..plan.drives {
            let device = format!("r1z{}-{host}:{port}/d{drive}", node + 1);
            run(&words(format!("add {device} 100")))?;
        }
    }
    run(&words("rebalance --seed 1".to_owned()))
}

/// Of the balancer: the gateway with the fewest requests under way takes the next one.
pub fn haproxy_conf((host, port): Place<'_>, gateways: &[(String, u16)], clients: u32) -> String {
    let mut text = format!(
        "global\n    maxconn {clients}\ndefaults\n    mode http\n    timeout connect 10s\n    timeout client 120s\n    timeout \
         server 120s\nfrontend clients\n    bind {host}:{port}\n    default_backend gateways\nbackend gateways\n    \
         balance leastconn\n"
    );
    for (number, (host, port)) in gateways.iter().enumerate() {
        text += &format!("    server g{number} {host}:{port}\n");
    }
    text
}
