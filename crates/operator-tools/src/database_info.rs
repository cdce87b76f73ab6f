//! `account-info` and `container-info`: what a database says of itself, and where it belongs.
//!
//! Compared with `swift-account-info` and `swift-container-info` in `tests/operator/test_info_tools.py`.
//! Always holds: the database is looked at (`Broker::look`), neither merged with what waits beside it nor put aside
//! when it is damaged, as OpenStack's programs do; the numbers are those they print. Without a good ring all is printed
//! but the locations.

use crate::OURS;
use crate::console::{Console, ToolStatus};
use crate::locations::Placed;
use crate::shard_info::Sharding;
use crate::swift_dir::{DEFAULT, SwiftDir};
use crate::text::shown;
use crate::words::{explained, path};
use clap::Args;
use listing_engine::{Broker, Direction, Error, Info, Kind, Metadata, SyncNote, Waiting, complaint_about};
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use vocabulary::{Fault, Timestamp};
use world::World;
use world::files::FileKind;

/// The command line of `account-info`, and what `container-info` has in common with it.
#[derive(Debug, Args)]
pub struct DatabaseInfoArguments {
    /// The database's file on a device.
    #[arg(value_name = "DB_FILE", value_parser = path())]
    pub files: Vec<PathBuf>,
    /// Where swift.conf and the rings are.
    #[arg(short = 'd', long = "swift-dir", value_name = "SWIFT_DIR", default_value = DEFAULT, value_parser = path())]
    pub swift_dir: PathBuf,
    /// Leave out what the names of a group of metadata have in common (X-Account-Meta- and the like).
    #[arg(long)]
    pub drop_prefixes: bool,
    /// Also print which replicas this one has got rows from or sent rows to, and how far.
    #[arg(short, long)]
    pub sync: bool,
    /// Do not count rows that wait in the pending file.
    #[arg(long, help_heading = OURS)]
    pub stale_reads_ok: bool,
}

/// The command line of `container-info`.
#[derive(Debug, Args)]
pub struct ContainerArguments {
    #[command(flatten)]
    common: DatabaseInfoArguments,
    /// Print every shard range; else only how many there are in which state.
    #[arg(short, long)]
    verbose: bool,
}

/// `account-info`.
pub fn run_account(
    arguments: &DatabaseInfoArguments,
    world: &World,
    console: &mut Console<'_>,
) -> io::Result<ToolStatus> {
    run(Kind::Account, arguments, false, world, console)
}

/// `container-info`.
pub fn run_container(
    arguments: &ContainerArguments,
    world: &World,
    console: &mut Console<'_>,
) -> io::Result<ToolStatus> {
    run(Kind::Container, &arguments.common, arguments.verbose, world, console)
}

fn run(
    kind: Kind,
    arguments: &DatabaseInfoArguments,
    verbose: bool,
    world: &World,
    console: &mut Console<'_>,
) -> io::Result<ToolStatus> {
    let [path] = arguments.files.as_slice() else {
        let (word, upper) = (kind.word(), kind.word().to_ascii_uppercase());
        console.say(format_args!(
            "Usage: swift-{word}-info [options] {upper}_DB_FILE\n\n{}",
            match kind {
                Kind::Account => explained::<DatabaseInfoArguments>(),
                Kind::Container => explained::<ContainerArguments>(),
            }
        ))?;
        return Ok(ToolStatus::SUCCESS);
    };
    if !world.files.info(path).is_ok_and(|info| info.kind == FileKind::File) {
        return console.fail("DB file doesn't exist");
    }
    match Database::read(kind, arguments, world, path) {
        Ok(database) => database.print(arguments, verbose, console),
        Err(DatabaseError::WrongKind) => {
            let (word, path) = (kind.word(), with_folder(path));
            console.fail(format_args!("Does not appear to be a DB of type \"{word}\": {path}"))
        }
        Err(DatabaseError::Other(reason)) => {
            console.complain(reason)?;
            Ok(ToolStatus::FAILURE)
        }
    }
}

/// A relative path begins with the folder it is relative to.
fn with_folder(path: &Path) -> String {
    let text = path.display().to_string();
    match text.starts_with('/') || text.starts_with("./") {
        true => text,
        false => format!("./{text}"),
    }
}

/// Why there is nothing to print.
enum DatabaseError {
    WrongKind,
    Other(Fault),
}

impl DatabaseError {
    fn of(error: Error, path: &Path) -> Self {
        match error {
            Error::WrongKind { .. } => Self::WrongKind,
            Error::Quarantined { reason, .. } => {
                Self::Other(Fault::data(format!("{} is damaged: {reason}", path.display())))
            }
            other => Self::Other(Fault::data(complaint_about(&other, path))),
        }
    }
}

impl From<Fault> for DatabaseError {
    fn from(reason: Fault) -> Self {
        Self::Other(reason)
    }
}

