//! Names of backend headers stand in `peer` only, where each message has its one encoding.

use crate::finding::Finding;
use crate::source::TokenKind;
use crate::tree::Tree;

/// Headers between servers, in small letters; a name that ends in `-` stands for all that begin with it.
const HEADERS: &[&str] = &[
    "x-backend-",
    "x-account-device",
    "x-account-host",
    "x-account-override-deleted",
    "x-account-partition",
    "x-container-device",
    "x-container-host",
    "x-container-partition",
    "x-container-root-db-state",
    "x-delete-at-container",
    "x-delete-at-device",
    "x-delete-at-host",
    "x-delete-at-partition",
    "x-delete-timestamp",
    "x-put-timestamp",
];

/// Places that may name them: the encoding itself, the options that list header names, the feature that removes them
/// from requests of clients, and this crate.
const ALLOWED: &[&str] = &[
    "crates/peer/",
    "crates/settings/",
    "crates/features/src/access/gatekeeper.rs",
    "crates/xtask/",
];

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = vec![];
    for source in &tree.sources {
        if ALLOWED.iter().any(|folder| source.path.starts_with(folder)) {
            continue;
        }
        for token in source.tokens.iter().filter(|token| token.kind == TokenKind::Literal) {
            let words = token.text.trim_start_matches(['b', 'r', '#', '"']).to_ascii_lowercase();
            let name = words.trim_end_matches(['"', '#']);
            let is_header = |header: &&&str| match header.strip_suffix('-') {
                Some(_) => name.starts_with(**header),
                None => name == **header,
            };
            if let Some(header) = HEADERS.iter().find(is_header)
                && token.text.contains('"')
                && !source.is_test(token.line)
            {
                let what = format!(
                    "the backend header {} is named outside `peer` (`{header}`): use the field of the typed message \
                     in crates/peer, or add one there",
                    token.text
                );
                findings.push(Finding::new("headers", &source.path, token.line, what));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::planted;

    #[test]
    fn a_backend_header_outside_peer_is_found() {
        let text = "const A: &str = \"X-Backend-Timestamp\";\nconst B: &str = \"x-container-host\";\n\
                    const C: &str = \"x-container-meta-host\";\n#[test]\nfn t() { a(\"x-backend-x\"); }\n";
        let found = check(&planted(&[
            ("crates/gateway/src/a.rs", text),
            ("crates/peer/src/a.rs", text),
        ]));
        let places: Vec<(&str, usize)> = found.iter().map(|f| (f.file.as_str(), f.line)).collect();
        assert_eq!(places, [("crates/gateway/src/a.rs", 1), ("crates/gateway/src/a.rs", 2)]);
    }
}
