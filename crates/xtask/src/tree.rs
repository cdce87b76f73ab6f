//! The repository as the checks see it: sources, pages, file names and the crates' edges.

use crate::source::{Source, for_tests};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// All that the checks read.
#[derive(Default)]
pub struct Tree {
    /// Every Rust file of the workspace's crates.
    pub sources: Vec<Source>,
    /// Every Markdown page: path and text.
    pub pages: Vec<(String, String)>,
    /// Every file and folder of the repository, from its root.
    pub files: BTreeSet<String>,
    /// Which crates of the workspace each crate uses, and which its tests use in addition.
    pub edges: BTreeMap<String, Edges>,
    /// Texts of the files that declarations make.
    pub generated: BTreeMap<String, String>,
    /// What the workspace uses of others' crates, on the platform that is packaged.
    pub dependencies: Vec<Dependency>,
    /// The text of `deny.toml`.
    pub deny: String,
}

/// A crate from outside the workspace.
#[derive(Debug, PartialEq, Eq)]
pub struct Dependency {
    pub name: String,
    pub version: String,
    /// An SPDX expression.
    pub licence: String,
    /// As Cargo writes it: `registry+https://…`.
    pub source: String,
}

/// Crates of the workspace that one crate names in its `Cargo.toml`.
#[derive(Default, Debug, PartialEq, Eq)]
pub struct Edges {
    pub uses: BTreeSet<String>,
    pub in_tests: BTreeSet<String>,
}

impl Tree {
    /// Reads the repository at `root`.
    pub fn read(root: &Path) -> Result<Self, String> {
        let listed = output(root, "git", &["ls-files", "--cached", "--others", "--exclude-standard"])?;
        let mut contents = vec![];
        let mut files = BTreeSet::new();
        for path in listed.lines().filter(|path| root.join(path).is_file()) {
            files.insert(path.to_owned());
            if path.ends_with(".md") || path.ends_with(".rs") && path.starts_with("crates/") {
                let text = std::fs::read_to_string(root.join(path)).map_err(|error| format!("{path}: {error}"))?;
                contents.push((path.to_owned(), text));
            }
        }
        let mut tree = Self::of(&contents)?;
        for path in files
            .iter()
            .filter(|path| path.ends_with("-sample") || path.starts_with("docs/reference/"))
        {
            let text = std::fs::read_to_string(root.join(path)).map_err(|error| format!("{path}: {error}"))?;
            tree.generated.insert(path.clone(), text);
        }
        tree.files.extend(files.iter().flat_map(|file| with_folders(file)));
        let metadata = ["metadata", "--no-deps", "--format-version", "1", "--offline"];
        tree.edges = edges(&output(root, env!("CARGO"), &metadata)?)?;
        let platform = ["--filter-platform", "x86_64-unknown-linux-gnu"];
        let metadata = [&["metadata", "--locked", "--format-version", "1"], &platform[..]].concat();
        tree.dependencies = dependencies(&output(root, env!("CARGO"), &metadata)?)?;
        tree.deny = std::fs::read_to_string(root.join("deny.toml")).map_err(|error| format!("deny.toml: {error}"))?;
        Ok(tree)
    }

    /// The tree that has just these files.
    pub fn of(contents: &[(String, String)]) -> Result<Self, String> {
        let mut tree = Self::default();
        for (path, text) in contents {
            tree.files.extend(with_folders(path));
            if path.ends_with(".rs") {
                tree.sources.push(Source::parse(path, text)?);
            } else {
                tree.pages.push((path.clone(), text.clone()));
            }
        }
        tree.mark_test_files();
        Ok(tree)
    }

    /// Marks the files of modules that are declared for tests only, and all that is below them.
    fn mark_test_files(&mut self) {
        let mut roots = vec![];
        for source in &self.sources {
            for item in &source.syntax.items {
                if let syn::Item::Mod(module) = item
                    && module.content.is_none()
                    && for_tests(&module.attrs)
                {
                    let folder = module_folder(&source.path);
                    roots.push(format!("{folder}/{}.rs", module.ident));
                    roots.push(format!("{folder}/{}/", module.ident));
                    roots.extend(path_of(module).map(|file| format!("{}/{file}", parent(&source.path))));
                }
            }
        }
        for source in &mut self.sources {
            source.only_tests |= roots.iter().any(|root| source.path.starts_with(root));
        }
    }
}

