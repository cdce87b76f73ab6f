//! Directories that were made but whose own entries may not be on stable storage yet.
//!
//! Two writers meet in one new directory: the second finds it existing, yet its entry is durable only
//! once the first has synced the parent. Whoever publishes below a fresh directory therefore syncs
//! the parents too. Always holds: a directory is noted before it is made, and forgotten only after a
//! sync of its parent that began after the note (hence the generation); by a sync of everything only if it was made
//! before that began.

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
    made: HashMap<PathBuf, Note>,
}

struct Note {
    /// When it was noted.
    generation: u64,
    /// By when it was there; `None` while it is being made.
    there: Option<u64>,
}

impl Fresh {
    /// Notes a directory that is about to be made; the note's generation, and whether there was none yet.
    pub(crate) fn note(&self, directory: &Path) -> (u64, bool) {
        let mut state = self.state.lock();
        state.generation += 1;
        let generation = state.generation;
        let there = None;
        let before = state.made.insert(directory.to_owned(), Note { generation, there });
        (generation, before.is_none())
    }

    /// The directory of that note is there now.
    pub(crate) fn is_there(&self, directory: &Path, generation: u64) {
        let mut state = self.state.lock();
        state.generation += 1;
        let there = Some(state.generation);
        // Others may have noted it anew, or published below and settled it.
        if let Some(note) = state.made.get_mut(directory)
            && note.generation == generation
        {
            note.there = there;
        }
    }

    /// The generation up to which directories are there.
    pub(crate) fn generation(&self) -> u64 {
        self.state.lock().generation
    }

    /// Forgets all that were there at that generation, after a sync of everything that began later.
    pub(crate) fn all_settled(&self, generation: u64) {
        let is_left = |note: &Note| note.there.is_none_or(|there| there > generation);
        self.state.lock().made.retain(|_, note| is_left(note));
    }

    /// The fresh ones among `directory` and its ancestors below `root`, deepest first.
    pub(crate) fn chain(&self, directory: &Path, root: &Path) -> Vec<(PathBuf, u64)> {
        let state = self.state.lock();
        directory
            .ancestors()
            .take_while(|ancestor| *ancestor != root)
            .filter_map(|ancestor| Some((ancestor.to_owned(), state.made.get(ancestor)?.generation)))
            .collect()
    }

    /// Forgets a directory whose parent was synced after `generation` was seen, or one that was there when the first note of it was
    /// made: who else has made it, and not synced it, had noted it before.
    pub(crate) fn settled(&self, directory: &Path, generation: u64) {
        let mut state = self.state.lock();
        if state
            .made
            .get(directory)
            .is_some_and(|note| note.generation == generation)
        {
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

    #[test]
    fn a_sync_of_everything_settles_what_was_there_when_it_began() {
        let fresh = Fresh::default();
        let is_fresh = |directory| !fresh.chain(directory, Path::new("/d")).is_empty();
        let (before, during, after) = (Path::new("/d/a"), Path::new("/d/b"), Path::new("/d/c"));
        fresh.is_there(before, fresh.note(before).0);
        let (making, _) = fresh.note(during);
        let generation = fresh.generation();
        fresh.is_there(during, making);
        fresh.note(after);
        fresh.all_settled(generation);
        assert!(!is_fresh(before) && is_fresh(during) && is_fresh(after));
        fresh.all_settled(fresh.generation());
        assert!(!is_fresh(during) && is_fresh(after));
    }

    #[test]
    fn who_was_there_first_says_nothing_of_who_makes_it_again() {
        let fresh = Fresh::default();
        let directory = Path::new("/d/a");
        let is_fresh = || !fresh.chain(directory, Path::new("/d")).is_empty();
        let (first, is_first) = fresh.note(directory);
        let (second, is_second_first) = fresh.note(directory);
        assert!(is_first && !is_second_first);
        fresh.is_there(directory, first);
        fresh.all_settled(fresh.generation());
        assert!(is_fresh());
        fresh.is_there(directory, second);
        fresh.all_settled(fresh.generation());
        assert!(!is_fresh());
    }
}
