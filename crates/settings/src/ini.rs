//! The file format of `/etc/swift`: sections, options, comments, continuation lines.
//!
//! Comes in: the text of one file. Goes out: [`Document`], options in order with their line numbers.
//! Rules, as OpenStack Swift reads its files (observed): names are case-sensitive; `=` or `:` ends a
//! name; `#` and `;` begin a comment only at the start of a line; a line indented deeper than the
//! option it follows continues the value; a section or option may not be declared twice in one file.
//! Deliberately absent: reading files (`source.rs`), `%(name)s` (`interpolate.rs`), meanings.

use crate::report::SettingsError;
use std::path::{Path, PathBuf};

/// The section whose options every other section inherits.
pub const DEFAULT: &str = "DEFAULT";

/// One `name = value`, not interpolated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawOption {
    /// As spelled.
    pub name: String,
    /// Lines of a continued value are joined by `\n`.
    pub value: String,
    /// Where it was said.
    pub file: PathBuf,
    /// Line of the name, from 1.
    pub line: usize,
}

/// A `[name]` with its options in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// As spelled between the brackets.
    pub name: String,
    /// In file order.
    pub options: Vec<RawOption>,
}

impl Section {
    /// The option of that exact name.
    pub fn get(&self, name: &str) -> Option<&RawOption> {
        self.options.iter().find(|o| o.name == name)
    }
}

/// A configuration: one file, or the files of a `conf.d` directory merged.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Document {
    /// The file or directory it came from; what messages name.
    pub path: PathBuf,
    /// In order of first appearance, [`DEFAULT`] included when declared.
    pub sections: Vec<Section>,
}

impl Document {
    /// Parses one file's text.
    pub fn parse(path: &Path, text: &str) -> Result<Self, SettingsError> {
        Parser::new(path).run(text)
    }

    /// The section of that exact name.
    pub fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|s| s.name == name)
    }

    /// What `name` is set to in `section`, or else in `[DEFAULT]`; not interpolated.
    pub fn lookup(&self, section: &str, name: &str) -> Option<&RawOption> {
        let find = |s: &str| self.section(s).and_then(|s| s.get(name));
        find(section).or_else(|| find(DEFAULT))
    }

    /// Adds a later file of the same directory: its options win.
    pub fn merge(&mut self, later: Document) {
        for section in later.sections {
            match self.sections.iter_mut().find(|s| s.name == section.name) {
                None => self.sections.push(section),
                Some(mine) => {
                    for option in section.options {
                        mine.options.retain(|o| o.name != option.name);
                        mine.options.push(option);
                    }
                }
            }
        }
    }
}

struct Parser<'a> {
    path: &'a Path,
    sections: Vec<Section>,
    /// Indentation of the option that a deeper line would continue.
    indent: usize,
    /// Whether the last section has an option that can be continued.
    open: bool,
}

impl<'a> Parser<'a> {
    fn new(path: &'a Path) -> Self {
        Self {
            path,
            sections: Vec::new(),
            indent: 0,
            open: false,
        }
    }

    fn run(mut self, text: &str) -> Result<Document, SettingsError> {
        for (index, line) in text.lines().enumerate() {
            self.line(line, index + 1)?;
        }
        for option in self.sections.iter_mut().flat_map(|s| &mut s.options) {
            option.value.truncate(option.value.trim_end().len());
        }
        Ok(Document {
            path: self.path.to_owned(),
            sections: self.sections,
        })
    }

    fn line(&mut self, line: &str, number: usize) -> Result<(), SettingsError> {
        let content = line.trim();
        if content.starts_with(['#', ';']) {
            return Ok(());
        }
        if content.is_empty() {
            self.continue_value("");
            return Ok(());
        }
        let indent = line.len() - line.trim_start().len();
        if self.open && indent > self.indent {
            self.continue_value(content);
            return Ok(());
        }
        self.indent = indent;
        match section_name(content) {
            Some(name) => self.section(name, number),
            None => self.option(content, number),
        }
    }

    fn continue_value(&mut self, content: &str) {
        if !self.open {
            return;
        }
        if let Some(option) = self.sections.last_mut().and_then(|s| s.options.last_mut()) {
            option.value.push('\n');
            option.value.push_str(content);
        }
    }

    fn section(&mut self, name: &str, line: usize) -> Result<(), SettingsError> {
        self.open = false;
        let known = self.sections.iter().position(|s| s.name == name);
        match known {
            // `[DEFAULT]` alone may come back.
            Some(index) if name == DEFAULT => {
                let section = self.sections.remove(index);
                self.sections.push(section);
                Ok(())
            }
            Some(_) => Err(self.error(line, format!("section [{name}] is declared twice; merge the two"))),
            None => {
                self.sections.push(Section {
                    name: name.into(),
                    options: Vec::new(),
                });
                Ok(())
            }
        }
    }

