//! The sample files and the reference page, from the option tables.
//!
//! Always holds: a sample loads without warnings, every option in it commented out with its default.

use crate::declare::{OptionDecl, Options};
use crate::gateway_filters::{CacheSettings, GatekeeperSettings, HealthcheckSettings, ProxyLoggingSettings};
use crate::proxy::{ProxySettings, Routing};
use crate::server::{ServerCommon, StorageCommon};
use crate::storage::{AccountServerSettings, ContainerServerSettings, ObjectServerSettings};
use crate::swift_conf::{Constraints, HashOptions, PolicyOptions};
use crate::tempauth::TempAuthOptions;
use std::fmt::Write;

/// A section of a sample: its name, lines that must be there, its options.
struct Part {
    section: &'static str,
    lines: &'static [&'static str],
    tables: &'static [&'static [OptionDecl]],
}

/// One kind of file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `swift.conf`.
    Swift,
    /// `proxy-server.conf`.
    Proxy,
    /// `object-server.conf`.
    Object,
    /// `container-server.conf`.
    Container,
    /// `account-server.conf`.
    Account,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 5] = [Kind::Swift, Kind::Proxy, Kind::Object, Kind::Container, Kind::Account];

    /// The usual file name.
    pub fn file_name(self) -> &'static str {
        match self {
            Kind::Swift => "swift.conf",
            Kind::Proxy => "proxy-server.conf",
            Kind::Object => "object-server.conf",
            Kind::Container => "container-server.conf",
            Kind::Account => "account-server.conf",
        }
    }

    fn parts(self) -> &'static [Part] {
        match self {
            Kind::Swift => SWIFT,
            Kind::Proxy => PROXY,
            Kind::Object => OBJECT,
            Kind::Container => CONTAINER,
            Kind::Account => ACCOUNT,
        }
    }
}

const SWIFT: &[Part] = &[
    part(
        "swift-hash",
        &["swift_hash_path_prefix = changeme", "swift_hash_path_suffix = changeme"],
        &[HashOptions::TABLE],
    ),
    part(
        "storage-policy:0",
        &["name = Policy-0", "default = yes"],
        &[PolicyOptions::TABLE],
    ),
    part("swift-constraints", &[], &[Constraints::TABLE]),
];

const PROXY: &[Part] = &[
    part("DEFAULT", &["bind_port = 8080"], &[ServerCommon::TABLE]),
    part(
        "pipeline:main",
        &[
            "pipeline = catch_errors gatekeeper healthcheck proxy-logging cache listing_formats tempauth proxy-logging proxy-server",
        ],
        &[],
    ),
    part(
        "app:proxy-server",
        &["use = egg:swift#proxy"],
        &[ProxySettings::TABLE, Routing::TABLE],
    ),
    part("filter:catch_errors", &["use = egg:swift#catch_errors"], &[]),
    part(
        "filter:gatekeeper",
        &["use = egg:swift#gatekeeper"],
        &[GatekeeperSettings::TABLE],
    ),
    part(
        "filter:healthcheck",
        &["use = egg:swift#healthcheck"],
        &[HealthcheckSettings::TABLE],
    ),
    part(
        "filter:proxy-logging",
        &["use = egg:swift#proxy_logging"],
        &[ProxyLoggingSettings::TABLE],
    ),
    part("filter:cache", &["use = egg:swift#memcache"], &[CacheSettings::TABLE]),
    part("filter:listing_formats", &["use = egg:swift#listing_formats"], &[]),
    part(
        "filter:tempauth",
        &[
            "use = egg:swift#tempauth",
            "# user_<account>_<user> = <key> [group] [group] [...] [storage_url]",
        ],
        &[TempAuthOptions::TABLE],
    ),
];

const OBJECT: &[Part] = &[
    part(
        "DEFAULT",
        &["bind_port = 6200"],
        &[ServerCommon::TABLE, StorageCommon::TABLE],
    ),
    part("pipeline:main", &["pipeline = healthcheck object-server"], &[]),
    part(
        "app:object-server",
        &["use = egg:swift#object"],
        &[ObjectServerSettings::TABLE],
    ),
    part(
        "filter:healthcheck",
        &["use = egg:swift#healthcheck"],
        &[HealthcheckSettings::TABLE],
    ),
];

const CONTAINER: &[Part] = &[
    part(
        "DEFAULT",
        &["bind_port = 6201"],
        &[ServerCommon::TABLE, StorageCommon::TABLE],
    ),
    part("pipeline:main", &["pipeline = healthcheck container-server"], &[]),
    part(
        "app:container-server",
        &["use = egg:swift#container"],
        &[ContainerServerSettings::TABLE],
    ),
    part(
        "filter:healthcheck",
        &["use = egg:swift#healthcheck"],
        &[HealthcheckSettings::TABLE],
    ),
];

const ACCOUNT: &[Part] = &[
    part(
        "DEFAULT",
        &["bind_port = 6202"],
        &[ServerCommon::TABLE, StorageCommon::TABLE],
    ),
    part("pipeline:main", &["pipeline = healthcheck account-server"], &[]),
    part(
        "app:account-server",
        &["use = egg:swift#account"],
        &[AccountServerSettings::TABLE],
    ),
    part(
        "filter:healthcheck",
        &["use = egg:swift#healthcheck"],
        &[HealthcheckSettings::TABLE],
    ),
];

