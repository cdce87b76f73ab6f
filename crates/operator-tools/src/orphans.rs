//! `orphans`: Swift's processes that no pid file knows, listed, and sent a signal when asked.
//!
//! A process is known when its number stands in a `.pid` or `.pid.d` file below the run directory, or an ancestor's
//! does (OpenStack's program asks for parents only). Those that run `once` are no orphans.
//! Where the run directory or a pid file in it says nothing, its servers would be taken for orphans: it is named, and
//! no signal is sent. (OpenStack's program takes a run directory that is not there for an empty one.)
//! Left alone whatever is asked: `martlet up` with all it has started, and what a service manager has started, which
//! writes no pid files and would start it again.
//! Compared with `swift-orphans` in `tests/operator/test_small_tools.py`; `--wide` is wide here.

use crate::console::{Console, ToolStatus};
use crate::processes::{PROC, Process, Processes, print};
use crate::text::shown;
use crate::words::{path, whole};
use clap::Args;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::{HashMap, HashSet};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use world::World;
use world::files::{FileKind, Purpose, read_bytes_at};

/// A pid file holds a number.
const LONGEST: usize = 1 << 10;
/// Pid files lie in the run directory or one below.
const DEEPEST: usize = 8;
/// Generations from a process to the first; more are a cycle that changed while it was read.
const ANCESTORS: usize = 64;

/// The command line of `orphans`.
#[derive(Debug, Args)]
#[command(
    after_help = "Processes that run `once` are left out: they end by themselves.\n\nTo end all that are older than two \
hours:\n    orphans -a 2 -k TERM"
)]
pub struct OrphansArguments {
    /// Look for processes at least so many hours old.
    #[arg(
        short,
        long,
        value_name = "HOURS",
        default_value_t = 24,
        value_parser = whole
    )]
    pub age: i64,
    /// Send the processes this signal (TERM, SIGKILL, 15); else they are only listed.
    #[arg(short, long, value_name = "SIGNAL")]
    pub kill: Option<String>,
    /// Do not cut lines at 80 columns.
    #[arg(short, long)]
    pub wide: bool,
    /// Where running servers keep their pid files.
    #[arg(short, long, value_name = "RUN_DIR", default_value = "/var/run/swift", value_parser = path())]
    pub run_dir: PathBuf,
    /// What OpenStack's program overlooks too.
    #[arg(hide = true)]
    pub overlooked: Vec<String>,
}

/// Lists them, and sends the signal.
pub fn run(arguments: &OrphansArguments, world: &World, console: &mut Console<'_>) -> io::Result<ToolStatus> {
    let processes = Processes {
        world,
        root: Path::new(PROC),
    };
    let known = KnownPids::below(world, &arguments.run_dir);
    for (path, why) in &known.unread {
        let path = shown(path.as_os_str().as_bytes());
        console.complain(format_args!(
            "cannot read {path}: {why}; servers that it knows are taken for orphans"
        ))?;
    }
    let found = find(arguments, &known.pids, &processes)?;
    if !found.is_empty() {
        print(&found, arguments.wide, console)?;
    }
    let Some(word) = arguments.kill.as_deref().filter(|word| !word.is_empty()) else {
        return Ok(ToolStatus::SUCCESS);
    };
    if found.is_empty() {
        return Ok(ToolStatus::SUCCESS);
    }
    let ended = without_managed(found, &processes, console)?;
    if !ended.is_empty() && !known.unread.is_empty() {
        console.complain("No signal is sent: which processes are orphans is not known.")?;
        return Ok(ToolStatus::FAILURE);
    }
    send(word, &ended, &processes, console)
}

/// Leaves out what another program looks after, and names it.
fn without_managed(
    found: Vec<Process>,
    processes: &Processes<'_>,
    console: &mut Console<'_>,
) -> io::Result<Vec<Process>> {
    let (all, parents) = processes.swift()?;
    let is_up = |process: &&Process| process.command.split(' ').next() == Some("up");
    let clusters: HashSet<u32> = all.iter().filter(is_up).map(|process| process.pid).collect();
    let mut ended = vec![];
    for process in found {
        let pid = process.pid;
        if let Some(cluster) = ancestry(pid, &parents).find(|pid| clusters.contains(pid)) {
            console.complain(format_args!(
                "process {pid} belongs to `martlet up` (process {cluster}) and is left alone: end that by itself"
            ))?;
        } else if let Some(service) = processes.service(pid) {
            console.complain(format_args!(
                "process {pid} belongs to {service} and is left alone: end it with `systemctl stop {service}`"
            ))?;
        } else {
            ended.push(process);
        }
    }
    Ok(ended)
}

fn find(arguments: &OrphansArguments, known: &HashSet<u32>, processes: &Processes<'_>) -> io::Result<Vec<Process>> {
    let (mut found, parents) = processes.swift()?;
    found.retain(|process| {
        let words = || process.command.split(' ');
        process.hours >= arguments.age
            && words().next() != Some("orphans")
            && !words().skip(1).any(|word| word == "once" || word == "--once")
            && !ancestry(process.pid, &parents).any(|pid| known.contains(&pid))
    });
    Ok(found)
}

