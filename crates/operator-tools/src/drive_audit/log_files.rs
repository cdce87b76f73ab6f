//! The log's files: what matches a shell's pattern (`*`, `?` and `[…]` in any part of a path).
//!
//! Always holds: as with a shell, a name that begins with a dot matches only what begins with one.

use regex::Regex;
use std::cmp::Reverse;
use std::path::{Component, Path, PathBuf};
use world::World;

/// What matches, what was written last first.
pub(super) fn written_last_first(world: &World, pattern: &Path) -> Vec<PathBuf> {
    let mut found = match pattern.components().next() {
        Some(_) => vec![PathBuf::new()],
        None => vec![],
    };
    for part in pattern.components() {
        found = found.iter().flat_map(|folder| below(world, folder, part)).collect();
    }
    // A link that leads nowhere is there: an audit that cannot read it is not to pass for one that has found nothing.
    found.retain(|path| rustix::fs::lstat(path).is_ok());
    found.sort();
    let written = |path: &PathBuf| world.files.info(path).ok().map(|info| info.modified);
    found.sort_by_cached_key(|path| Reverse(written(path)));
    found
}

/// What one part of a pattern stands for in a folder.
fn below(world: &World, folder: &Path, part: Component<'_>) -> Vec<PathBuf> {
    let name = part.as_os_str().to_string_lossy();
    let wanted = match name.contains(['*', '?', '[']) {
        true => matcher(&name),
        false => return vec![folder.join(part)],
    };
    let here = match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    };
    let mut found = vec![];
    if let (Some(wanted), Ok(opened)) = (wanted, world.files.open_directory(here)) {
        // What cannot be listed holds no log.
        let _ = opened.list(&mut |entry| {
            let text = entry.to_string_lossy();
            if wanted.is_match(&text) && (name.starts_with('.') || !text.starts_with('.')) {
                found.push(folder.join(entry));
            }
        });
    }
    found
}

/// A shell's pattern.
fn matcher(pattern: &str) -> Option<Regex> {
    let mut regex = String::from("(?s)^");
    let mut rest = pattern.chars();
    while let Some(c) = rest.next() {
        match c {
            '*' => regex.push_str(".*"),
            '?' => regex.push('.'),
            '[' => match rest.as_str().get(1..).and_then(|behind| behind.find(']')) {
                Some(end) => {
                    let (set, behind) = rest.as_str().split_at(end + 1);
                    let (not, set) = set.strip_prefix('!').map_or(("", set), |set| ("^", set));
                    let set = set.replace('\\', "\\\\").replace('[', "\\[").replace('^', "\\^");
                    regex.push_str(&format!("[{not}{set}]"));
                    rest = behind[1..].chars();
                }
                None => regex.push_str("\\["),
            },
            c => regex.push_str(&regex::escape(&c.to_string())),
        }
    }
    regex.push('$');
    Regex::new(&regex).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_usual_pattern_leaves_compressed_logs_alone() {
        let usual = matcher("kern.*[!.][!g][!z]").unwrap();
        for (name, matches) in [
            ("kern.log", true),
            ("kern.log.1", true),
            ("kern.log.2.gz", false),
            ("other.log", false),
        ] {
            assert_eq!(usual.is_match(name), matches, "{name}");
        }
    }

    proptest! {
        #[test]
        fn any_pattern_is_read(text in "\\PC*") {
            let _ = matcher(&text);
        }
    }
}
