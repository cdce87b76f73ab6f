//! Finding all databases of a device: for upkeep, a partition at a time.
//!
//! Always holds: only places where [`Location`] itself would put a database are handed out; whatever
//! else lies there is named on request and left alone. Deliberately absent: opening anything.

use crate::files::Disk;
use crate::{DeviceRoot, Kind, Location};
use std::io;
use std::path::{Path, PathBuf};
use vocabulary::{Partition, PathHash};

impl Location {
    /// The partitions of `kind` on a device; none when it has never held any.
    pub fn partitions(device: &DeviceRoot, kind: Kind) -> io::Result<Vec<Partition>> {
        Ok(Self::survey_partitions(device, kind)?.0)
    }

    /// [`Location::partitions`], and what lies beside them.
    pub fn survey_partitions(device: &DeviceRoot, kind: Kind) -> io::Result<(Vec<Partition>, Vec<PathBuf>)> {
        let mut strays = vec![];
        let partitions = partitions(device.disk(), &device.path().join(kind.directory()), &mut strays)?;
        Ok((partitions, strays))
    }

    /// The places of databases in a partition; whether there is one is for the opener to find out.
    pub fn in_partition(device: &DeviceRoot, kind: Kind, partition: Partition) -> io::Result<Vec<Location>> {
        Ok(Self::survey(device, kind, partition)?.0)
    }

    /// [`Location::in_partition`], and what lies beside them.
    pub fn survey(device: &DeviceRoot, kind: Kind, partition: Partition) -> io::Result<(Vec<Location>, Vec<PathBuf>)> {
        let directory = device.path().join(kind.directory()).join(partition.to_string());
        let mut strays = vec![];
        let hashes = hashes(device.disk(), &directory, &mut strays)?;
        let found = hashes
            .into_iter()
            .map(|hash| Location::new(device.clone(), kind, partition, hash))
            .collect();
        Ok((found, strays))
    }
}

/// The partitions below a tree's `directory`.
pub(crate) fn partitions(disk: &Disk, directory: &Path, strays: &mut Vec<PathBuf>) -> io::Result<Vec<Partition>> {
    understood(disk, directory, strays, Partition::from_directory)
}

/// The hashes below the `directory` of a partition, each under its suffix.
pub(crate) fn hashes(disk: &Disk, directory: &Path, strays: &mut Vec<PathBuf>) -> io::Result<Vec<PathHash>> {
    let mut found = vec![];
    let is_suffix = |name: &str| name.len() == 3 && name.bytes().all(|b| b.is_ascii_hexdigit());
    let suffix = |name: &str| is_suffix(name).then(|| name.to_owned());
    for suffix in understood(disk, directory, strays, suffix)? {
        let here = |name: &str| PathHash::from_hex(name).filter(|hash| hash.suffix() == suffix);
        found.extend(understood(disk, &directory.join(&suffix), strays, here)?);
    }
    Ok(found)
}

/// What is understood of the names in a directory; what is not goes to `strays`, and so does the directory
/// when it is none. Nothing when it is missing; hidden names are locks.
fn understood<T>(
    disk: &Disk,
    directory: &Path,
    strays: &mut Vec<PathBuf>,
    understand: impl Fn(&str) -> Option<T>,
) -> io::Result<Vec<T>> {
    let entries = match disk.entries(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(vec![]),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            strays.push(directory.to_owned());
            return Ok(vec![]);
        }
        other => other?,
    };
    let mut found = vec![];
    for (name, is_link) in entries {
        match name.to_str().map(|text| (understand(text), text)) {
            // What a link names lies elsewhere, where nothing is ours to change.
            Some((Some(_), _)) if is_link => strays.push(directory.join(name)),
            Some((Some(thing), _)) => found.push(thing),
            Some((None, text)) if text.starts_with('.') => {}
            _ => strays.push(directory.join(name)),
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_link_leads_to_is_no_partition() {
        let (device, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::create_dir_all(elsewhere.path().join("empty")).unwrap();
        let containers = device.path().join("containers");
        std::fs::create_dir_all(containers.join("7")).unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), containers.join("46")).unwrap();
        let (partitions, strays) = Location::survey_partitions(&device.path().into(), Kind::Container).unwrap();
        assert_eq!((partitions, strays), (vec![Partition(7)], vec![containers.join("46")]));
        Location::tidy_partition(&device.path().into(), Kind::Container, Partition(46));
        Location::tidy_partition(&device.path().into(), Kind::Container, Partition(7));
        assert!(
            elsewhere.path().join("empty").exists() && containers.join("46").exists() && !containers.join("7").exists()
        );
    }
}
