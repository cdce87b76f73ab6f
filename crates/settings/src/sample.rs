//! The sample files and the reference page, from the option tables.
//!
//! Always holds: a sample loads without warnings, every option in it commented out with its default.

use crate::auditors::{AccountAuditorSettings, ContainerAuditorSettings, DarkDataSettings, ObjectAuditorSettings};
use crate::database_replicators::DatabaseReplicatorSettings;
use crate::declare::{OptionDecl, Options};
use crate::dispersion::{self, DispersionSettings};
use crate::drive_audit::{self, DriveAuditSettings};
use crate::filters::{FILTERS, FULL_PIPELINE, Support, full_pipeline};
use crate::gateway_filters::{HealthcheckSettings, ReconSettings};
use crate::object_replicator::ObjectReplicatorSettings;
use crate::proxy::{ProxySettings, Routing};
use crate::server::{ServerCommon, StorageCommon};
use crate::statsd::StatsdSettings;
use crate::storage::{AccountServerSettings, ContainerServerSettings, ObjectServerSettings};
use crate::swift_conf::{Constraints, HashOptions, PolicyOptions};
use crate::upkeep::{
    AccountReaperSettings, ContainerReconcilerSettings, ContainerSyncDaemonSettings, ContainerUpdaterSettings,
    ObjectExpirerSettings, ObjectUpdaterSettings,
};
use std::borrow::Cow;
use std::fmt::Write;

/// A section of a sample: its name, lines that must be there, its options.
struct Part {
    section: Cow<'static, str>,
    lines: Vec<Cow<'static, str>>,
    tables: Vec<&'static [OptionDecl]>,
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
    /// `container-reconciler.conf`.
    Reconciler,
    /// `dispersion.conf`.
    Dispersion,
    /// `drive-audit.conf`.
    DriveAudit,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 8] = [
        Kind::Swift,
        Kind::Proxy,
        Kind::Object,
        Kind::Container,
        Kind::Account,
        Kind::Reconciler,
        Kind::Dispersion,
        Kind::DriveAudit,
    ];

    /// The usual file name.
    pub fn file_name(self) -> &'static str {
        match self {
            Kind::Swift => "swift.conf",
            Kind::Proxy => "proxy-server.conf",
            Kind::Object => "object-server.conf",
            Kind::Container => "container-server.conf",
            Kind::Account => "account-server.conf",
            Kind::Reconciler => "container-reconciler.conf",
            Kind::Dispersion => dispersion::FILE,
            Kind::DriveAudit => drive_audit::FILE,
        }
    }

    fn parts(self) -> Vec<Part> {
        match self {
            Kind::Swift => swift(),
            Kind::Proxy => proxy(),
            Kind::Object => with_upkeep(storage("6200", "object", ObjectServerSettings::TABLE), OBJECT_UPKEEP),
            Kind::Container => {
                let server = storage("6201", "container", ContainerServerSettings::TABLE);
                with_upkeep(server, CONTAINER_UPKEEP)
            }
            Kind::Account => with_upkeep(storage("6202", "account", AccountServerSettings::TABLE), ACCOUNT_UPKEEP),
            Kind::Reconciler => vec![
                part("DEFAULT", &[], &[ServerCommon::TABLE, StatsdSettings::TABLE]),
                part("container-reconciler", &[], &[ContainerReconcilerSettings::TABLE]),
            ],
            Kind::Dispersion => vec![part(dispersion::SECTION, &[], &[DispersionSettings::TABLE])],
            Kind::DriveAudit => drive_audit(),
        }
    }
}

/// Sections of daemons that stand in a server's file, with their options.
type Upkeep = &'static [(&'static str, &'static [OptionDecl])];

const OBJECT_UPKEEP: Upkeep = &[
    ("object-replicator", ObjectReplicatorSettings::TABLE),
    ("object-auditor", ObjectAuditorSettings::TABLE),
    (DARK_DATA, DarkDataSettings::TABLE),
    ("object-updater", ObjectUpdaterSettings::TABLE),
    ("object-expirer", ObjectExpirerSettings::TABLE),
];
const CONTAINER_UPKEEP: Upkeep = &[
    ("container-replicator", DatabaseReplicatorSettings::TABLE),
    ("container-auditor", ContainerAuditorSettings::TABLE),
    ("container-updater", ContainerUpdaterSettings::TABLE),
    ("container-sync", ContainerSyncDaemonSettings::TABLE),
];
const ACCOUNT_UPKEEP: Upkeep = &[
    ("account-replicator", DatabaseReplicatorSettings::TABLE),
    ("account-auditor", AccountAuditorSettings::TABLE),
    ("account-reaper", AccountReaperSettings::TABLE),
];
/// A watcher of the object-auditor.
const DARK_DATA: &str = "object-auditor:watcher:swift#dark_data";

fn with_upkeep(mut parts: Vec<Part>, upkeep: Upkeep) -> Vec<Part> {
    parts.extend(upkeep.iter().map(|(section, table)| Part {
        section: (*section).into(),
        lines: Vec::new(),
        tables: vec![table],
    }));
    parts
}

fn swift() -> Vec<Part> {
    let secrets = ["swift_hash_path_prefix = changeme", "swift_hash_path_suffix = changeme"];
    vec![
        part("swift-hash", &secrets, &[HashOptions::TABLE]),
        part(
            "storage-policy:0",
            &["name = Policy-0", "default = yes"],
            &[PolicyOptions::TABLE],
        ),
        part("swift-constraints", &[], &[Constraints::TABLE]),
    ]
}

