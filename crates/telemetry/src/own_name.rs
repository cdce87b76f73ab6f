//! Messages without the name that their line already has.
//!
//! A daemon's messages begin with its name (`object-updater: 3 done`), because in `martlet up` all daemons share one
//! log. In the log of the daemon itself that name stands before each message, and is not written again.
//! Always holds: only the start of a message is looked at, and nothing but the log's own name is taken off.

use std::fmt::{self, Write};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::{DefaultFields, Writer};

/// What stands between a name and the message.
const BEHIND: &str = ": ";

/// The message without the log's name.
pub(crate) fn without_own_name<'m>(message: &'m str, name: &str) -> &'m str {
    let rest = message.strip_prefix(name).and_then(|rest| rest.strip_prefix(BEHIND));
    rest.unwrap_or(message)
}

/// Writes fields as `tracing` does, without the log's name where they begin with it.
pub(crate) struct NamedFields {
    fields: DefaultFields,
    /// The name and what follows it; empty for a log without a name.
    start: String,
}

impl NamedFields {
    /// Of a log whose lines have this name.
    pub(crate) fn of(name: Option<&str>) -> Self {
        Self {
            fields: DefaultFields::new(),
            start: name.map(|name| format!("{name}{BEHIND}")).unwrap_or_default(),
        }
    }
}

impl<'writer> FormatFields<'writer> for NamedFields {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'writer>, fields: R) -> fmt::Result {
        let mut rest = WithoutStart {
            writer,
            start: &self.start,
            seen: 0,
        };
        self.fields.format_fields(Writer::new(&mut rest), fields)?;
        rest.end()
    }
}

/// Passes everything on but a certain start, which may arrive in pieces.
struct WithoutStart<'a, 'w> {
    writer: Writer<'w>,
    /// Empty once it is decided whether the text begins with it.
    start: &'a str,
    /// How many bytes of it have arrived, and were held back.
    seen: usize,
}

impl WithoutStart<'_, '_> {
    /// A text that ended before it differed.
    fn end(mut self) -> fmt::Result {
        self.writer.write_str(&self.start[..self.seen])
    }
}

impl Write for WithoutStart<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let expected = &self.start[self.seen..];
        if expected.is_empty() {
            return self.writer.write_str(text);
        }
        if expected.len() > text.len() && expected.starts_with(text) {
            self.seen += text.len();
            return Ok(());
        }
        let held_back = &self.start[..self.seen];
        (self.start, self.seen) = ("", 0);
        match text.strip_prefix(expected) {
            Some(rest) => self.writer.write_str(rest),
            None => {
                self.writer.write_str(held_back)?;
                self.writer.write_str(text)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(start: &str, pieces: &[&str]) -> String {
        let mut text = String::new();
        let mut rest = WithoutStart {
            writer: Writer::new(&mut text),
            start,
            seen: 0,
        };
        for piece in pieces {
            rest.write_str(piece).unwrap();
        }
        rest.end().unwrap();
        text
    }

    #[test]
    fn the_own_name_is_taken_off_once_and_nothing_else() {
        for (pieces, expected) in [
            (&["object-updater: 3 done"][..], "3 done"),
            (&["object-updater", ": ", "3", " done"], "3 done"),
            (&["object-updater: object-updater: 3 done"], "object-updater: 3 done"),
            (&["object-", "auditor: 3 done"], "object-auditor: 3 done"),
            (&["object-updater 3", " done"], "object-updater 3 done"),
            (&["a pass of object-updater: 3"], "a pass of object-updater: 3"),
            (&["object-upd"], "object-upd"),
            (&["object-updater", ": "], ""),
            (&[], ""),
        ] {
            assert_eq!(written("object-updater: ", pieces), expected, "{pieces:?}");
            assert_eq!(without_own_name(&pieces.concat(), "object-updater"), expected);
            assert_eq!(written("", pieces), pieces.concat());
        }
    }
}
