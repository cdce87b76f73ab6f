//! Swift's processes on this machine, of either make, as `/proc` shows them.
//!
//! One is a Python that runs a `swift-…` program, a `swift-…` link to Martlet, or `martlet` with a command: its name is
//! what follows. (OpenStack's tools know only `/usr/bin/python` and programs in `/usr/bin` and `/usr/local/bin`.)
//! Always holds: a process that ends while it is looked at is left out; this process is never listed.

use crate::console::Console;
use std::collections::HashMap;
use std::io;
use std::path::Path;
use world::World;
use world::files::{Purpose, read_bytes_at};

/// Where the system shows them.
pub(crate) const PROC: &str = "/proc";
/// The rest of a longer command line is cut off.
const LONGEST: usize = 64 << 10;
/// The unit of times in `/proc/PID/stat`: Linux shows programs 100 on every machine.
const TICKS_PER_SECOND: u64 = 100;
/// Services that start whatever their users ask for.
const SESSIONS: [&str; 7] = ["anacron", "atd", "cron", "crond", "ssh", "sshd", "user"];
/// As wide as a terminal was.
const COLUMNS: usize = 80;

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) parent: u32,
    /// Whole hours.
    pub(crate) hours: i64,
    /// Its Swift name and arguments.
    pub(crate) command: String,
    /// Tells it from a later one of the same number.
    pub(crate) started: u64,
}

/// A view of `/proc`.
pub(crate) struct Processes<'a> {
    pub(crate) world: &'a World,
    pub(crate) root: &'a Path,
}

impl Processes<'_> {
    /// Swift's processes in order of their numbers, and the parent of every process.
    pub(crate) fn swift(&self) -> io::Result<(Vec<Process>, HashMap<u32, u32>)> {
        let uptime = self.uptime()?;
        let mut pids: Vec<u32> = vec![];
        self.world.files.open_directory(self.root)?.list(&mut |name| {
            pids.extend(name.to_str().and_then(|name| name.parse::<u32>().ok()));
        })?;
        pids.sort_unstable();
        let (mut found, mut parents) = (vec![], HashMap::new());
        for pid in pids {
            let Some((parent, started)) = self.stat(pid) else {
                continue;
            };
            parents.insert(pid, parent);
            let words = self.read(&self.root.join(pid.to_string()).join("cmdline"));
            let command = words.ok().and_then(|words| swift_command(&words));
            if let Some(command) = command.filter(|_| pid != std::process::id()) {
                let seconds = uptime.saturating_sub(started / TICKS_PER_SECOND);
                found.push(Process {
                    pid,
                    parent,
                    hours: i64::try_from(seconds / 3600).unwrap_or(i64::MAX),
                    command,
                    started,
                });
            }
        }
        Ok((found, parents))
    }

    /// Whether it still runs, and is no other.
    pub(crate) fn still_runs(&self, process: &Process) -> bool {
        self.stat(process.pid)
            .is_some_and(|(_, started)| started == process.started)
    }

    /// The service that a service manager started the process for: its control group says so (`cgroups(7)`).
    pub(crate) fn service(&self, pid: u32) -> Option<String> {
        let groups = self.read(&self.root.join(pid.to_string()).join("cgroup")).ok()?;
        let groups = String::from_utf8_lossy(&groups).into_owned();
        let names = groups.lines().filter_map(|line| line.rsplit('/').next());
        let mut services = names.filter_map(|name| name.strip_suffix(".service"));
        let service = services.find(|service| !SESSIONS.contains(&service.split('@').next().unwrap_or_default()))?;
        Some(format!("{service}.service"))
    }

    fn uptime(&self) -> io::Result<u64> {
        let text = self.read(&self.root.join("uptime"))?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let seconds = text.split(['.', ' ']).next().and_then(|whole| whole.parse().ok());
        seconds.ok_or_else(|| io::Error::other("/proc/uptime does not say how long the machine has been up"))
    }

    /// Its parent, and when it was started, in ticks since the machine was.
    fn stat(&self, pid: u32) -> Option<(u32, u64)> {
        let stat = self.read(&self.root.join(pid.to_string()).join("stat")).ok()?;
        let text = String::from_utf8_lossy(&stat).into_owned();
        // The name before it may hold anything but the last ")".
        let fields: Vec<&str> = text.rsplit_once(") ")?.1.split(' ').collect();
        Some((fields.get(1)?.parse().ok()?, fields.get(19)?.parse().ok()?))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let file = self.world.files.open(path, Purpose::Read)?;
        read_bytes_at(&*file, LONGEST, 0)
    }
}

