//! No cycle of imports between the files of a crate; a module and the modules below it count as one.

use crate::finding::Finding;
use crate::source::Source;
use crate::tree::Tree;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

type Module = Vec<String>;

/// One file of a crate as a module.
struct Node<'a> {
    source: &'a Source,
    module: Module,
    /// What its `use` declarations bring under a name, for following re-exports.
    names: BTreeMap<String, Module>,
    /// Modules it refers to, with the first line that does.
    refers: BTreeMap<Module, usize>,
}

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut crates: BTreeMap<&str, Vec<&Source>> = BTreeMap::new();
    for source in &tree.sources {
        if let Some((folder, _)) = source.path.split_once("/src/")
            && !source.only_tests
        {
            crates.entry(folder).or_default().push(source);
        }
    }
    crates.values().flat_map(|sources| check_crate(sources)).collect()
}

fn check_crate(sources: &[&Source]) -> Vec<Finding> {
    let mut nodes: BTreeMap<Module, Node<'_>> = BTreeMap::new();
    for &source in sources {
        let module = module_of(&source.path);
        // A library and a program in one crate share the root; the library's re-exports are the ones that matter.
        if source.path.ends_with("/src/main.rs") && nodes.contains_key(&module) {
            continue;
        }
        let names = source
            .imports()
            .into_iter()
            .map(|import| (import.name, import.path))
            .collect();
        let refers = BTreeMap::new();
        nodes.insert(
            module.clone(),
            Node {
                source,
                module,
                names,
                refers,
            },
        );
    }
    let modules: Vec<Module> = nodes.keys().cloned().collect();
    for module in &modules {
        let mut refers = BTreeMap::new();
        let node = &nodes[module];
        let imports = node
            .source
            .imports()
            .into_iter()
            .map(|import| (import.path, import.line));
        for (path, line) in imports.chain(node.source.paths()) {
            let keyword = path
                .first()
                .is_some_and(|first| ["crate", "super", "self"].contains(&first.as_str()));
            let target = if keyword {
                resolve(&nodes, module, &path, 0)
            } else {
                None
            };
            if let Some(target) = target.filter(|target| !related(target, module)) {
                let first = refers.entry(target).or_insert(line);
                *first = line.min(*first);
            }
        }
        if let Some(node) = nodes.get_mut(module) {
            node.refers = refers;
        }
    }
    let mut findings = vec![];
    for node in nodes.values() {
        if let Some(cycle) = shortest_cycle(&nodes, &node.module) {
            let files: Vec<&str> = cycle.iter().map(|module| short(nodes[module].source)).collect();
            let next = &cycle[1 % cycle.len()];
            let what = format!(
                "the imports form a cycle: {} → {}; move what is shared below its users, or hand it over as an \
                 argument",
                files.join(" → "),
                files[0]
            );
            findings.push(Finding::new("cycles", &node.source.path, node.refers[next], what));
        }
    }
    findings
}

/// The path of modules from the crate's root to the file.
fn module_of(path: &str) -> Module {
    let inside = path.split_once("/src/").map_or(path, |(_, inside)| inside);
    let mut module: Module = inside.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if matches!(module.last().map(String::as_str), Some("mod" | "lib" | "main")) {
        module.pop();
    }
    module
}

fn short(source: &Source) -> &str {
    source
        .path
        .split_once("/src/")
        .map_or(source.path.as_str(), |(_, inside)| inside)
}

/// Whether one module is above the other.
fn related(a: &Module, b: &Module) -> bool {
    a.starts_with(b) || b.starts_with(a)
}