/// All that is printed of a database.
struct Database {
    kind: Kind,
    dir: SwiftDir,
    ring: Result<Option<placement::Ring>, Fault>,
    info: Info,
    spelled: HashMap<String, String>,
    metadata: Metadata,
    sharding: Option<Sharding>,
    incoming: Vec<SyncNote>,
    outgoing: Vec<SyncNote>,
}

impl Database {
    fn read(kind: Kind, arguments: &DatabaseInfoArguments, world: &World, path: &Path) -> Result<Self, DatabaseError> {
        let waiting = match arguments.stale_reads_ok {
            true => Waiting::DoesNotCount,
            false => Waiting::Counts,
        };
        let dir = SwiftDir::open(world, &arguments.swift_dir)?;
        let look = || {
            let broker = Broker::look(world.files.clone(), kind, path, waiting)?;
            let (mut info, metadata) = (broker.info()?, broker.metadata()?);
            let sharding = match kind {
                Kind::Account => None,
                Kind::Container => Some(Sharding::read(&broker, &info, &metadata)?),
            };
            if let Some(sharding) = &sharding {
                sharding.count(&mut info, path, world)?;
            }
            // Databases of long ago have other tables for these.
            let notes = |direction| match arguments.sync {
                true => broker.sync_notes(direction),
                false => Ok(vec![]),
            };
            let (incoming, outgoing) = (notes(Direction::Incoming)?, notes(Direction::Outgoing)?);
            Ok((info, broker.spelled()?, metadata, sharding, incoming, outgoing))
        };
        let looked = look().map_err(|error| DatabaseError::of(error, path))?;
        let (info, spelled, metadata, sharding, incoming, outgoing) = looked;
        Ok(Self {
            kind,
            ring: dir.ring(world, kind.word()),
            dir,
            info,
            spelled,
            metadata,
            sharding,
            incoming,
            outgoing,
        })
    }

    fn print(
        &self,
        arguments: &DatabaseInfoArguments,
        verbose: bool,
        console: &mut Console<'_>,
    ) -> io::Result<ToolStatus> {
        let account = self.info.account.as_str();
        let container = self.info.container.as_deref();
        let parts: Vec<&str> = [account].into_iter().chain(container).collect();
        let hash = self.dir.hash(&parts);
        console.say(format_args!("Path: /{}", shown(parts.join("/").as_bytes())))?;
        console.say(format_args!("  Account: {}", shown(account.as_bytes())))?;
        if let Some(container) = container {
            console.say(format_args!("  Container: {}", shown(container.as_bytes())))?;
        }
        let deleted = if self.info.is_deleted() { "True" } else { "False" };
        console.say(format_args!("  Deleted: {deleted}"))?;
        let name = self.title();
        let spelled = hash.map_or("unknown without swift.conf".to_owned(), |hash| hash.hex());
        console.say(format_args!("  {name} Hash: {spelled}"))?;
        let times_are_good = self.print_stat(console)?;
        self.print_metadata(arguments, console)?;
        if let Some(sharding) = &self.sharding {
            sharding.print(verbose, console)?;
        }
        if arguments.sync {
            print_syncs("Incoming", &self.incoming, console)?;
            print_syncs("Outgoing", &self.outgoing, console)?;
        }
        if let Err(reason) = &self.ring {
            console.complain(format_args!("where it belongs is unknown: {reason}"))?;
        }
        if let (Ok(Some(ring)), Some(hash)) = (&self.ring, hash) {
            let placed = Placed {
                ring,
                directory: self.kind.directory(),
                parts: &parts,
                hash,
                policy: None,
            };
            placed.print(console)?;
        }
        Ok(if times_are_good {
            ToolStatus::SUCCESS
        } else {
            ToolStatus::FAILURE
        })
    }