/// The Swift name and arguments of a command line.
fn swift_command(words: &[u8]) -> Option<String> {
    let words = words.strip_suffix(b"\0").unwrap_or(words);
    let words: Vec<String> = words
        .split(|byte| *byte == 0)
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect();
    let base = |word: &String| word.rsplit('/').next().unwrap_or_default().to_owned();
    let first = base(words.first()?);
    let (name, rest) = match first.strip_prefix("swift-") {
        Some(name) => (name.to_owned(), &words[1..]),
        None if first == "martlet" => (words.get(1)?.clone(), &words[2..]),
        None if first.starts_with("python") => {
            let script = base(words.get(1)?);
            (script.strip_prefix("swift-")?.to_owned(), &words[2..])
        }
        None => return None,
    };
    let mut command = name;
    for word in rest {
        command.push(' ');
        command.push_str(word);
    }
    (!command.is_empty()).then_some(command)
}

/// Prints a table of them, each line cut at 80 columns unless it may be `wide`.
pub(crate) fn print(processes: &[Process], wide: bool, console: &mut Console<'_>) -> io::Result<()> {
    let widest = processes.iter().map(|process| process.pid.to_string().len()).max();
    let width = widest.unwrap_or(0).max("PID".len());
    console.say(format_args!("Hours {:>width$} Command", "PID"))?;
    for Process {
        pid, hours, command, ..
    } in processes
    {
        let command = crate::text::shown(command.as_bytes());
        let line = format!("{hours:>5} {pid:>width$} {command}");
        let end = if wide { usize::MAX } else { COLUMNS };
        console.say(line.chars().take(end).collect::<String>())?;
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fs;

    /// A `/proc` in which the machine has been up for 100 days.
    pub(crate) fn fake(processes: &[(u32, u32, u64, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("uptime"), "8640000.12 1.00\n").unwrap();
        for (pid, parent, hours, command) in processes {
            let folder = root.path().join(pid.to_string());
            fs::create_dir(&folder).unwrap();
            let started = (8_640_000 - hours * 3600) * 100;
            let zeros = "0 ".repeat(17);
            let stat = format!("{pid} (a ) name) S {parent} {zeros}{started} 0\n");
            fs::write(folder.join("stat"), stat).unwrap();
            fs::write(folder.join("cmdline"), command.replace(' ', "\0") + "\0").unwrap();
        }
        root
    }

    #[test]
    fn finds_both_makes_and_nothing_else() {
        for (line, command) in [
            (
                "/usr/bin/python3\0/usr/bin/swift-object-server\0/etc/o.conf\0",
                Some("object-server /etc/o.conf"),
            ),
            (
                "/opt/v/bin/python\0/opt/v/bin/swift-proxy-server\0",
                Some("proxy-server"),
            ),
            (
                "/usr/bin/swift-object-server\0/etc/o.conf\0",
                Some("object-server /etc/o.conf"),
            ),
            ("martlet\0up\0--dir\0x\0", Some("up --dir x")),
            ("/usr/bin/python3\0-u\0/usr/bin/swift-x\0", None),
            ("/usr/bin/vi\0swift-x\0", None),
            ("martlet\0", None),
            ("", None),
        ] {
            assert_eq!(swift_command(line.as_bytes()).as_deref(), command, "{line:?}");
        }
    }

    #[test]
    fn reads_ages_and_parents() {
        let root = fake(&[(5, 1, 30, "martlet proxy-server p.conf"), (70, 5, 2, "bash")]);
        let world = World::real();
        let processes = Processes {
            world: &world,
            root: root.path(),
        };
        let (found, parents) = processes.swift().unwrap();
        assert_eq!(
            (found.len(), found[0].hours, found[0].command.as_str()),
            (1, 30, "proxy-server p.conf")
        );
        assert_eq!(parents[&70], 5);
        assert!(processes.still_runs(&found[0]));
    }

    proptest! {
        #[test]
        fn any_command_line_is_read(bytes: Vec<u8>) {
            let _ = swift_command(&bytes);
        }
    }
}
