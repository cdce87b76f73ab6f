//! A cluster's configuration directory (`/etc/swift`): its secrets, policies and rings.
//!
//! Always holds: the default directory may be without `swift.conf` (on a machine of the operator's own), any other must
//! have one; a ring that is not there is no error, nor is a directory of its name; one that cannot be read is.

use placement::Ring;
use settings::SwiftConf;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use vocabulary::{Fault, PathHash, Policy, PolicyIndex};
use world::World;
use world::files::FileKind;

/// Where it is by default.
pub(crate) const DEFAULT: &str = "/etc/swift";
/// No ring is larger: 2^32 partitions do not fit a format 1 file.
const LARGEST_RING: u64 = 8 << 30;

/// What is read of it.
pub(crate) struct SwiftDir {
    path: PathBuf,
    conf: Option<SwiftConf>,
}

impl SwiftDir {
    /// Reads `swift.conf`.
    pub(crate) fn open(world: &World, path: &Path) -> Result<Self, Fault> {
        let file = path.join("swift.conf");
        let is_there = world.files.info(&file).is_ok();
        let conf = match is_there || path != Path::new(DEFAULT) {
            true => Some(SwiftConf::load(&file).map_err(|error| Fault::caller(error.to_string()))?),
            false => None,
        };
        Ok(Self {
            path: path.to_owned(),
            conf,
        })
    }

    /// The hash of a path (account, container, object, as many as there are); without the cluster's secrets none.
    pub(crate) fn hash(&self, parts: &[&str]) -> Option<PathHash> {
        let secrets = &self.conf.as_ref()?.hash;
        match parts {
            [account] => Some(secrets.account(account)),
            [account, container] => Some(secrets.container(account, container)),
            [account, container, object] => Some(secrets.object(account, container, object)),
            _ => None,
        }
    }

    /// The policy of an index.
    pub(crate) fn policy(&self, index: PolicyIndex) -> Option<&Policy> {
        self.conf.as_ref()?.policies.get(index)
    }

    /// The policy of a name or alias, in upper or lower case.
    pub(crate) fn policy_named(&self, name: &str) -> Option<&Policy> {
        self.conf.as_ref()?.policies.by_name(name)
    }

    /// A ring (`account`, `object-1`); none where there is no such file, and where nothing can be placed for want of
    /// secrets.
    pub(crate) fn ring(&self, world: &World, name: &str) -> Result<Option<Ring>, Fault> {
        let path = self.path.join(format!("{name}.ring.gz"));
        if self.conf.is_none() {
            return Ok(None);
        }
        match world.files.info(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Ok(info) if info.kind == FileKind::Directory => Ok(None),
            _ => read_ring(world, &path).map(Some),
        }
    }
}

/// The ring in a file.
pub(crate) fn read_ring(world: &World, path: &Path) -> Result<Ring, Fault> {
    let bytes = world.files.read(path, LARGEST_RING);
    let bytes = bytes.map_err(|error| Fault::caller(format!("cannot read {}: {error}", path.display())))?;
    Ring::from_bytes(&bytes).map_err(|error| Fault::data(format!("{}: {error}", path.display())))
}