/// The value of a module's `#[path = "…"]`.
fn path_of(module: &syn::ItemMod) -> Option<String> {
    module.attrs.iter().find_map(|attribute| match &attribute.meta {
        syn::Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            syn::Expr::Lit(literal) => match &literal.lit {
                syn::Lit::Str(text) => Some(text.value()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    })
}

/// The folder in which the modules that the file at `path` declares have their files.
fn module_folder(path: &str) -> String {
    let stem = path.strip_suffix(".rs").unwrap_or(path);
    match stem.rsplit_once('/') {
        Some((folder, "mod" | "lib" | "main")) => folder.to_owned(),
        _ => stem.to_owned(),
    }
}

/// The folder that `path` is in.
pub fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// `path` and every folder above it.
fn with_folders(path: &str) -> Vec<String> {
    let mut found = vec![path.to_owned()];
    let mut rest = path;
    while let Some((folder, _)) = rest.rsplit_once('/') {
        found.push(folder.to_owned());
        rest = folder;
    }
    found
}

/// What a program prints.
fn output(root: &Path, program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(root)
        .output()
        .map_err(|error| format!("cannot run {program}: {error}"))?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(format!("{program} {}: {why}", arguments.join(" ")));
    }
    String::from_utf8(output.stdout).map_err(|error| format!("{program}: {error}"))
}

/// The edges between workspace crates, from the answer of `cargo metadata --no-deps`.
fn edges(metadata: &str) -> Result<BTreeMap<String, Edges>, String> {
    let metadata: serde_json::Value = serde_json::from_str(metadata).map_err(|error| error.to_string())?;
    let list = |value: &serde_json::Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let mut found = BTreeMap::new();
    for package in list(&metadata["packages"]) {
        let mut edges = Edges::default();
        for dependency in list(&package["dependencies"]) {
            if dependency["path"].is_string() {
                let name = text(&dependency["name"]);
                match dependency["kind"].as_str() {
                    Some("dev") => edges.in_tests.insert(name),
                    _ => edges.uses.insert(name),
                };
            }
        }
        edges.in_tests.retain(|name| !edges.uses.contains(name));
        found.insert(text(&package["name"]), edges);
    }
    Ok(found)
}

/// The crates from outside, from the answer of `cargo metadata`: those that its resolution reaches.
fn dependencies(metadata: &str) -> Result<Vec<Dependency>, String> {
    let metadata: serde_json::Value = serde_json::from_str(metadata).map_err(|error| error.to_string())?;
    let list = |value: &serde_json::Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let reached: BTreeSet<String> = list(&metadata["resolve"]["nodes"])
        .iter()
        .map(|node| text(&node["id"]))
        .collect();
    let packages = list(&metadata["packages"]).into_iter();
    let outside = packages.filter(|one| one["source"].is_string() && reached.contains(&text(&one["id"])));
    Ok(outside
        .map(|one| Dependency {
            name: text(&one["name"]),
            version: text(&one["version"]),
            licence: text(&one["license"]),
            source: text(&one["source"]),
        })
        .collect())
}

/// A tree of planted files, for the tests of the checks.
#[cfg(test)]
pub fn planted(files: &[(&str, &str)]) -> Tree {
    let files: Vec<(String, String)> = files.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
    Tree::of(&files).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_test_modules_are_tests() {
        let tree = planted(&[
            ("crates/a/src/lib.rs", "mod b;\n#[cfg(test)]\nmod testing;\n"),
            (
                "crates/a/src/b.rs",
                "#[cfg(test)]\n#[path = \"b_tests.rs\"]\nmod tests;\n",
            ),
            ("crates/a/src/b_tests.rs", ""),
            ("crates/a/src/testing.rs", ""),
            ("crates/a/src/testing/deep.rs", ""),
        ]);
        let tests: Vec<&str> = tree
            .sources
            .iter()
            .filter(|s| s.only_tests)
            .map(|s| s.path.as_str())
            .collect();
        assert_eq!(
            tests,
            [
                "crates/a/src/b_tests.rs",
                "crates/a/src/testing.rs",
                "crates/a/src/testing/deep.rs"
            ]
        );
    }

    #[test]
    fn edges_come_from_paths_in_the_manifest() {
        let metadata = r#"{"packages": [{"name": "a", "dependencies": [
            {"name": "b", "path": "/b", "kind": null}, {"name": "c", "path": "/c", "kind": "dev"},
            {"name": "b", "path": "/b", "kind": "dev"}, {"name": "serde", "kind": null}]}]}"#;
        let edges = edges(metadata).unwrap();
        assert_eq!(edges["a"].uses, BTreeSet::from(["b".to_owned()]));
        assert_eq!(edges["a"].in_tests, BTreeSet::from(["c".to_owned()]));
    }

    #[test]
    fn dependencies_are_what_the_resolution_reaches() {
        let metadata = r#"{"resolve": {"nodes": [{"id": "a"}, {"id": "own"}]}, "packages": [
            {"id": "a", "name": "a", "version": "1.0.0", "license": "MIT", "source": "registry+x"},
            {"id": "b", "name": "b", "version": "1.0.0", "license": "GPL-3.0", "source": "registry+x"},
            {"id": "own", "name": "own", "version": "0.1.0", "license": null, "source": null}]}"#;
        let found = dependencies(metadata).unwrap();
        assert_eq!(found.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["a"]);
        assert_eq!(
            (found[0].licence.as_str(), found[0].source.as_str()),
            ("MIT", "registry+x")
        );
    }
}
