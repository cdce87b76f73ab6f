//! Files of at most 500 lines and functions of at most 70, tests aside.

use crate::finding::Finding;
use crate::source::Source;
use crate::tree::Tree;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

const FILE: usize = 500;
const FUNCTION: usize = 70;

pub fn files(tree: &Tree) -> Vec<Finding> {
    let mut findings = vec![];
    for source in tree.sources.iter().filter(|source| !source.only_tests) {
        let lines = source.lines_of_code();
        if lines > FILE {
            let what =
                format!("the file has {lines} lines without its tests, {FILE} are the limit: split it by subject");
            findings.push(Finding::new("files", &source.path, 1, what));
        }
    }
    findings
}

pub fn functions(tree: &Tree) -> Vec<Finding> {
    let mut findings = vec![];
    for source in tree.sources.iter().filter(|source| !source.only_tests) {
        let mut visitor = Functions {
            source,
            findings: &mut findings,
        };
        visitor.visit_file(&source.syntax);
    }
    findings
}

struct Functions<'a> {
    source: &'a Source,
    findings: &'a mut Vec<Finding>,
}

impl Functions<'_> {
    fn measure(&mut self, signature: &syn::Signature, body: &syn::Block) {
        let (from, to) = (signature.span().start().line, body.span().end().line);
        let lines = to - from + 1;
        if lines > FUNCTION && !self.source.is_test(from) {
            let name = &signature.ident;
            let what =
                format!("`{name}` has {lines} lines, {FUNCTION} are the limit: give its steps functions of their own");
            self.findings
                .push(Finding::new("functions", &self.source.path, from, what));
        }
    }
}

impl<'a> Visit<'a> for Functions<'_> {
    fn visit_item_fn(&mut self, item: &'a syn::ItemFn) {
        self.measure(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'a syn::ImplItemFn) {
        self.measure(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'a syn::TraitItemFn) {
        if let Some(body) = &item.default {
            self.measure(&item.sig, body);
        }
        visit::visit_trait_item_fn(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::planted;

    #[test]
    fn a_long_file_is_found_and_its_tests_do_not_count() {
        let (code, tests) = ("fn a() {}\n".repeat(500), "fn a() {}\n".repeat(100));
        let fits = format!("{code}#[cfg(test)]\nmod tests {{\n{tests}}}\n");
        let long = format!("{code}fn b() {{}}\n");
        let found = files(&planted(&[
            ("crates/a/src/fits.rs", &fits),
            ("crates/a/src/long.rs", &long),
        ]));
        assert_eq!(
            found.iter().map(|f| f.file.as_str()).collect::<Vec<_>>(),
            ["crates/a/src/long.rs"]
        );
    }

    #[test]
    fn a_long_function_is_found() {
        let body = |lines: usize| "    b();\n".repeat(lines);
        let text = format!(
            "fn fits() {{\n{}}}\nimpl A {{\n    fn long() {{\n{}}}\n}}\n#[test]\nfn test() {{\n{}}}\n",
            body(68),
            body(69),
            body(99)
        );
        let found = functions(&planted(&[("crates/a/src/lib.rs", &text)]));
        assert_eq!(found.len(), 1);
        assert!(found[0].what.starts_with("`long` has 71 lines"), "{found:?}");
    }
}