const fn part(section: &'static str, lines: &'static [&'static str], tables: &'static [&'static [OptionDecl]]) -> Part {
    Part { section, lines, tables }
}

/// The sample file of a kind.
pub fn sample(kind: Kind) -> String {
    let mut out = format!(
        "# {}, with every option Martlet reads and its default.\n",
        kind.file_name()
    );
    for part in kind.parts() {
        out.push_str(&format!("\n[{}]\n", part.section));
        for line in part.lines {
            out.push_str(&format!("{line}\n"));
        }
        for option in part.tables.iter().flat_map(|t| t.iter()) {
            for sentence in option.help.trim().lines() {
                out.push_str(&format!("\n# {}", sentence.trim()));
            }
            // Writing to a String cannot fail.
            let _ = write!(out, "\n# {} = {}\n", option.name, option.default);
        }
    }
    out
}

/// The reference page: every file, section and option, in Markdown.
pub fn reference() -> String {
    let mut out = String::from("# Configuration\n\nGenerated from the option tables of `crates/settings`.\n");
    for kind in Kind::ALL {
        out.push_str(&format!("\n## {}\n", kind.file_name()));
        for part in kind.parts().iter().filter(|p| !p.tables.is_empty()) {
            out.push_str(&format!("\n### [{}]\n\n", part.section));
            out.push_str("| option | default | expects | meaning |\n|---|---|---|---|\n");
            for option in part.tables.iter().flat_map(|t| t.iter()) {
                let default = match option.default {
                    "" => String::new(),
                    text => format!("`{text}`"),
                };
                let help = option.help.trim();
                out.push_str(&format!(
                    "| `{}` | {default} | {} | {help} |\n",
                    option.name, option.expects
                ));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ini::Document;
    use crate::load::{AccountConf, ContainerConf, ObjectConf, ProxyConf};
    use crate::swift_conf::SwiftConf;
    use std::path::Path;

    fn warnings(kind: Kind, text: &str) -> Vec<String> {
        let document = Document::parse(Path::new(kind.file_name()), text).unwrap();
        let warnings = match kind {
            Kind::Swift => SwiftConf::from_document(&document).unwrap().warnings,
            Kind::Proxy => ProxyConf::from_documents(&document, None).unwrap().warnings,
            Kind::Object => ObjectConf::from_document(&document).unwrap().warnings,
            Kind::Container => ContainerConf::from_document(&document).unwrap().warnings,
            Kind::Account => AccountConf::from_document(&document).unwrap().warnings,
        };
        warnings.iter().map(ToString::to_string).collect()
    }

    /// Each `# name = default` as a line that counts, except where the section sets it already.
    fn uncommented(text: &str) -> String {
        let mut out = String::new();
        let mut set: Vec<&str> = Vec::new();
        for line in text.lines() {
            if line.starts_with('[') {
                set.clear();
            }
            let option = line
                .strip_prefix("# ")
                .unwrap_or(line)
                .split_once(" =")
                .map(|(name, _)| name);
            match option.filter(|name| !name.contains([' ', '<'])) {
                Some(name) if set.contains(&name) => continue,
                Some(name) => set.push(name),
                None => {}
            }
            let line = option
                .filter(|n| !n.contains([' ', '<']))
                .map_or(line, |_| line.trim_start_matches("# "));
            out.push_str(line);
            out.push('\n');
        }
        out
    }

    #[test]
    fn samples_load_without_a_word() {
        for kind in Kind::ALL {
            let text = sample(kind);
            assert_eq!(warnings(kind, &text), [""; 0], "{kind:?}");
            assert_eq!(warnings(kind, &uncommented(&text)), [""; 0], "{kind:?}");
        }
    }

    #[test]
    fn every_default_is_of_its_kind() {
        let _ = (
            ServerCommon::default(),
            StorageCommon::default(),
            ObjectServerSettings::default(),
        );
        let _ = (ContainerServerSettings::default(), AccountServerSettings::default());
        let _ = (ProxySettings::default(), Routing::default(), CacheSettings::default());
        let _ = (
            GatekeeperSettings::default(),
            HealthcheckSettings::default(),
            TempAuthOptions::default(),
        );
        let _ = (
            ProxyLoggingSettings::default(),
            HashOptions::default(),
            Constraints::default(),
        );
        let _ = PolicyOptions::default();
    }

    #[test]
    fn no_name_is_both_served_and_not() {
        use crate::openstack::{ACCOUNT, CACHE, CONTAINER, LOGGING, OBJECT, PROCESS, PROXY, PROXY_LOGGING};
        let lists: [(&[&[OptionDecl]], &[&str]); 5] = [
            (&[ServerCommon::TABLE, ProxySettings::TABLE, Routing::TABLE], PROXY),
            (&[StorageCommon::TABLE, ObjectServerSettings::TABLE], OBJECT),
            (&[StorageCommon::TABLE, ContainerServerSettings::TABLE], CONTAINER),
            (&[StorageCommon::TABLE, AccountServerSettings::TABLE], ACCOUNT),
            (
                &[CacheSettings::TABLE, ProxyLoggingSettings::TABLE],
                &[CACHE, PROXY_LOGGING].concat(),
            ),
        ];
        for (tables, names) in lists {
            for option in tables.iter().flat_map(|t| t.iter()) {
                for list in [names, LOGGING, PROCESS] {
                    assert!(!list.contains(&option.name), "{}", option.name);
                }
            }
        }
    }
}
