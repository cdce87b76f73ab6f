//! What `container-info` says of shards: how far the container is sharded, its ranges, and what they hold together.
//!
//! Always holds: nothing is computed that servers do not: the counts of a sharded root are those of its ranges in use,
//! of one that is being sharded those of the database that is being left.

use crate::console::Console;
use crate::text::shown;
use listing_engine::{Broker, Error, Info, Kind, Metadata, ShardRange};
use percent_encoding::percent_decode_str;
use serde_json::Value;
use std::io;
use std::path::Path;
use vocabulary::Timestamp;
use world::World;

/// The states of a range in the order of their numbers.
const STATES: [(i64, &str); 9] = [
    (10, "found"),
    (20, "created"),
    (30, "cleaved"),
    (40, "active"),
    (50, "shrinking"),
    (60, "sharding"),
    (70, "sharded"),
    (80, "shrunk"),
    (0, "unknown"),
];
/// Active, shrinking and sharding ranges list what is the container's.
const IN_USE: std::ops::RangeInclusive<i64> = 40..=60;

/// See the module.
pub(crate) struct Sharding {
    is_root: bool,
    state: &'static str,
    /// Those of others, in order of their names' ends.
    ranges: Vec<Range>,
}

struct Range {
    name: String,
    lower: String,
    upper: String,
    objects: i64,
    bytes: i64,
    state: i64,
    made: String,
    noted: String,
}

impl Range {
    /// None of one that is gone.
    fn read(range: &ShardRange) -> Option<Self> {
        let json = range.to_json();
        let text = |key: &str| json.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let number = |key: &str| json.get(key).and_then(Value::as_i64).unwrap_or_default();
        (number("deleted") == 0).then(|| Self {
            name: text("name"),
            lower: text("lower"),
            upper: text("upper"),
            objects: number("object_count"),
            bytes: number("bytes_used"),
            state: number("state"),
            made: text("timestamp"),
            noted: text("meta_timestamp"),
        })
    }

    /// The range without an upper end is the last.
    fn order(&self) -> (bool, &str, i64, &str, &str) {
        (self.upper.is_empty(), &self.upper, self.state, &self.lower, &self.name)
    }
}

impl Sharding {
    pub(crate) fn read(broker: &Broker, info: &Info, metadata: &Metadata) -> Result<Self, Error> {
        let own = format!("{}/{}", info.account, info.container.as_deref().unwrap_or_default());
        let mut ranges: Vec<Range> = broker.shard_ranges()?.iter().filter_map(Range::read).collect();
        ranges.retain(|range| range.name != own);
        ranges.sort_by(|a, b| a.order().cmp(&b.order()));
        Ok(Self {
            is_root: root(metadata).is_none_or(|root| root == own),
            state: broker.sharding_state()?,
            ranges,
        })
    }

    /// Gives `info` the counts that servers tell of such a container.
    pub(crate) fn count(&self, info: &mut Info, path: &Path, world: &World) -> Result<(), Error> {
        if self.state == "sharding" {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let stem = name.strip_suffix(".db").unwrap_or(&name).split('_').next();
            let left = path.with_file_name(format!("{}.db", stem.unwrap_or_default()));
            let left = Broker::look_at_file(world.files.clone(), Kind::Container, &left)?.info()?;
            (info.object_count, info.bytes_used) = (left.object_count, left.bytes_used);
        }
        if self.state == "sharded" && self.is_root {
            (info.object_count, info.bytes_used) = (0, 0);
            for range in self.ranges.iter().filter(|range| IN_USE.contains(&range.state)) {
                info.object_count = info.object_count.saturating_add(range.objects.max(0).unsigned_abs());
                info.bytes_used = info.bytes_used.saturating_add(range.bytes.max(0).unsigned_abs());
            }
        }
        Ok(())
    }

    pub(crate) fn print(&self, verbose: bool, console: &mut Console<'_>) -> io::Result<()> {
        let kind = if self.is_root { "root" } else { "shard" };
        console.say("Sharding Metadata:")?;
        console.say(format_args!("  Type: {kind}"))?;
        console.say(format_args!("  State: {}", self.state))?;
        if self.ranges.is_empty() {
            return Ok(());
        }
        console.say(format_args!("Shard Ranges ({}):", self.ranges.len()))?;
        console.say("  States:")?;
        for (state, word) in STATES {
            let count = self.ranges.iter().filter(|range| range.state == state).count();
            if count > 0 {
                console.say(format_args!("    {word:>9}: {count}"))?;
            }
        }
        if !verbose {
            return console.say("(Use -v/--verbose to show more Shard Ranges details)");
        }
        self.ranges.iter().try_for_each(|range| range.print(console))
    }
}

impl Range {
    fn print(&self, console: &mut Console<'_>) -> io::Result<()> {
        let word = STATES.iter().find(|(number, _)| *number == self.state);
        let word = word.map_or("unknown", |(_, word)| word);
        let (objects, bytes, state) = (self.objects, self.bytes, self.state);
        console.say(format_args!("  Name: {}", shown(self.name.as_bytes())))?;
        let (lower, upper) = (pythonic::quoted(&self.lower), pythonic::quoted(&self.upper));
        console.say(format_args!("    lower: {lower}, upper: {upper}"))?;
        console.say(format_args!(
            "    Object Count: {objects}, Bytes Used: {bytes}, State: {word} ({state})"
        ))?;
        console.say(format_args!("    Created at: {}", time(&self.made)))?;
        console.say(format_args!("    Meta Timestamp: {}", time(&self.noted)))
    }
}

fn time(spelled: &str) -> String {
    let time: Result<Timestamp, _> = spelled.parse();
    time.map_or_else(|_| spelled.to_owned(), |time| format!("{} ({spelled})", time.iso()))
}

/// The container whose shard it is, if it is one.
fn root(metadata: &Metadata) -> Option<String> {
    let item = |wanted: &str| {
        let found = metadata.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
        found
            .map(|(_, item)| item.value.as_str())
            .filter(|value| !value.is_empty())
    };
    let quoted = item("x-container-sysmeta-shard-quoted-root");
    let quoted = quoted.map(|path| percent_decode_str(path).decode_utf8_lossy().into_owned());
    quoted.or_else(|| item("x-container-sysmeta-shard-root").map(str::to_owned))
}
