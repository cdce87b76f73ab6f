//! The machine's file systems, through the system calls themselves.
//!
//! Always holds: every descriptor is close-on-exec; interrupted calls are repeated; new files and
//! directories get the modes OpenStack Swift gives them (all bits the umask allows; records that are
//! not objects without the execute bits).
//! A glance takes nothing that could wait: paths are walked in the kernel's cache of names only
//! (`RESOLVE_CACHED`), what is found is opened without asking the file system (`O_PATH`, which reads
//! nothing and leaves the access time alone), and `fstat` copies what is in memory.

use crate::files::{Directory, File, FileInfo, FileKind, FileSystem, Glance, Purpose, Space};
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{
    self, Advice, AtFlags, CWD, FallocateFlags, FileType, FlockOperation, Gid, Mode, OFlags, ResolveFlags, Uid,
    XattrFlags,
};
use rustix::io::{Errno, retry_on_intr};
use std::ffi::OsStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const OBJECT_MODE: Mode = Mode::from_raw_mode(0o777);
const RECORD_MODE: Mode = Mode::from_raw_mode(0o666);
const PLAIN_MODE: Mode = Mode::from_raw_mode(0o644);
const PRIVATE_MODE: Mode = Mode::from_raw_mode(0o600);
/// File systems that write changes to directories to one log in the order they were made, so that a
/// sync that reaches a later change has reached the earlier ones: ext4 (and 3), XFS; and btrfs, which
/// logs new ancestors along with what is below them, as ext4 without a journal syncs the parents of what is new
/// (`ext4_sync_parent`).
const ONE_ORDERED_LOG: [u32; 3] = [0xef53, 0x5846_5342, 0x9123_683e];
/// File systems whose `fstat` neither takes locks nor reads: ext4, XFS, btrfs and tmpfs. Network file
/// systems ask their server.
const KNOWN_IN_MEMORY: [u32; 4] = [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994];
/// Holds the entries of every hash directory and a good part of a suffix directory at once.
const LIST_BUFFER: usize = 8 * 1024;
/// A lock is usually held for microseconds: yield that often before sleeping.
const LOCK_SPINS: u32 = 50;
const LOCK_SLEEP: Duration = Duration::from_millis(1);

/// The machine's file systems.
pub struct RealFiles;

struct RealFile {
    fd: OwnedFd,
    appends: bool,
    /// Whether what is read and written goes past the page cache now.
    is_direct: AtomicBool,
}

impl RealFile {
    fn new(fd: OwnedFd, appends: bool) -> Self {
        let is_direct = AtomicBool::new(false);
        Self { fd, appends, is_direct }
    }

    /// Which way bytes go is a property of the open file, and changed only when it must: two system calls.
    fn go_direct(&self, is_direct: bool) -> io::Result<()> {
        if self.is_direct.load(Ordering::Relaxed) != is_direct {
            let mut flags = fs::fcntl_getfl(&self.fd)?;
            flags.set(OFlags::DIRECT, is_direct);
            fs::fcntl_setfl(&self.fd, flags)?;
            self.is_direct.store(is_direct, Ordering::Relaxed);
        }
        Ok(())
    }

    fn write_all(&self, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            let count = retry_on_intr(|| match self.appends {
                true => rustix::io::write(&self.fd, bytes),
                false => rustix::io::pwrite(&self.fd, bytes, offset),
            })?;
            if count == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            bytes = &bytes[count..];
            offset += count as u64;
        }
        Ok(())
    }
}

/// In place of a file may be a pipe without a writer: opening it is not to wait. Means nothing for files.
const PATIENT: OFlags = OFlags::CLOEXEC.union(OFlags::NONBLOCK);

struct RealDirectory {
    fd: OwnedFd,
    /// Whether it stands somewhere else than at its beginning.
    listed: AtomicBool,
}