    fn title(&self) -> &'static str {
        match self.kind {
            Kind::Account => "Account",
            Kind::Container => "Container",
        }
    }

    /// Whether all times are times.
    fn print_stat(&self, console: &mut Console<'_>) -> io::Result<bool> {
        let info = &self.info;
        console.say("Metadata:")?;
        let mut good = self.print_time("Created at", "created_at", console)?;
        good &= self.print_time("Put Timestamp", "put_timestamp", console)?;
        good &= self.print_time("Delete Timestamp", "delete_timestamp", console)?;
        good &= self.print_time("Status Timestamp", "status_changed_at", console)?;
        if self.kind == Kind::Account {
            let count = self.count("container_count", info.container_count);
            console.say(format_args!("  Container Count: {count}"))?;
        }
        let (objects, bytes) = (
            self.count("object_count", info.object_count),
            self.count("bytes_used", info.bytes_used),
        );
        console.say(format_args!("  Object Count: {objects}"))?;
        console.say(format_args!("  Bytes Used: {bytes}"))?;
        if self.kind == Kind::Container {
            let policy = self.dir.policy(info.policy);
            let policy = policy.map_or("Unknown", |policy| policy.name.as_str());
            console.say(format_args!("  Storage Policy: {policy} ({})", info.policy))?;
            good &= self.print_time("Reported Put Timestamp", "reported_put_timestamp", console)?;
            good &= self.print_time("Reported Delete Timestamp", "reported_delete_timestamp", console)?;
            console.say(format_args!("  Reported Object Count: {}", info.reported_object_count))?;
            console.say(format_args!("  Reported Bytes Used: {}", info.reported_bytes_used))?;
        }
        console.say(format_args!("  Chexor: {}", shown(info.hash.as_bytes())))?;
        console.say(format_args!("  UUID: {}", shown(info.id.as_bytes())))?;
        if self.kind == Kind::Container {
            console.say(format_args!("  X-Container-Sync-Point1: {}", info.sync_point1))?;
            console.say(format_args!("  X-Container-Sync-Point2: {}", info.sync_point2))?;
        }
        Ok(good)
    }

    /// A counter; servers take one below nought for nought, and who looks wants to see it.
    fn count(&self, column: &str, counted: u64) -> String {
        let spelled = self
            .spelled
            .get(column)
            .filter(|text| counted == 0 && text.starts_with('-'));
        spelled.map_or_else(|| counted.to_string(), |text| shown(text.as_bytes()))
    }

    fn print_time(&self, title: &str, column: &str, console: &mut Console<'_>) -> io::Result<bool> {
        let spelled = self.spelled.get(column).map_or("0", String::as_str);
        let time: Result<Timestamp, _> = spelled.parse();
        let spelled = shown(spelled.as_bytes());
        match time {
            Ok(time) => console.say(format_args!("  {title}: {} ({spelled})", time.iso()))?,
            Err(_) => {
                console.say(format_args!("  {title}: {spelled} (not a timestamp!)"))?;
                console.complain(format_args!("the database's {column} {spelled} is not a timestamp"))?;
            }
        }
        Ok(time.is_ok())
    }

    fn print_metadata(&self, arguments: &DatabaseInfoArguments, console: &mut Console<'_>) -> io::Result<()> {
        let word = self.kind.word();
        let (system, user) = (format!("x-{word}-sysmeta-"), format!("x-{word}-meta-"));
        let has = |name: &str, prefix: &str| name.to_ascii_lowercase().starts_with(prefix);
        for (name, item) in self.metadata.iter() {
            if !has(name, &system) && !has(name, &user) {
                let (name, value) = (shown(title_case(name).as_bytes()), shown(item.value.as_bytes()));
                console.say(format_args!("  {name}: {value}"))?;
            }
        }
        for (title, prefix) in [("System", &system), ("User", &user)] {
            let group: Vec<_> = self.metadata.iter().filter(|(name, _)| has(name, prefix)).collect();
            match group.is_empty() {
                true => {
                    let title = title.to_ascii_lowercase();
                    console.say(format_args!("No {title} metadata found in db file"))?;
                }
                false => console.say(format_args!("  {title} Metadata:"))?,
            }
            let cut = if arguments.drop_prefixes { prefix.len() } else { 0 };
            for (name, item) in group {
                let (name, value) = (shown(&name.as_bytes()[cut..]), shown(item.value.as_bytes()));
                console.say(format_args!("    {name}: {value}"))?;
            }
        }
        Ok(())
    }
}

/// Each letter after what is no letter large, the others small.
fn title_case(name: &str) -> String {
    let mut begins = true;
    let cased = name.chars().map(|c| {
        let cased = match begins {
            true => c.to_uppercase().to_string(),
            false => c.to_lowercase().to_string(),
        };
        begins = !c.is_alphabetic();
        cased
    });
    cased.collect()
}

fn print_syncs(title: &str, notes: &[SyncNote], console: &mut Console<'_>) -> io::Result<()> {
    let rows: Vec<[String; 2]> = notes
        .iter()
        .map(|note| [note.point.to_string(), shown(note.remote_id.as_bytes())])
        .collect();
    let width = |column: usize, title: &str| {
        let widest = rows.iter().map(|row| row[column].chars().count()).max();
        widest.unwrap_or(0).max(title.len())
    };
    let (points, ids) = (width(0, "Sync Point"), width(1, "Remote ID"));
    console.say(format_args!("{title} Syncs:"))?;
    let (point, id) = ("Sync Point", "Remote ID");
    console.say(format_args!("  {point:points$}\t{id:ids$}\tUpdated At"))?;
    for (row, note) in rows.iter().zip(notes) {
        let [point, id] = row;
        let time: Result<Timestamp, _> = note.updated_at.parse();
        let time = time.map_or("not a timestamp".to_owned(), |time| time.iso());
        let spelled = shown(note.updated_at.as_bytes());
        console.say(format_args!("  {point:points$}\t{id:ids$}\t{time} ({spelled})"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cased_as_python_does() {
        for (name, cased) in [
            ("some-other-thing", "Some-Other-Thing"),
            ("X-VERSIONS-a1b", "X-Versions-A1B"),
            ("", ""),
        ] {
            assert_eq!(title_case(name), cased);
        }
    }
}
