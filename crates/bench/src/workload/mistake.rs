//! What is wrong with a workload: where, and what is allowed there.

use std::fmt;

/// A mistake in a workload.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{what}", Place { file, line })]
pub struct WorkloadMistake {
    /// The file it is in; empty until that is known.
    pub file: String,
    /// Its line, from 1 on; 0 where no line can be named.
    pub line: usize,
    /// Which element and attribute, what it says, and what is allowed.
    pub what: String,
}

struct Place<'a> {
    file: &'a String,
    line: &'a usize,
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.file.as_str(), self.line) {
            ("", 0) => Ok(()),
            ("", line) => write!(f, "line {line}: "),
            (file, 0) => write!(f, "{file}: "),
            (file, line) => write!(f, "{file}:{line}: "),
        }
    }
}

impl WorkloadMistake {
    /// One whose place is not known yet.
    pub fn new(what: impl Into<String>) -> Self {
        Self {
            file: String::new(),
            line: 0,
            what: what.into(),
        }
    }

    /// A value that is not allowed: of `name`, which may be `allowed`.
    pub fn value(name: &str, value: &str, allowed: impl fmt::Display) -> Self {
        Self::new(format!("{name}=\"{value}\": expected {allowed}"))
    }

    /// Says in which element the mistake is.
    pub fn within(mut self, element: impl fmt::Display) -> Self {
        self.what = format!("{element}: {}", self.what);
        self
    }

    /// Says in which line the mistake is, unless that is known.
    pub fn on_line(mut self, line: usize) -> Self {
        if self.line == 0 {
            self.line = line;
        }
        self
    }

    /// Says in which file the mistake is.
    pub fn in_file(mut self, file: impl fmt::Display) -> Self {
        self.file = file.to_string();
        self
    }
}

/// Words as a list in a sentence: `a, b or c`.
pub fn one_of<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let words: Vec<&str> = words.into_iter().collect();
    match words.split_last() {
        None => String::new(),
        Some((last, [])) => (*last).to_owned(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::{WorkloadMistake, one_of};

    #[test]
    fn a_mistake_names_its_place() {
        let mistake = WorkloadMistake::value("ratio", "x", "a number").within("<operation>");
        assert_eq!(mistake.to_string(), "<operation>: ratio=\"x\": expected a number");
        let placed = mistake.on_line(7).on_line(9).in_file("w.xml");
        assert_eq!(
            placed.to_string(),
            "w.xml:7: <operation>: ratio=\"x\": expected a number"
        );
    }

    #[test]
    fn lists_read_as_sentences() {
        assert_eq!(one_of(["a", "b", "c"]), "a, b or c");
        assert_eq!(one_of(["a"]), "a");
    }
}
