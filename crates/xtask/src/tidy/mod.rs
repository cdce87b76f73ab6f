//! The rules, and how their findings become an answer.

mod cycles;
mod dependencies;
mod edges;
mod generated;
mod headers;
mod links;
mod sizes;
mod types;
mod width;
mod words;
mod world;

use crate::finding::Finding;
use crate::known;
use crate::tree::Tree;
use std::path::Path;

/// One check of the tree.
pub struct Rule {
    /// Its name in `known.txt` and on the command line.
    pub name: &'static str,
    check: fn(&Tree) -> Vec<Finding>,
}

/// All checks.
pub const RULES: &[Rule] = &[
    Rule {
        name: "cycles",
        check: cycles::check,
    },
    Rule {
        name: "dependencies",
        check: dependencies::check,
    },
    Rule {
        name: "edges",
        check: edges::check,
    },
    Rule {
        name: "files",
        check: sizes::files,
    },
    Rule {
        name: "functions",
        check: sizes::functions,
    },
    Rule {
        name: "generated",
        check: generated::check,
    },
    Rule {
        name: "headers",
        check: headers::check,
    },
    Rule {
        name: "links",
        check: links::check,
    },
    Rule {
        name: "types",
        check: types::check,
    },
    Rule {
        name: "width",
        check: width::check,
    },
    Rule {
        name: "words",
        check: words::check,
    },
    Rule {
        name: "world",
        check: world::check,
    },
];

fn names() -> Vec<&'static str> {
    RULES.iter().map(|rule| rule.name).collect()
}

fn find(root: &Path) -> Result<Vec<Finding>, String> {
    let tree = Tree::read(root)?;
    let mut findings: Vec<Finding> = RULES.iter().flat_map(|rule| (rule.check)(&tree)).collect();
    findings.sort_by(|a, b| (a.rule, &a.file, a.line).cmp(&(b.rule, &b.file, b.line)));
    Ok(findings)
}

fn read_known(root: &Path) -> known::Counts {
    known::parse(&std::fs::read_to_string(root.join("crates/xtask/known.txt")).unwrap_or_default())
}

/// Reports what is found beyond `known.txt`; true if that is nothing.
pub fn run(root: &Path) -> Result<bool, String> {
    let (findings, known) = (find(root)?, read_known(root));
    let found = known::count(&findings);
    let accepted = |finding: &Finding| {
        let key = (finding.rule.to_owned(), finding.file.clone());
        found[&key] <= known.get(&key).copied().unwrap_or_default()
    };
    let fresh: Vec<&Finding> = findings.iter().filter(|finding| !accepted(finding)).collect();
    for finding in &fresh {
        println!("{}:{}: [{}] {}", finding.file, finding.line, finding.rule, finding.what);
    }
    if !fresh.is_empty() {
        println!(
            "\n{} findings in files that have more of them than crates/xtask/known.txt accepts. If a file only \
             moved, or others were mended for it, `cargo xtask tidy --update` carries its findings over.",
            fresh.len()
        );
    } else if known::shrink(&names(), &known, &found) != known {
        println!("tidy: known.txt can shrink: run cargo xtask tidy --update");
    }
    Ok(fresh.is_empty())
}

/// Reports everything that one rule finds.
pub fn show(root: &Path, rule: &str) -> Result<bool, String> {
    let findings = find(root)?;
    let of_rule: Vec<&Finding> = findings.iter().filter(|finding| finding.rule == rule).collect();
    for finding in &of_rule {
        println!("{}:{}: {}", finding.file, finding.line, finding.what);
    }
    println!("{} findings", of_rule.len());
    Ok(true)
}

/// Shrinks `known.txt` to what is still found, then reports the rest.
pub fn update(root: &Path) -> Result<bool, String> {
    let found = known::count(&find(root)?);
    let path = root.join("crates/xtask/known.txt");
    let shrunk = known::shrink(&names(), &read_known(root), &found);
    std::fs::write(&path, known::text(&names(), &shrunk)).map_err(|error| format!("{}: {error}", path.display()))?;
    run(root)
}
