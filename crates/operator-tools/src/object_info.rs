//! `object-info`: what an object's file says about itself, and where the object belongs.
//!
//! The file is a `.data`, `.meta` or `.ts` wherever it lies; its policy is that of the directory above it
//! (`objects-1`). Compared with `swift-object-info` in `tests/operator/test_info_tools.py`.
//! Always holds: the file is only read. A file whose metadata cannot be read is `Invalid metadata` and the reason;
//! where OpenStack's program ends with a traceback, here a line says what is wrong, and the exit status is the same.

use crate::console::{Console, ToolStatus, ToolStop};
use crate::crypto_details;
use crate::locations::Placed;
use crate::swift_dir::{DEFAULT, SwiftDir};
use crate::text::shown;
use crate::words::{explained, path};
use clap::Args;
use md5::{Digest, Md5};
use object_engine::ObjectMetadata;
use object_engine::files::xattrs::{self, ReadError};
use placement::Ring;
use std::io;
use std::path::{Path, PathBuf};
use vocabulary::{Fault, PathHash, PolicyIndex, Timestamp, header_name};
use world::World;
use world::files::{File, FileKind, Purpose};

/// How much of the file is read at once.
const PIECE: usize = 1 << 20;

/// The command line of `object-info`.
#[derive(Debug, Args)]
pub struct ObjectInfoArguments {
    /// The object's file on a device: a .data, .meta or .ts.
    #[arg(value_name = "OBJECT_FILE", value_parser = path())]
    pub files: Vec<PathBuf>,
    /// Do not read the whole file to compare it with its ETag.
    #[arg(short = 'n', long = "no-check-etag")]
    pub no_check_etag: bool,
    /// Where swift.conf and the rings are.
    #[arg(short = 'd', long = "swift-dir", value_name = "SWIFT_DIR", default_value = DEFAULT, value_parser = path())]
    pub swift_dir: PathBuf,
    /// Leave out what the names of a group of metadata have in common (X-Object-Meta- and the like).
    #[arg(long)]
    pub drop_prefixes: bool,
    /// The policy the object should be in: warns when the file lies elsewhere, and whose ring is asked where the
    /// directory does not say.
    #[arg(short = 'P', long = "policy-name", value_name = "POLICY_NAME")]
    pub policy_name: Option<String>,
}

/// Looks and prints.
pub fn run(arguments: &ObjectInfoArguments, world: &World, console: &mut Console<'_>) -> io::Result<ToolStatus> {
    let [path] = arguments.files.as_slice() else {
        console.say("Usage: swift-object-info [options] OBJECT_FILE\n")?;
        console.say(explained::<ObjectInfoArguments>())?;
        return Ok(ToolStatus::SUCCESS);
    };
    if !world
        .files
        .info(path)
        .is_ok_and(|info| info.kind != FileKind::Directory)
    {
        return console.fail("Data file doesn't exist");
    }
    match Looking::begin(arguments, world, path, console) {
        Ok(looking) => looking.print(console),
        Err(stop) => stop.end(console),
    }
}

/// One file, looked at.
struct Looking<'a> {
    arguments: &'a ObjectInfoArguments,
    dir: SwiftDir,
    metadata: ObjectMetadata,
    file: Box<dyn File>,
    /// The policy that the path names.
    policy: PolicyIndex,
    /// The ring that is asked, and its policy.
    ring: Option<(Ring, PolicyIndex)>,
}

impl<'a> Looking<'a> {
    fn begin(
        arguments: &'a ObjectInfoArguments,
        world: &World,
        path: &Path,
        console: &mut Console<'_>,
    ) -> Result<Self, ToolStop> {
        let dir = SwiftDir::open(world, &arguments.swift_dir)?;
        let policy = policy_of(&std::path::absolute(path)?).filter(|policy| dir.policy(*policy).is_some());
        let policy = policy.unwrap_or(PolicyIndex::LEGACY);
        let ring = find_ring(arguments, world, &dir, policy, console)?;
        let (file, metadata) = match read(world, path) {
            Ok(read) => read,
            Err(reason) => {
                console.say("Invalid metadata")?;
                return Err(reason.into());
            }
        };
        Ok(Self {
            arguments,
            dir,
            metadata,
            file,
            policy,
            ring,
        })
    }

    fn print(&self, console: &mut Console<'_>) -> io::Result<ToolStatus> {
        let path = self.metadata.get("name").map(split);
        let found = match path {
            Some(None) => {
                let name = shown(self.metadata.get("name").unwrap_or_default());
                console.complain(format_args!("Path is invalid for object '{name}'"))?;
                return Ok(ToolStatus::FAILURE);
            }
            Some(Some(found)) => Some(found),
            None => None,
        };
        let hash = found.and_then(|parts| self.hash(parts));
        self.print_path(found, hash, console)?;
        let time_is_good = self.print_time(console)?;
        self.print_groups(console)?;
        if !self.arguments.drop_prefixes && !crypto_details::print(&self.metadata, console)? {
            return Ok(ToolStatus::FAILURE);
        }
        let body_is_good = self.print_body(console)?;
        let Some((ring, of)) = &self.ring else {
            return Ok(status(time_is_good && body_is_good));
        };
        let (Some(parts), Some(hash)) = (found, hash) else {
            console.complain("without a name that is UTF-8 nobody can say where it belongs")?;
            return Ok(ToolStatus::FAILURE);
        };
        let texts = parts.map(String::from_utf8_lossy);
        Placed {
            ring,
            directory: &of.directory("objects"),
            parts: &texts.each_ref().map(AsRef::as_ref),
            hash,
            policy: Some(self.policy),
        }
        .print(console)?;
        Ok(status(time_is_good && body_is_good))
    }

