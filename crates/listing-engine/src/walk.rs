//! Finding all databases of a device: for upkeep, a partition at a time.
//!
//! Always holds: only places where [`Location`] itself would put a database are handed out; whatever
//! else lies there is not looked at. Deliberately absent: opening anything.

use crate::{Kind, Location};
use std::io;
use std::path::Path;
use vocabulary::PathHash;

impl Location {
    /// The partitions of `kind` on a device; none when it has never held any.
    pub fn partitions(device: &Path, kind: Kind) -> io::Result<Vec<u32>> {
        let canonical = |name: String| name.parse::<u32>().ok().filter(|number| number.to_string() == name);
        let names = names(&device.join(kind.directory()))?;
        Ok(names.into_iter().filter_map(canonical).collect())
    }

    /// The places of databases in a partition; whether there is one is for the opener to find out.
    pub fn in_partition(device: &Path, kind: Kind, partition: u32) -> io::Result<Vec<Location>> {
        let directory = device.join(kind.directory()).join(partition.to_string());
        let mut found = vec![];
        for suffix in names(&directory)?.into_iter().filter(|name| name.len() == 3) {
            let hashes = names(&directory.join(&suffix))?;
            let hashes = hashes.iter().filter_map(|name| PathHash::from_hex(name));
            let here = hashes.filter(|hash| hash.suffix() == suffix);
            found.extend(here.map(|hash| Location::new(device, kind, partition, hash)));
        }
        Ok(found)
    }
}

/// The names in a directory; none when it is missing or no directory.
fn names(directory: &Path) -> io::Result<Vec<String>> {
    let entries = match std::fs::read_dir(directory) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(vec![]);
        }
        other => other?,
    };
    let name = |entry: io::Result<std::fs::DirEntry>| Ok(entry?.file_name().into_string().ok());
    entries.map(name).filter_map(Result::transpose).collect()
}
