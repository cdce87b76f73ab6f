//! The sample files and the reference page, from the option tables.
//!
//! Always holds: a sample loads without warnings; each option stands in it once, commented out with its default unless
//! a start needs it.

use crate::{dispersion, drive_audit, notification_targets, realms};
use std::fmt::Write;

mod parts;

/// One kind of file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleKind {
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
    /// `container-reconciler.conf`.
    Reconciler,
    /// `dispersion.conf`.
    Dispersion,
    /// `drive-audit.conf`.
    DriveAudit,
    /// `object-expirer.conf`.
    Expirer,
    /// `internal-client.conf`.
    InternalClient,
    /// `memcache.conf`.
    Memcache,
    /// `container-sync-realms.conf`.
    Realms,
    /// `notification-targets.conf`.
    NotificationTargets,
}

impl SampleKind {
    /// All of them.
    pub const ALL: [SampleKind; 13] = [
        SampleKind::Swift,
        SampleKind::Proxy,
        SampleKind::Object,
        SampleKind::Container,
        SampleKind::Account,
        SampleKind::Reconciler,
        SampleKind::Dispersion,
        SampleKind::DriveAudit,
        SampleKind::Expirer,
        SampleKind::InternalClient,
        SampleKind::Memcache,
        SampleKind::Realms,
        SampleKind::NotificationTargets,
    ];

    /// The usual file name.
    pub fn file_name(self) -> &'static str {
        match self {
            SampleKind::Swift => "swift.conf",
            SampleKind::Proxy => "proxy-server.conf",
            SampleKind::Object => "object-server.conf",
            SampleKind::Container => "container-server.conf",
            SampleKind::Account => "account-server.conf",
            SampleKind::Reconciler => "container-reconciler.conf",
            SampleKind::Dispersion => dispersion::FILE,
            SampleKind::DriveAudit => drive_audit::FILE,
            SampleKind::Expirer => "object-expirer.conf",
            SampleKind::InternalClient => "internal-client.conf",
            SampleKind::Memcache => "memcache.conf",
            SampleKind::Realms => realms::FILE,
            SampleKind::NotificationTargets => notification_targets::FILE,
        }
    }
}

/// The sample file of a kind.
pub fn sample(kind: SampleKind) -> String {
    let what = match kind {
        SampleKind::InternalClient => "the gateway of daemons that have none of their own",
        _ => "with every option Martlet reads and its default",
    };
    let mut out = format!("# {}, {what}.\n", kind.file_name());
    for part in parts::of(kind) {
        let quiet = if part.example { "# " } else { "" };
        out.push_str(&format!("\n{quiet}[{}]\n", part.section));
        let options = || part.tables.iter().flat_map(|table| table.iter());
        for line in &part.lines {
            if options().any(|option| sets(line, option.name)) {
                continue;
            }
            let quiet = if line.starts_with('#') { "" } else { quiet };
            out.push_str(&format!("{quiet}{line}\n"));
        }
        for option in options() {
            for sentence in option.help.trim().lines() {
                out.push_str(&format!("\n# {}", sentence.trim()));
            }
            // Writing to a String cannot fail.
            let _ = match part.lines.iter().find(|line| sets(line, option.name)) {
                Some(line) => write!(out, "\n{quiet}{line}\n"),
                None => write!(out, "\n# {} = {}\n", option.name, option.default),
            };
        }
    }
    out
}

/// Whether a line sets this option.
fn sets(line: &str, option: &str) -> bool {
    line.split_once('=').is_some_and(|(name, _)| name.trim() == option)
}

