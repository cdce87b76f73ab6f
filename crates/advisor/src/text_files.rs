//! Text files that commands read and write.
//!
//! Always holds: what is there is not written over; a file that could not be written whole is removed; an error names
//! the file and what to do.

use std::io;
use std::path::Path;
use vocabulary::Fault;
use world::World;
use world::files::Purpose;

/// The largest file that is read.
const LONGEST: u64 = 64 << 20;

pub(crate) fn read_text(world: &World, path: &Path) -> Result<String, Fault> {
    let failed = |error: &dyn std::fmt::Display| Fault::caller(format!("{}: {error}", path.display()));
    let bytes = world.files.read(path, LONGEST).map_err(|error| failed(&error))?;
    String::from_utf8(bytes).map_err(|error| failed(&error))
}

pub(crate) fn write_text(world: &World, path: &Path, text: &str) -> Result<(), Fault> {
    let written = || {
        let file = world.files.open(path, Purpose::Create)?;
        file.set_len(0)?;
        file.write_all_at(text.as_bytes(), 0)
    };
    written().map_err(|error: io::Error| {
        // Half of a file would be read as a whole one.
        if error.kind() != io::ErrorKind::AlreadyExists {
            let _ = world.files.remove_file(path);
        }
        not_written(path, &error)
    })
}

/// Why a file was not written, and what to do.
pub(crate) fn not_written(path: &Path, error: &io::Error) -> Fault {
    let path = path.display();
    Fault::caller(match error.kind() {
        io::ErrorKind::AlreadyExists => format!("{path}: it is there already: name another file, or remove it"),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            format!("{path}: {error}: make room on its file system, or name a file on another one")
        }
        _ => format!("{path}: {error}"),
    })
}