/// A process, its parent, and so on.
fn ancestry(pid: u32, parents: &HashMap<u32, u32>) -> impl Iterator<Item = u32> {
    std::iter::successors(Some(pid), |pid| parents.get(pid).copied()).take(ANCESTORS)
}

/// What the pid files below the run directory say.
#[derive(Default)]
struct KnownPids {
    pids: HashSet<u32>,
    /// Directories and pid files that could not be read, and why.
    unread: Vec<(PathBuf, String)>,
}

impl KnownPids {
    fn below(world: &World, run_dir: &Path) -> Self {
        let mut known = Self::default();
        if let Err(error) = known.directory(world, run_dir, DEEPEST) {
            known.unread.push((run_dir.to_owned(), error.to_string()));
        }
        known
    }

    fn directory(&mut self, world: &World, directory: &Path, depth: usize) -> io::Result<()> {
        let mut names = vec![];
        let opened = world.files.open_directory(directory)?;
        opened.list_links(&mut |name, is_link| names.push((name.to_owned(), is_link)))?;
        names.sort();
        for (name, is_link) in names {
            let path = directory.join(&name);
            let read = match world.files.info(&path) {
                Ok(info) if !is_link && info.kind == FileKind::Directory => match depth.checked_sub(1) {
                    Some(depth) => self.directory(world, &path, depth),
                    None => Err(io::Error::other("too many directories lead there")),
                },
                Ok(_) if name.to_str().is_some_and(is_of_a_pid) => self.file(world, &path),
                Ok(_) => Ok(()),
                Err(error) => Err(error),
            };
            match read {
                // The server has ended meanwhile.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => self.unread.push((path, error.to_string())),
                Ok(()) => {}
            }
        }
        Ok(())
    }

    fn file(&mut self, world: &World, path: &Path) -> io::Result<()> {
        let file = world.files.open(path, Purpose::Read)?;
        let text = read_bytes_at(&*file, LONGEST, 0)?;
        let pid = String::from_utf8_lossy(&text).trim().parse();
        self.pids
            .insert(pid.map_err(|_| io::Error::other("it holds no process number"))?);
        Ok(())
    }
}

/// `swift-init` names a server's file after its configuration: `proxy-server.conf.d` makes `proxy-server.pid.d`.
fn is_of_a_pid(name: &str) -> bool {
    name.ends_with(".pid") || name.ends_with(".pid.d")
}

fn send(word: &str, found: &[Process], processes: &Processes<'_>, console: &mut Console<'_>) -> io::Result<ToolStatus> {
    let Some((number, signal)) = signal(word) else {
        console.complain(format_args!("Could not translate '{word}' to a signal number."))?;
        return Ok(ToolStatus::FAILURE);
    };
    write!(console.out, "Sending processes {word} ({number}) signal...")?;
    let mut failed = false;
    for process in found.iter().filter(|process| processes.still_runs(process)) {
        let pid = i32::try_from(process.pid).ok().and_then(Pid::from_raw);
        let sent = pid.map_or(Ok(()), |pid| kill_process(pid, signal));
        if let Err(error) = sent {
            console.complain(format_args!("\ncannot signal process {}: {error}", process.pid))?;
            failed = true;
        }
    }
    console.say("Done.")?;
    Ok(if failed {
        ToolStatus::FAILURE
    } else {
        ToolStatus::SUCCESS
    })
}

