//! `container-sync-realms.conf`: the clusters that sync containers with each other, and the keys they share.
//!
//! Always holds: names of realms and clusters are upper case, as they are compared; no key is printed.
//! Deliberately absent: reading the file, signing, syncing.

use crate::declare::{Options, Scope, options};
use crate::ini::{DEFAULT, Document};
use crate::kinds::Secret;
use crate::report::SettingsError;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::time::Duration;

/// The file's name below `swift_dir`.
pub const FILE: &str = "container-sync-realms.conf";

options! {
    /// `[DEFAULT]`.
    pub struct RealmsFile {
        /// Seconds after which the file is read again if it has changed.
        mtime_check_interval: Duration = "300",
    }
}

options! {
    /// The keys of a realm, in the section of its name.
    pub struct RealmKeys {
        /// Signs the requests between the realm's clusters, besides the key that each container has. Nothing is
        /// synced without one.
        key: Secret = "",
        /// Also good for requests that come in, so that keys can be exchanged one cluster at a time.
        key2: Secret = "",
    }
}

/// All realms, by name.
#[derive(Debug, Clone)]
pub struct Realms {
    /// By name.
    pub realms: BTreeMap<String, Realm>,
    /// How often the file is looked at again.
    pub check_interval: Duration,
}

impl Default for Realms {
    /// None, where there is no file.
    fn default() -> Self {
        Self {
            realms: BTreeMap::new(),
            check_interval: RealmsFile::default().mtime_check_interval,
        }
    }
}

/// Clusters that trust each other.
#[derive(Clone, Default)]
pub struct Realm {
    /// Signs and checks requests between them.
    pub key: Option<String>,
    /// Also good while keys are being exchanged.
    pub key2: Option<String>,
    /// Where each cluster is, by name.
    pub clusters: BTreeMap<String, String>,
}

impl fmt::Debug for Realm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Realm({:?})", self.clusters)
    }
}

impl Realms {
    /// Reads the file's text.
    pub fn parse(path: &Path, text: &str) -> Result<Self, SettingsError> {
        let document = Document::parse(path, text)?;
        let defaults = Scope::plain(&document, DEFAULT)?;
        let mut realms = BTreeMap::new();
        for section in document.sections.iter().filter(|section| section.name != DEFAULT) {
            let scope = Scope::plain(&document, &section.name)?;
            realms.insert(section.name.to_uppercase(), Realm::read(&scope)?);
        }
        Ok(Self {
            realms,
            check_interval: RealmsFile::read(&defaults)?.mtime_check_interval,
        })
    }

    /// A realm by its name, however spelled.
    pub fn get(&self, name: &str) -> Option<&Realm> {
        self.realms.get(&name.to_uppercase())
    }
}

impl Realm {
    fn read(scope: &Scope) -> Result<Self, SettingsError> {
        let keys = RealmKeys::read(scope)?;
        let present = |key: Secret| Some(key.0).filter(|text| !text.is_empty());
        let cluster = |(name, place): (&str, &str)| {
            let name = name.to_lowercase();
            Some((name.strip_prefix("cluster_")?.to_uppercase(), place.to_owned()))
        };
        Ok(Self {
            key: present(keys.key),
            key2: present(keys.key2),
            clusters: scope.iter().filter_map(cluster).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn realms_have_keys_and_clusters() {
        let text = "[DEFAULT]\nmtime_check_interval = 5\n[US]\nkey = 9ff3\nkey2 = 1a0a\ncluster_dfw1 = http://dfw1.host/v1/\n[empty]\n";
        let realms = Realms::parse(Path::new(FILE), text).unwrap();
        assert_eq!(realms.check_interval, Duration::from_secs(5));
        let us = realms.get("us").unwrap();
        assert_eq!((us.key.as_deref(), us.key2.as_deref()), (Some("9ff3"), Some("1a0a")));
        assert_eq!(us.clusters["DFW1"], "http://dfw1.host/v1/");
        assert_eq!(realms.get("EMPTY").unwrap().key, None);
        assert!(!format!("{realms:?}").contains("9ff3"));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC*") {
            let _ = Realms::parse(Path::new(FILE), &text);
        }
    }
}
