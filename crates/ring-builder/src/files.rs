//! The files of a ring: the builder, the ring made from it, and the backups of both.
//!
//! Always holds: a file is replaced by a whole new one that is on stable storage (`durable-fs`), or stays as it
//! is; a builder that is a symbolic link stays one; what a command changes, it changes under the directory's lock,
//! which OpenStack's `-safe` program takes too.

use crate::memory;
use crate::terminal::Stop;
use durable_fs::{FsError, Locked, StorageDevice, write_file_atomically};
use placement::{BuilderError, RingBuilder, RingData};
use pythonic::quoted;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;
use vocabulary::Fault;
use world::World;

/// How long one waits for another who changes a ring of the same directory.
pub const PATIENCE: Duration = Duration::from_secs(15);

/// No builder or ring that can be read is larger: a builder of 2^26 partitions with three replicas has 0.7 GiB.
const LARGEST: u64 = 1 << 30;

const BUILDER: &str = ".builder";
const RING: &str = ".ring.gz";
const BACKUPS: &str = "backups";

/// Where the files of one ring are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuilderFiles {
    /// The builder.
    pub builder: PathBuf,
    /// The ring made from it.
    pub ring: PathBuf,
    /// Whether the ring was named to mean its builder.
    pub by_ring: bool,
}

impl BuilderFiles {
    /// The files that a name on the command line means: that of the builder, or of the ring.
    pub fn named(name: &str) -> BuilderFiles {
        let (stem, by_ring) = match name.strip_suffix(RING) {
            Some(stem) => (stem, true),
            None => (name.strip_suffix(BUILDER).unwrap_or(name), false),
        };
        BuilderFiles {
            builder: if by_ring {
                format!("{stem}{BUILDER}")
            } else {
                name.to_owned()
            }
            .into(),
            ring: format!("{stem}{RING}").into(),
            by_ring,
        }
    }

    /// The directory of both; the backups are in a folder of it.
    pub fn directory(&self) -> &Path {
        directory_of(&self.builder)
    }

    /// The builder's file name without its ending: `object` of `object.builder`.
    pub fn ring_name(&self) -> &str {
        let name = self.builder.file_name().and_then(|it| it.to_str()).unwrap_or_default();
        name.strip_suffix(BUILDER).unwrap_or(name)
    }
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// What may be done with the files.
pub struct Shelf<'w> {
    world: &'w World,
    files: BuilderFiles,
}

impl<'w> Shelf<'w> {
    /// The files of a ring.
    pub fn new(world: &'w World, files: BuilderFiles) -> Shelf<'w> {
        Shelf { world, files }
    }

    /// Where they are.
    pub fn files(&self) -> &BuilderFiles {
        &self.files
    }

    /// Keeps others from changing rings in this directory as long as it is held.
    pub fn lock(&self, patience: Duration) -> Result<Locked, Stop> {
        let directory = self.files.directory();
        let device = StorageDevice::new(self.world.files.clone(), self.world.random.clone(), directory);
        device.lock(directory, patience).map_err(|error| match error {
            FsError::Io { source, .. } if source.kind() == ErrorKind::TimedOut => {
                Stop::Refused("Ring/builder dir currently locked.".to_owned())
            }
            other => Stop::Refused(other.to_string()),
        })
    }

    /// Whether there is a builder, of whatever kind.
    pub fn has_builder(&self) -> bool {
        let info = self.world.files.info(&self.files.builder);
        !info.is_err_and(|error| error.kind() == ErrorKind::NotFound)
    }

    /// The builder; none when there is no such file.
    pub fn read_builder(&self) -> Result<Option<RingBuilder>, Stop> {
        let path = self.files.builder.display();
        memory::provide_for_file(self.world, &self.files.builder)?;
        let bytes = match self.world.files.read(&self.files.builder, LARGEST) {
            Ok(bytes) => bytes,
            Err(error) => return unreadable(&self.files.builder, &error),
        };
        match RingBuilder::from_bytes(&bytes) {
            Ok(builder) => Ok(Some(builder)),
            Err(BuilderError::Pickle(_)) => Err(Stop::Refused(format!("Ring Builder file is invalid: {path}"))),
            Err(other) => {
                let why = format!("Problem occurred while reading builder file: {path}. {other}");
                Err(Stop::Refused(why))
            }
        }
    }

    /// Refuses a builder of a size that there is no memory for.
    pub fn provide_memory(&self, part_power: u32, replicas: f64) -> Result<(), Stop> {
        let what = format!("part power {part_power} with {replicas} replicas");
        memory::provide(self.world, RingBuilder::memory_needed(part_power, replicas), &what)
    }

    /// The ring; none when there is no such file.
    pub fn read_ring(&self) -> Result<Option<RingData>, Fault> {
        let bytes = self
            .read_ring_bytes()
            .map_err(|error| Fault::caller(error.to_string()))?;
        let ring = bytes.map(|bytes| RingData::from_bytes(&bytes)).transpose();
        ring.map_err(|error| Fault::data(error.to_string()))
    }

    /// The ring's file; none when there is none.
    pub fn read_ring_bytes(&self) -> Result<Option<Vec<u8>>, Error> {
        match self.world.files.read(&self.files.ring, LARGEST) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            other => other.map(Some),
        }
    }