    fn option(&mut self, content: &str, line: usize) -> Result<(), SettingsError> {
        let (name, value) = match content.find(['=', ':']) {
            Some(at) if at > 0 => (content[..at].trim_end(), content[at + 1..].trim_start()),
            // The message does not quote the line: it may be half of a key.
            _ => return Err(self.error(line, "expected `name = value` or `[section]`".into())),
        };
        let path = self.path;
        let Some(section) = self.sections.last_mut() else {
            let message = format!("option {name:?} stands before any [section]; put it under one");
            return Err(self.error(line, message));
        };
        if let Some(first) = section.get(name) {
            let message = format!(
                "option {name:?} is set twice in [{}] (first on line {}); keep one",
                section.name, first.line
            );
            return Err(self.error(line, message));
        }
        section.options.push(RawOption {
            name: name.into(),
            value: value.into(),
            file: path.to_owned(),
            line,
        });
        self.open = true;
        Ok(())
    }

    fn error(&self, line: usize, message: String) -> SettingsError {
        SettingsError::Syntax {
            file: self.path.to_owned(),
            line,
            message,
        }
    }
}

/// `[name]`, possibly with rubbish after the last bracket, which Swift ignores.
fn section_name(content: &str) -> Option<&str> {
    let end = content.rfind(']')?;
    content
        .strip_prefix('[')?
        .get(..end - 1)
        .filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<Document, SettingsError> {
        Document::parse(Path::new("x.conf"), text)
    }

    fn value(text: &str, section: &str, name: &str) -> String {
        let document = parse(text).unwrap();
        document.lookup(section, name).unwrap().value.clone()
    }

    #[test]
    fn reads_what_swift_reads() {
        let cases = [
            ("[a]\nx=1\n\n y\n", "1\n\ny"),
            ("[a]\nx=1\n # c\n y\n", "1\ny"),
            ("[a]\nx=1\n  \n\n  ;q\n c\n\n\n[d]\n", "1\n\n\nc"),
            ("[a] \n x=1\n", "1"),
            ("[a];x\nx: 1 ; not a comment\n", "1 ; not a comment"),
            ("[a]\nx:1=2\n", "1=2"),
            ("[a]\nx = 1\nX = 2\n", "1"),
            ("[a]\r\nx =\r\n", ""),
            ("[DEFAULT]\nx = d\n[a]\ny = 1\n", "d"),
            ("[DEFAULT]\nx = d\n[a]\nx = 1\n[DEFAULT]\ny = 2\n", "1"),
        ];
        for (text, expected) in cases {
            assert_eq!(value(text, "a", "x"), expected, "{text:?}");
        }
        assert_eq!(value("[a]\nx y = 1\n", "a", "x y"), "1");
        assert_eq!(parse("[ a ]\nb=1\n").unwrap().sections[0].name, " a ");
        assert!(parse("").unwrap().sections.is_empty());
    }

    #[test]
    fn refuses_with_the_line() {
        let cases = [
            ("x = 1\n", "line 1: option \"x\" stands before any [section]"),
            ("[a]\nnovalue\n", "line 2: expected `name = value`"),
            ("[a]\n= 1\n", "line 2: expected `name = value`"),
            ("[a\nx=1\n", "line 1: expected"),
            ("[a]\nx=1\n[a]\ny=2\n", "line 3: section [a] is declared twice"),
            (
                "[b]\nx=1\nx=2\n",
                "line 3: option \"x\" is set twice in [b] (first on line 2)",
            ),
        ];
        for (text, expected) in cases {
            let message = parse(text).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
            assert!(message.starts_with("x.conf"), "{message}");
        }
    }

    #[test]
    fn half_of_a_key_is_not_quoted() {
        let message = parse("[US]\nkey 9ff3\n").unwrap_err().to_string();
        assert!(!message.contains("9ff3"), "{message}");
    }

    #[test]
    fn later_files_win() {
        let mut first = parse("[DEFAULT]\na=1\nb=1\n[x]\nq=1\n").unwrap();
        first.merge(parse("[DEFAULT]\nb=2\n[y]\nr=2\n").unwrap());
        assert_eq!(first.lookup("x", "b").unwrap().value, "2");
        assert_eq!(first.lookup("x", "a").unwrap().value, "1");
        assert_eq!(first.lookup("y", "r").unwrap().value, "2");
    }

    proptest! {
        #[test]
        fn never_panics(text in "([\\[\\]=:#; \\n%a-c]|\\PC)*") {
            let _ = parse(&text);
        }
    }
}
