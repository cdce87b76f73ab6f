//! The file-system seam: what durable storage needs from a disk, and nothing more.
//!
//! [`FileSystem`] works on absolute paths; [`File`] and [`Directory`] are what it opens. Handles are
//! short-lived, so that a device can be unmounted at any time. All calls block and belong on a
//! device's I/O workers, but for [`FileSystem::glance`], which answers from memory or not at all. Errors are the
//! system's own (`raw_os_error` is kept).
//! Always holds: nothing here makes anything durable by itself except `sync`; no path is followed
//! out of the directory it names by `..` that the caller did not write.
//! Deliberately absent: the order of steps that makes a change durable; that is `durable-fs`.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What an opened file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Reading; it must exist.
    Read,
    /// Reading a file that is there itself, and not a symbolic link that leads elsewhere.
    ReadHere,
    /// Reading and writing; it must exist.
    Change,
    /// Writing at the end and looking at what was written; made when missing.
    Append,
    /// Writing a new file; it must not exist.
    Create,
    /// Holding a lock; made when missing.
    Lock,
}

/// What kind of thing a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// Anything else.
    Other,
}

/// What the file system knows about a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileInfo {
    /// Regular file, directory or other.
    pub kind: FileKind,
    /// Length in bytes.
    pub size: u64,
    /// The file system it is on.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
    /// When anything about it last changed: seconds and nanoseconds since 1970.
    pub changed: (i64, i64),
    /// When its content last changed: seconds and nanoseconds since 1970.
    pub modified: (i64, i64),
}

/// What [`FileSystem::glance`] saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glance {
    /// The directory.
    pub directory: FileInfo,
    /// The files asked for, in the order asked.
    pub files: Vec<FileInfo>,
}

/// Room on a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// Bytes in all.
    pub total: u64,
    /// Bytes that an unprivileged writer may still use.
    pub available: u64,
    /// Files in all, where their number has a limit of its own; else 0.
    pub files: u64,
    /// Files that an unprivileged writer may still make.
    pub free_files: u64,
}

/// What writes past the page cache must be aligned to: the largest sector of drives in use.
pub const DIRECT_UNIT: usize = 4096;

/// An open file. Dropping it closes it.
pub trait File: Send + Sync {
    /// Reads at an offset; 0 at the end. May read less than asked.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Appends to `buffer` what is read at an offset, as much as fits without growing it; how many bytes, 0
    /// at the end. May read less than fits. Where it can be, room in the buffer is not cleared first.
    fn append_to(&self, buffer: &mut Vec<u8>, offset: u64) -> io::Result<usize> {
        let filled = buffer.len();
        buffer.resize(buffer.capacity(), 0);
        let read = self.read_at(&mut buffer[filled..], offset);
        buffer.truncate(filled + *read.as_ref().unwrap_or(&0));
        read
    }
    /// Writes all bytes at an offset (at the end for [`Purpose::Append`]).
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Writes at an offset past the page cache, for bodies too long to be worth caching: `true` when all
    /// bytes were written, `false` when none were because the file system cannot (write them the other
    /// way then). Place in memory, offset and length must be multiples of [`DIRECT_UNIT`].
    fn write_direct_at(&self, _bytes: &[u8], _offset: u64) -> io::Result<bool> {
        Ok(false)
    }
    /// Returns once content, length and attributes are on stable storage.
    fn sync(&self) -> io::Result<()>;
    /// What the file system knows about it.
    fn info(&self) -> io::Result<FileInfo>;
    /// Cuts or extends to a length.
    fn set_len(&self, length: u64) -> io::Result<()>;
    /// Reserves room for `length` bytes without changing the file's length.
    fn allocate(&self, length: u64) -> io::Result<()>;
    /// Tells the kernel that these bytes will not be read again soon.
    fn forget_cached(&self, offset: u64, length: u64) -> io::Result<()>;
    /// Reads an extended attribute into `buffer`, its length returned; `ERANGE` when it is longer,
    /// `ENODATA` when there is none.
    fn get_attribute(&self, name: &str, buffer: &mut [u8]) -> io::Result<usize>;
    /// The length of an extended attribute.
    fn attribute_length(&self, name: &str) -> io::Result<usize>;
    /// Sets an extended attribute.
    fn set_attribute(&self, name: &str, value: &[u8]) -> io::Result<()>;
    /// Gives it the permissions of the file at `path`, and its owner as far as that is allowed; where there is none
    /// those of any plain file (0644). Nothing where files have no permissions.
    fn take_permissions_of(&self, _path: &Path) -> io::Result<()> {
        Ok(())
    }
    /// Only its owner may read or write it from now on. Nothing where files have no permissions.
    fn make_private(&self) -> io::Result<()> {
        Ok(())
    }
    /// Gives a name to a file, for those opened with [`FileSystem::open_unnamed`] the first one.
    fn link(&self, to: &Path) -> io::Result<()>;
    /// Takes the exclusive advisory lock, waiting up to `wait`; `TimedOut` when another keeps it.
    /// It is released when the file is closed.
    fn lock(&self, wait: Duration) -> io::Result<()>;
}

