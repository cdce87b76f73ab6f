//! Where a tool writes, and how it ends.
//!
//! Always holds: a reader that goes away (`… | head`) ends the tool quietly.

use crate::text::shown_lines;
use std::io::{self, IsTerminal, Write};
use vocabulary::Fault;

/// The two outputs of a tool.
pub struct Console<'a> {
    /// What was asked for.
    pub out: &'a mut dyn Write,
    /// What went wrong.
    pub err: &'a mut dyn Write,
    /// A terminal shows the output: lines about progress, which replace each other, can be shown.
    pub shows_progress: bool,
}

/// How a tool ends: the process's exit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolStatus(pub u8);

impl ToolStatus {
    /// All is well.
    pub const SUCCESS: ToolStatus = ToolStatus(0);
    /// It is not.
    pub const FAILURE: ToolStatus = ToolStatus(1);
    /// The command line makes no sense.
    pub const USAGE: ToolStatus = ToolStatus(2);
}

/// Why a tool ends early.
#[derive(Debug)]
pub(crate) enum ToolStop {
    /// Something that it needs is missing or wrong.
    Fault(Fault),
    /// Its output cannot be written.
    Io(io::Error),
}

impl ToolStop {
    /// A command line, configuration or answer that is wrong.
    pub(crate) fn caller(what: impl Into<String>) -> Self {
        Self::Fault(Fault::caller(what))
    }

    /// Ends the tool: a fault is a line about what went wrong, in which a file or an answer may be cited.
    pub(crate) fn end(self, console: &mut Console<'_>) -> io::Result<ToolStatus> {
        match self {
            Self::Fault(fault) => {
                console.complain(shown_lines(&fault.what))?;
                Ok(ToolStatus::FAILURE)
            }
            Self::Io(error) => Err(error),
        }
    }
}

impl From<Fault> for ToolStop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<io::Error> for ToolStop {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Console<'_> {
    /// A line of what was asked for.
    pub fn say(&mut self, line: impl std::fmt::Display) -> io::Result<()> {
        writeln!(self.out, "{line}")
    }

    /// A line about what went wrong.
    pub fn complain(&mut self, line: impl std::fmt::Display) -> io::Result<()> {
        writeln!(self.err, "{line}")
    }

    /// A line on what was asked for that could not be done; the tool ends with it.
    pub fn fail(&mut self, line: impl std::fmt::Display) -> io::Result<ToolStatus> {
        self.say(line)?;
        Ok(ToolStatus::FAILURE)
    }
}

/// Runs a tool on the process's own outputs.
pub fn run(tool: impl FnOnce(&mut Console<'_>) -> io::Result<ToolStatus>) -> ToolStatus {
    // Not locked: other threads may log meanwhile.
    let mut out = io::BufWriter::new(io::stdout());
    let mut err = io::stderr();
    let mut console = Console {
        out: &mut out,
        err: &mut err,
        shows_progress: io::stdout().is_terminal(),
    };
    let ended = tool(&mut console).and_then(|status| console.out.flush().map(|()| status));
    match ended {
        Ok(status) => status,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ToolStatus::FAILURE,
        Err(error) => {
            // There is no output left to report this failure on.
            let _ = writeln!(err, "cannot write: {error}");
            ToolStatus::FAILURE
        }
    }
}
