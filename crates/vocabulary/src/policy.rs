//! Storage policies: which ring and which kind of redundancy a container's objects use.
//!
//! Declared in `swift.conf` as `[storage-policy:N]`. Index 0 always exists, is called `Policy-0`
//! when nothing declares it, and its directories carry no number.
//! Always holds in [`Policies`]: indexes and names (case-insensitive, aliases included) are unique,
//! exactly one default, which is not deprecated.

use std::fmt;

/// The number of a policy: part of directory names, database rows and backend headers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PolicyIndex(pub u32);

impl PolicyIndex {
    /// The policy that always exists.
    pub const LEGACY: PolicyIndex = PolicyIndex(0);

    /// `objects` or `objects-1`; likewise for `async_pending` and `tmp`.
    pub fn directory(self, base: &str) -> String {
        match self.0 {
            0 => base.to_owned(),
            n => format!("{base}-{n}"),
        }
    }

    /// The ring file of the policy: `object` or `object-1`.
    pub fn ring_name(self) -> String {
        self.directory("object")
    }
}

impl fmt::Display for PolicyIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for PolicyIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "policy {}", self.0)
    }
}

/// How a policy keeps its objects safe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyKind {
    /// Whole copies.
    Replication,
    /// Fragments (declared, not served yet).
    ErasureCoding,
}

/// One `[storage-policy:N]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// N.
    pub index: PolicyIndex,
    /// Its name in `X-Storage-Policy`.
    pub name: String,
    /// Further names that mean the same.
    pub aliases: Vec<String>,
    /// No new containers may use it.
    pub deprecated: bool,
    /// Copies or fragments.
    pub kind: PolicyKind,
}

impl Policy {
    /// A policy of whole copies with one name.
    pub fn replication(index: u32, name: &str) -> Self {
        Self {
            index: PolicyIndex(index),
            name: name.into(),
            aliases: vec![],
            deprecated: false,
            kind: PolicyKind::Replication,
        }
    }

    /// Its name and its aliases, the name first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.name.as_str()).chain(self.aliases.iter().map(String::as_str))
    }
}

/// Why a set of policies cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// Two sections claim one index.
    #[error("[storage-policy:{0}] is declared twice; give one of them another index")]
    DuplicateIndex(u32),
    /// Two policies claim one name.
    #[error("storage policy name {0:?} is used twice (names and aliases ignore case)")]
    DuplicateName(String),
    /// A name outside letters, digits and dashes.
    #[error("storage policy name {0:?} may hold only letters, digits and dashes")]
    BadName(String),
    /// No or several defaults, or a deprecated one.
    #[error("{0}")]
    Default(String),
    /// Sections exist but none for index 0.
    #[error("swift.conf declares policies but not [storage-policy:0], which always exists; add it")]
    NoLegacy,
}

/// All policies of a cluster, in the order of their indexes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policies {
    list: Vec<Policy>,
    default: PolicyIndex,
}

impl Default for Policies {
    fn default() -> Self {
        Self {
            list: vec![Policy::replication(0, "Policy-0")],
            default: PolicyIndex::LEGACY,
        }
    }
}

impl Policies {
    /// Checks the rules above. With a single policy it is the default; else one must be named.
    pub fn new(mut list: Vec<Policy>, default: Option<PolicyIndex>) -> Result<Self, PolicyError> {
        list.sort_by_key(|p| p.index);
        if list.is_empty() {
            return Ok(Self::default());
        }
        if list[0].index != PolicyIndex::LEGACY {
            return Err(PolicyError::NoLegacy);
        }
        if let Some(pair) = list.windows(2).find(|pair| pair[0].index == pair[1].index) {
            return Err(PolicyError::DuplicateIndex(pair[0].index.0));
        }
        check_names(&list)?;
        let default = match default {
            Some(index) => index,
            None if list.len() == 1 => PolicyIndex::LEGACY,
            None => {
                return Err(PolicyError::Default(
                    "no storage policy is marked `default = yes`; mark one".into(),
                ));
            }
        };
        match list.iter().find(|p| p.index == default) {
            None => Err(PolicyError::Default(format!(
                "the default storage policy {default} is not declared"
            ))),
            Some(p) if p.deprecated => Err(PolicyError::Default(format!(
                "storage policy {:?} cannot be both default and deprecated",
                p.name
            ))),
            Some(_) => Ok(Self { list, default }),
        }
    }

    /// In the order of their indexes.
    pub fn iter(&self) -> impl Iterator<Item = &Policy> {
        self.list.iter()
    }

    /// The policy of an index.
    pub fn get(&self, index: PolicyIndex) -> Option<&Policy> {
        self.list.iter().find(|p| p.index == index)
    }

    /// The policy a client names, by name or alias, ignoring case.
    pub fn by_name(&self, name: &str) -> Option<&Policy> {
        self.list
            .iter()
            .find(|p| p.names().any(|n| n.eq_ignore_ascii_case(name)))
    }

    /// What a container gets that asks for none.
    pub fn default_policy(&self) -> &Policy {
        self.get(self.default).unwrap_or(&self.list[0])
    }
}

fn check_names(list: &[Policy]) -> Result<(), PolicyError> {
    let mut seen: Vec<String> = Vec::new();
    for name in list.iter().flat_map(Policy::names) {
        let plain = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        if !plain {
            return Err(PolicyError::BadName(name.into()));
        }
        let key = name.to_ascii_lowercase();
        if seen.contains(&key) {
            return Err(PolicyError::DuplicateName(name.into()));
        }
        seen.push(key);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_carry_the_index() {
        assert_eq!(PolicyIndex(0).directory("objects"), "objects");
        assert_eq!(PolicyIndex(2).directory("async_pending"), "async_pending-2");
    }

    #[test]
    fn rules_are_checked() {
        let gold = Policy::replication(0, "gold");
        let silver = Policy {
            aliases: vec!["Ag".into()],
            ..Policy::replication(1, "silver")
        };
        let both = Policies::new(vec![silver.clone(), gold.clone()], Some(PolicyIndex(1))).unwrap();
        assert_eq!(both.by_name("AG").unwrap().index, PolicyIndex(1));
        assert_eq!(both.default_policy().name, "silver");
        assert_eq!(Policies::new(vec![silver.clone()], None), Err(PolicyError::NoLegacy));
        assert!(matches!(
            Policies::new(vec![gold.clone(), silver.clone()], None),
            Err(PolicyError::Default(_))
        ));
        assert_eq!(
            Policies::new(vec![gold.clone(), gold.clone()], None),
            Err(PolicyError::DuplicateIndex(0))
        );
        let twin = Policy::replication(1, "GOLD");
        assert!(matches!(
            Policies::new(vec![gold.clone(), twin], None),
            Err(PolicyError::DuplicateName(_))
        ));
        let old = Policy {
            deprecated: true,
            ..gold
        };
        assert!(matches!(Policies::new(vec![old], None), Err(PolicyError::Default(_))));
    }
}
