//! Where lines go: to the console, or into one JSON document.
//!
//! ```json
//! {"object": {"hosts": 3, "async": {
//!     "answers": {"10.0.0.1:6200": {"async_pending": 0}, "10.0.0.2:6200": {"error": "…"}},
//!     "summary": {"async_pending": {"low": 0.0, "high": 0.0, …}}}}}
//! ```
//! Always holds: with JSON nothing else is printed, refusals excepted, which go to standard error; no control character
//! of what servers answer is printed, but the line feeds between lines.

use super::ReconArguments;
use crate::console::Console;
use crate::text::{shown, shown_lines};
use crate::words::explained;
use serde_json::{Map, Value, json};
use std::fmt::Display;
use std::io;

/// As long as a line of OpenStack's.
const RULE: usize = 79;

/// Tells a person, or a program.
pub(super) struct ReportWriter<'c, 'w> {
    console: &'c mut Console<'w>,
    document: Option<Map<String, Value>>,
    kind: String,
    check: &'static str,
}

impl<'c, 'w> ReportWriter<'c, 'w> {
    pub(super) fn new(console: &'c mut Console<'w>, json: bool) -> Self {
        Self {
            console,
            document: json.then(Map::new),
            kind: String::new(),
            check: "",
        }
    }

    /// A line for people.
    pub(super) fn line(&mut self, line: impl Display) -> io::Result<()> {
        match self.document {
            Some(_) => Ok(()),
            None => self.console.say(shown(line.to_string().as_bytes())),
        }
    }

    /// The line between checks.
    pub(super) fn rule(&mut self) -> io::Result<()> {
        self.line("=".repeat(RULE))
    }

    /// Why nothing is asked.
    pub(super) fn refuse(&mut self, why: &str) -> io::Result<()> {
        match self.document {
            Some(_) => self.console.complain(shown_lines(why)),
            None => {
                self.console.say(shown_lines(why))?;
                self.console
                    .say("Usage: recon [account] [container] [object] [OPTION]...\n")?;
                self.console.say(explained::<ReconArguments>())
            }
        }
    }

    pub(super) fn begin_kind(&mut self, kind: &str, hosts: usize) -> io::Result<()> {
        kind.clone_into(&mut self.kind);
        if let Some(document) = &mut self.document {
            document.insert(kind.to_owned(), json!({ "hosts": hosts }));
        }
        Ok(())
    }

    pub(super) fn begin_check(&mut self, check: &'static str) {
        self.check = check;
    }

    /// What a host answered, for programs.
    pub(super) fn answer(&mut self, host: &str, answer: Value) {
        self.put("answers", host, answer);
    }

    /// What comes of all answers, for programs.
    pub(super) fn summary(&mut self, name: &str, value: Value) {
        self.put("summary", name, value);
    }

    fn put(&mut self, part: &str, name: &str, value: Value) {
        if let Some(document) = &mut self.document {
            // Making room in what has been made an object by `begin_kind` and by this line alone.
            document[&self.kind][self.check][part][name] = value;
        }
    }

    /// Ends the output; no line follows.
    pub(super) fn end(self) -> io::Result<()> {
        match self.document {
            Some(document) => self.console.say(json_shown(&Value::Object(document))),
            None => Ok(()),
        }
    }
}

/// JSON escapes the control characters of ASCII itself, but the last; those beyond (U+009B begins commands of terminals
/// too) can stand in texts alone, where their escape means the same.
fn json_shown(document: &Value) -> String {
    let text = format!("{document:#}");
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c.is_control() && c != '\n' {
            true => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            false => out.push(c),
        }
    }
    out
}
