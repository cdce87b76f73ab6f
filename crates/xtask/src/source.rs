//! One Rust file, read once for all checks: syntax tree, tokens with lines, comments, which lines are tests.

use proc_macro2::{TokenStream, TokenTree};
use std::ops::RangeInclusive;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// A parsed Rust file.
pub struct Source {
    /// Path from the root of the repository.
    pub path: String,
    /// The lines of the file.
    pub lines: Vec<String>,
    /// Every token, delimiters left out.
    pub tokens: Vec<SourceToken>,
    /// Every line of a comment, doc comments included.
    pub comments: Vec<Comment>,
    /// The syntax tree.
    pub syntax: syn::File,
    /// Lines of items that only tests compile.
    tests: Vec<RangeInclusive<usize>>,
    /// The whole file is compiled for tests or benchmarks only.
    pub only_tests: bool,
}

/// An identifier, a literal or a punctuation mark.
pub struct SourceToken {
    pub text: String,
    pub line: usize,
    pub end: usize,
    pub kind: TokenKind,
}

#[derive(PartialEq, Eq, Clone, Copy)]
pub enum TokenKind {
    Ident,
    Literal,
    Punct,
}

/// One line of a comment without its marks.
pub struct Comment {
    pub line: usize,
    pub text: String,
    /// The line before is not a line of the same comment.
    pub first: bool,
}

/// A name that a `use` declaration imports.
pub struct Import {
    /// The name in this file; `*` for a glob.
    pub name: String,
    pub path: Vec<String>,
    pub line: usize,
}

impl Source {
    /// Parses `text`, which is the file at `path`.
    pub fn parse(path: &str, text: &str) -> Result<Self, String> {
        let stream: TokenStream = text.parse().map_err(|error| format!("{path}: {error}"))?;
        let syntax = syn::parse2(stream.clone()).map_err(|error| format!("{path}: {error}"))?;
        let (mut tokens, mut ends) = (vec![], vec![]);
        flatten(text, stream, &mut tokens, &mut ends);
        let mut tests = TestLines::default();
        tests.visit_file(&syntax);
        Ok(Self {
            path: path.to_owned(),
            lines: text.lines().map(str::to_owned).collect(),
            comments: comments(text, &ends),
            tokens,
            syntax,
            tests: tests.lines,
            only_tests: ["/tests/", "/benches/", "/examples/"]
                .iter()
                .any(|folder| path.contains(folder) && !path.contains("/src/")),
        })
    }

    /// Whether only tests compile this line.
    pub fn is_test(&self, line: usize) -> bool {
        self.only_tests || self.tests.iter().any(|lines| lines.contains(&line))
    }

    /// How many lines the file has without its tests.
    pub fn lines_of_code(&self) -> usize {
        (1..=self.lines.len()).filter(|&line| !self.is_test(line)).count()
    }

    /// Every name that a `use` declaration outside tests imports.
    pub fn imports(&self) -> Vec<Import> {
        let mut imports = Imports::default();
        imports.visit_file(&self.syntax);
        imports.found.retain(|import| !self.is_test(import.line));
        imports.found
    }

    /// Every path of two or more segments outside tests, in macros too, with its line.
    pub fn paths(&self) -> Vec<(Vec<String>, usize)> {
        let mut paths = vec![];
        let mut at = 0;
        while at < self.tokens.len() {
            let start = at;
            let mut path = vec![];
            while self.tokens.get(at).is_some_and(|token| token.kind == TokenKind::Ident) {
                path.push(self.tokens[at].text.clone());
                let colon = |at: usize| self.tokens.get(at).is_some_and(|token| token.text == ":");
                if !colon(at + 1) || !colon(at + 2) {
                    break;
                }
                at += 3;
            }
            if path.len() > 1 && !self.is_test(self.tokens[start].line) {
                paths.push((path, self.tokens[start].line));
            }
            at += 1;
        }
        paths
    }
}

/// All leaves of `stream` but those that doc comments became, and the byte ranges of all its tokens.
fn flatten(text: &str, stream: TokenStream, tokens: &mut Vec<SourceToken>, ranges: &mut Vec<(usize, usize)>) {
    for tree in stream {
        let span = tree.span();
        let range = span.byte_range();
        if text[range.clone()].starts_with("//") || text[range.clone()].starts_with("/*") {
            continue;
        }
        let (words, kind) = match tree {
            TokenTree::Group(group) => {
                ranges.push((range.start, range.start + 1));
                flatten(text, group.stream(), tokens, ranges);
                ranges.push((range.end - 1, range.end));
                continue;
            }
            TokenTree::Ident(ident) => (ident.to_string(), TokenKind::Ident),
            TokenTree::Punct(punct) => (punct.to_string(), TokenKind::Punct),
            TokenTree::Literal(literal) => (literal.to_string(), TokenKind::Literal),
        };
        ranges.push((range.start, range.end));
        let (line, end) = (span.start().line, span.end().line);
        tokens.push(SourceToken {
            text: words,
            kind,
            line,
            end,
        });
    }
}

