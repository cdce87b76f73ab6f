//! `get-nodes`: which nodes are responsible for an account, a container, an object or a partition.
//!
//! The ring is named by its file or by a storage policy. Compared with `swift-get-nodes` in
//! `tests/operator/test_get_nodes.py`. Always holds: nothing is changed; where OpenStack's program ends with a
//! traceback, here a line says what is wrong, and the exit status is the same.

use crate::console::{Console, ToolStatus};
use crate::locations::{LocationListing, quoted};
use crate::swift_dir::{DEFAULT, SwiftDir, read_ring};
use crate::words::{explained, path};
use clap::Args;
use percent_encoding::percent_decode_str;
use placement::Ring;
use std::io;
use std::path::{Path, PathBuf};
use vocabulary::{Fault, Partition, PolicyIndex};
use world::World;

/// The command line of `get-nodes`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct GetNodesArguments {
    /// A ring file, and the account, container and object, as several words or as one with slashes; with --policy-name
    /// the ring is left out.
    #[arg(value_name = "RING.GZ | ACCOUNT [CONTAINER [OBJECT]]")]
    pub words: Vec<String>,
    /// Show all handoff nodes.
    #[arg(short, long)]
    pub all: bool,
    /// Show the nodes of a partition.
    #[arg(short, long)]
    pub partition: Option<String>,
    /// Use the object ring of this policy.
    #[arg(short = 'P', long = "policy-name", value_name = "POLICY_NAME")]
    pub policy_name: Option<String>,
    /// Where swift.conf and the rings are.
    #[arg(short = 'd', long = "swift-dir", value_name = "SWIFT_DIR", default_value = DEFAULT, value_parser = path())]
    pub swift_dir: PathBuf,
    /// The names are quoted as in URLs.
    #[arg(short = 'Q', long)]
    pub quoted: bool,
}

const EXAMPLES: &str = "Examples:
    get-nodes /etc/swift/account.ring.gz AUTH_test      the nodes of an account
    get-nodes -a -P gold AUTH_test pictures cat.jpg     those of an object, and all handoffs
    get-nodes -a -P gold AUTH_test/pictures/cat.jpg     the same
    get-nodes /etc/swift/container.ring.gz -p 17        the nodes of a partition";

const USAGE: &str = "Usage: swift-get-nodes [-a] <ring.gz> <account> [<container> [<object>]]
Or:    swift-get-nodes [-a] <ring.gz> -p partition
Or:    swift-get-nodes [-a] -P policy_name <account> [<container> [<object>]]
Or:    swift-get-nodes [-a] -P policy_name -p partition
";

/// Looks and prints.
pub fn run(arguments: &GetNodesArguments, world: &World, console: &mut Console<'_>) -> io::Result<ToolStatus> {
    match NodesQuery::read(arguments, world) {
        Ok(asked) => asked.print(arguments, console),
        Err(QueryError::Line(why)) => {
            console.complain(format_args!("ERROR: {why}"))?;
            console.fail(format_args!("{USAGE}\n{}", explained::<GetNodesArguments>()))
        }
        Err(QueryError::Names(why)) => console.fail(why),
        Err(QueryError::Files(why)) => {
            console.complain(why)?;
            Ok(ToolStatus::FAILURE)
        }
    }
}

/// What keeps the question from being answered.
enum QueryError {
    /// The command line.
    Line(String),
    /// The names on it.
    Names(&'static str),
    /// The files.
    Files(Fault),
}

fn line<T>(why: &str) -> Result<T, QueryError> {
    Err(QueryError::Line(why.to_owned()))
}

/// What is asked for.
struct NodesQuery {
    ring: Ring,
    /// `account`, `object-1`.
    ring_name: String,
    policy: Option<PolicyIndex>,
    /// Account, container, object: as many as there are.
    names: Vec<String>,
    partition: Option<Partition>,
    dir: SwiftDir,
}

impl NodesQuery {
    fn read(arguments: &GetNodesArguments, world: &World) -> Result<NodesQuery, QueryError> {
        let policy_name = arguments.policy_name.as_deref().filter(|name| !name.is_empty());
        let dir = SwiftDir::open(world, &arguments.swift_dir).map_err(QueryError::Files)?;
        let (path, policy, words) = match (policy_name, arguments.words.split_first()) {
            (Some(name), _) => {
                let Some(policy) = dir.policy_named(name) else {
                    return line(&format!("No policy named '{name}'"));
                };
                let path = arguments
                    .swift_dir
                    .join(format!("{}.ring.gz", policy.index.ring_name()));
                (path, Some(policy.index), &arguments.words[..])
            }
            (None, Some((ring, words))) if ring.ends_with(".ring.gz") => (PathBuf::from(ring), None, words),
            (None, _) => return line("Need to specify policy_name or <ring.gz>"),
        };
        let partition = arguments.partition.as_deref().filter(|text| !text.is_empty());
        if words.is_empty() && partition.is_none() {
            return line("No target specified");
        }
        if words.len() > 3 {
            return line("Invalid arguments");
        }
        if world.files.info(&path).is_err() {
            return line("Ring file does not exist");
        }
        let names = names(words, arguments.quoted)?;
        let partition = partition.map(read_partition).transpose()?;
        if names.is_empty() && partition.is_none() {
            return Err(QueryError::Names("No target specified"));
        }
        let ring_name = ring_name(&path);
        let ring = read_ring(world, &path).map_err(QueryError::Files)?;
        Ok(NodesQuery {
            policy: policy.or_else(|| policy_of(&ring_name)),
            ring,
            ring_name,
            names,
            partition,
            dir,
        })
    }

