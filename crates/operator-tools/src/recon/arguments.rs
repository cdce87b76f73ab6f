//! The command line of `recon`.

use crate::OURS;
use crate::words::{float, path, whole};
use clap::Args;
use std::path::PathBuf;

/// What to ask whom.
#[derive(Debug, Clone, Args)]
#[command(args_override_self = true)]
pub struct ReconArguments {
    /// account, container, object: any of them; object when none is named.
    #[arg(value_name = "SERVER_TYPE")]
    pub server_types: Vec<String>,
    /// Show what each server answered.
    #[arg(short, long)]
    pub verbose: bool,
    /// Say nothing of servers that cannot be reached.
    #[arg(long)]
    pub suppress: bool,
    /// Updates of listings that wait on object servers.
    #[arg(short, long)]
    pub r#async: bool,
    /// Replication: how long, what came of it, when last.
    #[arg(short, long)]
    pub replication: bool,
    /// The same of reconstruction.
    #[arg(short = 'R', long)]
    pub reconstruction: bool,
    /// Passes of auditors.
    #[arg(long)]
    pub auditor: bool,
    /// Passes of updaters.
    #[arg(long)]
    pub updater: bool,
    /// Passes of expirers.
    #[arg(long)]
    pub expirer: bool,
    /// Passes of sharders.
    #[arg(long)]
    pub sharding: bool,
    /// Devices that are not mounted.
    #[arg(short, long)]
    pub unmounted: bool,
    /// How full devices are.
    #[arg(short, long)]
    pub diskusage: bool,
    /// Sizes of --diskusage in kB, MB, GB and so on.
    #[arg(long)]
    pub human_readable: bool,
    /// Load averages.
    #[arg(short, long)]
    pub loadstats: bool,
    /// What is in quarantine.
    #[arg(short, long)]
    pub quarantined: bool,
    /// Whether there are servers of the right kind where the rings say.
    #[arg(long)]
    pub validate_servers: bool,
    /// Whether servers have the rings and the swift.conf that are here.
    #[arg(long)]
    pub md5: bool,
    /// Sockets in use.
    #[arg(long)]
    pub sockstat: bool,
    /// Errors that drive-audit found.
    #[arg(long)]
    pub driveaudit: bool,
    /// Whether clocks agree.
    #[arg(short = 'T', long)]
    pub time: bool,
    /// By how much clocks may differ, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0, value_parser = float)]
    pub jitter: f64,
    /// Whether servers have the same version of Swift.
    #[arg(long)]
    pub swift_versions: bool,
    /// Show also the COUNT fullest devices.
    #[arg(long, value_name = "COUNT", default_value_t = 0, value_parser = whole)]
    pub top: i64,
    /// Show also the COUNT emptiest devices.
    #[arg(long, value_name = "COUNT", default_value_t = 0, value_parser = whole)]
    pub lowest: i64,
    /// Every check that makes sense for the kind of server: -arRudlqT, --auditor, --updater, --expirer, --sharding,
    /// --md5, --sockstat, --validate-servers, --driveaudit and --swift-versions.
    #[arg(long)]
    pub all: bool,
    /// Ask only servers in this region.
    #[arg(long, value_name = "REGION", value_parser = whole)]
    pub region: Option<i64>,
    /// Ask only servers in this zone.
    #[arg(short, long, value_name = "ZONE", value_parser = whole)]
    pub zone: Option<i64>,
    /// How long to wait for a server.
    #[arg(short, long, value_name = "SECONDS", default_value_t = 5, value_parser = whole)]
    pub timeout: i64,
    /// Where the rings and swift.conf are.
    #[arg(long, value_name = "DIR", default_value = "/etc/swift", value_parser = path())]
    pub swiftdir: PathBuf,
    /// Ask only object servers of this storage policy (its name or its index).
    #[arg(short, long, value_name = "POLICY")]
    pub policy: Option<String>,
    /// Print one JSON document instead: for each kind of server and check what each host answered, and the summaries.
    #[arg(long, help_heading = OURS)]
    pub json: bool,
    /// Speak to storage servers as the cluster_tls options of this server's configuration say.
    #[arg(long, value_name = "CONF", help_heading = OURS, value_parser = path())]
    pub cluster_tls: Option<PathBuf>,
}
