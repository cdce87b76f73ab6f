//! Where things are on a device. Pure but for [`temporary_directories`].

use crate::key::{ObjectKey, PartitionKey};
use durable_fs::{FsError, StorageDevice};
use std::fmt::{Arguments, Write};
use std::path::{Path, PathBuf};
use vocabulary::{Partition, PolicyIndex};

/// Where suffixes that changed are announced in a partition.
pub(crate) const INVALIDATIONS: &str = "hashes.invalid";
/// The suffix hashes of a partition.
pub(crate) const HASHES: &str = "hashes.pkl";
/// The lock of a partition.
pub(crate) const LOCK: &str = ".lock";

/// Room for what is below a device's root in the path of an object's file.
const LONGEST_BELOW: usize = 112;

/// Where things are on one device.
pub(crate) struct Layout {
    root: PathBuf,
}

impl Layout {
    pub(crate) fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// `objects` or `objects-N`.
    pub(crate) fn objects(&self, policy: PolicyIndex) -> PathBuf {
        self.root.join(policy.directory("objects"))
    }

    /// The directory of a partition.
    pub(crate) fn partition(&self, policy: PolicyIndex, partition: Partition) -> PathBuf {
        let mut path = PathBuf::with_capacity(self.root.as_os_str().len() + LONGEST_BELOW);
        path.push(&self.root);
        append(&mut path, policy, format_args!("{partition}"));
        path
    }

    /// The directory that holds an object's files.
    pub(crate) fn hash_directory(&self, key: &ObjectKey) -> PathBuf {
        let [.., first, last] = key.hash.0;
        let (partition, hash) = (key.partition, key.hash);
        let mut path = PathBuf::with_capacity(self.root.as_os_str().len() + LONGEST_BELOW);
        path.push(&self.root);
        let below = format_args!("{partition}/{:x}{last:02x}/{hash}", first & 15);
        append(&mut path, key.policy, below);
        path
    }

    /// Where an object's files go when they cannot be trusted.
    pub(crate) fn quarantined(&self, key: &ObjectKey) -> PathBuf {
        self.quarantine(key.policy).join(key.hash.hex())
    }

    /// Where things of a policy go that cannot be trusted.
    pub(crate) fn quarantine(&self, policy: PolicyIndex) -> PathBuf {
        self.root.join("quarantined").join(policy.directory("objects"))
    }

    /// Where something goes that is in the place of a file of a policy, and is none.
    pub(crate) fn aside(&self, path: &Path) -> PathBuf {
        let tree = path.strip_prefix(&self.root).unwrap_or(path).components().next();
        let mut name = path.parent().and_then(Path::file_name).unwrap_or_default().to_owned();
        name.push("-");
        name.push(path.file_name().unwrap_or_default());
        let quarantine = self.root.join("quarantined");
        tree.map_or(quarantine.clone(), |tree| quarantine.join(tree)).join(name)
    }

    /// The partition whose directory that is.
    pub(crate) fn partition_at(&self, path: &Path) -> Option<PartitionKey> {
        let tree = path.parent()?.strip_prefix(&self.root).ok()?.to_str()?;
        let policy = match tree.strip_prefix("objects")? {
            "" => PolicyIndex(0),
            number => PolicyIndex(number.strip_prefix('-')?.parse().ok()?),
        };
        let partition = path.file_name()?.to_str()?.parse().ok()?;
        Some(PartitionKey { policy, partition })
    }

    /// Where files wait that cannot be unnamed.
    pub(crate) fn temporaries(&self, policy: PolicyIndex) -> PathBuf {
        match policy.0 {
            0 => self.root.join("tmp"),
            _ => self.root.join(policy.directory("tmp")),
        }
    }
}

/// Appends `objects[-N]/<below>` without a string for each component: every request comes by here.
fn append(path: &mut PathBuf, policy: PolicyIndex, below: Arguments<'_>) {
    let text = path.as_mut_os_string();
    // Writing to a string in memory succeeds.
    let _ = match policy.0 {
        0 => write!(text, "/objects/{below}"),
        number => write!(text, "/objects-{number}/{below}"),
    };
}

/// Whether a name is that of a suffix directory.
pub(crate) fn is_suffix(name: &str) -> bool {
    name.len() == 3 && name.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether a name is `tmp` or `tmp-N`.
fn is_temporary(name: &str) -> bool {
    let number = |rest: &str| rest.parse::<u32>().is_ok_and(|number| format!("tmp-{number}") == name);
    name == "tmp" || name.strip_prefix("tmp-").is_some_and(number)
}

/// The `tmp` and `tmp-N` that exist on a device, and lie there; none when the device is not there.
pub(crate) fn temporary_directories(device: &StorageDevice) -> Result<Vec<PathBuf>, FsError> {
    let root = device.root();
    let opened = match device.files().open_directory(root) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(vec![]),
        other => other.map_err(FsError::io("list", root))?,
    };
    let mut found = vec![];
    let mut each = |name: &std::ffi::OsStr, is_link: bool| match name.to_str().is_some_and(is_temporary) {
        true if is_link => tracing::warn!("{}: is a symbolic link; not swept", root.join(name).display()),
        true => found.push(root.join(name)),
        false => {}
    };
    opened.list_links(&mut each).map_err(FsError::io("list", root))?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use vocabulary::PathHash;

    #[test]
    fn places_are_openstacks() {
        let layout = Layout::new(Path::new("/srv/node/sda"));
        let key = |policy| ObjectKey {
            policy: PolicyIndex(policy),
            partition: Partition(30),
            hash: PathHash::from_hex("485dc017205a81df3af616d917c90179").unwrap_or(PathHash([0; 16])),
            name: "/a/c/o".into(),
        };
        assert_eq!(
            layout.hash_directory(&key(5)),
            Path::new("/srv/node/sda/objects-5/30/179/485dc017205a81df3af616d917c90179")
        );
        assert_eq!(
            layout.quarantined(&key(0)),
            Path::new("/srv/node/sda/quarantined/objects/485dc017205a81df3af616d917c90179")
        );
        assert_eq!(layout.temporaries(PolicyIndex(2)), Path::new("/srv/node/sda/tmp-2"));
        assert!(["tmp", "tmp-1", "tmp-12"].into_iter().all(is_temporary));
        assert!(
            !["tmp-", "tmp-01", "tmp-mine", "tmpx", "tmp-1x"]
                .into_iter()
                .any(is_temporary)
        );
        assert!(is_suffix("a0f") && !is_suffix("a0g") && !is_suffix("a0") && !is_suffix("A0F"));
    }
}
