//! `ring-composer`: one ring made of several builders, each with regions of its own.
//!
//! Comes in: the words of a command line. Goes out: the composite ring and, beside it, a file that remembers of which
//! builders in which versions it was made. Always holds: the ring is written before the file that remembers it, so that
//! a crash between them is mended by composing again; both are written whole.
//!
//! | question | file |
//! |---|---|
//! | which builders may be joined, and after which | `components.rs` |
//! | what the composite file remembers | `record.rs` |

mod components;
mod record;

use crate::files::{BuilderFiles, PATIENCE, Shelf};
use crate::terminal::{CommandStatus, Stop, Terminal};
use components::Component;
use placement::RingData;
use pythonic::quoted;
use record::CompositeRecord;
use std::path::{Path, PathBuf};
use vocabulary::Fault;
use world::World;

const NOTE: &str = "\nNOTE: This tool is for experimental use and may be\n      removed in future versions of Swift.\n";
const USAGE: &str = "[-h] composite_builder_file {show,compose} ...";
const COMPOSE_USAGE: &str = "composite_builder_file compose [-h] [builder_file builder_file [builder_file ...] --output ring_file \
                             [--force]";
const HELP: &str = "
Makes one ring of several builders. All have the same partition power; no device and no region is in two of
them. Each component is changed and rebalanced by itself.

  show      what the composite ring was made of
  compose   [builder_file builder_file ...] --output ring_file [--force]
            makes the ring, of the same builders as last time when none are named.
            --force  even when nothing changed, or the builders are others than last time
";

/// The ring composer, as it was called.
pub struct Composing<'c> {
    /// The name of the program.
    pub program: &'c str,
    /// The words after its name.
    pub words: &'c [String],
    /// The working directory: component files are remembered by their whole paths.
    pub here: &'c Path,
}

/// What to do.
enum Task {
    Show,
    Compose(Order),
}

/// A ring to be made.
struct Order {
    /// Of these; none: of those of the last time.
    builders: Vec<String>,
    output: String,
    force: bool,
}

/// What a composite builder file remembers, as it would be written again; `None` for what is no such file.
pub fn rewritten_composite(file: &[u8], path: &Path) -> Option<String> {
    let record = CompositeRecord::read(file)?;
    let _ = (record.shown(), record.files());
    Some(record.to_json(path))
}

/// Why it was not done: a step, in OpenStack's words, and the reason.
struct Failed(&'static str, Fault);

/// The composite builder file cannot be written.
fn writing(stop: Stop) -> Failed {
    Failed("writing the composite builder file", stop.into_fault())
}

impl Composing<'_> {
    /// Runs it; the exit status says how it ended.
    pub fn run(&self, world: &World, terminal: &mut Terminal<'_>) -> CommandStatus {
        terminal.warn(NOTE);
        let (file, task) = match self.read() {
            Ok(read) => read,
            Err(stop) => return self.tell(stop, terminal),
        };
        match self.perform(world, &file, task, terminal) {
            Ok(()) => CommandStatus::Success,
            Err(Failed(step, why)) => {
                terminal.warn(format_args!(
                    "An error occurred while {step}.\nOriginal exception message:\n{why}"
                ));
                CommandStatus::Error
            }
        }
    }

    fn tell(&self, stop: Stop, terminal: &mut Terminal<'_>) -> CommandStatus {
        match stop {
            Stop::Option { usage, why } => {
                let command = if usage == COMPOSE_USAGE {
                    " composite_builder_file compose"
                } else {
                    ""
                };
                let program = self.program;
                terminal.warn(format_args!(
                    "usage: {program} {usage}\n{program}{command}: error: {why}"
                ));
                CommandStatus::Error
            }
            // OpenStack's ends with a traceback there, and with this status.
            Stop::Refused(why) => {
                let program = self.program;
                terminal.warn(format_args!("usage: {program} {USAGE}\n{program}: error: {why}"));
                CommandStatus::Warning
            }
            other => other.tell(self.program, terminal),
        }
    }

    fn read(&self) -> Result<(String, Task), Stop> {
        let wrong = |why: String| Stop::Option {
            usage: USAGE.to_owned(),
            why,
        };
        let asks = |word: &String| word == "-h" || (word.len() > 3 && "--help".starts_with(word.as_str()));
        if self.words.iter().any(asks) {
            return Err(Stop::Help(format!("usage: {} {USAGE}\n{HELP}", self.program)));
        }
        let (mut unknown, mut words) = (Vec::new(), self.words.iter());
        let file = next_word(&mut words, &mut unknown);
        let missing = "the following arguments are required: composite_builder_file";
        let file = file.ok_or_else(|| wrong(missing.to_owned()))?;
        let task = match next_word(&mut words, &mut unknown) {
            Some("show") => {
                unknown.extend(words.map(String::as_str));
                Some(Task::Show)
            }
            Some("compose") => Some(Task::Compose(read_compose(words, &mut unknown)?)),
            Some(word) => {
                let word = quoted(word);
                let why = format!("argument {{show,compose}}: invalid choice: {word} (choose from 'show', 'compose')");
                return Err(wrong(why));
            }
            None => None,
        };
        if !unknown.is_empty() {
            return Err(wrong(format!("unrecognized arguments: {}", unknown.join(" "))));
        }
        let nothing = || Stop::Refused(format!("what is to be done with {file}? Say show or compose"));
        Ok((file.to_owned(), task.ok_or_else(nothing)?))
    }

    fn perform(&self, world: &World, file: &str, task: Task, terminal: &mut Terminal<'_>) -> Result<(), Failed> {
        let shelf = Shelf::new(world, BuilderFiles::named(file));
        let is_new = world.files.info(Path::new(file)).is_err();
        let loading = |why: Fault| Failed("loading the composite builder file", why);
        let record = match (&task, is_new) {
            (Task::Compose(_), true) => None,
            _ => Some(read_record(&shelf, file).map_err(loading)?),
        };
        match task {
            Task::Show => {
                terminal.say(record.unwrap_or_default().shown());
                Ok(())
            }
            Task::Compose(order) => {
                let _lock = shelf.lock(PATIENCE).map_err(writing)?;
                self.compose(world, &shelf, file, record.as_ref(), &order)
            }
        }
    }

    fn compose(
        &self,
        world: &World,
        shelf: &Shelf<'_>,
        file: &str,
        record: Option<&CompositeRecord>,
        order: &Order,
    ) -> Result<(), Failed> {
        let composing = |why: Fault| Failed("composing the ring", why);
        let paths = match (&order.builders[..], record) {
            ([], Some(record)) => record.files(),
            (names, _) => names.iter().map(PathBuf::from).collect(),
        };
        let read = paths.iter().map(|path| Component::read(world, path));
        let read: Vec<Component> = read.collect::<Result<_, _>>().map_err(composing)?;
        components::may_be_joined(&read).map_err(composing)?;
        if let Some(record) = record.filter(|_| !order.force) {
            components::may_follow(&read, record).map_err(composing)?;
        }
        let rings = read.iter().map(|component| {
            component
                .builder
                .to_ring()
                .map_err(|error| Fault::caller(error.to_string()))
        });
        let rings: Vec<RingData> = rings.collect::<Result<_, _>>().map_err(composing)?;
        let ring = RingData::composed(&rings).map_err(|error| composing(Fault::caller(error.to_string())))?;
        let bytes = ring.to_bytes_v1().unwrap_or_else(|_| ring.to_bytes_v2());
        let written = shelf.write_other(Path::new(&order.output), &bytes);
        written.map_err(|stop| Failed("writing the composite ring file", stop.into_fault()))?;
        let version = record.map_or(0, |record| record.version) + 1;
        let remembered = read.iter().map(|it| (it.part(), self.here.join(&it.path)));
        let record = CompositeRecord::of(remembered.collect(), version);
        let written = shelf.write_other(Path::new(file), record.to_json(&self.here.join(file)).as_bytes());
        written.map_err(writing)
    }
}