/// The reference page: every file, section and option, in Markdown.
pub fn reference() -> String {
    let mut out = String::from("# Configuration\n\nGenerated from the option tables of `crates/settings`.\n");
    for kind in SampleKind::ALL {
        out.push_str(&format!("\n## {}\n", kind.file_name()));
        for part in parts::of(kind)
            .iter()
            .filter(|p| p.tables.iter().any(|t| !t.is_empty()))
        {
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

    #[test]
    fn a_sample_names_each_option_of_a_section_once() {
        for kind in SampleKind::ALL {
            let (mut section, mut seen) = (String::new(), std::collections::HashSet::new());
            for line in sample(kind).lines() {
                let line = line.trim_start_matches("# ");
                if line.starts_with('[') {
                    section = line.to_owned();
                }
                if let Some((name, _)) = line.split_once(" = ").filter(|(name, _)| !name.contains([' ', '<'])) {
                    assert!(
                        seen.insert((section.clone(), name.to_owned())),
                        "{kind:?} {section} {name}"
                    );
                }
            }
        }
    }

    use crate::auditors::{AccountAuditorSettings, ContainerAuditorSettings, DarkDataSettings, ObjectAuditorSettings};
    use crate::database_replicators::DatabaseReplicatorSettings;
    use crate::declare::{OptionDecl, Options, Scope};
    use crate::dispersion::DispersionSettings;
    use crate::drive_audit::DriveAuditSettings;
    use crate::filters::FILTERS;
    use crate::gateway_filters::CacheSettings;
    use crate::ini::Document;
    use crate::load::{AccountConf, ContainerConf, ObjectConf, ProxyConf};
    use crate::notification_targets::{NotificationTargetSettings, NotificationTargets, NotificationTargetsFile};
    use crate::object_replicator::ObjectReplicatorSettings;
    use crate::proxy::{ProxySettings, Routing};
    use crate::realms::{RealmKeys, Realms, RealmsFile};
    use crate::server::{ServerCommon, StorageCommon};
    use crate::storage::{AccountServerSettings, ContainerServerSettings, ObjectServerSettings};
    use crate::swift_conf::{Constraints, HashOptions, PolicyOptions, SwiftConf};
    use crate::upkeep::{
        AccountReaperSettings, ContainerLifecycleSettings, ContainerNotifierSettings, ContainerReconcilerSettings,
        ContainerSyncDaemonSettings, ContainerUpdaterSettings, ObjectExpirerSettings, ObjectUpdaterSettings,
        UpkeepConf,
    };
    use std::path::Path;

    fn warnings(kind: SampleKind, text: &str) -> Vec<String> {
        let document = Document::parse(Path::new(kind.file_name()), text).unwrap();
        let warnings = match kind {
            SampleKind::Swift => SwiftConf::from_document(&document).unwrap().warnings,
            SampleKind::Proxy => ProxyConf::from_documents(&document, None).unwrap().warnings,
            SampleKind::Object => ObjectConf::from_document(&document).unwrap().warnings,
            SampleKind::Container => ContainerConf::from_document(&document).unwrap().warnings,
            SampleKind::Account => AccountConf::from_document(&document).unwrap().warnings,
            SampleKind::Reconciler => {
                let conf = UpkeepConf::<ContainerReconcilerSettings>::from_document(&document, "container-reconciler");
                [
                    conf.unwrap().warnings,
                    ProxyConf::internal_from_documents(&document, None).unwrap().warnings,
                ]
                .concat()
            }
            SampleKind::Expirer => {
                let conf = UpkeepConf::<ObjectExpirerSettings>::from_document(&document, "object-expirer").unwrap();
                assert_eq!(conf.settings, ObjectExpirerSettings::default());
                [
                    conf.warnings,
                    ProxyConf::internal_from_documents(&document, None).unwrap().warnings,
                ]
                .concat()
            }
            SampleKind::InternalClient => {
                let conf = ProxyConf::internal_from_documents(&document, None).unwrap();
                assert!(conf.proxy.account_autocreate && conf.cache.is_some());
                conf.warnings
            }
            SampleKind::Memcache => {
                let scope = Scope::plain(&document, "memcache").unwrap();
                assert_eq!(CacheSettings::read(&scope).unwrap(), CacheSettings::default());
                vec![]
            }
            SampleKind::Realms => {
                let realms = Realms::parse(Path::new(kind.file_name()), text).unwrap();
                assert_eq!(realms.check_interval, RealmsFile::default().mtime_check_interval);
                let realm = realms
                    .get("realm")
                    .map(|realm| (realm.clusters.len(), realm.key.clone()));
                assert!(matches!(realm, None | Some((2, None))));
                vec![]
            }
            SampleKind::NotificationTargets => {
                let read = NotificationTargets::parse(Path::new(kind.file_name()), text).unwrap();
                let expected = NotificationTargetsFile::default().mtime_check_interval;
                assert_eq!(read.check_interval, expected);
                assert!(read.targets.len() <= 1);
                vec![]
            }
            SampleKind::Dispersion => {
                let scope = Scope::plain(&document, dispersion::SECTION).unwrap();
                assert_eq!(DispersionSettings::read(&scope).unwrap(), DispersionSettings::default());
                vec![]
            }
            SampleKind::DriveAudit => {
                let read = DriveAuditSettings::from_document(&document).unwrap();
                assert_eq!(read, DriveAuditSettings::default());
                assert!(drive_audit::patterns(&document).unwrap().is_empty());
                vec![]
            }
        };
        warnings.iter().map(ToString::to_string).collect()
    }

    /// Each `# name = default` as a line that counts, except where the section sets it already.
    fn uncommented(text: &str) -> String {
        let mut out = String::new();
        let mut set: Vec<&str> = Vec::new();
        for line in text.lines() {
            // An example has its section's name commented out, too.
            let line = line
                .strip_prefix("# ")
                .filter(|rest| rest.starts_with('['))
                .unwrap_or(line);
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
        for kind in SampleKind::ALL {
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
        let _ = (ProxySettings::default(), Routing::default());
        let _ = (HashOptions::default(), Constraints::default());
        let _ = PolicyOptions::default();
        let _ = (CacheSettings::default(), RealmsFile::default(), RealmKeys::default());
        let _ = (
            ObjectReplicatorSettings::default(),
            DatabaseReplicatorSettings::default(),
        );
        let _ = (ObjectAuditorSettings::default(), DarkDataSettings::default());
        let _ = (ContainerAuditorSettings::default(), AccountAuditorSettings::default());
        let _ = (ObjectUpdaterSettings::default(), ContainerUpdaterSettings::default());
        let _ = (ObjectExpirerSettings::default(), AccountReaperSettings::default());
        let _ = (
            ContainerReconcilerSettings::default(),
            ContainerSyncDaemonSettings::default(),
        );
        let _ = (
            ContainerLifecycleSettings::default(),
            ContainerNotifierSettings::default(),
        );
        let _ = (
            NotificationTargetsFile::default(),
            NotificationTargetSettings::default(),
        );
    }

    #[test]
    fn no_name_is_both_served_and_not() {
        use crate::openstack::{ACCOUNT, CONTAINER, LOGGING, OBJECT, PROCESS, PROXY};
        let filters = FILTERS.iter().map(|filter| (vec![filter.table], filter.known));
        let lists: [(Vec<&[OptionDecl]>, &[&str]); 4] = [
            (vec![ServerCommon::TABLE, ProxySettings::TABLE, Routing::TABLE], PROXY),
            (vec![StorageCommon::TABLE, ObjectServerSettings::TABLE], OBJECT),
            (vec![StorageCommon::TABLE, ContainerServerSettings::TABLE], CONTAINER),
            (vec![StorageCommon::TABLE, AccountServerSettings::TABLE], ACCOUNT),
        ];
        for (tables, names) in lists.into_iter().chain(filters) {
            for option in tables.iter().flat_map(|t| t.iter()) {
                for list in [names, LOGGING, PROCESS] {
                    assert!(!list.contains(&option.name), "{}", option.name);
                }
            }
        }
    }
}