    fn print(&self, arguments: &GetNodesArguments, console: &mut Console<'_>) -> io::Result<ToolStatus> {
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        let hash = self.dir.hash(&names);
        let partition = match (self.partition, hash) {
            (Some(partition), _) => partition,
            (None, Some(hash)) => self.ring.partition_of(&hash.0),
            (None, None) => {
                let dir = arguments.swift_dir.display();
                console.complain(format_args!(
                    "{dir} has no swift.conf; name the directory that has with -d"
                ))?;
                return Ok(ToolStatus::FAILURE);
            }
        };
        // The ring of a policy is not named by the operator, and OpenStack's program has no name to compare.
        if arguments.policy_name.is_none() {
            self.warn(console)?;
        }
        let quoted: Vec<String> = names.iter().map(|name| quoted(name)).collect();
        let titles = ["Account  ", "Container", "Object   "];
        for (place, (title, name)) in titles.iter().zip(&quoted).enumerate() {
            console.say(format_args!("{}{title}\t{name}", if place == 0 { "\n" } else { "" }))?;
        }
        let is_object = names.len() == 3;
        if is_object {
            console.say("\n")?;
        }
        let path: String = quoted.iter().map(|name| format!("/{name}")).collect();
        let directory = self.directory();
        let listing = LocationListing {
            ring: &self.ring,
            directory: Some(&directory),
            partition,
            path: if names.is_empty() { "/None" } else { &path },
            hash: hash.filter(|_| self.partition.is_none()),
            policy: self
                .policy
                .filter(|_| is_object || (names.is_empty() && arguments.policy_name.is_some())),
            all: arguments.all,
        };
        listing.print(console)?;
        Ok(ToolStatus::SUCCESS)
    }

    /// A name looked for in the wrong ring is found nowhere.
    fn warn(&self, console: &mut Console<'_>) -> io::Result<()> {
        match (self.names.len(), self.ring_name.as_str()) {
            (1, "account") | (2, "container") => Ok(()),
            (1, _) => console.say("WARNING: account specified but ring not named \"account\""),
            (2, _) => console.say("WARNING: account/container specified but ring not named \"container\""),
            _ => Ok(()),
        }
    }

    /// The directory on devices: by what is looked for, else by the ring's name.
    fn directory(&self) -> String {
        match (self.names.len(), self.policy) {
            (1, _) => "accounts".to_owned(),
            (2, _) => "containers".to_owned(),
            (3, policy) => policy.unwrap_or(PolicyIndex::LEGACY).directory("objects"),
            (_, Some(policy)) => policy.directory("objects"),
            (_, None) => format!("{}s", self.ring_name),
        }
    }
}

/// `object-1` of `/etc/swift/object-1.ring.gz`.
fn ring_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.strip_suffix(".ring.gz").unwrap_or(&name).to_owned()
}

/// The policy whose ring has this name; that of the first one needs no header.
fn policy_of(ring_name: &str) -> Option<PolicyIndex> {
    ring_name.strip_prefix("object-")?.parse().ok().map(PolicyIndex)
}

fn read_partition(text: &str) -> Result<Partition, QueryError> {
    let number = pythonic::int(text).and_then(|number| u32::try_from(number).ok());
    number
        .map(Partition)
        .ok_or_else(|| QueryError::Files(Fault::caller(format!("partition '{text}' is no number"))))
}

/// Account, container, object, which may be one word with slashes; those at its ends, and quoted ones, count as
/// OpenStack's tool counts them.
fn names(words: &[String], is_quoted: bool) -> Result<Vec<String>, QueryError> {
    let plain = |word: &String| match is_quoted {
        true => percent_decode_str(word).decode_utf8_lossy().into_owned(),
        false => word.clone(),
    };
    let mut names: Vec<String> = words.iter().map(plain).collect();
    if let [one] = names.as_slice()
        && one.contains('/')
    {
        names = one.trim_matches('/').splitn(3, '/').map(str::to_owned).collect();
    }
    while names.last().is_some_and(String::is_empty) {
        names.pop();
    }
    match names.iter().position(String::is_empty) {
        Some(0) => Err(QueryError::Names("No account specified")),
        Some(_) => Err(QueryError::Names("No container specified")),
        None => Ok(names),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str], is_quoted: bool) -> Vec<String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        names(&words, is_quoted).unwrap_or_default()
    }

    #[test]
    fn names_come_in_one_word_or_several() {
        assert_eq!(read(&["a", "c", "o/p"], false), ["a", "c", "o/p"]);
        assert_eq!(read(&["/a/c/o/p"], false), ["a", "c", "o/p"]);
        assert_eq!(read(&["a/c%20d/o"], true), ["a", "c d", "o"]);
        assert_eq!(read(&["a/c/o/"], false), ["a", "c", "o"]);
        assert_eq!(read(&["a", "c", "o/"], false), ["a", "c", "o/"]);
        assert_eq!(read(&["a", "c", ""], false), ["a", "c"]);
        assert!(read(&["a//o"], false).is_empty());
    }

    #[test]
    fn rings_tell_their_policy_by_name() {
        assert_eq!(policy_of("object-12"), Some(PolicyIndex(12)));
        assert_eq!((policy_of("object"), policy_of("my-object")), (None, None));
    }
}