/// The comments of `text`: what stands between its tokens.
fn comments(text: &str, tokens: &[(usize, usize)]) -> Vec<Comment> {
    let mut found: Vec<Comment> = vec![];
    let (mut line, mut end) = (1, 0);
    for &(from, to) in tokens.iter().chain([&(text.len(), text.len())]) {
        for (index, words) in text[end..from].split('\n').enumerate() {
            line += usize::from(index > 0);
            let words = words.trim();
            let marks = ["///", "//!", "//", "/*", "*/", "*"];
            if let Some(mark) = marks.iter().find(|mark| words.starts_with(**mark)) {
                let first = found.last().is_none_or(|comment| comment.line + 1 != line);
                let text = words[mark.len()..].trim().to_owned();
                found.push(Comment { line, text, first });
            }
        }
        line += text[from..to].matches('\n').count();
        end = to;
    }
    found
}

/// Whether `attributes` say that only tests compile the item.
pub fn for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        if attribute.path().is_ident("test") || attribute.path().segments.last().is_some_and(|s| s.ident == "test") {
            return true;
        }
        let syn::Meta::List(list) = &attribute.meta else {
            return false;
        };
        let words = list.tokens.to_string();
        attribute.path().is_ident("cfg")
            && words.split(|c: char| !c.is_alphanumeric()).any(|word| word == "test")
            && !words.contains("not")
    })
}

#[derive(Default)]
struct TestLines {
    lines: Vec<RangeInclusive<usize>>,
}

impl TestLines {
    fn mark(&mut self, attributes: &[syn::Attribute], item: &dyn Fn() -> proc_macro2::Span) {
        if for_tests(attributes) {
            let span = item();
            self.lines.push(span.start().line..=span.end().line);
        }
    }
}

impl<'a> Visit<'a> for TestLines {
    fn visit_item(&mut self, item: &'a syn::Item) {
        let attributes = match item {
            syn::Item::Mod(item) => &item.attrs,
            syn::Item::Fn(item) => &item.attrs,
            syn::Item::Impl(item) => &item.attrs,
            syn::Item::Use(item) => &item.attrs,
            syn::Item::Struct(item) => &item.attrs,
            syn::Item::Enum(item) => &item.attrs,
            syn::Item::Const(item) => &item.attrs,
            syn::Item::Static(item) => &item.attrs,
            _ => &vec![],
        };
        self.mark(attributes, &|| item.span());
        visit::visit_item(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'a syn::ImplItemFn) {
        self.mark(&item.attrs, &|| item.span());
        visit::visit_impl_item_fn(self, item);
    }
}

#[derive(Default)]
struct Imports {
    found: Vec<Import>,
}

impl Imports {
    fn add(&mut self, tree: &syn::UseTree, path: &mut Vec<String>) {
        match tree {
            syn::UseTree::Path(part) => {
                path.push(part.ident.to_string());
                self.add(&part.tree, path);
                path.pop();
            }
            syn::UseTree::Name(leaf) => self.leaf(&leaf.ident, &leaf.ident, path),
            syn::UseTree::Rename(leaf) => self.leaf(&leaf.ident, &leaf.rename, path),
            syn::UseTree::Glob(glob) => self.found.push(Import {
                name: "*".to_owned(),
                path: path.clone(),
                line: glob.span().start().line,
            }),
            syn::UseTree::Group(group) => group.items.iter().for_each(|tree| self.add(tree, path)),
        }
    }

    fn leaf(&mut self, ident: &syn::Ident, name: &syn::Ident, path: &[String]) {
        let mut path = path.to_vec();
        let mut name = name.to_string();
        if ident == "self" {
            if name == "self" {
                name = path.last().cloned().unwrap_or_default();
            }
        } else {
            path.push(ident.to_string());
        }
        let line = ident.span().start().line;
        self.found.push(Import { name, path, line });
    }
}

impl<'a> Visit<'a> for Imports {
    fn visit_item_use(&mut self, item: &'a syn::ItemUse) {
        self.add(&item.tree, &mut vec![]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_tests_and_paths_are_found() {
        let text = "//! A page.\nuse std::{fs, io::Write as W};\n\n/// Doc.\nfn a() { b::c(\"// no\"); } // why\n\n#[cfg(test)]\nmod tests {\n    use x::y;\n}\n";
        let source = Source::parse("crates/a/src/b.rs", text).unwrap();
        let comments: Vec<(usize, &str)> = source.comments.iter().map(|c| (c.line, c.text.as_str())).collect();
        assert_eq!(comments, [(1, "A page."), (4, "Doc."), (5, "why")]);
        assert!(source.is_test(7) && source.is_test(9) && !source.is_test(5));
        let names: Vec<String> = source.imports().into_iter().map(|import| import.name).collect();
        assert_eq!(names, ["fs", "W"]);
        assert!(source.paths().contains(&(vec!["b".to_owned(), "c".to_owned()], 5)));
    }
}
