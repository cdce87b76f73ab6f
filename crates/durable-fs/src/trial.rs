//! Trying a drive out: is it there, and does it keep what it is given?
//!
//! Always holds: a trial leaves nothing behind, and where the file system has unnamed files none of its files is ever
//! to be seen, not even after a crash; a full drive is well; a process without descriptors or memory learns nothing.
//! It may hang as the drive does: run it on a thread of its own.

use crate::device::StorageDevice;
use crate::error::FsError;
use crate::health::TrialOutcome;
use crate::symptom::Symptom;
use std::io;
use std::path::Path;
use std::time::Duration;
use world::World;
use world::files::{File, FileKind, Purpose, read_bytes_at};

const LENGTH: usize = 4096;
const NUMBER: usize = size_of::<u64>();

/// Writes, syncs and reads on the drive at `root`.
pub fn try_out(world: &World, root: &Path, must_be_mounted: bool) -> TrialOutcome {
    let device = StorageDevice::new(world.files.clone(), world.random.clone(), root);
    match device.check_present(must_be_mounted) {
        Err(error @ (FsError::Missing(_) | FsError::NotMounted(_))) => return TrialOutcome::Absent(error.to_string()),
        Err(FsError::Io { source, .. }) if Symptom::of(&source).is_passing() => return unclear(&source),
        Err(error) => return TrialOutcome::Sick(error.to_string()),
        Ok(()) => {}
    }
    match write_and_read(world, &device) {
        Ok(true) => TrialOutcome::Well,
        Ok(false) => TrialOutcome::Sick("what was written was read back different".into()),
        Err(error) => judge(error),
    }
}

/// What it says of the drive that a trial could not go on.
fn judge(error: io::Error) -> TrialOutcome {
    match Symptom::of(&error) {
        // Neither room nor leave to write says anything against the drive.
        Symptom::NoSpace => TrialOutcome::Well,
        Symptom::Item if error.kind() == io::ErrorKind::PermissionDenied => TrialOutcome::Well,
        Symptom::ReadOnly => TrialOutcome::ReadOnly(error.to_string()),
        Symptom::Absent => TrialOutcome::Absent(error.to_string()),
        Symptom::Process | Symptom::Busy => unclear(&error),
        Symptom::NotDirectory | Symptom::Unreadable | Symptom::Item | Symptom::Gone => {
            TrialOutcome::Sick(format!("a trial failed: {error}"))
        }
    }
}

fn unclear(error: &io::Error) -> TrialOutcome {
    TrialOutcome::Unclear(format!("a trial came to nothing: {error}"))
}

fn write_and_read(world: &World, device: &StorageDevice) -> io::Result<bool> {
    let content: Vec<u8> = (0..LENGTH / NUMBER)
        .flat_map(|_| world.random.next_u64().to_le_bytes())
        .collect();
    let temporaries = device.root().join("tmp");
    // Where what a crash leaves of a named file is swept, if there is such a place yet.
    let place = match world.files.info(&temporaries) {
        Ok(info) if info.kind == FileKind::Directory => temporaries,
        _ => device.root().to_owned(),
    };
    match world.files.open_unnamed(&place) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {}
        other => return keeps(&*other?, &content),
    }
    let path = device.temporary_path(&place);
    let file = world.files.open(&path, Purpose::Create)?;
    let kept = file.lock(Duration::ZERO).and_then(|()| keeps(&*file, &content));
    world.files.remove_file(&path)?;
    kept
}

fn keeps(file: &dyn File, content: &[u8]) -> io::Result<bool> {
    file.write_all_at(content, 0)?;
    file.sync()?;
    // Only advice: without it the cache answers, and the sync was the trial.
    let _ = file.forget_cached(0, content.len() as u64);
    Ok(read_bytes_at(file, content.len(), 0)? == content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_well_and_nothing_stays() {
        let (world, dir) = (World::real(), tempfile::tempdir().unwrap());
        assert_eq!(try_out(&world, dir.path(), false), TrialOutcome::Well);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        assert!(matches!(try_out(&world, dir.path(), true), TrialOutcome::Absent(_)));
        assert!(matches!(
            try_out(&world, &dir.path().join("x"), false),
            TrialOutcome::Absent(_)
        ));
        std::fs::write(dir.path().join("file"), "x").unwrap();
        assert!(matches!(
            try_out(&world, &dir.path().join("file"), false),
            TrialOutcome::Absent(_)
        ));
    }
}