impl FileSystem for RealFiles {
    fn open(&self, path: &Path, purpose: Purpose) -> io::Result<Box<dyn File>> {
        // What is written to is the file of that name, never one elsewhere that a link in its place leads to.
        let open = |flags, mode| retry_on_intr(|| fs::openat(CWD, path, flags | PATIENT | OFlags::NOFOLLOW, mode));
        let fd = match purpose {
            Purpose::Read => open_to_read(CWD, path, PATIENT),
            Purpose::ReadHere => open_to_read(CWD, path, PATIENT | OFlags::NOFOLLOW),
            Purpose::Change => open(OFlags::RDWR, Mode::empty()),
            Purpose::Append => open(OFlags::RDWR | OFlags::CREATE | OFlags::APPEND, RECORD_MODE),
            Purpose::Create => open(OFlags::RDWR | OFlags::CREATE | OFlags::EXCL, OBJECT_MODE),
            Purpose::Lock => open(OFlags::WRONLY | OFlags::CREATE, OBJECT_MODE),
        }?;
        let appends = purpose == Purpose::Append;
        Ok(Box::new(RealFile::new(fd, appends)))
    }

    fn open_unnamed(&self, directory: &Path) -> io::Result<Box<dyn File>> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        match retry_on_intr(|| fs::openat(CWD, directory, flags, OBJECT_MODE)) {
            Ok(fd) => Ok(Box::new(RealFile::new(fd, false))),
            // What kernels and file systems without unnamed files answer.
            Err(Errno::ISDIR | Errno::INVAL) => Err(Errno::OPNOTSUPP.into()),
            Err(error) => Err(error.into()),
        }
    }

    fn open_directory(&self, path: &Path) -> io::Result<Box<dyn Directory>> {
        open_directory_at(CWD, path)
    }

    fn make_directory(&self, path: &Path) -> io::Result<()> {
        Ok(fs::mkdirat(CWD, path, OBJECT_MODE)?)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        Ok(fs::renameat(CWD, from, CWD, to)?)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        Ok(fs::unlinkat(CWD, path, AtFlags::empty())?)
    }

    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        Ok(fs::unlinkat(CWD, path, AtFlags::REMOVEDIR)?)
    }

    fn symbolic_link(&self, target: &Path, link: &Path) -> io::Result<()> {
        Ok(fs::symlinkat(target, CWD, link)?)
    }

    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        std::fs::canonicalize(path)
    }

    fn info(&self, path: &Path) -> io::Result<FileInfo> {
        Ok(file_info(&fs::statat(CWD, path, AtFlags::empty())?))
    }

    fn info_of_name(&self, path: &Path) -> io::Result<FileInfo> {
        Ok(file_info(&fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)?))
    }

    fn is_open_to_others(&self, path: &Path) -> io::Result<bool> {
        let mode = Mode::from_raw_mode(fs::statat(CWD, path, AtFlags::empty())?.st_mode);
        Ok(mode.intersects(Mode::RWXG | Mode::RWXO))
    }

    fn space(&self, path: &Path) -> io::Result<Space> {
        let stat = retry_on_intr(|| fs::statvfs(path))?;
        Ok(Space {
            total: stat.f_blocks.saturating_mul(stat.f_frsize),
            available: stat.f_bavail.saturating_mul(stat.f_frsize),
            files: stat.f_files,
            free_files: stat.f_favail,
        })
    }

    fn sync_everything(&self, path: &Path) -> io::Result<()> {
        let opened = fs::open(path, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(fs::syncfs(&opened)?)
    }

    fn syncs_ancestors(&self, path: &Path) -> bool {
        fs::statfs(path).is_ok_and(|stat| ONE_ORDERED_LOG.contains(&(stat.f_type as u32)))
    }

    fn can_glance(&self, path: &Path) -> bool {
        fs::statfs(path).is_ok_and(|stat| KNOWN_IN_MEMORY.contains(&(stat.f_type as u32)))
    }

    fn glance(&self, directory: &Path, names: &[String]) -> Option<Glance> {
        let opened = open_cached(CWD, directory, OFlags::DIRECTORY)?;
        let look = |name: &String| {
            Some(file_info(
                &fs::fstat(open_cached(&opened, name, OFlags::NOFOLLOW)?).ok()?,
            ))
        };
        let files = names.iter().map(look).collect::<Option<_>>()?;
        let directory = file_info(&fs::fstat(&opened).ok()?);
        Some(Glance { directory, files })
    }
}

