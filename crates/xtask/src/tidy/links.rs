//! Links and file names in Markdown pages, and pages named in comments, lead somewhere.

use crate::finding::Finding;
use crate::tree::{Tree, parent};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::collections::{BTreeMap, BTreeSet};

/// Folders at the root whose paths pages name in backticks.
const FOLDERS: &[&str] = &["crates/", "docs/", "etc/", "packaging/", "tests/", ".ci/"];

pub fn check(tree: &Tree) -> Vec<Finding> {
    let anchors: BTreeMap<&str, BTreeSet<String>> = tree
        .pages
        .iter()
        .map(|(path, text)| (path.as_str(), anchors(text)))
        .collect();
    let mut findings = vec![];
    for (path, text) in &tree.pages {
        for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
            let what = match event {
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    broken_link(tree, &anchors, path, &dest_url)
                }
                Event::Code(code) => missing_file(tree, path, &code),
                _ => None,
            };
            if let Some(what) = what {
                let line = text[..range.start].matches('\n').count() + 1;
                findings.push(Finding::new("links", path, line, what));
            }
        }
    }
    for source in &tree.sources {
        for comment in &source.comments {
            for word in comment
                .text
                .split(|c: char| !(c.is_alphanumeric() || "/._-".contains(c)))
            {
                let page = word.trim_start_matches("../").trim_end_matches('.');
                if page.starts_with("docs/") && page.ends_with(".md") && !tree.files.contains(page) {
                    let what = format!("there is no page {page}: name the one that is meant");
                    findings.push(Finding::new("links", &source.path, comment.line, what));
                }
            }
        }
    }
    findings
}

fn broken_link(tree: &Tree, anchors: &BTreeMap<&str, BTreeSet<String>>, page: &str, url: &str) -> Option<String> {
    if url.contains("://") || url.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = url.split_once('#').unwrap_or((url, ""));
    let target = if file.is_empty() {
        page.to_owned()
    } else {
        join(parent(page), file)
    };
    if !tree.files.contains(target.trim_end_matches('/')) {
        return Some(format!(
            "the link leads to {target}, which does not exist: name the file that is meant"
        ));
    }
    if !anchor.is_empty()
        && !anchors
            .get(target.as_str())
            .is_some_and(|anchors| anchors.contains(anchor))
    {
        return Some(format!("{target} has no heading #{anchor}: name one that it has"));
    }
    None
}

/// What is wrong with a code span that names a file of the repository.
fn missing_file(tree: &Tree, page: &str, code: &str) -> Option<String> {
    if code.contains([' ', '<', '*', '$', '…']) {
        return None;
    }
    let code = code.split_once(':').map_or(code, |(file, _)| file);
    let rooted = FOLDERS.iter().any(|folder| code.starts_with(folder));
    let bare = code.ends_with(".rs") && !rooted;
    if !rooted && !bare {
        return None;
    }
    let missing = expand(code).into_iter().find(|path| {
        let path = path.trim_end_matches('/');
        let below = format!("/{path}");
        let beside = format!("{}/{path}", parent(page));
        let exists = tree.files.contains(path) || tree.files.contains(&beside);
        !exists && (!bare || !tree.files.iter().any(|file| file.ends_with(&below)))
    });
    missing.map(|path| format!("the page names {path}, which does not exist: name the file that is meant"))
}

/// `a/{b,c}.rs` → `a/b.rs`, `a/c.rs`.
fn expand(path: &str) -> Vec<String> {
    let braces = path
        .split_once('{')
        .and_then(|(before, rest)| Some((before, rest.split_once('}')?)));
    match braces {
        Some((before, (choices, after))) => choices
            .split(',')
            .flat_map(|choice| expand(&format!("{before}{}{after}", choice.trim())))
            .collect(),
        None => vec![path.to_owned()],
    }
}

/// `file` as seen from `folder`, without `.` and `..`.
fn join(folder: &str, file: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in file.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

/// The anchors of a page's headings, as GitHub makes them.
fn anchors(text: &str) -> BTreeSet<String> {
    let (mut found, mut heading) = (BTreeSet::new(), None::<String>);
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::Text(words) | Event::Code(words) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&words);
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                let words = heading.take().unwrap_or_default().to_lowercase();
                let kept = words.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
                found.insert(kept.map(|c| if c == ' ' { '-' } else { c }).collect());
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::planted;

    #[test]
    fn links_anchors_and_file_names_that_lead_nowhere_are_found() {
        let page = "# A `page`: one\n\n[ok](b.md#two-words) [self](#a-page-one) [web](https://x.y/z)\n\
                    [bad](c.md)\n[bad](b.md#three)\n`crates/a/src/{lib,b}.rs`\n`lib.rs` and `c.rs`\n`docs/`\n";
        let found = check(&planted(&[
            ("docs/a.md", page),
            ("docs/b.md", "## Two words\n"),
            (
                "crates/a/src/lib.rs",
                "//! See docs/b.md and [c](../../../docs/c.md).\n",
            ),
        ]));
        let places: Vec<(&str, usize)> = found.iter().map(|f| (f.file.as_str(), f.line)).collect();
        let page = [4, 5, 6, 7].map(|line| ("docs/a.md", line));
        assert_eq!(places, [&page[..], &[("crates/a/src/lib.rs", 1)]].concat());
    }
}
