//! What stands in each sample: its sections, the lines they begin with, their tables.

use super::SampleKind;
use crate::auditors::{AccountAuditorSettings, ContainerAuditorSettings, DarkDataSettings, ObjectAuditorSettings};
use crate::database_replicators::DatabaseReplicatorSettings;
use crate::declare::{OptionDecl, Options};
use crate::dispersion::{self, DispersionSettings};
use crate::drive_audit::{self, DriveAuditSettings};
use crate::filters::{FILTERS, FULL_PIPELINE, Support, full_pipeline};
use crate::gateway_filters::{CacheSettings, HealthcheckSettings, ReconSettings};
use crate::notification_targets::{NotificationTargetSettings, NotificationTargetsFile};
use crate::object_replicator::ObjectReplicatorSettings;
use crate::proxy::{ProxySettings, Routing};
use crate::realms::{RealmKeys, RealmsFile};
use crate::server::{ServerCommon, StorageCommon};
use crate::statsd::StatsdSettings;
use crate::storage::{AccountServerSettings, ContainerServerSettings, ObjectServerSettings};
use crate::swift_conf::{Constraints, HashOptions, PolicyOptions};
use crate::upkeep::{
    AccountReaperSettings, ContainerLifecycleSettings, ContainerNotifierSettings, ContainerReconcilerSettings,
    ContainerSyncDaemonSettings, ContainerUpdaterSettings, DELAY_REAPING, ObjectExpirerSettings, ObjectUpdaterSettings,
};
use std::borrow::Cow;

/// A section of a sample: its name, lines that must be there, its options.
#[derive(Default)]
pub(super) struct SampleSection {
    pub(super) section: Cow<'static, str>,
    /// Its name is the operator's: the section as a whole is commented out.
    pub(super) example: bool,
    pub(super) lines: Vec<Cow<'static, str>>,
    pub(super) tables: Vec<&'static [OptionDecl]>,
}

/// The sections of a file, in order.
pub(super) fn of(kind: SampleKind) -> Vec<SampleSection> {
    match kind {
        SampleKind::Swift => swift(),
        SampleKind::Proxy => proxy(),
        SampleKind::Object => with_upkeep(storage("6200", "object", ObjectServerSettings::TABLE), OBJECT_UPKEEP),
        SampleKind::Container => {
            let server = storage("6201", "container", ContainerServerSettings::TABLE);
            with_upkeep(server, CONTAINER_UPKEEP)
        }
        SampleKind::Account => with_upkeep(storage("6202", "account", AccountServerSettings::TABLE), ACCOUNT_UPKEEP),
        SampleKind::Reconciler => {
            let own = part("container-reconciler", &[], &[ContainerReconcilerSettings::TABLE]);
            with_gateway(vec![daemon(), own], &["catch_errors", "proxy-logging", "cache"], &[])
        }
        SampleKind::Dispersion => vec![part(dispersion::SECTION, &[], &[DispersionSettings::TABLE])],
        SampleKind::DriveAudit => drive_audit(),
        SampleKind::Expirer => {
            let mut own = with_upkeep(vec![daemon()], EXPIRER_UPKEEP);
            own[1].tables.push(only(StorageCommon::TABLE, "recon_cache_path"));
            with_gateway(own, &["catch_errors", "proxy-logging", "cache"], &[])
        }
        SampleKind::InternalClient => {
            let whole = ["account_autocreate = true", "allow_account_management = true"];
            let filters = ["catch_errors", "proxy-logging", "cache", "symlink"];
            with_gateway(
                vec![part("DEFAULT", &[], &[only(ServerCommon::TABLE, "swift_dir")])],
                &filters,
                &whole,
            )
        }
        SampleKind::Memcache => vec![part("memcache", &[], &[CacheSettings::TABLE])],
        SampleKind::Realms => realms(),
        SampleKind::NotificationTargets => notification_targets(),
    }
}

/// Sections of daemons that stand in a server's file, with their options.
type Upkeep = &'static [(&'static str, &'static [OptionDecl])];