impl File for RealFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.go_direct(false)?;
        Ok(retry_on_intr(|| rustix::io::pread(&self.fd, &mut *buffer, offset))?)
    }

    fn append_to(&self, buffer: &mut Vec<u8>, offset: u64) -> io::Result<usize> {
        self.go_direct(false)?;
        Ok(retry_on_intr(|| {
            rustix::io::pread(&self.fd, rustix::buffer::spare_capacity(buffer), offset)
        })?)
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.go_direct(false)?;
        self.write_all(bytes, offset)
    }

    fn write_direct_at(&self, bytes: &[u8], offset: u64) -> io::Result<bool> {
        if self.go_direct(true).is_err() {
            return Ok(false);
        }
        match self.write_all(bytes, offset) {
            Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => Ok(false),
            other => other.map(|()| true),
        }
    }

    fn sync(&self) -> io::Result<()> {
        Ok(retry_on_intr(|| fs::fsync(&self.fd))?)
    }

    fn info(&self) -> io::Result<FileInfo> {
        Ok(file_info(&fs::fstat(&self.fd)?))
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        Ok(retry_on_intr(|| fs::ftruncate(&self.fd, length))?)
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        Ok(retry_on_intr(|| {
            fs::fallocate(&self.fd, FallocateFlags::KEEP_SIZE, 0, length)
        })?)
    }

    fn forget_cached(&self, offset: u64, length: u64) -> io::Result<()> {
        Ok(fs::fadvise(
            &self.fd,
            offset,
            std::num::NonZeroU64::new(length),
            Advice::DontNeed,
        )?)
    }

    fn get_attribute(&self, name: &str, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(fs::fgetxattr(&self.fd, name, buffer)?)
    }

    fn attribute_length(&self, name: &str) -> io::Result<usize> {
        Ok(fs::fgetxattr_query(&self.fd, name)?)
    }

    fn take_permissions_of(&self, path: &Path) -> io::Result<()> {
        let mode = match fs::stat(path) {
            Ok(stat) => {
                let (user, group) = (Uid::from_raw(stat.st_uid), Gid::from_raw(stat.st_gid));
                // Only root may give a file away: for any other user the writer is the owner, as of a new file.
                let _ = fs::fchown(&self.fd, Some(user), Some(group));
                Mode::from_raw_mode(stat.st_mode)
            }
            Err(Errno::NOENT) => PLAIN_MODE,
            Err(error) => return Err(error.into()),
        };
        Ok(fs::fchmod(&self.fd, mode)?)
    }

    fn make_private(&self) -> io::Result<()> {
        Ok(fs::fchmod(&self.fd, PRIVATE_MODE)?)
    }

    fn set_attribute(&self, name: &str, value: &[u8]) -> io::Result<()> {
        Ok(fs::fsetxattr(&self.fd, name, value, XattrFlags::empty())?)
    }

    fn link(&self, to: &Path) -> io::Result<()> {
        if NAMED_BY_NUMBER.load(Ordering::Relaxed) {
            match fs::linkat(&self.fd, "", CWD, to, AtFlags::EMPTY_PATH) {
                // What it says when it is not permitted, too.
                Err(Errno::NOENT) => {}
                other => return Ok(other?),
            }
        }
        let here = format!("/proc/self/fd/{}", self.fd.as_raw_fd());
        fs::linkat(CWD, here.as_str(), CWD, to, AtFlags::SYMLINK_FOLLOW)?;
        NAMED_BY_NUMBER.store(false, Ordering::Relaxed);
        Ok(())
    }

    fn lock(&self, wait: Duration) -> io::Result<()> {
        let mut tries = 0;
        let mut started = None;
        loop {
            match fs::flock(&self.fd, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(()),
                Err(Errno::INTR) => continue,
                Err(Errno::WOULDBLOCK) => {}
                Err(error) => return Err(error.into()),
            }
            let began = *started.get_or_insert_with(Instant::now);
            if began.elapsed() >= wait {
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    format!("locked by another for {wait:?}"),
                ));
            }
            tries += 1;
            if tries <= LOCK_SPINS {
                std::thread::yield_now();
            } else {
                std::thread::sleep(LOCK_SLEEP);
            }
        }
    }
}

impl Directory for RealDirectory {
    fn list(&self, each: &mut dyn FnMut(&OsStr)) -> io::Result<()> {
        self.list_links(&mut |name, _| each(name))
    }