    fn hash(&self, parts: [&[u8]; 3]) -> Option<PathHash> {
        let texts: Vec<&str> = parts.iter().filter_map(|part| std::str::from_utf8(part).ok()).collect();
        self.dir.hash(&texts)
    }

    fn print_path(
        &self,
        found: Option<[&[u8]; 3]>,
        hash: Option<PathHash>,
        console: &mut Console<'_>,
    ) -> io::Result<()> {
        match found {
            Some([account, container, object]) => {
                let [account, container, object] = [shown(account), shown(container), shown(object)];
                console.say(format_args!("Path: /{account}/{container}/{object}"))?;
                console.say(format_args!("  Account: {account}"))?;
                console.say(format_args!("  Container: {container}"))?;
                console.say(format_args!("  Object: {object}"))?;
                let hash = hash.map_or("unknown without swift.conf".to_owned(), |hash| hash.hex());
                console.say(format_args!("  Object hash: {hash}"))?;
            }
            None => console.say("Path: Not found in metadata")?,
        }
        let kind = self.metadata.get("Content-Type");
        let kind = kind.map_or("Not found in metadata".to_owned(), shown);
        console.say(format_args!("Content-Type: {kind}"))
    }

    /// Whether it is one, or none.
    fn print_time(&self, console: &mut Console<'_>) -> io::Result<bool> {
        let Some(time) = self.metadata.get("X-Timestamp") else {
            console.say("Timestamp: Not found in metadata")?;
            return Ok(true);
        };
        let parsed = std::str::from_utf8(time).ok().and_then(|text| text.parse().ok());
        match parsed {
            Some(time) => {
                let time: Timestamp = time;
                console.say(format_args!("Timestamp: {} ({})", time.iso(), time.internal()))?;
                Ok(true)
            }
            None => {
                let time = shown(time);
                console.say(format_args!("Timestamp: {time} (not a timestamp!)"))?;
                console.complain(format_args!("the metadata's X-Timestamp {time} is not a timestamp"))?;
                Ok(false)
            }
        }
    }

    fn print_groups(&self, console: &mut Console<'_>) -> io::Result<()> {
        const KNOWN: [&str; 5] = ["name", "Content-Type", "X-Timestamp", "ETag", "Content-Length"];
        const GROUPS: [(&str, &str); 3] = [
            ("System Metadata", "x-object-sysmeta-"),
            ("Transient System Metadata", "x-object-transient-sysmeta-"),
            ("User Metadata", "x-object-meta-"),
        ];
        let has = |name: &str, prefix: &str| name.to_ascii_lowercase().starts_with(prefix);
        let mut items: Vec<(&str, &[u8])> = self.metadata.iter().collect();
        items.retain(|(name, _)| !KNOWN.iter().any(|known| known.eq_ignore_ascii_case(name)));
        items.sort_unstable();
        for (title, prefix) in GROUPS {
            let group: Vec<_> = items.iter().filter(|(name, _)| has(name, prefix)).collect();
            let cut = if self.arguments.drop_prefixes { prefix.len() } else { 0 };
            let group = group.into_iter().map(|(name, value)| (&name[cut..], *value));
            print_group(title, group, console)?;
        }
        items.retain(|(name, _)| !GROUPS.iter().any(|(_, prefix)| has(name, prefix)));
        print_group("Other Metadata", items.into_iter(), console)
    }

    /// Whether what should be a number is one.
    fn print_body(&self, console: &mut Console<'_>) -> io::Result<bool> {
        match self.metadata.get("ETag") {
            None if self.arguments.no_check_etag => console.say("ETag:  (not checked)")?,
            None => console.say("ETag: Not found in metadata")?,
            Some(etag) => {
                let etag = shown(etag);
                let verdict = match self.arguments.no_check_etag {
                    true => " (not checked)".to_owned(),
                    false => match self.checksum() {
                        Ok(sum) if sum == etag => " (valid)".to_owned(),
                        Ok(sum) => format!(" doesn't match file hash of {sum}!"),
                        Err(error) => format!(" cannot be checked: {error}"),
                    },
                };
                console.say(format_args!("ETag: {etag}{verdict}"))?;
            }
        }
        let Some(length) = self.metadata.get("Content-Length") else {
            console.say("Content-Length: Not found in metadata")?;
            return Ok(true);
        };
        let (length, size) = (shown(length), i128::from(self.file.info()?.size));
        let number = pythonic::int(&length);
        match number {
            Some(number) if number == size => console.say(format_args!("Content-Length: {length} (valid)"))?,
            _ => console.say(format_args!(
                "Content-Length: {length} doesn't match file length of {size}"
            ))?,
        }
        if number.is_none() {
            console.complain(format_args!("the metadata's Content-Length {length} is not a number"))?;
        }
        Ok(number.is_some())
    }