const OBJECT_UPKEEP: Upkeep = &[
    ("object-replicator", ObjectReplicatorSettings::TABLE),
    ("object-auditor", ObjectAuditorSettings::TABLE),
    (DARK_DATA, DarkDataSettings::TABLE),
    ("object-updater", ObjectUpdaterSettings::TABLE),
    (EXPIRER, ObjectExpirerSettings::TABLE),
];
const EXPIRER_UPKEEP: Upkeep = &[(EXPIRER, ObjectExpirerSettings::TABLE)];
const EXPIRER: &str = "object-expirer";
const CONTAINER_UPKEEP: Upkeep = &[
    ("container-replicator", DatabaseReplicatorSettings::TABLE),
    ("container-auditor", ContainerAuditorSettings::TABLE),
    ("container-updater", ContainerUpdaterSettings::TABLE),
    ("container-sync", ContainerSyncDaemonSettings::TABLE),
    ("container-lifecycle", ContainerLifecycleSettings::TABLE),
    ("container-notifier", ContainerNotifierSettings::TABLE),
];
const ACCOUNT_UPKEEP: Upkeep = &[
    ("account-replicator", DatabaseReplicatorSettings::TABLE),
    ("account-auditor", AccountAuditorSettings::TABLE),
    ("account-reaper", AccountReaperSettings::TABLE),
];
/// A watcher of the object-auditor.
const DARK_DATA: &str = "object-auditor:watcher:swift#dark_data";

fn with_upkeep(mut parts: Vec<SampleSection>, upkeep: Upkeep) -> Vec<SampleSection> {
    parts.extend(upkeep.iter().map(|(section, table)| SampleSection {
        section: (*section).into(),
        lines: match *section {
            EXPIRER => delays(),
            _ => Vec::new(),
        },
        tables: vec![table],
        ..SampleSection::default()
    }));
    parts
}

/// Options whose names end in what the operator chooses.
fn delays() -> Vec<Cow<'static, str>> {
    vec![
        "# Seconds for which the expired objects of an account, or of one container, stay; names quoted as in URLs:"
            .into(),
        format!("# {DELAY_REAPING}<account> = 0").into(),
        format!("# {DELAY_REAPING}<account>/<container> = 0").into(),
    ]
}

/// What servers read alone, because they listen.
const LISTENING: &[&str] = &[
    "bind_ip",
    "bind_port",
    "bind_timeout",
    "backlog",
    "keep_idle",
    "cert_file",
    "key_file",
    "workers",
    "max_clients",
    "max_connections",
    "max_connections_per_address",
    "max_connections_spared",
    "client_header_timeout",
    "stale_worker_timeout",
];

/// What a daemon with a file of its own has in common with servers.
fn daemon() -> SampleSection {
    let common = ServerCommon::TABLE.chunks(1);
    let mut tables: Vec<_> = common.filter(|option| !LISTENING.contains(&option[0].name)).collect();
    tables.push(StatsdSettings::TABLE);
    part("DEFAULT", &[], &tables)
}

/// The gateway through which a daemon speaks; `app` are lines of the application.
fn with_gateway(mut parts: Vec<SampleSection>, filters: &[&str], app: &[&str]) -> Vec<SampleSection> {
    let section = |name: String, first: String, more: &[&str]| SampleSection {
        section: name.into(),
        lines: [first]
            .into_iter()
            .chain(more.iter().map(|&line| line.to_owned()))
            .map(Cow::from)
            .collect(),
        ..SampleSection::default()
    };
    parts.push(section(
        "pipeline:main".into(),
        format!("pipeline = {} proxy-server", filters.join(" ")),
        &[],
    ));
    let app = [
        &["# Its options, and those of the filters, are the ones of proxy-server.conf."],
        app,
    ]
    .concat();
    parts.push(section("app:proxy-server".into(), "use = egg:swift#proxy".into(), &app));
    for name in filters {
        let egg = FULL_PIPELINE
            .iter()
            .find(|(known, _)| known == name)
            .map_or(*name, |(_, egg)| *egg);
        parts.push(section(format!("filter:{name}"), format!("use = egg:swift#{egg}"), &[]));
    }
    parts
}

