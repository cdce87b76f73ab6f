//! Replicas when replication has come to rest: on each primary, equal, and nowhere else.
//!
//! Files count as readers count them: what something newer made meaningless may come back with the power,
//! and stays until its suffix is hashed again. Tombstones are not read: where bits may flip, the name counts.

use crate::disk::FileContent;
use crate::history::Violation;
use crate::sim_run::SimRun;
use crate::topology::address;
use crate::watch::OBJECTS;
use object_engine::rules::{FileName, choose};
use std::collections::BTreeMap;

/// All replicas of all paths.
pub(crate) fn are_equal(run: &SimRun) -> Result<(), Violation> {
    let ring = run.cluster.topology.objects.load();
    let held: Vec<_> = run
        .cluster
        .nodes
        .iter()
        .map(|node| objects(node.files.contents(OBJECTS), !run.plan.config.marks))
        .collect();
    let mut expected = 0;
    for (account, container, object) in &run.history.paths {
        let hash = run.cluster.topology.hash.object(account, container, object);
        let primaries: Vec<String> = ring
            .primaries(ring.partition_of(&hash.0))
            .iter()
            .map(|device| device.ip.clone())
            .collect();
        let mut first: Option<(usize, &BTreeMap<String, FileContent>)> = None;
        for (number, held) in held.iter().enumerate() {
            let here = held.get(&hash.hex());
            if !primaries.contains(&address(number)) {
                if here.is_some() {
                    return Err(Violation(format!("node {number} still has {object} and should not")));
                }
                continue;
            }
            expected += usize::from(here.is_some());
            let nothing = const { &BTreeMap::new() };
            let here = here.unwrap_or(nothing);
            match first {
                None => first = Some((number, here)),
                Some((other, there)) if here != there => {
                    return Err(Violation(format!(
                        "{object} is not the same everywhere: node {other} has {}, node {number} {}",
                        described(there),
                        described(here)
                    )));
                }
                Some(_) => {}
            }
        }
    }
    match held.iter().map(BTreeMap::len).sum::<usize>() {
        all if all == expected => Ok(()),
        all => Err(Violation(format!("{all} objects are there, {expected} are known of"))),
    }
}

/// The files that count, by object and name.
fn objects(files: BTreeMap<String, FileContent>, bits_flip: bool) -> BTreeMap<String, BTreeMap<String, FileContent>> {
    let mut objects: BTreeMap<String, BTreeMap<String, FileContent>> = BTreeMap::new();
    for (path, mut whole) in files {
        if bits_flip && path.ends_with(".ts") {
            whole = FileContent::default();
        }
        let mut names = path.rsplit('/');
        if let (Some(name), Some(object)) = (names.next(), names.next())
            && object.len() == 32
        {
            objects
                .entry(object.to_owned())
                .or_default()
                .insert(name.to_owned(), whole);
        }
    }
    objects.values_mut().for_each(keep_what_counts);
    objects.retain(|_, files| !files.is_empty());
    objects
}

fn keep_what_counts(files: &mut BTreeMap<String, FileContent>) {
    let (names, parsed): (Vec<String>, Vec<FileName>) = files
        .keys()
        .filter_map(|name| Some((name.clone(), name.parse::<FileName>().ok()?)))
        .unzip();
    let choice = choose(&parsed);
    let counting = [choice.data, choice.meta, choice.content_type, choice.tombstone];
    let counts = |name: &String| counting.into_iter().flatten().any(|at| names[at] == *name);
    files.retain(|name, _| counts(name));
}

/// Names, sizes and attributes.
fn described(files: &BTreeMap<String, FileContent>) -> String {
    let one = |(name, (bytes, attributes)): (&String, &FileContent)| {
        let attributes: Vec<String> = attributes
            .iter()
            .map(|(name, value)| format!("{name}={}", value.escape_ascii()))
            .collect();
        format!("{name} ({} bytes, {})", bytes.len(), attributes.join(", "))
    };
    files.iter().map(one).collect::<Vec<_>>().join(" and ")
}