/// A signal by name, with or without SIG, or by number.
fn signal(word: &str) -> Option<(i128, Signal)> {
    const NAMED: [(&str, Signal); 21] = [
        ("HUP", Signal::HUP),
        ("INT", Signal::INT),
        ("QUIT", Signal::QUIT),
        ("ILL", Signal::ILL),
        ("TRAP", Signal::TRAP),
        ("ABRT", Signal::ABORT),
        ("BUS", Signal::BUS),
        ("FPE", Signal::FPE),
        ("KILL", Signal::KILL),
        ("USR1", Signal::USR1),
        ("SEGV", Signal::SEGV),
        ("USR2", Signal::USR2),
        ("PIPE", Signal::PIPE),
        ("ALRM", Signal::ALARM),
        ("TERM", Signal::TERM),
        ("CHLD", Signal::CHILD),
        ("CONT", Signal::CONT),
        ("STOP", Signal::STOP),
        ("TSTP", Signal::TSTP),
        ("TTIN", Signal::TTIN),
        ("TTOU", Signal::TTOU),
    ];
    if let Some(number) = pythonic::int(word) {
        let signal = i32::try_from(number).ok().and_then(Signal::from_named_raw)?;
        return Some((number, signal));
    }
    let upper = word.to_ascii_uppercase();
    let name = upper.strip_prefix("SIG").unwrap_or(&upper);
    let (_, signal) = NAMED.iter().find(|(known, _)| *known == name)?;
    Some((i128::from(signal.as_raw()), *signal))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::tests::fake;
    use std::fs;

    #[test]
    fn those_whom_a_pid_file_knows_and_their_children_are_no_orphans() {
        let root = fake(&[
            (10, 1, 30, "martlet proxy-server p.conf"),
            (11, 10, 30, "martlet proxy-server p.conf"),
            (12, 11, 30, "martlet proxy-server p.conf"),
            (20, 1, 30, "/usr/bin/python3 /usr/bin/swift-object-server o.conf"),
            (21, 1, 23, "/usr/bin/python3 /usr/bin/swift-object-server o.conf"),
            (22, 1, 30, "/usr/bin/python3 /usr/bin/swift-object-auditor o.conf once"),
            (30, 1, 30, "/usr/bin/python3 /usr/bin/swift-account-server a.conf"),
            (40, 1, 30, "/usr/bin/python3 /usr/bin/swift-container-server c.conf.d"),
            (50, 1, 30, "/usr/bin/python3 /usr/bin/swift-container-server d.conf"),
        ]);
        let run = tempfile::tempdir().unwrap();
        for folder in ["account-server", "old.pid"] {
            fs::create_dir(run.path().join(folder)).unwrap();
        }
        for (name, text) in [
            ("proxy.pid", "10\n"),
            ("account-server/1.pid", "30"),
            ("container-server.pid.d", "40"),
            ("old.pid/d.pid", "50"),
            ("junk.pid", "x"),
            ("empty.pid", ""),
            ("o.txt", "20"),
        ] {
            fs::write(run.path().join(name), text).unwrap();
        }
        std::os::unix::fs::symlink("/nowhere/gone", run.path().join("gone.pid")).unwrap();
        std::os::unix::fs::symlink("loop.pid", run.path().join("loop.pid")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, run.path().join("pipe.pid"), rustix::fs::Mode::RUSR).unwrap();
        let world = World::real();
        let arguments = OrphansArguments {
            age: 24,
            kill: None,
            wide: false,
            run_dir: run.path().to_owned(),
            overlooked: vec![],
        };
        let processes = Processes {
            world: &world,
            root: root.path(),
        };
        let known = KnownPids::below(&world, &arguments.run_dir);
        let found = find(&arguments, &known.pids, &processes).unwrap();
        assert_eq!(found.iter().map(|process| process.pid).collect::<Vec<_>>(), [20]);
        let unread = known
            .unread
            .iter()
            .map(|(path, _)| path.strip_prefix(run.path()).unwrap());
        let wanted = ["empty.pid", "junk.pid", "loop.pid", "pipe.pid"];
        assert_eq!(unread.collect::<Vec<_>>(), wanted.map(Path::new));
        let missing = run.path().join("missing");
        let known = KnownPids::below(&world, &missing);
        assert_eq!((known.pids.len(), known.unread.len()), (0, 1));
        assert_eq!(known.unread[0].0, missing);
    }

    #[test]
    fn what_is_looked_after_is_left_alone() {
        let root = fake(&[
            (10, 1, 30, "martlet up --dir x"),
            (11, 10, 30, "martlet object-server o.conf"),
            (20, 1, 30, "martlet proxy-server p.conf"),
            (30, 1, 30, "martlet account-server a.conf"),
            (40, 1, 30, "martlet container-server c.conf"),
        ]);
        for (pid, group) in [
            (20, "0::/system.slice/martlet-proxy@1.service\n"),
            (30, "0::/user.slice/user-0.slice/session-3.scope\n"),
            (
                40,
                "12:pids:/system.slice/cron.service\n0::/system.slice/cron.service\n",
            ),
        ] {
            fs::write(root.path().join(format!("{pid}/cgroup")), group).unwrap();
        }
        let world = World::real();
        let processes = Processes {
            world: &world,
            root: root.path(),
        };
        let (found, _) = processes.swift().unwrap();
        let (mut out, mut err) = (vec![], vec![]);
        let mut console = Console {
            out: &mut out,
            err: &mut err,
            shows_progress: false,
        };
        let ended = without_managed(found, &processes, &mut console).unwrap();
        assert_eq!(ended.iter().map(|process| process.pid).collect::<Vec<_>>(), [30, 40]);
        let complaints = String::from_utf8(err).unwrap();
        assert_eq!(complaints.lines().count(), 3, "{complaints}");
        assert!(
            complaints.contains("process 11 belongs to `martlet up` (process 10)"),
            "{complaints}"
        );
        assert!(
            complaints.contains("systemctl stop martlet-proxy@1.service"),
            "{complaints}"
        );
    }

    #[test]
    fn signals_have_names_and_numbers() {
        for (word, number) in [("TERM", 15), ("sigterm", 15), ("15", 15), ("USR1", 10), ("KILL", 9)] {
            assert_eq!(signal(word).map(|(number, _)| number), Some(number), "{word}");
        }
        for word in ["XX", "0", "-1", "99999", "SIG"] {
            assert!(signal(word).is_none(), "{word}");
        }
    }
}