fn realms() -> Vec<SampleSection> {
    let lines = [
        "# Clusters that trust each other, by a name that all of them use; as many such sections as there are realms.",
        "# Each cluster's place, as container servers of the others reach it:",
        "cluster_here = https://swift.here.example/v1/",
        "cluster_there = https://swift.there.example/v1/",
    ];
    let realm = SampleSection {
        example: true,
        ..part("REALM", &lines, &[RealmKeys::TABLE])
    };
    vec![part("DEFAULT", &[], &[RealmsFile::TABLE]), realm]
}

fn notification_targets() -> Vec<SampleSection> {
    let lines = [
        "# A webhook, by the name that ARNs of clients say: arn:martlet:sqs::NAME:webhook; as many such sections as there are.",
        "url = https://hooks.example/s3",
    ];
    let target = SampleSection {
        example: true,
        ..part("NAME", &lines, &[NotificationTargetSettings::TABLE])
    };
    vec![part("DEFAULT", &[], &[NotificationTargetsFile::TABLE]), target]
}

/// One option of a table.
fn only(table: &'static [OptionDecl], name: &str) -> &'static [OptionDecl] {
    let found = table.iter().find(|option| option.name == name);
    found.map_or(&[], std::slice::from_ref)
}

fn swift() -> Vec<SampleSection> {
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

fn drive_audit() -> Vec<SampleSection> {
    let mut lines = vec![Cow::from(
        "# What in the log is an error, the device's name in parentheses; unless told:",
    )];
    let usual = drive_audit::USUAL_PATTERNS.iter();
    lines.extend(usual.map(|pattern| format!("# {}<n> = {pattern}", drive_audit::PATTERN).into()));
    vec![SampleSection {
        section: drive_audit::SECTION.into(),
        lines,
        tables: vec![DriveAuditSettings::TABLE],
        ..SampleSection::default()
    }]
}

fn proxy() -> Vec<SampleSection> {
    let names: Vec<&str> = full_pipeline().map(|(name, _)| name).collect();
    let pipeline = format!("pipeline = {} proxy-server", names.join(" "));
    let app = [ProxySettings::TABLE, Routing::TABLE];
    let mut parts = vec![
        part(
            "DEFAULT",
            &["bind_port = 8080"],
            &[ServerCommon::TABLE, StatsdSettings::TABLE],
        ),
        SampleSection {
            section: "pipeline:main".into(),
            lines: vec![pipeline.into()],
            ..SampleSection::default()
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
        parts.push(SampleSection {
            section: format!("filter:{name}").into(),
            lines,
            tables: vec![filter.table],
            ..SampleSection::default()
        });
    }
    parts
}

fn storage(port: &str, name: &str, table: &'static [OptionDecl]) -> Vec<SampleSection> {
    let line = |text: String| vec![Cow::from(text)];
    vec![
        SampleSection {
            section: "DEFAULT".into(),
            lines: line(format!("bind_port = {port}")),
            tables: vec![ServerCommon::TABLE, StatsdSettings::TABLE, StorageCommon::TABLE],
            ..SampleSection::default()
        },
        SampleSection {
            section: "pipeline:main".into(),
            lines: line(format!("pipeline = healthcheck recon {name}-server")),
            ..SampleSection::default()
        },
        SampleSection {
            section: format!("app:{name}-server").into(),
            lines: line(format!("use = egg:swift#{name}")),
            tables: vec![table],
            ..SampleSection::default()
        },
        part(
            "filter:healthcheck",
            &["use = egg:swift#healthcheck"],
            &[HealthcheckSettings::TABLE],
        ),
        part("filter:recon", &["use = egg:swift#recon"], &[ReconSettings::TABLE]),
    ]
}

fn part(section: &'static str, lines: &[&'static str], tables: &[&'static [OptionDecl]]) -> SampleSection {
    SampleSection {
        section: section.into(),
        lines: lines.iter().map(|line| Cow::from(*line)).collect(),
        tables: tables.to_vec(),
        ..SampleSection::default()
    }
}
