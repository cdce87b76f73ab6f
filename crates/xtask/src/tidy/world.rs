//! Clock, files, sockets, names and threads of the machine are used in `world` only.

use crate::finding::Finding;
use crate::tree::Tree;
use std::collections::{BTreeMap, BTreeSet};

/// What only `world` may use, and what others use instead.
const MACHINE: &[(&str, &str)] = &[
    ("hickory_resolver", "world::network"),
    ("rustix::fs", "world::files"),
    ("rustix::net", "world::network"),
    ("rustix::rand", "world::random"),
    ("socket2", "world::network"),
    ("std::env", "settings (the binary reads the environment)"),
    ("std::fs", "world::files"),
    ("std::net::TcpListener", "world::network"),
    ("std::net::TcpStream", "world::network"),
    ("std::net::ToSocketAddrs", "world::network"),
    ("std::net::UdpSocket", "world::network"),
    ("std::os::unix::net", "world::network"),
    ("std::thread::Builder", "world::pools"),
    ("std::thread::scope", "world::pools"),
    ("std::thread::sleep", "world::clock"),
    ("std::thread::spawn", "world::pools"),
    ("std::time::Instant::now", "world::clock"),
    ("std::time::SystemTime::now", "world::clock"),
    ("tokio::fs", "world::files"),
    ("tokio::net", "world::network"),
    ("tokio::spawn", "world::tasks"),
    ("tokio::task::spawn", "world::tasks"),
    ("tokio::task::spawn_blocking", "world::pools"),
    ("tokio::time", "world::clock"),
];

/// Files and folders that may use one of them, with the reason.
const EXCEPTED: &[(&str, &str, &str)] = &[
    (
        "crates/telemetry/src/log_output.rs",
        "",
        "writes what is logged, in the simulation as well, to this process's own standard error",
    ),
    ("crates/world/", "", "the one place"),
    ("crates/xtask/", "", "no part of the program"),
    ("crates/fuzz/", "", "no part of the program"),
    (
        "crates/martlet/",
        "",
        "starts, watches and stops processes before a world exists",
    ),
    (
        "crates/advisor/src/measure/cluster.rs",
        "std::os::unix::net",
        "holds a name for each port that a measurement takes on this machine; it runs programs, and is never simulated",
    ),
    (
        "crates/advisor/src/measure/machine.rs",
        "std::os::unix::net",
        "holds the name that one measurement of this machine has; it runs programs, and is never simulated",
    ),
    (
        "crates/advisor/src/measure/machine.rs",
        "rustix::net",
        "which process has that name",
    ),
    (
        "crates/advisor/src/measure/scratch.rs",
        "rustix::fs",
        "whom a folder in everybody's /dev/shm belongs to before root removes it; files of a world have no owner",
    ),
    (
        "crates/features/src/access/authtoken/tls.rs",
        "std::env",
        "the variables of OpenSSL that name authorities, read once at the start",
    ),
    (
        "crates/settings/src/source.rs",
        "std::fs",
        "reads the configuration before a world exists",
    ),
    (
        "crates/features/src/addresses/cname_lookup/resolver.rs",
        "hickory_resolver",
        "the one DNS client; it serves one feature",
    ),
    (
        "crates/listing-engine/src/look/aside.rs",
        "",
        "SQLite's own file access, and room for its copies",
    ),
    (
        "crates/object-engine/src/conformance/bodies.rs",
        "std::thread::scope",
        "the suite that tests of engines share",
    ),
    (
        "crates/operator-tools/src/drive_audit",
        "",
        "reads the kernel's log and changes mounts of the real machine",
    ),
];

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = vec![];
    for source in &tree.sources {
        let mut seen = BTreeSet::new();
        let mut names: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut paths = vec![];
        for import in source.imports() {
            paths.push((import.path.clone(), import.line));
            names.insert(import.name, import.path);
        }
        for (path, line) in source.paths() {
            match names.get(&path[0]) {
                // The import itself is the finding.
                Some(whole) if machine(whole).is_some() => {}
                Some(whole) => paths.push(([&whole[..], &path[1..]].concat(), line)),
                None => paths.push((path, line)),
            }
        }
        for (path, line) in paths {
            let Some((name, instead)) = machine(&path) else {
                continue;
            };
            if !is_excepted(&source.path, name) && seen.insert((name, line)) {
                let what = format!(
                    "`{name}` is used outside `world`: use {instead}, so that the simulation can stand in for the \
                     machine; a place that must use it stands in EXCEPTED (crates/xtask/src/tidy/world.rs), with its \
                     reason"
                );
                findings.push(Finding::new("world", &source.path, line, what));
            }
        }
    }
    findings
}

fn machine(path: &[String]) -> Option<(&'static str, &'static str)> {
    let begins = |name: &str| {
        let mut segments = name.split("::");
        let mut path = path.iter();
        segments.all(|segment| path.next().is_some_and(|other| other == segment))
    };
    MACHINE.iter().copied().find(|(name, _)| begins(name))
}

fn is_excepted(path: &str, name: &str) -> bool {
    EXCEPTED
        .iter()
        .any(|(file, prefix, _)| path.starts_with(file) && name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::planted;

    #[test]
    fn the_machine_is_found_under_any_name() {
        let text = "use std::{fs, net::IpAddr};\nuse std::time::{self, Instant};\nfn a() { fs::read(); }\n\
                    fn b() { Instant::now(); }\nfn c() { select!(tokio::time::sleep(x)); }\n\
                    fn d() { time::SystemTime::now(); }\n#[test]\nfn t() { std::fs::read(); }\n";
        let found = check(&planted(&[
            ("crates/a/src/lib.rs", text),
            ("crates/world/src/lib.rs", text),
        ]));
        let places: Vec<(&str, usize)> = found.iter().map(|f| (f.file.as_str(), f.line)).collect();
        assert_eq!(places, [1, 4, 5, 6].map(|line| ("crates/a/src/lib.rs", line)));
        assert!(found[0].what.contains("world::files"));
    }
}
