//! The commands of the ring builder, one table of them, and how one is run.
//!
//! Comes in: the words of the command line. Goes out: text on the terminal, files beside the builder, an exit
//! status. Always holds: a command that ends with [`CommandStatus::Error`] has left builder and ring as they were; what
//! changes them is done under the directory's lock.
//!
//! | question | file |
//! |---|---|
//! | the ring shown, searched, checked | `show.rs` |
//! | devices come, go and change | `devices.rs` |
//! | the ring's own settings | `settings.rs` |
//! | partitions move | `rebalance.rs` |
//! | the ring file is written; a builder made of it | `rings.rs` |
//! | the partition power grows | `power.rs` |
//! | how well replicas are spread | `dispersion.rs` |

mod devices;
mod dispersion;
mod power;
mod rebalance;
mod rings;
mod settings;
mod show;

use crate::advice;
use crate::device_options::{self, DeviceLine};
use crate::files::{BuilderFiles, PATIENCE, Shelf};
use crate::options::{self, Declared, OptionError, ParsedOptions};
use crate::terminal::{CommandStatus, Stop, Terminal};
use crate::usage;
use placement::{BuilderError, RingBuilder};
use std::time::Duration;
use world::World;

pub(crate) use show::matching;

/// How a command ends.
pub type CommandResult = Result<CommandStatus, Stop>;

/// What a command works with.
pub struct Desk<'d, 't> {
    /// The name under which the program was called.
    pub program: &'d str,
    /// The command's own name.
    pub command: &'d str,
    /// The words after it.
    pub words: &'d [String],
    /// The ring's files.
    pub shelf: Shelf<'d>,
    /// Where it speaks.
    pub terminal: &'d mut Terminal<'t>,
}

impl Desk<'_, '_> {
    /// The line was not right: how it is said.
    pub fn usage(&self) -> Stop {
        let page = usage::page(self.command);
        Stop::Usage(page.map_or_else(String::new, |page| page.with_search_values(self.program)))
    }

    /// Reads options; mistakes end the command.
    pub fn options(&self, declared: &[Declared]) -> Result<ParsedOptions, Stop> {
        ParsedOptions::read(declared, self.words).map_err(|error| self.option_error(error, declared))
    }

    /// Reads the options of commands about devices.
    pub fn device_line(&self) -> Result<DeviceLine, Stop> {
        DeviceLine::read(self.words).map_err(|error| self.option_error(error, &device_options::DECLARED))
    }

    fn option_error(&self, error: OptionError, declared: &[Declared]) -> Stop {
        let page = usage::page(self.command);
        match error {
            OptionError::Help => Stop::Help(format!(
                "{}\n{}",
                page.map_or_else(String::new, |page| page.with_search_values(self.program)),
                options::help(declared)
            )),
            OptionError::Wrong(why) => Stop::Option {
                usage: page.map_or_else(String::new, |page| page.shown(self.program)),
                why,
            },
        }
    }

    /// The name of the builder's file as the operator wrote it.
    pub fn builder_name(&self) -> String {
        self.shelf.files().builder.display().to_string()
    }

    /// A builder that partitions are placed in.
    pub fn placed(&self, builder: &RingBuilder) -> Result<(), Stop> {
        if builder.ever_rebalanced() {
            return Ok(());
        }
        Err(Stop::Refused(format!(
            "Specified builder file \"{}\" is not rebalanced yet. Please rebalance first.",
            self.builder_name()
        )))
    }
}

/// Why a builder refused, in OpenStack's words where it has some.
pub fn refusal(error: BuilderError) -> Stop {
    Stop::Refused(match error {
        BuilderError::Duplicate { id, device, ip, port } => format!("Device {id} already uses {ip}:{port}/{device}."),
        BuilderError::Removed { what, id } => {
            format!("Can not set {what} of dev_id {id} because it is marked for removal")
        }
        BuilderError::Overload { overload } if overload < 0.0 => "Overload must be non-negative.".to_owned(),
        other => other.to_string(),
    })
}

/// What a command needs to begin.
enum Run {
    /// A builder that it only looks at, or changes in part of its forms and saves itself.
    Builder(fn(&mut Desk<'_, '_>, RingBuilder) -> CommandResult),
    /// Whatever there is.
    Anything(fn(&mut Desk<'_, '_>, Option<RingBuilder>) -> CommandResult),
}

/// A command.
struct Command {
    name: &'static str,
    /// Whether it may change files, said with these words.
    changes: fn(&[String]) -> bool,
    run: Run,
}

const fn looks(name: &'static str, run: fn(&mut Desk<'_, '_>, RingBuilder) -> CommandResult) -> Command {
    Command {
        name,
        changes: |_| false,
        run: Run::Builder(run),
    }
}

