//! Where things are on a device. Pure but for [`temporary_directories`].

use crate::engine::ObjectKey;
use durable_fs::{Device, FsError};
use std::path::{Path, PathBuf};
use vocabulary::PolicyIndex;

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
    pub(crate) fn partition(&self, policy: PolicyIndex, partition: u32) -> PathBuf {
        self.objects(policy).join(partition.to_string())
    }

    /// The directory that holds an object's files.
    pub(crate) fn hash_directory(&self, key: &ObjectKey) -> PathBuf {
        let hash = key.hash.hex();
        let mut path = self.partition(key.policy, key.partition);
        path.push(&hash[29..]);
        path.push(&hash);
        path
    }

    /// Where an object's files go when they cannot be trusted.
    pub(crate) fn quarantined(&self, key: &ObjectKey) -> PathBuf {
        let mut path = self.root.join("quarantined");
        path.push(key.policy.directory("objects"));
        path.push(key.hash.hex());
        path
    }

    /// Where files wait that cannot be unnamed.
    pub(crate) fn temporaries(&self, policy: PolicyIndex) -> PathBuf {
        self.root.join(policy.directory("tmp"))
    }
}

/// Whether a name is that of a suffix directory.
pub(crate) fn is_suffix(name: &str) -> bool {
    name.len() == 3 && name.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// The `tmp` and `tmp-N` that exist on a device; none when the device is not there.
pub(crate) fn temporary_directories(device: &Device) -> Result<Vec<PathBuf>, FsError> {
    let root = device.root();
    let opened = match device.files().open_directory(root) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(vec![]),
        other => other.map_err(FsError::io("list", root))?,
    };
    let mut found = vec![];
    let mut each = |name: &std::ffi::OsStr| {
        let text = name.to_string_lossy();
        if text == "tmp" || text.starts_with("tmp-") {
            found.push(root.join(name));
        }
    };
    opened.list(&mut each).map_err(FsError::io("list", root))?;
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
            partition: 30,
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
        assert!(is_suffix("a0f") && !is_suffix("a0g") && !is_suffix("a0") && !is_suffix("A0F"));
    }
}
