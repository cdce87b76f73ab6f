//! Directories that were made but whose own entries may not be on stable storage yet.
//!
//! Two writers meet in one new directory: the second finds it existing, yet its entry is durable only
//! once the first has synced the parent. Whoever publishes below a fresh directory therefore syncs
//! the parents too. Always holds: a directory is noted before it is made, and forgotten only after a
//! sync of its parent that began after the note (hence the generation).

use parking_lot::Mutex;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

#[derive(Default)]
pub(crate) struct Fresh {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    generation: u64,
    made: HashMap<PathBuf, u64>,
}

impl Fresh {
    /// Notes a directory that is about to be made.
    pub(crate) fn note(&self, directory: &Path) {
        let mut state = self.state.lock();
        state.generation += 1;
        let generation = state.generation;
        state.made.insert(directory.to_owned(), generation);
    }

    /// The fresh ones among `directory` and its ancestors below `root`, deepest first.
    pub(crate) fn chain(&self, directory: &Path, root: &Path) -> Vec<(PathBuf, u64)> {
        let state = self.state.lock();
        directory
            .ancestors()
            .take_while(|ancestor| *ancestor != root)
            .filter_map(|ancestor| Some((ancestor.to_owned(), *state.made.get(ancestor)?)))
            .collect()
    }

    /// Forgets a directory whose parent was synced after `generation` was seen.
    pub(crate) fn settled(&self, directory: &Path, generation: u64) {
        let mut state = self.state.lock();
        if state.made.get(directory) == Some(&generation) {
            state.made.remove(directory);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_made_again_stays_fresh() {
        let fresh = Fresh::default();
        let (root, made) = (Path::new("/d"), Path::new("/d/a/b"));
        fresh.note(made);
        let seen = fresh.chain(Path::new("/d/a/b/c"), root);
        assert_eq!(seen.len(), 1);
        fresh.note(made);
        fresh.settled(&seen[0].0, seen[0].1);
        let again = fresh.chain(made, root);
        assert_eq!(again.len(), 1);
        fresh.settled(&again[0].0, again[0].1);
        assert!(fresh.chain(made, root).is_empty());
    }
}
