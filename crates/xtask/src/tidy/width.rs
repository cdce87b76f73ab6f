//! Lines of at most 120 columns; a line with a string that cannot be broken is let through.

use crate::finding::Finding;
use crate::source::{Source, TokenKind};
use crate::tree::Tree;

const WIDTH: usize = 120;

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = vec![];
    for source in &tree.sources {
        for (index, text) in source.lines.iter().enumerate() {
            let (line, width) = (index + 1, text.chars().count());
            if width > WIDTH && !is_text(source, line) {
                let what = format!("the line has {width} columns: break it before column {WIDTH}");
                findings.push(Finding::new("width", &source.path, line, what));
            }
        }
    }
    findings
}

/// Whether a string literal reaches the line, and no comment does.
fn is_text(source: &Source, line: usize) -> bool {
    let text = |token: &&crate::source::SourceToken| token.kind == TokenKind::Literal && token.text.contains('"');
    let reaches = |token: &crate::source::SourceToken| (token.line..=token.end).contains(&line);
    source.tokens.iter().filter(text).any(reaches) && !source.comments.iter().any(|comment| comment.line == line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::planted;

    #[test]
    fn a_long_comment_is_found_and_a_long_string_is_not() {
        let long = "x".repeat(130);
        let text = format!("// {long}\nconst A: &str = \"{long}\";\n/// {long}\nfn a() {{}}\n");
        let found = check(&planted(&[("crates/a/src/lib.rs", &text)]));
        assert_eq!(found.iter().map(|f| f.line).collect::<Vec<_>>(), [1, 3]);
    }
}
