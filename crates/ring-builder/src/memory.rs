//! Whether the machine has the memory that a builder needs, before it is used: a process that takes more is killed and
//! leaves the operator without a word.
//!
//! Always holds: where the machine does not say what is free, nothing is refused. What can be no ring at all is refused
//! in `placement`.

use crate::terminal::Stop;
use std::path::Path;
use world::World;
use world::files::{Purpose, read_full_at};

const MEMINFO: &str = "/proc/meminfo";

/// What the file holds is at its beginning, and it does not say how long it is.
const BEGINNING: usize = 4096;

/// A file takes at least so many times its bytes while it is read (measured).
const TIMES_FILE: u64 = 8;

/// How much less a builder may need before it is worth a look at the machine.
const LITTLE: u64 = 64 << 20;

/// Refuses what needs more than is free; `what` needs it.
pub(crate) fn provide(world: &World, needed: u64, what: &str) -> Result<(), Stop> {
    match free(world).filter(|&free| needed > free.max(LITTLE)) {
        None => Ok(()),
        Some(free) => Err(Stop::Refused(refusal(needed, free, what))),
    }
}

/// The same of a builder's file that is about to be read.
pub(crate) fn provide_for_file(world: &World, path: &Path) -> Result<(), Stop> {
    let length = world.files.info(path).map_or(0, |info| info.size);
    let what = format!("Ring Builder file {}", path.display());
    provide(world, length.saturating_mul(TIMES_FILE), &what)
}

fn refusal(needed: u64, free: u64, what: &str) -> String {
    let gib = |bytes: u64| format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30));
    let (needed, free) = (gib(needed), gib(free));
    format!(
        "{what} needs {needed} of memory, and {free} are free: use a machine with more memory, or a smaller part power \
         (16 to 20 for a cluster)"
    )
}

/// Bytes that programs may have without others being stopped for them.
fn free(world: &World) -> Option<u64> {
    let file = world.files.open(Path::new(MEMINFO), Purpose::Read).ok()?;
    let mut beginning = vec![0; BEGINNING];
    let length = read_full_at(&*file, &mut beginning, 0).ok()?;
    parse(&String::from_utf8_lossy(&beginning[..length]))
}

fn parse(meminfo: &str) -> Option<u64> {
    let entry = |name: &str| {
        let mut lines = meminfo.lines().filter_map(|line| line.split_once(':'));
        let (_, value) = lines.find(|(found, _)| *found == name)?;
        value.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
    };
    entry("MemAvailable")?.checked_add(entry("SwapFree").unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_free_counts_what_can_be_swapped() {
        let text = "MemTotal:       24 kB\nMemAvailable:      12 kB\nSwapFree:    3 kB\n";
        assert_eq!(parse(text), Some(15 << 10));
        assert_eq!(parse("MemAvailable: 12 kB\n"), Some(12 << 10));
        assert_eq!(parse("MemTotal: 12 kB\n"), None);
        assert_eq!(parse("MemAvailable: many\n"), None);
    }

    #[test]
    fn what_no_machine_has_is_refused_with_both_numbers() {
        let world = World::real();
        assert!(provide(&world, 1 << 20, "part power 4").is_ok());
        let refused = provide(&world, 1 << 50, "part power 25 with 3 replicas");
        let Err(Stop::Refused(why)) = refused else {
            panic!("taken")
        };
        let begins = "part power 25 with 3 replicas needs 1048576.0 GiB of memory, and ";
        assert!(why.starts_with(begins), "{why}");
    }
}
