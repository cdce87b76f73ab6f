//! Where a command speaks and listens: standard output, standard error, standard input.
//!
//! Always holds: a reader that goes away (`… | head`) ends nothing half-way; a question without an answer is
//! answered with no.

use std::fmt::Display;
use std::io::{BufRead, Read, Write};
use vocabulary::Fault;

/// How a command ended, as its exit status says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandStatus {
    /// Done.
    Success,
    /// Done, but there is something to know; or nothing was to be done.
    Warning,
    /// Not done.
    Error,
}

impl CommandStatus {
    /// The exit status OpenStack's ring commands have for it.
    pub fn code(self) -> u8 {
        match self {
            CommandStatus::Success => 0,
            CommandStatus::Warning => 1,
            CommandStatus::Error => 2,
        }
    }
}

/// No answer to a question is longer.
const LONGEST_ANSWER: u64 = 1024;

/// The three standard streams.
pub struct Terminal<'t> {
    /// What the operator asked for.
    pub out: &'t mut dyn Write,
    /// What went wrong on the way.
    pub err: &'t mut dyn Write,
    /// Answers.
    pub input: &'t mut dyn BufRead,
}

impl Terminal<'_> {
    /// A line on the output.
    pub fn say(&mut self, line: impl Display) {
        // A reader that has closed the pipe needs no error.
        let _ = writeln!(self.out, "{line}");
    }

    /// Text on the output, as it is.
    pub fn put(&mut self, text: &str) {
        let _ = self.out.write_all(text.as_bytes());
    }

    /// A line on standard error.
    pub fn warn(&mut self, line: impl Display) {
        let _ = writeln!(self.err, "{line}");
    }

    /// Whether the operator says `y`. Anything else is a no, as with OpenStack's program.
    pub fn agrees(&mut self, question: &str) -> bool {
        self.answer(question) == "y"
    }

    /// What the operator answers; nothing when the input is closed.
    pub fn answer(&mut self, question: &str) -> String {
        self.put(question);
        let _ = self.out.flush();
        let mut answer = String::new();
        match (&mut self.input).take(LONGEST_ANSWER).read_line(&mut answer) {
            Ok(_) => answer.trim_end_matches(['\r', '\n']).to_owned(),
            Err(_) => String::new(),
        }
    }
}

/// Why a command ends without having done its work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// It was refused; the words go to the output, where OpenStack's program says such things.
    Refused(String),
    /// It was not said right: how it is said.
    Usage(String),
    /// An option is wrong; goes to standard error.
    Option {
        /// How it is said.
        usage: String,
        /// What is wrong.
        why: String,
    },
    /// Help was asked for, and nothing is wrong.
    Help(String),
}

impl Stop {
    /// The refusal as a fault of the caller.
    pub fn into_fault(self) -> Fault {
        Fault::caller(match self {
            Stop::Refused(why) => why,
            other => format!("{other:?}"),
        })
    }

    /// Says it, and what it means for the exit status.
    pub fn tell(self, program: &str, terminal: &mut Terminal<'_>) -> CommandStatus {
        match self {
            Stop::Refused(why) => terminal.say(why),
            Stop::Usage(text) => terminal.put(&text),
            Stop::Option { usage, why } => {
                terminal.warn(format_args!("Usage: {}\n\n{program}: error: {why}", usage.trim_end()));
            }
            Stop::Help(text) => {
                terminal.put(&text);
                return CommandStatus::Success;
            }
        }
        CommandStatus::Error
    }
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Stop {
        Stop::Refused(fault.what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(answers: &str) -> (bool, String) {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut terminal = Terminal {
            out: &mut out,
            err: &mut err,
            input: &mut answers.as_bytes(),
        };
        let agrees = terminal.agrees("Sure? (y/N) ");
        (agrees, String::from_utf8(out).unwrap())
    }

    #[test]
    fn only_y_is_yes() {
        assert_eq!(asked("y\n"), (true, "Sure? (y/N) ".to_owned()));
        assert!(asked("y").0);
        for no in ["", "\n", "Y\n", "yes\n", " y\n", "n\n"] {
            assert!(!asked(no).0, "{no:?}");
        }
    }

    #[test]
    fn statuses_are_openstacks() {
        assert_eq!(
            [CommandStatus::Success, CommandStatus::Warning, CommandStatus::Error].map(CommandStatus::code),
            [0, 1, 2]
        );
    }
}
