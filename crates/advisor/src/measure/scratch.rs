//! Folders of a measurement: made, removed with all that is in them, and what killed commands left.
//!
//! Always holds: only folders with the name of this command and of a process that is no more are removed, and only
//! those of the user who runs this: in `/dev/shm` anybody can make what has such a name. A symbolic link is removed
//! itself, never what it leads to; one in the place of a folder is left alone.

use super::limits::{PREFIX, is_left};
use rustix::fs::FileType;
use rustix::process::geteuid;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use vocabulary::Fault;
use world::World;
use world::files::FileKind;

/// A folder that is removed with all that is in it when this is dropped.
pub struct ScratchFolder {
    world: World,
    /// Where it is.
    pub path: PathBuf,
}

impl ScratchFolder {
    /// A new one below `parent`.
    pub fn make(world: &World, parent: &Path) -> Result<Self, Fault> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("{PREFIX}{}-{number}", std::process::id()));
        match world.files.make_directory(&path) {
            Ok(()) => Ok(Self {
                world: world.clone(),
                path,
            }),
            Err(error) => Err(Fault::caller(format!("folder: {}: {error}", path.display()))),
        }
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        if let Err(error) = remove_tree(&self.world, &self.path) {
            tracing::warn!("{}: {error}; remove it by hand", self.path.display());
        }
    }
}

/// Makes a folder, and those above it that are missing.
pub fn make_folders(world: &World, path: &Path) -> Result<(), Fault> {
    if world.files.open_directory(path).is_ok() {
        return Ok(());
    }
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        make_folders(world, parent)?;
    }
    let made = world.files.make_directory(path);
    made.map_err(|error| {
        let path = path.display();
        Fault::caller(match error.kind() {
            io::ErrorKind::AlreadyExists => format!("{path}: it is no folder: name another"),
            _ => format!("{path}: {error}"),
        })
    })
}

/// Removes data of commands that were killed.
pub fn remove_leftovers(world: &World, parent: &Path) {
    let mut names: Vec<OsString> = vec![];
    if let Ok(directory) = world.files.open_directory(parent) {
        let _ = directory.list(&mut |name| names.push(name.to_owned()));
    }
    for name in names {
        let path = parent.join(&name);
        if name.to_str().is_some_and(|name| is_left(world, name)) && is_own_folder(&path) {
            // What cannot be removed takes room and changes no figure.
            let _ = remove_tree(world, &path);
        }
    }
}

/// Whether a name is a folder itself, no link to one, and belongs to who runs this.
fn is_own_folder(path: &Path) -> bool {
    let found = rustix::fs::lstat(path);
    found.is_ok_and(|found| {
        FileType::from_raw_mode(found.st_mode) == FileType::Directory && found.st_uid == geteuid().as_raw()
    })
}

fn remove_tree(world: &World, path: &Path) -> io::Result<()> {
    let mut names = vec![];
    let directory = world.files.open_directory(path)?;
    directory.list(&mut |name| names.push(name.to_owned()))?;
    for path in names.iter().map(|name| path.join(name)) {
        match world.files.info_of_name(&path)?.kind == FileKind::Directory {
            true => remove_tree(world, &path)?,
            false => world.files.remove_file(&path)?,
        }
    }
    world.files.remove_directory(path)
}

#[cfg(test)]
mod tests {
    use super::{ScratchFolder, make_folders, remove_leftovers};
    use world::World;

    #[test]
    fn a_folder_goes_with_all_that_is_in_it_and_links_lead_nowhere() {
        let (world, root) = (World::real(), tempfile::tempdir().unwrap());
        let outside = root.path().join("kept");
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(outside.join("file"), "x").unwrap();
        let folder = ScratchFolder::make(&world, root.path()).unwrap();
        make_folders(&world, &folder.path.join("a/b/c")).unwrap();
        std::fs::write(folder.path.join("a/b/file"), "x").unwrap();
        std::os::unix::fs::symlink(&outside, folder.path.join("a/link")).unwrap();
        let path = folder.path.clone();
        drop(folder);
        assert!(!path.exists() && outside.join("file").exists());
    }

    #[test]
    fn only_what_a_killed_command_left_is_removed() {
        let (world, root) = (World::real(), tempfile::tempdir().unwrap());
        let alive = ScratchFolder::make(&world, root.path()).unwrap();
        let others = ["martlet-advise-4194305-0/deep", "data/deep"].map(|name| root.path().join(name));
        others.iter().for_each(|path| std::fs::create_dir_all(path).unwrap());
        let link = root.path().join("martlet-advise-4194305-1");
        std::os::unix::fs::symlink(root.path().join("data"), link).unwrap();
        remove_leftovers(&world, root.path());
        assert!(alive.path.exists() && others[1].exists(), "what a link leads to stays");
        assert!(!root.path().join("martlet-advise-4194305-0").exists());
    }
}