    /// Replaces the builder. One without an id gets one.
    pub fn save(&self, builder: &mut RingBuilder) -> Result<(), Stop> {
        self.identify(builder);
        self.write_builder(&builder.to_bytes())
    }

    /// Replaces the builder and keeps a copy among the backups, as the first of all or after a rebalance.
    pub fn save_with_backup(&self, builder: &mut RingBuilder) -> Result<(), Stop> {
        self.identify(builder);
        let bytes = builder.to_bytes();
        self.back_up(&self.files.builder, &bytes)?;
        self.write_builder(&bytes)
    }

    /// A link leads to where operators keep their builders, and what is there is the builder.
    fn write_builder(&self, bytes: &[u8]) -> Result<(), Stop> {
        let named = &self.files.builder;
        let place = self.world.files.resolve(named).unwrap_or_else(|_| named.clone());
        self.write(&place, bytes)
    }

    /// Replaces the ring and keeps a copy among the backups.
    pub fn save_ring(&self, bytes: &[u8]) -> Result<(), Stop> {
        self.back_up(&self.files.ring, bytes)?;
        self.write(&self.files.ring, bytes)
    }

    fn identify(&self, builder: &mut RingBuilder) {
        let random = &self.world.random;
        builder.set_id(&format!("{:016x}{:016x}", random.next_u64(), random.next_u64()));
    }

    fn back_up(&self, path: &Path, bytes: &[u8]) -> Result<(), Stop> {
        let directory = self.files.directory();
        let device = StorageDevice::new(self.world.files.clone(), self.world.random.clone(), directory);
        let backups = directory.join(BACKUPS);
        device.provide_directories(&backups).map_err(refused)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        self.write(&backups.join(format!("{}.{name}", self.now())), bytes)
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), Stop> {
        let name = path.file_name().and_then(|it| it.to_str());
        let name = name.ok_or_else(|| Stop::Refused(format!("{} is no name for a file", path.display())))?;
        write_file_atomically(self.world, directory_of(path), name, bytes).map_err(|error| {
            let why = match error {
                FsError::Io { source, .. } => source.to_string(),
                FsError::Missing(_) => "no such directory".to_owned(),
                other => other.to_string(),
            };
            Stop::Refused(format!("cannot write {}: {why}", path.display()))
        })
    }

    /// Another file that the operator named.
    pub fn read_other(&self, path: &Path, limit: u64) -> Result<Vec<u8>, Error> {
        self.world.files.read(path, limit)
    }

    /// Writes another file that the operator named, in place of one that is there.
    pub fn write_other(&self, path: &Path, bytes: &[u8]) -> Result<(), Stop> {
        self.write(path, bytes)
    }

    /// Seconds since 1970.
    pub fn now(&self) -> i64 {
        i64::try_from(self.world.clock.now().seconds()).unwrap_or(i64::MAX)
    }

    /// A number that cannot be predicted.
    pub fn dice(&self) -> u64 {
        self.world.random.next_u64()
    }
}

fn refused(error: FsError) -> Stop {
    Stop::Refused(error.to_string())
}

fn unreadable(path: &Path, error: &Error) -> Result<Option<RingBuilder>, Stop> {
    let shown = path.display();
    Err(Stop::Refused(match error.kind() {
        ErrorKind::NotFound => return Ok(None),
        ErrorKind::PermissionDenied => format!("Ring Builder file cannot be accessed: {shown}"),
        ErrorKind::IsADirectory => format!(
            "Problem occurred while reading builder file: {shown}. [Errno 21] Is a directory: {}",
            quoted(&shown.to_string())
        ),
        _ => format!("Problem occurred while reading builder file: {shown}. {error}"),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_means_the_builder_or_the_ring() {
        let files = BuilderFiles::named("/etc/swift/object-1.builder");
        assert_eq!(files.ring, Path::new("/etc/swift/object-1.ring.gz"));
        assert_eq!((files.ring_name(), files.by_ring), ("object-1", false));
        let files = BuilderFiles::named("object.ring.gz");
        assert_eq!((&*files.builder, files.by_ring), (Path::new("object.builder"), true));
        assert_eq!(files.directory(), Path::new("."));
        let files = BuilderFiles::named("ro/plain");
        assert_eq!(
            (&*files.builder, &*files.ring),
            (Path::new("ro/plain"), Path::new("ro/plain.ring.gz"))
        );
    }
}
