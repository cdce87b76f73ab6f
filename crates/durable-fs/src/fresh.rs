//! Directories that were made but whose own entries may not be on stable storage yet.
//!
//! Two writers meet in one new directory: the second finds it existing, yet its entry is durable only
//! once the first has synced the parent. Publishing below a fresh directory therefore syncs the parents
//! too. Always holds: a directory is noted before it is made, and forgotten only after a sync of its
//! parent that began after the note (hence the generation), or of everything that began after it was there;
//! and never while a thread is about to make it, which may do so when it has been taken away again meanwhile.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// What became of making a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Making {
    /// It was made; the generation of its note.
    Made(u64),
    /// It was there.
    There,
    /// It was there, but not a moment ago: perhaps another program has made it, and may not have synced it yet.
    Appeared,
    /// What it belongs in is not there, or it could not be made.
    Not,
}

#[derive(Default)]
pub(crate) struct Fresh {
    state: Mutex<FreshState>,
}

#[derive(Default)]
struct FreshState {
    generation: u64,
    /// By their paths as they are spelled: all are made by joining names to the device's root, and a path is
    /// hashed name by name.
    directories: HashMap<OsString, FreshDirectory>,
}

impl FreshState {
    fn next(&mut self) -> u64 {
        self.generation += 1;
        self.generation
    }

    fn get(&self, directory: &Path) -> Option<&FreshDirectory> {
        self.directories.get::<OsStr>(directory.as_os_str())
    }

    fn get_mut(&mut self, directory: &Path) -> Option<&mut FreshDirectory> {
        self.directories.get_mut::<OsStr>(directory.as_os_str())
    }

    fn forget(&mut self, directory: &Path) {
        self.directories.remove::<OsStr>(directory.as_os_str());
    }
}

struct FreshDirectory {
    /// When it was noted or made last.
    generation: u64,
    /// How many are about to make it.
    makers: usize,
    /// By when it was there; `None` while that is not known.
    there: Option<u64>,
}

impl Fresh {
    /// Makes a directory, which is noted before; `make` says what became of it, as this does.
    pub(crate) fn make<E>(&self, directory: &Path, make: impl FnOnce() -> Result<Making, E>) -> Result<Making, E> {
        self.announce(directory);
        let made = make();
        let generation = self.ended(directory, *made.as_ref().unwrap_or(&Making::Not));
        made.map(|made| match made {
            Making::Made(_) => Making::Made(generation),
            other => other,
        })
    }

    fn announce(&self, directory: &Path) {
        let mut state = self.state.lock();
        let generation = state.next();
        match state.get_mut(directory) {
            Some(note) => {
                note.generation = generation;
                note.makers += 1;
            }
            None => {
                let (makers, there) = (1, None);
                let note = FreshDirectory {
                    generation,
                    makers,
                    there,
                };
                state.directories.insert(directory.into(), note);
            }
        }
    }

    /// The generation of now.
    fn ended(&self, directory: &Path, made: Making) -> u64 {
        let mut state = self.state.lock();
        let generation = state.next();
        // It is not forgotten while it has makers.
        let Some(note) = state.get_mut(directory) else {
            return generation;
        };
        note.makers -= 1;
        match made {
            Making::Made(_) => {
                note.generation = generation;
                note.there = Some(generation);
            }
            Making::Appeared => note.there = Some(generation),
            // Another thread that is about to make it, or has made it, had noted it, too.
            Making::There | Making::Not if note.makers == 0 && note.there.is_none() => {
                state.forget(directory);
            }
            Making::There | Making::Not => {}
        }
        generation
    }

