//! A place in the tree that breaks a rule.

/// A place that breaks a rule.
#[derive(Debug)]
pub struct Finding {
    /// The name of the rule.
    pub rule: &'static str,
    /// Path from the root of the repository.
    pub file: String,
    /// Line in that file, from 1.
    pub line: usize,
    /// What is wrong, and the remedy.
    pub what: String,
}

impl Finding {
    /// A finding of `rule`.
    pub fn new(rule: &'static str, file: &str, line: usize, what: String) -> Self {
        let file = file.to_owned();
        Self { rule, file, line, what }
    }
}