    fn list_links(&self, each: &mut dyn FnMut(&OsStr, bool)) -> io::Result<()> {
        if self.listed.swap(true, Ordering::Relaxed) {
            fs::seek(&self.fd, fs::SeekFrom::Start(0))?;
        }
        let mut buffer = [MaybeUninit::uninit(); LIST_BUFFER];
        let mut entries = fs::RawDir::new(&self.fd, &mut buffer);
        while let Some(entry) = entries.next() {
            let entry = match entry {
                // The directory was removed after it was opened: nothing is in it.
                Err(Errno::NOENT) => return Ok(()),
                other => other?,
            };
            match entry.file_name().to_bytes() {
                b"." | b".." => {}
                name => each(OsStr::from_bytes(name), entry.file_type() == FileType::Symlink),
            }
        }
        Ok(())
    }

    fn open_directory(&self, path: &Path) -> io::Result<Box<dyn Directory>> {
        open_directory_at(&self.fd, path)
    }

    fn make_directory(&self, name: &OsStr) -> io::Result<()> {
        Ok(fs::mkdirat(&self.fd, name, OBJECT_MODE)?)
    }

    fn is_mount_point(&self) -> io::Result<bool> {
        let here = fs::fstat(&self.fd)?;
        let above = fs::statat(&self.fd, "..", AtFlags::empty())?;
        Ok(here.st_dev != above.st_dev || here.st_ino == above.st_ino)
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn File>> {
        let fd = open_to_read(&self.fd, name, PATIENT | OFlags::NOFOLLOW)?;
        Ok(Box::new(RealFile::new(fd, false)))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        Ok(fs::unlinkat(&self.fd, name, AtFlags::empty())?)
    }

    fn sync(&self) -> io::Result<()> {
        Ok(retry_on_intr(|| fs::fsync(&self.fd))?)
    }

    fn sync_everything(&self) -> io::Result<()> {
        match *SYNCFS_TELLS {
            true => Ok(fs::syncfs(&self.fd)?),
            false => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    fn info(&self) -> io::Result<FileInfo> {
        Ok(file_info(&fs::fstat(&self.fd)?))
    }
}

/// Whether a file without a name may get one by its descriptor alone, which takes a capability before Linux 6.10
/// (linkat(2), `AT_EMPTY_PATH`); the way through `/proc` is open to all, and longer.
static NAMED_BY_NUMBER: AtomicBool = AtomicBool::new(true);

/// Whether `syncfs` says when something could not be written: since Linux 5.8 (syncfs(2), "VERSIONS").
static SYNCFS_TELLS: LazyLock<bool> = LazyLock::new(|| {
    let release = rustix::system::uname();
    let mut numbers = release.release().to_str().unwrap_or_default().split(['.', '-']);
    let mut number = || numbers.next().and_then(|text| text.parse::<u32>().ok()).unwrap_or(0);
    (number(), number()) >= (5, 8)
});

/// Leaves the access time alone: on a file system that is not mounted with `noatime` the first read of every file would
/// be a write, which waits when the file system's log is being written. Only an owner may (open(2)); others read as
/// usual.
fn open_to_read(at: impl AsFd, path: impl rustix::path::Arg + Copy, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    let open = |flags| retry_on_intr(|| fs::openat(&at, path, OFlags::RDONLY | flags, Mode::empty()));
    match open(flags | OFlags::NOATIME) {
        Err(Errno::PERM) => open(flags),
        other => other,
    }
}

fn open_directory_at(at: impl AsFd, path: &Path) -> io::Result<Box<dyn Directory>> {
    let fd = open_to_read(at, path, OFlags::DIRECTORY | OFlags::CLOEXEC)?;
    let listed = AtomicBool::new(false);
    Ok(Box::new(RealDirectory { fd, listed }))
}

/// Opens what the kernel has in memory, to look at and not to read.
fn open_cached(at: impl AsFd, path: impl rustix::path::Arg, flags: OFlags) -> Option<OwnedFd> {
    let flags = flags | OFlags::PATH | OFlags::CLOEXEC;
    fs::openat2(at, path, flags, Mode::empty(), ResolveFlags::CACHED).ok()
}

fn file_info(stat: &fs::Stat) -> FileInfo {
    FileInfo {
        kind: match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => FileKind::File,
            FileType::Directory => FileKind::Directory,
            _ => FileKind::Other,
        },
        size: u64::try_from(stat.st_size).unwrap_or(0),
        device: stat.st_dev,
        inode: stat.st_ino,
        changed: (stat.st_ctime, stat.st_ctime_nsec as i64),
        modified: (stat.st_mtime, stat.st_mtime_nsec as i64),
    }
}

#[cfg(test)]
#[path = "real_files_tests.rs"]
mod tests;
