//! How far a scan has got on a device: `objects/auditor_status_ALL.json`, as OpenStack Swift's auditor
//! keeps it: `{"partitions": ["12", "3"]}`, those that are not done.
//!
//! The boot that a position was kept after stands beside it: `"boot": "…"`.
//! Always holds: a position that cannot be read or written costs a line and work done twice, no more.

use super::Scan;
use super::late_rows::Boot;
use durable_fs::write_file_atomically;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use vocabulary::Partition;
use world::World;

/// A ring has at most 2³² partitions; a device a fraction of them.
const LIMIT: u64 = 64 << 20;

fn name(scan: Scan) -> String {
    format!("auditor_status_{}.json", scan.word())
}

/// Of `partitions` those that are left; all of them when a pass begins. Where everything is to be looked at after
/// `boot`, what was done before it comes again, after what was left.
pub(super) fn resume(
    world: &World,
    directory: &Path,
    scan: Scan,
    boot: Option<&Boot>,
    partitions: Vec<Partition>,
) -> Vec<Partition> {
    let path = directory.join(name(scan));
    let bytes = match world.files.read(&path, LIMIT) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return partitions,
        Err(error) => return anew(&path, &error.to_string(), partitions),
    };
    let parsed: Result<Value, _> = serde_json::from_slice(&bytes);
    let left = match parsed.as_ref().map(|value| value["partitions"].as_array()) {
        Ok(Some(left)) => left,
        Ok(None) => return anew(&path, "no list of partitions", partitions),
        Err(error) => return anew(&path, &error.to_string(), partitions),
    };
    let number = |value: &Value| value.as_str().and_then(|text| text.parse::<Partition>().ok());
    let left: BTreeSet<Partition> = left.iter().filter_map(number).collect();
    let (mut left, done): (Vec<_>, Vec<_>) = partitions.into_iter().partition(|partition| left.contains(partition));
    let kept_after = parsed.as_ref().ok().and_then(|value| value["boot"].as_str());
    if boot.is_some_and(|boot| kept_after != Some(&boot.id)) {
        left.extend(done);
    }
    left
}

fn anew(path: &Path, why: &str, partitions: Vec<Partition>) -> Vec<Partition> {
    tracing::warn!("{} cannot be read ({why}): all partitions are audited", path.display());
    partitions
}

/// Notes what is left, and after which boot.
pub(super) fn save(
    world: &World,
    directory: &Path,
    scan: Scan,
    boot: Option<&Boot>,
    left: impl Iterator<Item = Partition>,
) {
    let left: Vec<String> = left.map(|partition| partition.to_string()).collect();
    let text = match boot {
        Some(boot) => json!({ "partitions": left, "boot": boot.id }),
        None => json!({ "partitions": left }),
    };
    let text = text.to_string();
    if let Err(error) = write_file_atomically(world, directory, &name(scan), text.as_bytes()) {
        tracing::warn!("the auditor's position is not kept: {error}");
    }
}

/// The pass is over: the next one begins with all partitions.
pub(super) fn clear(world: &World, directory: &Path, scan: Scan) {
    let path = directory.join(name(scan));
    match world.files.remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!("cannot remove {}: {error}", path.display());
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_goes_on_where_it_was() {
        let (world, dir) = (World::real(), tempfile::tempdir().unwrap());
        let path = dir.path().join("auditor_status_ALL.json");
        let resumed = || resume(&world, dir.path(), Scan::All, None, [1, 2, 3].map(Partition).to_vec());
        assert_eq!(resumed(), [1, 2, 3].map(Partition));
        save(&world, dir.path(), Scan::All, None, [2, 9].map(Partition).into_iter());
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            "{\"partitions\":[\"2\",\"9\"]}"
        );
        assert_eq!(resumed(), [Partition(2)]);
        // What OpenStack Swift's auditor writes names whatever lies there.
        std::fs::write(
            &path,
            "{\"partitions\": [\"file\", \"3\", \"auditor_status_ZBF.json\", 1]}",
        )
        .unwrap();
        assert_eq!(resumed(), [Partition(3)]);
        for rubbish in ["", "[]", "{\"partitions\": 3}", "\u{0}"] {
            std::fs::write(&path, rubbish).unwrap();
            assert_eq!(resumed(), [1, 2, 3].map(Partition));
        }
        clear(&world, dir.path(), Scan::All);
        clear(&world, dir.path(), Scan::All);
        assert!(!path.exists());
    }

    #[test]
    fn after_a_boot_what_was_done_before_comes_again_last() {
        let (world, dir) = (World::real(), tempfile::tempdir().unwrap());
        let [one, two] = ["one", "two"].map(|id| Boot {
            id: id.to_owned(),
            at: 0,
        });
        let resumed = |boot| resume(&world, dir.path(), Scan::All, boot, [1, 2, 3].map(Partition).to_vec());
        save(
            &world,
            dir.path(),
            Scan::All,
            Some(&one),
            [3].map(Partition).into_iter(),
        );
        assert_eq!(resumed(Some(&one)), [Partition(3)]);
        assert_eq!(resumed(Some(&two)), [3, 1, 2].map(Partition));
        assert_eq!(resumed(None), [Partition(3)]);
        // As OpenStack Swift's auditor leaves it.
        save(&world, dir.path(), Scan::All, None, [2].map(Partition).into_iter());
        assert_eq!(resumed(Some(&one)), [2, 1, 3].map(Partition));
    }
}
