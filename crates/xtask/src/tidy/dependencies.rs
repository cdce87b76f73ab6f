//! Dependencies have a licence, a source and a name that `deny.toml` allows.
//!
//! cargo-deny checks the same lists and, beyond them, the texts of licences and the advisories (`make deny`). It takes
//! longer to build than all of Martlet's tests take to lint, so that what needs no network is checked here as well.

use crate::finding::Finding;
use crate::tree::{Dependency, Tree};
use std::collections::BTreeSet;

const PAGE: &str = "deny.toml";

/// What `deny.toml` says, as far as it is checked here.
struct Allowed {
    licences: BTreeSet<String>,
    registries: BTreeSet<String>,
    banned: Vec<(String, String)>,
}

pub fn check(tree: &Tree) -> Vec<Finding> {
    let allowed = match Allowed::read(&tree.deny) {
        Ok(allowed) => allowed,
        Err(_) if tree.dependencies.is_empty() => return vec![],
        Err(error) => return vec![Finding::new("dependencies", PAGE, 1, error)],
    };
    let found = tree.dependencies.iter().flat_map(|one| allowed.judge(one));
    found.map(|what| Finding::new("dependencies", PAGE, 1, what)).collect()
}

impl Allowed {
    fn read(text: &str) -> Result<Self, String> {
        let file: toml::Table = text.parse().map_err(|error| format!("cannot be read: {error}"))?;
        let part = |section: &str, list: &str| {
            let list = file.get(section).and_then(|section| section.get(list)?.as_array());
            list.ok_or_else(|| format!("[{section}] has no list `{list:?}`"))
        };
        let words = |list: &toml::value::Array| list.iter().filter_map(|v| v.as_str()).map(str::to_owned).collect();
        let text = |table: &toml::Value, name: &str| Some(table.get(name)?.as_str()?.to_owned());
        let banned = part("bans", "deny")?.iter();
        Ok(Self {
            licences: words(part("licenses", "allow")?),
            registries: words(part("sources", "allow-registry")?),
            banned: banned
                .filter_map(|ban| Some((text(ban, "crate")?, text(ban, "reason").unwrap_or_default())))
                .collect(),
        })
    }

    fn judge(&self, one: &Dependency) -> Vec<String> {
        let mut wrong = vec![];
        let name = format!("{} {}", one.name, one.version);
        if let Some((_, reason)) = self.banned.iter().find(|(banned, _)| *banned == one.name) {
            wrong.push(format!("{name} is banned: {reason}"));
        }
        let registry = one.source.strip_prefix("registry+").unwrap_or_default();
        if !self.registries.contains(registry) {
            let source = &one.source;
            wrong.push(format!(
                "{name} comes from {source}: take it from a registry that [sources] allows"
            ));
        }
        match Expression::of(&one.licence).map(|expression| expression.is_met(&self.licences)) {
            Some(true) => {}
            Some(false) => wrong.push(format!(
                "{name} is under {}: take another crate, or add the licence to [licenses] if Apache-2.0 goes with it",
                one.licence
            )),
            None => wrong.push(format!("{name} has no licence that can be read: {:?}", one.licence)),
        }
        wrong
    }
}

/// An SPDX expression: alternatives, each of which needs all of its parts.
enum Expression {
    Licence(String),
    All(Vec<Self>),
    Any(Vec<Self>),
}

impl Expression {
    /// Reads `(A OR B) AND C`; a slash, which old crates have, is `OR`.
    fn of(text: &str) -> Option<Self> {
        let spaced = text.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
        let words: Vec<&str> = spaced.split_whitespace().collect();
        let mut words = &words[..];
        let whole = Self::any(&mut words)?;
        words.is_empty().then_some(whole)
    }

    fn any(words: &mut &[&str]) -> Option<Self> {
        let mut found = vec![Self::all(words)?];
        while let ["OR", rest @ ..] = words {
            *words = rest;
            found.push(Self::all(words)?);
        }
        Some(Self::Any(found))
    }

    fn all(words: &mut &[&str]) -> Option<Self> {
        let mut found = vec![Self::one(words)?];
        while let ["AND", rest @ ..] = words {
            *words = rest;
            found.push(Self::one(words)?);
        }
        Some(Self::All(found))
    }

    fn one(words: &mut &[&str]) -> Option<Self> {
        match *words {
            ["(", rest @ ..] => {
                *words = rest;
                let inner = Self::any(words)?;
                let rest = words.strip_prefix(&[")"])?;
                *words = rest;
                Some(inner)
            }
            [name, "WITH", exception, rest @ ..] => {
                *words = rest;
                Some(Self::Licence(format!("{name} WITH {exception}")))
            }
            ["OR" | "AND" | "WITH" | ")", ..] | [] => None,
            [name, rest @ ..] => {
                *words = rest;
                Some(Self::Licence((*name).to_owned()))
            }
        }
    }

    fn is_met(&self, allowed: &BTreeSet<String>) -> bool {
        match self {
            Self::Licence(name) => allowed.contains(name),
            Self::All(parts) => parts.iter().all(|part| part.is_met(allowed)),
            Self::Any(parts) => parts.iter().any(|part| part.is_met(allowed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DENY: &str = "[licenses]\nallow = [\"MIT\", \"ISC\", \"A WITH B\"]\n[bans]\n\
        deny = [{ crate = \"bad\", reason = \"why\" }]\n[sources]\nallow-registry = [\"https://index\"]\n";

    fn dependency(name: &str, licence: &str, source: &str) -> Dependency {
        let [name, licence, source] = [name, licence, source].map(str::to_owned);
        let version = "1.0.0".to_owned();
        Dependency {
            name,
            version,
            licence,
            source,
        }
    }

    #[test]
    fn licences_sources_and_bans_are_judged() {
        let good = "registry+https://index";
        for (one, wrong) in [
            (dependency("a", "MIT", good), 0),
            (dependency("a", "GPL-3.0 OR MIT", good), 0),
            (dependency("a", "GPL-3.0/MIT", good), 0),
            (dependency("a", "(GPL-3.0 OR MIT) AND ISC", good), 0),
            (dependency("a", "A WITH B", good), 0),
            (dependency("a", "GPL-3.0 AND MIT", good), 1),
            (dependency("a", "A", good), 1),
            (dependency("a", "A WITH B WITH", good), 1),
            (dependency("a", "(MIT", good), 1),
            (dependency("a", "", good), 1),
            (dependency("a", "MIT", "registry+https://other"), 1),
            (dependency("a", "MIT", "git+https://index"), 1),
            (dependency("bad", "GPL-3.0", "git+https://index"), 3),
        ] {
            let mut tree = Tree {
                deny: DENY.to_owned(),
                ..Tree::default()
            };
            let shown = format!("{one:?}");
            tree.dependencies.push(one);
            let found = check(&tree);
            assert_eq!(found.len(), wrong, "{shown}: {found:?}");
        }
    }

    #[test]
    fn without_lists_nothing_is_allowed() {
        let mut tree = Tree::default();
        tree.dependencies.push(dependency("a", "MIT", "registry+https://index"));
        assert_eq!(check(&tree).len(), 1);
    }
}
