//! Crates use each other only as the table in ARCHITECTURE.md lists it.

use crate::finding::Finding;
use crate::tree::{Edges, Tree};
use std::collections::{BTreeMap, BTreeSet};

const PAGE: &str = "ARCHITECTURE.md";
const HEAD: &str = "| crate | uses | its tests also use |";

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = vec![];
    let text = tree
        .pages
        .iter()
        .find(|(path, _)| path == PAGE)
        .map_or("", |(_, text)| text);
    let mut listed: BTreeMap<String, (usize, Edges)> = BTreeMap::new();
    let mut head = 1;
    let mut lines = text.lines().enumerate().skip_while(|(_, line)| *line != HEAD);
    if let Some((index, _)) = lines.next() {
        head = index + 1;
    }
    for (index, line) in lines.skip(1).take_while(|(_, line)| line.starts_with('|')) {
        let cells: Vec<BTreeSet<String>> = line.trim_matches('|').split('|').map(names).collect();
        if let [name, uses, in_tests] = &cells[..]
            && let Some(name) = name.first()
        {
            let (uses, in_tests) = (uses.clone(), in_tests.clone());
            listed.insert(name.clone(), (index + 1, Edges { uses, in_tests }));
        }
    }
    for (name, edges) in &tree.edges {
        let (line, as_listed) = listed
            .get(name)
            .map_or((head, None), |(line, edges)| (*line, Some(edges)));
        if as_listed != Some(edges) {
            let what = format!(
                "the table under `{HEAD}` does not say what crates/{name}/Cargo.toml says; remove the new edge, or, \
                 if it belongs to the design, write: | `{name}` | {} | {} |",
                cell(&edges.uses),
                cell(&edges.in_tests)
            );
            findings.push(Finding::new("edges", PAGE, line, what));
        }
    }
    for (name, (line, _)) in listed.iter().filter(|(name, _)| !tree.edges.contains_key(*name)) {
        let what = format!("the table lists `{name}`, which is no crate of the workspace: remove the line");
        findings.push(Finding::new("edges", PAGE, *line, what));
    }
    findings
}

/// The names in a cell.
fn names(cell: &str) -> BTreeSet<String> {
    let words = cell
        .split([',', ' ', '`'])
        .filter(|word| !word.is_empty() && *word != "–");
    words.map(str::to_owned).collect()
}

fn cell(names: &BTreeSet<String>) -> String {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    if names.is_empty() {
        "–".to_owned()
    } else {
        names.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::planted;

    #[test]
    fn an_edge_that_the_table_does_not_list_is_found() {
        let page =
            format!("# House\n\n{HEAD}\n|---|---|---|\n| `a` | b, c | – |\n| `b` | – | – |\n| `old` | – | – |\n");
        let mut tree = planted(&[(PAGE, &page)]);
        let edges = |names: &[&str]| Edges {
            uses: names.iter().map(|name| (*name).to_owned()).collect(),
            in_tests: BTreeSet::new(),
        };
        tree.edges.insert("a".to_owned(), edges(&["b", "c"]));
        tree.edges.insert("b".to_owned(), edges(&["c"]));
        tree.edges.insert("c".to_owned(), edges(&[]));
        let found = check(&tree);
        assert_eq!(found.iter().map(|f| f.line).collect::<Vec<_>>(), [6, 3, 7]);
        assert!(found[0].what.ends_with("write: | `b` | c | – |"), "{found:?}");
    }
}