/// The module whose file declares what `path` in `module` names; re-exports are followed.
fn resolve(nodes: &BTreeMap<Module, Node<'_>>, module: &Module, path: &[String], depth: usize) -> Option<Module> {
    let mut at = module.clone();
    let mut rest = path;
    match path.first().map(String::as_str) {
        Some("crate") => {
            at.clear();
            rest = &path[1..];
        }
        Some("self") => rest = &path[1..],
        _ => {}
    }
    while rest.first().is_some_and(|segment| segment == "super") {
        at.pop()?;
        rest = &rest[1..];
    }
    for (index, segment) in rest.iter().enumerate() {
        let mut below = at.clone();
        below.push(segment.clone());
        if nodes.contains_key(&below) {
            at = below;
            continue;
        }
        let renamed = nodes.get(&at).and_then(|node| node.names.get(segment));
        if let Some(target) = renamed.filter(|_| depth < 8 && at != *module) {
            let mut whole = target.clone();
            whole.extend(rest[index + 1..].iter().cloned());
            let local = nodes.contains_key(&[at.clone(), vec![target[0].clone()]].concat());
            let inside = local || ["crate", "super", "self"].contains(&target[0].as_str());
            return if inside {
                resolve(nodes, &at, &whole, depth + 1)
            } else {
                Some(at)
            };
        }
        break;
    }
    nodes.contains_key(&at).then_some(at)
}

/// The shortest cycle of references through `start`, from it on.
fn shortest_cycle(nodes: &BTreeMap<Module, Node<'_>>, start: &Module) -> Option<Vec<Module>> {
    let mut before: BTreeMap<&Module, &Module> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let mut queue = VecDeque::from([start]);
    while let Some(module) = queue.pop_front() {
        for next in nodes[module].refers.keys() {
            if next == start {
                let mut cycle = vec![module.clone()];
                let mut at = module;
                while at != start {
                    at = before[at];
                    cycle.push(at.clone());
                }
                cycle.reverse();
                return Some(cycle);
            }
            if seen.insert(next) {
                before.insert(next, module);
                queue.push_back(next);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::planted;

    fn files(found: &[Finding]) -> Vec<&str> {
        found.iter().map(|finding| finding.file.as_str()).collect()
    }

    #[test]
    fn a_cycle_is_found_with_its_files() {
        let found = check(&planted(&[
            ("crates/x/src/lib.rs", "mod a;\nmod b;\nmod c;\n"),
            ("crates/x/src/a.rs", "//! A.\nuse crate::b::B;\npub struct A;\n"),
            ("crates/x/src/b.rs", "pub struct B;\nfn b() { super::c::c(); }\n"),
            ("crates/x/src/c.rs", "pub fn c() { some!(crate::a::A); }\n"),
        ]));
        assert_eq!(
            files(&found),
            ["crates/x/src/a.rs", "crates/x/src/b.rs", "crates/x/src/c.rs"]
        );
        assert_eq!(found[0].line, 2);
        assert!(found[0].what.contains("a.rs → b.rs → c.rs → a.rs"), "{found:?}");
    }

    #[test]
    fn a_re_export_does_not_hide_a_cycle() {
        let found = check(&planted(&[
            ("crates/x/src/lib.rs", "mod a;\nmod b;\npub use a::A;\n"),
            ("crates/x/src/a/mod.rs", "mod deep;\npub use deep::A;\n"),
            ("crates/x/src/a/deep.rs", "use crate::b::B;\npub struct A;\n"),
            ("crates/x/src/b.rs", "use crate::A;\npub struct B;\n"),
        ]));
        assert_eq!(files(&found), ["crates/x/src/a/deep.rs", "crates/x/src/b.rs"]);
    }

    #[test]
    fn a_module_and_its_children_are_one() {
        let found = check(&planted(&[
            ("crates/x/src/lib.rs", "mod a;\nuse a::A;\npub struct X;\n"),
            (
                "crates/x/src/a.rs",
                "mod child;\nuse crate::X;\nuse child::C;\npub struct A;\n",
            ),
            (
                "crates/x/src/a/child.rs",
                "use super::A;\npub struct C;\n#[cfg(test)]\nmod tests { use crate::b; }\n",
            ),
        ]));
        assert!(found.is_empty(), "{found:?}");
    }
}
