//! Every public type has a name that no other public type of the workspace has.

use crate::finding::Finding;
use crate::source::Source;
use crate::tree::Tree;
use std::collections::BTreeMap;
use syn::visit::{self, Visit};

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut places: BTreeMap<String, Vec<(&str, usize)>> = BTreeMap::new();
    for source in tree.sources.iter().filter(|source| !source.only_tests) {
        let mut visitor = Types { source, found: vec![] };
        visitor.visit_file(&source.syntax);
        for (name, line) in visitor.found {
            places.entry(name).or_default().push((&source.path, line));
        }
    }
    let mut findings = vec![];
    for (name, places) in places.iter().filter(|(_, places)| places.len() > 1) {
        for (at, (file, line)) in places.iter().enumerate() {
            let (other, there) = places[if at == 0 { 1 } else { 0 }];
            let what = format!(
                "{} public types are named `{name}` (another: {other}:{there}): give this one the noun of its module",
                places.len()
            );
            findings.push(Finding::new("types", file, *line, what));
        }
    }
    findings
}

struct Types<'a> {
    source: &'a Source,
    found: Vec<(String, usize)>,
}

impl Types<'_> {
    fn add(&mut self, visibility: &syn::Visibility, name: &syn::Ident) {
        let line = name.span().start().line;
        if !matches!(visibility, syn::Visibility::Inherited) && !self.source.is_test(line) {
            self.found.push((name.to_string(), line));
        }
    }
}

impl<'a> Visit<'a> for Types<'_> {
    fn visit_item(&mut self, item: &'a syn::Item) {
        match item {
            syn::Item::Struct(item) => self.add(&item.vis, &item.ident),
            syn::Item::Enum(item) => self.add(&item.vis, &item.ident),
            syn::Item::Trait(item) => self.add(&item.vis, &item.ident),
            syn::Item::Type(item) => self.add(&item.vis, &item.ident),
            syn::Item::Union(item) => self.add(&item.vis, &item.ident),
            _ => {}
        }
        visit::visit_item(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::planted;

    #[test]
    fn a_doubled_name_is_found_at_both_places() {
        let found = check(&planted(&[
            ("crates/a/src/lib.rs", "pub struct Row;\nstruct Own;\n"),
            (
                "crates/b/src/lib.rs",
                "struct Own;\npub(super) enum Row {}\n#[cfg(test)]\npub type Own = u8;\n",
            ),
        ]));
        let places: Vec<(&str, usize)> = found.iter().map(|f| (f.file.as_str(), f.line)).collect();
        assert_eq!(places, [("crates/a/src/lib.rs", 1), ("crates/b/src/lib.rs", 2)]);
        assert!(found[0].what.contains("crates/b/src/lib.rs:2"));
    }
}
