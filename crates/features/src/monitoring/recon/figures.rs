//! Figures that daemons leave in `recon_cache_path`, as `swift-recon` asks for them.
//!
//! Always holds: every name that is asked for is in the answer, null where no daemon has said anything yet.

use serde_json::{Map, Value};
use std::io;
use std::path::Path;
use world::files::FileSystem;

/// A larger file holds no figures.
const LIMIT: u64 = 16 << 20;

/// Whose figures are meant by what stands behind the question.
#[derive(PartialEq)]
enum Of {
    /// Whatever stands there.
    Any,
    /// Nothing may stand there.
    Nothing,
    /// This.
    Kind(&'static str),
}

/// Question, of what, file, names.
type Row = (&'static str, Of, &'static str, &'static [&'static str]);

const ACCOUNT: &str = "account.recon";
const CONTAINER: &str = "container.recon";
const OBJECT: &str = "object.recon";
const RELINKER: &str = "relinker.recon";

const REPLICATION: &[&str] = &["replication_time", "replication_stats", "replication_last"];
const OBJECT_REPLICATION: &[&str] = &[
    "replication_time",
    "replication_stats",
    "replication_last",
    "object_replication_time",
    "object_replication_last",
];

const TABLE: &[Row] = &[
    ("async", Of::Any, OBJECT, &["async_pending", "async_pending_last"]),
    (
        "auditor",
        Of::Kind("account"),
        ACCOUNT,
        &[
            "account_audits_passed",
            "account_auditor_pass_completed",
            "account_audits_since",
            "account_audits_failed",
        ],
    ),
    (
        "auditor",
        Of::Kind("container"),
        CONTAINER,
        &[
            "container_audits_passed",
            "container_auditor_pass_completed",
            "container_audits_since",
            "container_audits_failed",
        ],
    ),
    (
        "auditor",
        Of::Kind("object"),
        OBJECT,
        &["object_auditor_stats_ALL", "object_auditor_stats_ZBF"],
    ),
    ("driveaudit", Of::Any, "drive.recon", &["drive_audit_errors"]),
    (
        "expirer",
        Of::Kind("object"),
        OBJECT,
        &["object_expiration_pass", "expired_last_pass"],
    ),
    (
        "reconstruction",
        Of::Kind("object"),
        OBJECT,
        &["object_reconstruction_last", "object_reconstruction_time"],
    ),
    ("relinker", Of::Any, RELINKER, &["devices", "workers"]),
    ("replication", Of::Kind("account"), ACCOUNT, REPLICATION),
    ("replication", Of::Kind("container"), CONTAINER, REPLICATION),
    ("replication", Of::Kind("object"), OBJECT, OBJECT_REPLICATION),
    // As monitors asked when only objects were replicated.
    ("replication", Of::Nothing, OBJECT, OBJECT_REPLICATION),
    (
        "sharding",
        Of::Any,
        CONTAINER,
        &["sharding_stats", "sharding_time", "sharding_last"],
    ),
    (
        "updater",
        Of::Kind("container"),
        CONTAINER,
        &["container_updater_sweep"],
    ),
    (
        "updater",
        Of::Kind("object"),
        OBJECT,
        &["object_updater_sweep", "object_updater_stats", "object_updater_last"],
    ),
];

/// `None` when there is no such question.
pub(super) fn tell(files: &dyn FileSystem, directory: &Path, what: &str, of: Option<&str>) -> Option<Value> {
    let fits = |scope: &Of| match scope {
        Of::Any => true,
        Of::Nothing => of.is_none(),
        Of::Kind(kind) => of == Some(*kind),
    };
    let (_, _, file, names) = TABLE.iter().find(|row| row.0 == what && fits(&row.1))?;
    let path = directory.join(file);
    let mut known = match read(files, &path) {
        Ok(known) => known,
        // A relinker runs once in a ring's life.
        Err(error) if error.kind() == io::ErrorKind::NotFound && *file == RELINKER => Map::new(),
        Err(error) => {
            tracing::error!("recon: {}: {error}", path.display());
            Map::new()
        }
    };
    let rows = names.iter().map(|name| {
        let figure = known.get_mut(*name).map(Value::take);
        ((*name).to_owned(), figure.unwrap_or_default())
    });
    Some(rows.collect::<Map<_, _>>().into())
}

fn read(files: &dyn FileSystem, path: &Path) -> io::Result<Map<String, Value>> {
    Ok(serde_json::from_slice(&files.read(path, LIMIT)?)?)
}