fn drive_audit() -> Vec<Part> {
    let mut lines = vec![Cow::from(
        "# What in the log is an error, the device's name in parentheses; unless told:",
    )];
    let usual = drive_audit::USUAL_PATTERNS.iter();
    lines.extend(usual.map(|pattern| format!("# {}<n> = {pattern}", drive_audit::PATTERN).into()));
    vec![Part {
        section: drive_audit::SECTION.into(),
        lines,
        tables: vec![DriveAuditSettings::TABLE],
    }]
}

fn proxy() -> Vec<Part> {
    let names: Vec<&str> = full_pipeline().map(|(name, _)| name).collect();
    let pipeline = format!("pipeline = {} proxy-server", names.join(" "));
    let app = [ProxySettings::TABLE, Routing::TABLE];
    let mut parts = vec![
        part(
            "DEFAULT",
            &["bind_port = 8080"],
            &[ServerCommon::TABLE, StatsdSettings::TABLE],
        ),
        Part {
            section: "pipeline:main".into(),
            lines: vec![pipeline.into()],
            tables: Vec::new(),
        },
        part("app:proxy-server", &["use = egg:swift#proxy"], &app),
    ];
    for filter in FILTERS.iter().filter(|filter| filter.support == Support::Served) {
        let name = FULL_PIPELINE.iter().find(|(_, egg)| *egg == filter.egg);
        let name = name.map_or(filter.egg, |(name, _)| name);
        let mut lines = vec![match filter.egg {
            "authtoken" => "paste.filter_factory = keystonemiddleware.auth_token:filter_factory".into(),
            egg => Cow::from(format!("use = egg:swift#{egg}")),
        }];
        if filter.egg == "tempauth" {
            lines.push("# user_<account>_<user> = <key> [group] [group] [...] [storage_url]".into());
        }
        parts.push(Part {
            section: format!("filter:{name}").into(),
            lines,
            tables: vec![filter.table],
        });
    }
    parts
}

fn storage(port: &str, name: &str, table: &'static [OptionDecl]) -> Vec<Part> {
    let line = |text: String| vec![Cow::from(text)];
    vec![
        Part {
            section: "DEFAULT".into(),
            lines: line(format!("bind_port = {port}")),
            tables: vec![ServerCommon::TABLE, StatsdSettings::TABLE, StorageCommon::TABLE],
        },
        Part {
            section: "pipeline:main".into(),
            lines: line(format!("pipeline = healthcheck recon {name}-server")),
            tables: Vec::new(),
        },
        Part {
            section: format!("app:{name}-server").into(),
            lines: line(format!("use = egg:swift#{name}")),
            tables: vec![table],
        },
        part(
            "filter:healthcheck",
            &["use = egg:swift#healthcheck"],
            &[HealthcheckSettings::TABLE],
        ),
        part("filter:recon", &["use = egg:swift#recon"], &[ReconSettings::TABLE]),
    ]
}

fn part(section: &'static str, lines: &[&'static str], tables: &[&'static [OptionDecl]]) -> Part {
    Part {
        section: section.into(),
        lines: lines.iter().map(|line| Cow::from(*line)).collect(),
        tables: tables.to_vec(),
    }
}

/// The sample file of a kind.
pub fn sample(kind: Kind) -> String {
    let mut out = format!(
        "# {}, with every option Martlet reads and its default.\n",
        kind.file_name()
    );
    for part in kind.parts() {
        out.push_str(&format!("\n[{}]\n", part.section));
        for line in &part.lines {
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
        for part in kind.parts().iter().filter(|p| p.tables.iter().any(|t| !t.is_empty())) {
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
    use crate::declare::Scope;
    use crate::ini::Document;
    use crate::load::{AccountConf, ContainerConf, ObjectConf, ProxyConf};
    use crate::swift_conf::SwiftConf;
    use crate::upkeep::UpkeepConf;
    use std::path::Path;

    fn warnings(kind: Kind, text: &str) -> Vec<String> {
        let document = Document::parse(Path::new(kind.file_name()), text).unwrap();
        let warnings = match kind {
            Kind::Swift => SwiftConf::from_document(&document).unwrap().warnings,
            Kind::Proxy => ProxyConf::from_documents(&document, None).unwrap().warnings,
            Kind::Object => ObjectConf::from_document(&document).unwrap().warnings,
            Kind::Container => ContainerConf::from_document(&document).unwrap().warnings,
            Kind::Account => AccountConf::from_document(&document).unwrap().warnings,
            Kind::Reconciler => {
                UpkeepConf::<ContainerReconcilerSettings>::from_document(&document, "container-reconciler").unwrap();
                vec![]
            }
            Kind::Dispersion => {
                let scope = Scope::plain(&document, dispersion::SECTION).unwrap();
                assert_eq!(DispersionSettings::read(&scope).unwrap(), DispersionSettings::default());
                vec![]
            }
            Kind::DriveAudit => {
                let read = DriveAuditSettings::from_document(&document).unwrap();
                assert_eq!(read, DriveAuditSettings::default());
                assert_eq!(drive_audit::patterns(&document).unwrap(), [""; 0]);
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
        let _ = (ProxySettings::default(), Routing::default());
        let _ = (HashOptions::default(), Constraints::default());
        let _ = PolicyOptions::default();
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
