//! `oldies`: Swift's processes that have run for long.
//!
//! Compared with `swift-oldies` in `tests/operator/test_small_tools.py`.

use crate::console::{Console, ToolStatus};
use crate::processes::{PROC, Processes, print};
use crate::words::whole;
use clap::Args;
use std::io;
use std::path::Path;
use world::World;

/// The command line of `oldies`.
#[derive(Debug, Args)]
pub struct OldiesArguments {
    /// Look for processes at least so many hours old; without it, 30 days.
    #[arg(
        short,
        long,
        value_name = "HOURS",
        default_value_t = 720,
        value_parser = whole
    )]
    pub age: i64,
    /// Print only the processes' numbers, for xargs kill and the like.
    #[arg(short, long)]
    pub pids: bool,
    /// What OpenStack's program overlooks too.
    #[arg(hide = true)]
    pub overlooked: Vec<String>,
}

/// Lists them.
pub fn run(arguments: &OldiesArguments, world: &World, console: &mut Console<'_>) -> io::Result<ToolStatus> {
    list(arguments, world, Path::new(PROC), console)
}

fn list(arguments: &OldiesArguments, world: &World, root: &Path, console: &mut Console<'_>) -> io::Result<ToolStatus> {
    let (mut found, _) = Processes { world, root }.swift()?;
    found.retain(|process| process.hours >= arguments.age);
    if arguments.pids {
        found.iter().try_for_each(|process| console.say(process.pid))?;
    } else if !found.is_empty() {
        print(&found, false, console)?;
    }
    Ok(ToolStatus::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::tests::fake;

    #[test]
    fn the_old_are_listed_as_openstack_lists_them() {
        let long = "/usr/bin/python3 /usr/bin/swift-object-server /etc/swift/object-server/1.conf and a long tail that goes on and on";
        let root = fake(&[
            (5, 1, 769, long),
            (1_234_567, 1, 720, "martlet up"),
            (8, 1, 719, "martlet up"),
        ]);
        let (mut out, mut err) = (vec![], vec![]);
        let mut console = Console {
            out: &mut out,
            err: &mut err,
            shows_progress: false,
        };
        let line = |pids| OldiesArguments {
            age: 720,
            pids,
            overlooked: vec![],
        };
        list(&line(false), &World::real(), root.path(), &mut console).unwrap();
        list(&line(true), &World::real(), root.path(), &mut console).unwrap();
        let output = String::from_utf8(out).unwrap();
        let wanted = "Hours     PID Command\n  769       5 object-server /etc/swift/object-server/1.conf and a long tail that\n  \
                      720 1234567 up\n5\n1234567\n";
        assert_eq!(output, wanted);
    }
}
