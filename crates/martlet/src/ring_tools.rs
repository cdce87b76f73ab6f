//! The operator's ring commands: words and standard streams go to `ring-builder`, its status comes back.

use crate::cli::ServerWords;
use crate::program::Program;
use ring_builder::{CommandStatus, Composing, Invocation, Terminal};
use std::io::{BufWriter, ErrorKind, Write};
use std::process::ExitCode;
use world::World;

/// `ring-builder`, or another name for it.
pub fn ring_builder(command: &str, line: &ServerWords) -> ExitCode {
    let program = name_of(command);
    let words = in_text(line);
    at_terminal(|terminal| Invocation::new(&program, &words).run(&World::real(), terminal))
}

/// `ring-composer`.
pub fn ring_composer(line: &ServerWords) -> ExitCode {
    let program = name_of("ring-composer");
    let words = in_text(line);
    // Without a working directory paths stay as they are.
    let here = std::env::current_dir().unwrap_or_default();
    let composing = Composing {
        program: &program,
        words: &words,
        here: &here,
    };
    at_terminal(|terminal| composing.run(&World::real(), terminal))
}

/// The name to speak of the program by: that of the link, or our own with the command.
fn name_of(command: &str) -> String {
    match Program::called().is_link() {
        true => format!("swift-{command}"),
        false => format!("martlet {command}"),
    }
}

/// What is no UTF-8 names no device and no file of a ring.
fn in_text(line: &ServerWords) -> Vec<String> {
    line.words
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect()
}

fn at_terminal(run: impl FnOnce(&mut Terminal<'_>) -> CommandStatus) -> ExitCode {
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut err = std::io::stderr().lock();
    let mut input = std::io::stdin().lock();
    let status = run(&mut Terminal {
        out: &mut out,
        err: &mut err,
        input: &mut input,
    });
    match out.flush() {
        // What was done is done, and what there is to know of it is lost: a warning.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            drop(writeln!(err, "cannot write: {error}"));
            ExitCode::from(status.code().max(CommandStatus::Warning.code()))
        }
        // A reader that has closed the pipe needs no error.
        _ => ExitCode::from(status.code()),
    }
}