/// An open directory. Dropping it closes it.
pub trait Directory: Send + Sync {
    /// Calls `each` for every name in it, `.` and `..` left out.
    fn list(&self, each: &mut dyn FnMut(&OsStr)) -> io::Result<()>;
    /// [`Directory::list`], and whether the name is that of a symbolic link.
    fn list_links(&self, each: &mut dyn FnMut(&OsStr, bool)) -> io::Result<()> {
        self.list(&mut |name| each(name, false))
    }
    /// Opens a directory below it, which takes less of a walk than from the root.
    fn open_directory(&self, _path: &Path) -> io::Result<Box<dyn Directory>> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Makes a directory in it, wherever its path leads meanwhile.
    fn make_directory(&self, _name: &OsStr) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Whether it is the root of what is mounted there.
    fn is_mount_point(&self) -> io::Result<bool> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Opens a file in it for reading; a symbolic link leads elsewhere and is an error.
    fn open(&self, name: &str) -> io::Result<Box<dyn File>>;
    /// Removes a file in it.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Returns once its entries are on stable storage.
    fn sync(&self) -> io::Result<()>;
    /// Makes everything durable that is on its file system. What could not be written there since it was opened is an
    /// error; `Unsupported` where that cannot be known.
    fn sync_everything(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// What the file system knows about it. Only needed where [`FileSystem::can_glance`].
    fn info(&self) -> io::Result<FileInfo> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// The names of what is in a directory itself. A symbolic link leads elsewhere, where nothing is ours to change: it is
/// passed over, with a line that names it. `path` is where the directory is.
pub fn own_names(directory: &dyn Directory, path: &Path) -> io::Result<Vec<OsString>> {
    let mut names = vec![];
    directory.list_links(&mut |name, is_link| match is_link {
        false => names.push(name.to_owned()),
        true => tracing::warn!("{}: is a symbolic link; left alone", path.join(name).display()),
    })?;
    Ok(names)
}

/// Databases that are whole files to SQLite, in memory.
pub trait Databases: Send + Sync {
    /// The whole file.
    fn load(&self, path: &Path) -> io::Result<Vec<u8>>;
    /// What a commit does: the file's content is `content` from now on.
    fn commit(&self, path: &Path, content: &[u8]) -> io::Result<()>;
}

/// A file system.
pub trait FileSystem: Send + Sync {
    /// Opens a file.
    fn open(&self, path: &Path, purpose: Purpose) -> io::Result<Box<dyn File>>;
    /// Opens a new file without a name, for writing and reading, on the file system of `directory`; it vanishes when
    /// closed unless it is given a name. `EOPNOTSUPP` where file systems cannot do that.
    fn open_unnamed(&self, directory: &Path) -> io::Result<Box<dyn File>>;
    /// Opens a directory.
    fn open_directory(&self, path: &Path) -> io::Result<Box<dyn Directory>>;
    /// Makes one directory; its parent must exist.
    fn make_directory(&self, path: &Path) -> io::Result<()>;
    /// Moves a file or directory, replacing a file or an empty directory at `to`.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Removes an empty directory.
    fn remove_directory(&self, path: &Path) -> io::Result<()>;
    /// Makes a symbolic link to `target`.
    fn symbolic_link(&self, _target: &Path, _link: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// The path of what `path` leads to, symbolic links followed; `path` itself where there are none.
    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(path.to_owned())
    }
    /// What the file system knows about a path, symbolic links followed.
    fn info(&self, path: &Path) -> io::Result<FileInfo>;
    /// What it knows about what has that name: a symbolic link is itself, and neither file nor directory.
    fn info_of_name(&self, path: &Path) -> io::Result<FileInfo> {
        self.info(path)
    }
    /// Whether others than the owner of the file at `path` may read or change it. Where files have no owners: no.
    fn is_open_to_others(&self, _path: &Path) -> io::Result<bool> {
        Ok(false)
    }
    /// The room on the file system that holds `path`.
    fn space(&self, path: &Path) -> io::Result<Space>;

    /// Makes everything durable that is on the file system of the directory at `path`.
    fn sync_everything(&self, path: &Path) -> io::Result<()>;

    /// Whether syncing a directory on the file system of `path` makes earlier changes to the
    /// directories above it durable too. False where that is not known for certain.
    fn syncs_ancestors(&self, _path: &Path) -> bool {
        false
    }

    /// Whether [`FileSystem::glance`] at `path` keeps its word there.
    fn can_glance(&self, _path: &Path) -> bool {
        false
    }

    /// What is known about a directory and files in it without reading from the disk, waiting for it or
    /// changing anything on it, so that async threads may ask. `None` unless that is known of all.
    fn glance(&self, _directory: &Path, _names: &[String]) -> Option<Glance> {
        None
    }

    /// Where databases are kept that SQLite cannot open by their paths at all. `None` where it can.
    fn databases(&self) -> Option<&dyn Databases> {
        None
    }

    /// By which VFS SQLite opens files here by their paths. `None` where the paths are the machine's own.
    fn sqlite_vfs(&self) -> Option<&str> {
        None
    }

    /// Whether schemas of databases are obeyed that Swift does not make. A simulation may say so, to show what comes of
    /// it.
    fn obeys_any_schema(&self) -> bool {
        false
    }

    /// The whole content of a file, refused with `FileTooLarge` beyond `limit` bytes.
    fn read(&self, path: &Path, limit: u64) -> io::Result<Vec<u8>> {
        read_whole(&*self.open(path, Purpose::Read)?, limit)
    }

    /// The same, of a file that is there itself.
    fn read_here(&self, path: &Path, limit: u64) -> io::Result<Vec<u8>> {
        read_whole(&*self.open(path, Purpose::ReadHere)?, limit)
    }

    /// Whether `path` is where a file system is mounted; false when it does not exist.
    fn is_mount_point(&self, path: &Path) -> io::Result<bool> {
        let here = match self.info(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            other => other?,
        };
        let above = self.info(&path.join(".."))?;
        Ok(here.device != above.device || here.inode == above.inode)
    }
}

fn read_whole(file: &dyn File, limit: u64) -> io::Result<Vec<u8>> {
    let size = file.info()?.size;
    if size > limit {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("{size} bytes, {limit} expected at most"),
        ));
    }
    let mut content = vec![0; usize::try_from(size).unwrap_or(usize::MAX)];
    let filled = read_full_at(file, &mut content, 0)?;
    content.truncate(filled);
    Ok(content)
}

/// Reads `length` bytes, fewer only where the file ends.
pub fn read_bytes_at(file: &dyn File, length: usize, offset: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(length);
    while bytes.len() < length {
        let place = offset + bytes.len() as u64;
        if file.append_to(&mut bytes, place)? == 0 {
            break;
        }
    }
    // The allocator may give more room than was asked for.
    bytes.truncate(length);
    Ok(bytes)
}

/// Reads until `buffer` is full or the file ends; the number of bytes read.
pub fn read_full_at(file: &dyn File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], offset + filled as u64)? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(filled)
}
