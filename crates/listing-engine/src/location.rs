//! Where a database lives: `<device>/{accounts,containers}/<partition>/<suffix>/<hash>/<hash>.db`.
//!
//! Pure path arithmetic, except [`Location::newest_file`], which looks for the `<hash>_<epoch>.db`
//! files that OpenStack's sharder leaves.

use crate::Error;
use crate::files::{DeviceRoot, Disk};
use durable_fs::Symptom;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use vocabulary::{Partition, PathHash};

/// Which of the two schemas a database has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Lists the containers of an account.
    Account,
    /// Lists the objects of a container.
    Container,
}

impl Kind {
    /// The directory on a device: `accounts` or `containers`.
    pub fn directory(self) -> &'static str {
        match self {
            Kind::Account => "accounts",
            Kind::Container => "containers",
        }
    }

    /// `account` or `container`.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Account => "account",
            Kind::Container => "container",
        }
    }

    /// The table whose one row describes the whole.
    pub(crate) fn stat_table(self) -> &'static str {
        match self {
            Kind::Account => "account_stat",
            Kind::Container => "container_info",
        }
    }
}

/// The place of one database.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Location {
    root: DeviceRoot,
    kind: Kind,
    partition: Partition,
    hash: PathHash,
}

impl Location {
    /// On a device.
    pub fn new(device: impl Into<DeviceRoot>, kind: Kind, partition: Partition, hash: PathHash) -> Self {
        Self {
            root: device.into(),
            kind,
            partition,
            hash,
        }
    }

    /// Which schema.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The partition it lies in, which is not always the one it belongs in.
    pub fn partition(&self) -> Partition {
        self.partition
    }

    /// Where the device is mounted.
    pub fn device(&self) -> &Path {
        self.root.path()
    }

    /// The file system it is on.
    pub(crate) fn disk(&self) -> &Disk {
        self.root.disk()
    }

    /// The device, as directories are made on it.
    pub(crate) fn root(&self) -> &DeviceRoot {
        &self.root
    }

    /// The device's name, as it ends the database's id.
    pub fn device_name(&self) -> String {
        self.device()
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default()
    }

    /// The directory that belongs to this database alone.
    pub fn hash_dir(&self) -> PathBuf {
        let device = self.device();
        // Long enough for a file in it, too.
        let mut path = PathBuf::with_capacity(device.as_os_str().len() + 128);
        path.push(device);
        path.push(self.kind.directory());
        path.push(self.partition.to_string());
        path.push(self.hash.suffix());
        path.push(self.hash.hex());
        path
    }

    fn file(&self, ending: &str) -> PathBuf {
        let mut path = self.hash_dir();
        path.push(self.hash.hex() + ending);
        path
    }

    /// The database file a new database gets.
    pub fn db_file(&self) -> PathBuf {
        self.file(".db")
    }

    /// Rows that are acknowledged but not merged yet.
    pub fn pending_file(&self) -> PathBuf {
        self.file(".db.pending")
    }

    /// The lock that OpenStack's services take too.
    pub fn lock_file(&self) -> PathBuf {
        let mut path = self.hash_dir();
        path.push(".lock");
        path
    }

    /// Where the whole directory goes when the database is damaged.
    pub fn quarantine_dir(&self) -> PathBuf {
        let mut path = self.device().join("quarantined");
        path.push(self.kind.directory());
        path.push(self.hash.hex());
        path
    }

    /// Where databases are made before they are published.
    pub fn tmp_dir(&self) -> PathBuf {
        self.device().join("tmp")
    }

    /// Makes the place where databases arrive, if it is not there.
    ///
    /// # Errors
    /// When the device does not let it be made.
    pub fn make_tmp(&self) -> Result<(), Error> {
        match self.disk().is(&self.tmp_dir(), world::files::FileKind::Directory)? {
            true => Ok(()),
            false => self.disk().make_dirs(&self.tmp_dir(), self.root()),
        }
    }

    /// The hash of the account's or container's path.
    pub fn hash(&self) -> PathHash {
        self.hash
    }

    /// The hash in hexadecimal.
    pub fn hash_hex(&self) -> String {
        self.hash.hex()
    }

    /// The file in use: the one with the greatest epoch, else the plain one if its name is there, whatever bears it.
    ///
    /// # Errors
    /// When it cannot be known: the directory is there, and cannot be listed.
    pub fn newest_file(&self) -> Result<Option<PathBuf>, Error> {
        let directory = self.hash_dir();
        match self.disk().entries(&directory) {
            Ok(entries) => Ok(self.newest_of(&entries)),
            Err(error) if Symptom::of(&error).is_absent() => Ok(None),
            Err(error) => Err(Error::io("list", &directory, error)),
        }
    }

    /// The same, of what is in the directory.
    pub(crate) fn newest_of(&self, entries: &[(OsString, bool)]) -> Option<PathBuf> {
        let epoch_prefix = format!("{}_", self.hash.hex());
        let names = entries.iter().filter_map(|(name, _)| name.to_str());
        let newest_epoch = names
            .filter(|name| name.starts_with(&epoch_prefix) && name.ends_with(".db"))
            .max();
        match newest_epoch {
            Some(name) => Some(self.hash_dir().join(name)),
            None => Some(self.db_file()).filter(|file| entries.iter().any(|(name, _)| file.file_name() == Some(name))),
        }
    }
}