const fn changes(name: &'static str, run: fn(&mut Desk<'_, '_>, RingBuilder) -> CommandResult) -> Command {
    Command {
        name,
        changes: |_| true,
        run: Run::Builder(run),
    }
}

const COMMANDS: [Command; 27] = [
    looks("default", show::ring),
    looks("search", show::search),
    looks("list_parts", show::list_parts),
    looks("validate", show::validate),
    Command {
        name: "dispersion",
        changes: dispersion::saves,
        run: Run::Builder(dispersion::report),
    },
    looks("ramp", advice::ramp),
    looks("simulate", advice::simulate),
    Command {
        name: "plan",
        changes: |_| false,
        run: Run::Anything(advice::plan),
    },
    changes("add", devices::add),
    changes("remove", devices::remove),
    changes("set_weight", devices::set_weight),
    changes("set_region", devices::set_region),
    changes("set_zone", devices::set_zone),
    changes("set_info", devices::set_info),
    changes("rebalance", rebalance::rebalance),
    changes("write_ring", rings::write_ring),
    changes("set_min_part_hours", settings::set_min_part_hours),
    changes("set_replicas", settings::set_replicas),
    changes("set_overload", settings::set_overload),
    changes("pretend_min_part_hours_passed", settings::pretend_min_part_hours_passed),
    changes("prepare_increase_partition_power", power::prepare),
    changes("increase_partition_power", power::increase),
    changes("cancel_increase_partition_power", power::cancel),
    changes("finish_increase_partition_power", power::finish),
    Command {
        name: "create",
        changes: |_| true,
        run: Run::Anything(settings::create),
    },
    Command {
        name: "version",
        changes: |_| false,
        run: Run::Anything(rings::version),
    },
    Command {
        name: "write_builder",
        changes: |_| true,
        run: Run::Anything(rings::write_builder),
    },
];

/// The ring builder, as it was called.
pub struct Invocation<'c> {
    /// The name of the program.
    pub program: &'c str,
    /// Whether it takes the lock for everything, as OpenStack's `swift-ring-builder-safe` does.
    pub safe: bool,
    /// The words after its name.
    pub words: &'c [String],
    /// How long it waits for another who changes rings of the same directory.
    pub patience: Duration,
}

impl<'c> Invocation<'c> {
    /// A call that waits as long as OpenStack's.
    pub fn new(program: &'c str, words: &'c [String]) -> Invocation<'c> {
        Invocation {
            program,
            safe: program.ends_with("-safe"),
            words,
            patience: PATIENCE,
        }
    }

    /// Runs it; the exit status says how it ended.
    pub fn run(&self, world: &World, terminal: &mut Terminal<'_>) -> CommandStatus {
        match self.try_run(world, terminal) {
            Ok(status) => status,
            Err(stop) => stop.tell(self.program, terminal),
        }
    }

    fn try_run(&self, world: &World, terminal: &mut Terminal<'_>) -> CommandResult {
        let [file, words @ ..] = self.words else {
            return Err(Stop::Help(usage::overview(self.program)));
        };
        if ["-h", "--help", "help"].contains(&file.as_str()) {
            return Err(Stop::Help(usage::overview(self.program)));
        }
        let (name, words) = match words {
            [] => ("default", words),
            [name, words @ ..] => (name.as_str(), words),
        };
        if ["-h", "--help"].contains(&name) {
            return Err(Stop::Help(usage::overview(self.program)));
        }
        let shelf = Shelf::new(world, BuilderFiles::named(file));
        let command = COMMANDS.iter().find(|command| command.name == name);
        let anything = command.is_some_and(|command| matches!(command.run, Run::Anything(_)));
        let files = shelf.files();
        if files.by_ring && (!anything || name == "create") {
            let (builder, ring) = (files.builder.display(), files.ring.display());
            terminal.say(format_args!("Note: using {builder} instead of {ring} as builder file"));
        }
        // Looked at before the lock is taken, which is a file in the directory: a mistyped name leaves none behind.
        if !anything && !shelf.has_builder() {
            let why = format!("Ring Builder file does not exist: {}", files.builder.display());
            return Err(Stop::Refused(why));
        }
        let command = command.ok_or_else(|| Stop::Refused(format!("Unknown command: {name}")))?;
        let _lock = ((command.changes)(words) || self.safe)
            .then(|| shelf.lock(self.patience))
            .transpose()?;
        let builder = shelf.read_builder()?;
        let mut desk = Desk {
            program: self.program,
            command: name,
            words,
            shelf,
            terminal,
        };
        match (&command.run, builder) {
            (Run::Anything(run), builder) => run(&mut desk, builder),
            (Run::Builder(run), Some(builder)) => run(&mut desk, builder),
            (Run::Builder(_), None) => {
                let why = format!("Ring Builder file does not exist: {}", desk.builder_name());
                Err(Stop::Refused(why))
            }
        }
    }
}
