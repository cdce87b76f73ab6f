//! Private words give way to the words of the field, in identifiers, comments and pages.

use crate::finding::Finding;
use crate::source::TokenKind;
use crate::tree::Tree;

/// A private word, where it counts, and what stands for it.
struct Private {
    word: &'static str,
    scope: Scope,
    remedy: &'static str,
}

/// Where a word is private: in comments it may be plain English.
#[derive(PartialEq, Eq)]
enum Scope {
    Everywhere,
    Identifiers,
    Comments,
}
use Scope::{Comments, Everywhere, Identifiers};

const fn private(word: &'static str, scope: Scope, remedy: &'static str) -> Private {
    Private { word, scope, remedy }
}

/// The list, in small letters. Plurals are found by themselves.
const PRIVATE: &[Private] = &[
    private("lot", Everywhere, "batch"),
    private("chore", Everywhere, "job"),
    private("misfortune", Everywhere, "fault"),
    private("befall", Everywhere, "inject, hit"),
    private("befallen", Everywhere, "inject, hit"),
    private("befell", Everywhere, "inject, hit"),
    private("manner", Everywhere, "config, mode"),
    private("atlas", Everywhere, "topology"),
    private("teller", Everywhere, "writer, report"),
    private("told", Everywhere, "sent, reported, configured"),
    private("circle", Everywhere, "ring client; cycle"),
    private("trouble", Identifiers, "error, fault"),
    private("settle", Identifiers, "sync, finish, resolve"),
    private("settled", Identifiers, "synced, finished, resolved"),
    private("ways", Identifiers, "links"),
    private("said", Identifiers, "parsed, response"),
    private("whoever", Comments, "the thing that acts: client, caller, process"),
    private("somebody", Comments, "the thing that acts: client, caller, process"),
    private("someone", Comments, "the thing that acts: client, caller, process"),
    private("nobody", Comments, "no client, no caller, nothing"),
    private("himself", Comments, "itself"),
];

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = vec![];
    // This file is the list itself.
    for source in tree
        .sources
        .iter()
        .filter(|source| !source.path.ends_with("xtask/src/tidy/words.rs"))
    {
        let mut add = |line: usize, what: String| findings.push(Finding::new("words", &source.path, line, what));
        for token in source.tokens.iter().filter(|token| token.kind == TokenKind::Ident) {
            // The name of an outside crate.
            let own = token.text != "parking_lot";
            for part in parts(&token.text).into_iter().filter(|_| own) {
                if let Some(private) = is_private(&part, &Comments) {
                    let (name, word, remedy) = (&token.text, private.word, private.remedy);
                    add(
                        token.line,
                        format!("`{name}` has the private word \"{word}\": use {remedy}"),
                    );
                }
            }
        }
        for comment in &source.comments {
            if comment.text == "Likewise." {
                add(
                    comment.line,
                    "the comment says nothing: name what the item is".to_owned(),
                );
            }
            if comment.first && comment.text.starts_with("Who ") {
                add(
                    comment.line,
                    "the comment begins with \"Who\": begin with the thing that acts".to_owned(),
                );
            }
            for (word, remedy) in in_prose(&comment.text) {
                add(
                    comment.line,
                    format!("the comment has the private word \"{word}\": use {remedy}"),
                );
            }
        }
    }
    for (path, text) in &tree.pages {
        for (index, line) in text.lines().enumerate() {
            for (word, remedy) in in_prose(line) {
                let what = format!("the page has the private word \"{word}\": use {remedy}");
                findings.push(Finding::new("words", path, index + 1, what));
            }
        }
    }
    findings
}

/// The private words of a text, each with its remedy.
fn in_prose(text: &str) -> Vec<(&'static str, &'static str)> {
    let text = text.to_lowercase().replace("a lot", "").replace("by lot", "");
    let words = text.split(|c: char| !c.is_alphanumeric());
    let found = words.filter_map(|word| is_private(word, &Identifiers));
    found.map(|private| (private.word, private.remedy)).collect()
}

/// The entry for `word`, unless it counts only in `elsewhere`.
fn is_private(word: &str, elsewhere: &Scope) -> Option<&'static Private> {
    let matches = |private: &&Private| {
        private.scope != *elsewhere && (word == private.word || word.strip_suffix('s') == Some(private.word))
    };
    PRIVATE.iter().find(matches)
}

/// The words of an identifier, in small letters.
fn parts(identifier: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    for letter in identifier.chars() {
        if letter == '_' || letter.is_uppercase() {
            parts.push(String::new());
        }
        if letter != '_' {
            let last = parts.len() - 1;
            parts[last].extend(letter.to_lowercase());
        }
    }
    // Constants are written in capitals only.
    if identifier.chars().all(|letter| !letter.is_lowercase()) {
        return identifier.to_lowercase().split('_').map(str::to_owned).collect();
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::planted;

    #[test]
    fn private_words_are_found_in_identifiers_and_comments() {
        let text = "struct NextLot;\nconst LOTS: u8 = 1;\nfn slot(by_chore: u8) {}\n// A lot of slots.\n// Every lot.\n\n\
                    /// Likewise.\nfn a() {}\n\n// Who is killed in between.\nfn manners() { \"lot\"; }\n";
        let found = check(&planted(&[("crates/a/src/lib.rs", text)]));
        let lines: Vec<usize> = found.iter().map(|f| f.line).collect();
        assert_eq!(lines, [1, 2, 3, 11, 5, 7, 10]);
        assert!(found[0].what.ends_with("use batch"), "{found:?}");
    }

    #[test]
    fn private_words_are_found_in_pages() {
        let found = check(&planted(&[("docs/a.md", "# A page\n\nNobody tells.\n")]));
        assert_eq!(found.iter().map(|f| f.line).collect::<Vec<_>>(), [3]);
    }

    #[test]
    fn the_name_of_an_outside_crate_is_let_through() {
        let found = check(&planted(&[(
            "crates/a/src/lib.rs",
            "use parking_lot::Mutex;\nfn parking_lots() {}\n",
        )]));
        assert_eq!(found.iter().map(|f| f.line).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn plain_english_is_let_through_in_comments() {
        let text = "// The trouble is that both ways are long.\nfn who() {}\n";
        assert!(check(&planted(&[("crates/a/src/lib.rs", text)])).is_empty());
    }
}