/// The next word that is no option; options before it are unknown.
fn next_word<'w>(words: &mut impl Iterator<Item = &'w String>, unknown: &mut Vec<&'w str>) -> Option<&'w str> {
    for word in words.map(String::as_str) {
        match word.len() > 1 && word.starts_with('-') {
            true => unknown.push(word),
            false => return Some(word),
        }
    }
    None
}

/// Options may be shortened as far as they stay clear: `--out`.
fn is_option(word: &str, name: &str) -> bool {
    word.len() > 2 && name.starts_with(word)
}

fn read_compose<'w>(words: impl Iterator<Item = &'w String>, unknown: &mut Vec<&'w str>) -> Result<Order, Stop> {
    let wrong = |why: &str| Stop::Option {
        usage: COMPOSE_USAGE.to_owned(),
        why: why.to_owned(),
    };
    let (mut builders, mut output, mut force) = (Vec::new(), None, false);
    let mut words = words.map(String::as_str);
    while let Some(word) = words.next() {
        match word.split_once('=') {
            Some((name, value)) if is_option(name, "--output") => output = Some(value.to_owned()),
            None if is_option(word, "--force") => force = true,
            None if is_option(word, "--output") => {
                let value = words.next().filter(|value| !value.starts_with('-'));
                let value = value.ok_or_else(|| wrong("argument --output: expected one argument"))?;
                output = Some(value.to_owned());
            }
            _ if word.len() > 1 && word.starts_with('-') => unknown.push(word),
            _ => builders.push(word.to_owned()),
        }
    }
    let output = output.ok_or_else(|| wrong("the following arguments are required: --output"))?;
    Ok(Order {
        builders,
        output,
        force,
    })
}

/// No record of a composite ring is larger.
const LARGEST_RECORD: u64 = 64 << 20;

fn read_record(shelf: &Shelf<'_>, file: &str) -> Result<CompositeRecord, Fault> {
    let bytes = shelf.read_other(Path::new(file), LARGEST_RECORD);
    let bytes = bytes.map_err(|error| {
        Fault::caller(match error.kind() {
            std::io::ErrorKind::NotFound => format!("[Errno 2] No such file or directory: {}", quoted(file)),
            _ => format!("{error}: {}", quoted(file)),
        })
    })?;
    CompositeRecord::read(&bytes).ok_or_else(|| Fault::data("File does not contain valid composite ring data"))
}
