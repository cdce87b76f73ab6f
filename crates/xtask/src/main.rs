//! `cargo xtask`: the checks of the source tree itself, and its test programs side by side.
//!
//! | question | file |
//! |---|---|
//! | which checks are there | `tidy/mod.rs`, one file each beside it |
//! | how are sources, pages and crate edges read | `tree.rs`, `source.rs` |
//! | which findings are accepted for now | `known.rs`, `known.txt` |
//! | how do the programs of all tests run | `test_programs.rs` |
//!
//! Always holds: every finding names a file, a line and a remedy; each check is tested with a planted violation.
//! Deliberately absent: anything that rustfmt, clippy or rustc check already; no crate depends on this one.
#![expect(clippy::print_stdout, reason = "a command for developers answers on the terminal")]

mod finding;
mod known;
mod source;
mod test_programs;
mod tidy;
mod tree;

use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask tidy [--update] [RULE] | test

  tidy            report what breaks a rule of the tree beyond crates/xtask/known.txt
  tidy RULE       report everything that one rule finds, known or not
  tidy --update   remove from known.txt what is no longer found (the count of a rule never grows)
  test            build the unit and integration tests of the workspace and run their programs, several at a time";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let done = match words[..] {
        ["tidy"] => tidy::run(&root),
        ["tidy", "--update"] => tidy::update(&root),
        ["tidy", rule] if tidy::RULES.iter().any(|known| known.name == rule) => tidy::show(&root, rule),
        ["test"] => test_programs::run(&root),
        _ => {
            let rules: Vec<&str> = tidy::RULES.iter().map(|rule| rule.name).collect();
            println!("{USAGE}\n\nrules: {}", rules.join(", "));
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            println!("xtask: {error}");
            ExitCode::from(2)
        }
    }
}