    /// Which of these directories have not been made again, about to be made or synced since.
    pub(crate) fn are_as_made<'a>(&self, made: impl Iterator<Item = Option<(&'a Path, u64)>>) -> Vec<bool> {
        let state = self.state.lock();
        let is_as_made = |(directory, generation): (&Path, u64)| {
            let note = state.get(directory);
            note.is_some_and(|note| note.generation == generation)
        };
        made.map(|made| made.is_some_and(is_as_made)).collect()
    }

    /// The generation up to which directories are there.
    pub(crate) fn generation(&self) -> u64 {
        self.state.lock().generation
    }

    /// Forgets all that were there at that generation, after a sync of everything that began later.
    pub(crate) fn all_synced(&self, generation: u64) {
        let is_left = |note: &FreshDirectory| note.makers > 0 || note.there.is_none_or(|there| there > generation);
        self.state.lock().directories.retain(|_, note| is_left(note));
    }

    /// The fresh ones among `directory` and its ancestors below `root`, deepest first.
    pub(crate) fn chain(&self, directory: &Path, root: &Path) -> Vec<(PathBuf, u64)> {
        let state = self.state.lock();
        let is_below = |path: &&Path| path.as_os_str().len() > root.as_os_str().len();
        directory
            .ancestors()
            .take_while(is_below)
            .filter_map(|ancestor| {
                let note = state.get(ancestor)?;
                Some((ancestor.to_owned(), note.generation))
            })
            .collect()
    }

    /// Forgets a directory whose parent was synced after `generation` was seen.
    pub(crate) fn synced(&self, directory: &Path, generation: u64) {
        let mut state = self.state.lock();
        let is_synced = |note: &FreshDirectory| note.makers == 0 && note.generation == generation;
        if state.get(directory).is_some_and(is_synced) {
            state.forget(directory);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = "/d";

    fn is_fresh(fresh: &Fresh, directory: &Path) -> bool {
        !fresh.chain(directory, Path::new(ROOT)).is_empty()
    }

    fn make(fresh: &Fresh, directory: &Path, outcome: Making) -> Making {
        fresh.make(directory, || Ok::<_, ()>(outcome)).unwrap()
    }

    #[test]
    fn a_directory_made_again_stays_fresh() {
        let fresh = Fresh::default();
        let (root, made) = (Path::new(ROOT), Path::new("/d/a/b"));
        make(&fresh, made, Making::Made(0));
        let seen = fresh.chain(Path::new("/d/a/b/c"), root);
        assert_eq!(seen.len(), 1);
        make(&fresh, made, Making::Made(0));
        fresh.synced(&seen[0].0, seen[0].1);
        let again = fresh.chain(made, root);
        assert_eq!(again.len(), 1);
        fresh.synced(&again[0].0, again[0].1);
        assert!(!is_fresh(&fresh, made));
    }

    #[test]
    fn what_is_there_or_cannot_be_made_is_not_fresh() {
        let fresh = Fresh::default();
        let directory = Path::new("/d/a");
        make(&fresh, directory, Making::There);
        make(&fresh, directory, Making::Not);
        assert_eq!(fresh.make(directory, || Err(())), Err(()));
        assert!(!is_fresh(&fresh, directory));
        make(&fresh, directory, Making::Appeared);
        make(&fresh, directory, Making::There);
        assert!(is_fresh(&fresh, directory));
    }

    #[test]
    fn a_sync_of_everything_covers_what_was_there_when_it_began() {
        let fresh = Fresh::default();
        let (before, during, after) = (Path::new("/d/a"), Path::new("/d/b"), Path::new("/d/c"));
        make(&fresh, before, Making::Made(0));
        fresh.announce(during);
        let generation = fresh.generation();
        fresh.ended(during, Making::Made(0));
        fresh.announce(after);
        fresh.all_synced(generation);
        assert!(!is_fresh(&fresh, before) && is_fresh(&fresh, during) && is_fresh(&fresh, after));
        fresh.all_synced(fresh.generation());
        assert!(!is_fresh(&fresh, during) && is_fresh(&fresh, after));
    }

    /// It was taken away when the second had found it, and before the first made it.
    #[test]
    fn it_is_not_forgotten_while_a_thread_is_about_to_make_it() {
        let directory = Path::new("/d/a");
        for by_all in [false, true] {
            let fresh = Fresh::default();
            fresh.announce(directory);
            make(&fresh, directory, Making::There);
            match by_all {
                true => fresh.all_synced(fresh.generation()),
                false => {
                    let seen = fresh.chain(directory, Path::new(ROOT));
                    fresh.synced(&seen[0].0, seen[0].1);
                }
            }
            assert!(is_fresh(&fresh, directory));
            let generation = fresh.generation();
            fresh.ended(directory, Making::Made(0));
            fresh.all_synced(generation);
            assert!(is_fresh(&fresh, directory));
        }
    }

    #[test]
    fn it_is_as_made_until_another_makes_or_syncs_it() {
        let fresh = Fresh::default();
        let directory = Path::new("/d/a");
        let Making::Made(generation) = make(&fresh, directory, Making::Made(0)) else {
            panic!("it was made");
        };
        let is_as_made = || fresh.are_as_made([Some((directory, generation))].into_iter()) == [true];
        assert!(is_as_made());
        make(&fresh, directory, Making::There);
        assert!(!is_as_made());
        let fresh_again = Fresh::default();
        make(&fresh_again, directory, Making::Made(0));
        fresh_again.all_synced(fresh_again.generation());
        assert_eq!(
            fresh_again.are_as_made([Some((directory, generation)), None].into_iter()),
            [false, false]
        );
    }
}