    fn checksum(&self) -> io::Result<String> {
        let (mut sum, mut at, mut piece) = (Md5::new(), 0, vec![0; PIECE]);
        loop {
            match self.file.read_at(&mut piece, at)? {
                0 => return Ok(PathHash(sum.finalize().into()).hex()),
                read => {
                    sum.update(&piece[..read]);
                    at += read as u64;
                }
            }
        }
    }
}

fn status(good: bool) -> ToolStatus {
    if good { ToolStatus::SUCCESS } else { ToolStatus::FAILURE }
}

fn print_group<'a>(
    title: &str,
    items: impl Iterator<Item = (&'a str, &'a [u8])>,
    console: &mut Console<'_>,
) -> io::Result<()> {
    console.say(format_args!("{title}:"))?;
    let mut none = true;
    for (name, value) in items {
        none = false;
        let name = shown(&header_name::decode(name));
        console.say(format_args!("  {name}: {}", shown(value)))?;
    }
    match none {
        true => console.say("  No metadata found"),
        false => Ok(()),
    }
}

/// `/account/container/object`.
fn split(name: &[u8]) -> Option<[&[u8]; 3]> {
    let mut parts = name.strip_prefix(b"/")?.splitn(3, |byte| *byte == b'/');
    let parts = [parts.next()?, parts.next()?, parts.next()?];
    parts.iter().all(|part| !part.is_empty()).then_some(parts)
}

/// The policy of the objects directory that is nearest to the file.
fn policy_of(path: &Path) -> Option<PolicyIndex> {
    let text = path.to_string_lossy();
    let directory = text[text.rfind("objects")?..].split('/').next()?;
    match directory.strip_prefix("objects")? {
        "" => Some(PolicyIndex::LEGACY),
        number => number.strip_prefix('-')?.parse().ok().map(PolicyIndex),
    }
}

fn find_ring(
    arguments: &ObjectInfoArguments,
    world: &World,
    dir: &SwiftDir,
    policy: PolicyIndex,
    console: &mut Console<'_>,
) -> Result<Option<(Ring, PolicyIndex)>, ToolStop> {
    let ring = dir.ring(world, &policy.ring_name())?.map(|ring| (ring, policy));
    let named = arguments.policy_name.as_deref().and_then(|name| dir.policy_named(name));
    let Some(named) = named.map(|named| named.index) else {
        return Ok(ring);
    };
    if named != policy {
        console.say("WARNING: Ring does not match policy!")?;
        console.say("Double check your policy name!")?;
    }
    if ring.is_some() || named == PolicyIndex::LEGACY {
        return Ok(ring);
    }
    match dir.ring(world, &named.ring_name())? {
        Some(ring) => Ok(Some((ring, named))),
        None => Err(ToolStop::caller(format!(
            "there is no {}.ring.gz to ask",
            named.ring_name()
        ))),
    }
}

fn read(world: &World, path: &Path) -> Result<(Box<dyn File>, ObjectMetadata), Fault> {
    let name = path.display();
    let info = world
        .files
        .info(path)
        .map_err(|error| Fault::caller(format!("{name}: {error}")))?;
    if info.kind != FileKind::File {
        return Err(Fault::caller(format!("{name}: is no file")));
    }
    let opened = world.files.open(path, Purpose::Read);
    let file = opened.map_err(|error| Fault::caller(format!("{name}: {error}")))?;
    let metadata = xattrs::read(&*file).map_err(|error| match error {
        ReadError::Bad(reason) => Fault::data(format!("{name}: {reason}")),
        ReadError::Io(error) => Fault::device(format!("{name}: cannot read its metadata: {error}")),
    })?;
    match metadata.is_empty() {
        true => Err(Fault::data(format!("{name}: its metadata are empty"))),
        false => Ok((file, metadata)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_is_that_of_the_nearest_objects_directory() {
        for (path, policy) in [
            ("/srv/sda/objects/1/2/3/4.data", Some(0)),
            ("/srv/sda/objects-1/1/2/3/4.data", Some(1)),
            ("/srv/objects-2/objects-1/4.data", Some(1)),
            ("/srv/sda/objects-x/1.data", None),
            ("/srv/sda/async_pending-1/1.data", None),
        ] {
            assert_eq!(policy_of(Path::new(path)), policy.map(PolicyIndex), "{path}");
        }
    }

    #[test]
    fn names_have_three_parts() {
        assert_eq!(split(b"/a/c/o/p"), Some([&b"a"[..], b"c", b"o/p"]));
        for name in ["", "/", "/a/c", "/a/c/", "a/c/o", "//c/o"] {
            assert_eq!(split(name.as_bytes()), None, "{name}");
        }
    }
}
