//! Namespaces of nodes: a network, and mounts of drives, that belong to one node alone.
//!
//! Each is held by a process that does nothing else, and others join it by `nsenter`.
//! Always holds: when the holder ends, which it does with this command even if that is killed (`setpriv --pdeathsig`),
//! and with it all who joined, the kernel takes networks, mounts and the loop devices below them away: nothing of them
//! is ever seen outside, and nothing stays behind.

use super::limits::read_special;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use vocabulary::Fault;
use world::World;

/// Ends what the holder says once its namespaces are as they shall be.
const READY: &str = "ready\n";
/// Ctrl-C ends this command alone, and this command all that it began: what ends by itself is no lack of anything.
pub const OWN_GROUP: i32 = 0;
/// Bytes of what a command says that are shown.
const SHOWN: usize = 600;

/// What a node has of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnParts {
    /// Interfaces, addresses and routes.
    pub network: bool,
    /// Mounts.
    pub mounts: bool,
}

/// Namespaces, and the process that holds them.
pub struct Namespaces {
    holder: Child,
    own: OwnParts,
}

fn failed(what: &str, why: &dyn std::fmt::Display) -> Fault {
    Fault::caller(format!("{what}: {why}"))
}

/// The end of a text, for a message.
fn shown(text: &str) -> &str {
    let from = text.len().saturating_sub(SHOWN);
    text.get(from..).unwrap_or(text).trim()
}

/// A path as it is: `mountinfo` writes blanks, line ends and backslashes as `\040`.
fn plain(word: &str) -> Vec<u8> {
    let mut bytes = vec![];
    let mut rest = word.as_bytes();
    while let Some((first, others)) = rest.split_first() {
        let digits = others.get(..3).filter(|_| *first == b'\\');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &others[3..];
            }
            None => {
                bytes.push(*first);
                rest = others;
            }
        }
    }
    bytes
}

impl Namespaces {
    /// New ones in which a shell has run `script` (what it does is said by `what`, for messages) with `arguments`.
    pub fn make(what: &str, own: OwnParts, script: &str, arguments: &[String]) -> Result<Self, Fault> {
        let script = format!("set -e\n{script}\necho ready\nexec >/dev/null 2>&1 sleep infinity");
        let parts = [("--net", own.network), ("--mount", own.mounts)];
        let parts = parts.iter().filter(|(_, is_own)| *is_own).map(|(part, _)| *part);
        let mut holder = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "unshare"])
            .args(parts)
            .args(["sh", "-c", &script, "sh"])
            .args(arguments)
            .process_group(OWN_GROUP)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map(|holder| Self { holder, own })
            .map_err(|error| failed(what, &format!("setpriv: {error}")))?;
        let mut output = String::new();
        if let Some(mut pipe) = holder.holder.stdout.take() {
            // The end of its last line, or of the process.
            let mut part = [0; 64];
            while !output.ends_with(READY) {
                match pipe.read(&mut part).map_err(|error| failed(what, &error))? {
                    0 => return Err(holder.not_ready(what)),
                    read => output += &String::from_utf8_lossy(&part[..read]),
                }
            }
        }
        Ok(holder)
    }

    fn not_ready(mut self, what: &str) -> Fault {
        let mut why = String::new();
        if let Some(mut pipe) = self.holder.stderr.take() {
            // What it said until now is enough.
            let _ = pipe.read_to_string(&mut why);
        }
        failed(what, &shown(&why))
    }

    /// The process that holds them.
    pub fn pid(&self) -> u32 {
        self.holder.id()
    }

    /// Whether a network is among them.
    pub fn has_network(&self) -> bool {
        self.own.network
    }

    /// Words before those of a program that shall run in them.
    pub fn inside(&self) -> Vec<String> {
        let parts = [("--net", self.own.network), ("--mount", self.own.mounts)];
        let parts = parts.iter().filter(|(_, is_own)| *is_own).map(|(part, _)| *part);
        let words = ["nsenter".to_owned(), "--target".to_owned(), self.pid().to_string()];
        let parts = parts.map(str::to_owned).chain(["--".to_owned()]);
        words.into_iter().chain(parts).collect()
    }

    /// Runs a script of a shell in them, which must succeed.
    pub fn run(&self, what: &str, script: &str) -> Result<(), Fault> {
        let words = self.inside();
        let mut shell = Command::new(&words[0])
            .args(&words[1..])
            .args(["sh", "-e"])
            .process_group(OWN_GROUP)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| failed(what, &format!("{}: {error}", words[0])))?;
        if let Some(mut pipe) = shell.stdin.take() {
            // A shell that has ended says why.
            let _ = pipe.write_all(script.as_bytes());
        }
        let done = shell.wait_with_output().map_err(|error| failed(what, &error))?;
        match done.status.success() {
            true => Ok(()),
            false => Err(failed(what, &shown(&String::from_utf8_lossy(&done.stderr)))),
        }
    }

    /// Whether a server listens on a port of their network.
    pub fn listens(&self, world: &World, port: u16) -> bool {
        let text = self.file(world, "net/tcp");
        // State 0A is LISTEN; addresses and ports are in hexadecimal.
        let port = format!(":{port:04X}");
        text.lines().any(|line| {
            let mut words = line.split_whitespace().skip(1);
            words.next().is_some_and(|local| local.ends_with(&port)) && words.nth(1) == Some("0A")
        })
    }

    /// Bytes that their interface has taken and sent until now.
    pub fn passed(&self, world: &World, interface: &str) -> (f64, f64) {
        let text = self.file(world, "net/dev");
        let line = text
            .lines()
            .find_map(|line| line.trim().strip_prefix(interface)?.strip_prefix(':'));
        let words: Vec<&str> = line.unwrap_or_default().split_whitespace().collect();
        let number = |at: usize| words.get(at).and_then(|word| word.parse().ok()).unwrap_or(0.0);
        // Eight columns of each direction, bytes first.
        (number(0), number(8))
    }

    /// The device (`7:0`) that is mounted on each of some folders.
    pub fn devices(&self, world: &World, folders: &[PathBuf]) -> Result<Vec<String>, Fault> {
        let text = self.file(world, "mountinfo");
        let device = |folder: &PathBuf| {
            let found = text.lines().find_map(|line| {
                let mut words = line.split_whitespace().skip(2);
                let device = words.next()?;
                (plain(words.nth(1)?) == folder.as_os_str().as_bytes()).then(|| device.to_owned())
            });
            found.ok_or_else(|| failed(&folder.display().to_string(), &"is not mounted"))
        };
        folders.iter().map(device).collect()
    }

    /// A file below `/proc` of the holder; nothing once it has ended.
    fn file(&self, world: &World, name: &str) -> String {
        read_special(world, Path::new(&format!("/proc/{}/{name}", self.pid()))).unwrap_or_default()
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        // Both do nothing when it has ended.
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn blanks_of_a_mounted_folder_are_read() {
        assert_eq!(plain("/srv/sp\\040ace\\134x/d0"), b"/srv/sp ace\\x/d0");
        assert_eq!(
            (plain("/a\\04"), plain("/a\\9zz")),
            (b"/a\\04".to_vec(), b"/a\\9zz".to_vec())
        );
    }
}
