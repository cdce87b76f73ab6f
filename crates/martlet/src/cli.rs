//! The command line: the commands and options of `martlet`, and how it acts under another name.
//!
//! Called through a link named `swift-object-server` (and the like) it behaves as that command, so
//! that `swift-init`, unit files and OpenStack's tests start it.
//! Always holds: the flags are those of DESIGN §8; scripts rely on them.

use crate::optparse;
use crate::program;
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use ring_builder::optparse::OptionMistake;
use std::ffi::OsString;
use std::path::PathBuf;

/// An object store that is OpenStack Swift's architecture, API, rings and disk formats in one program.
#[derive(Debug, Parser)]
#[command(name = "martlet", version, max_term_width = 100, arg_required_else_help = true)]
// As OpenStack's programs read options (`optparse.rs`): of one said twice the last counts, long ones may be shortened.
#[command(args_override_self = true, infer_long_args = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a whole cluster in this process: storage and gateway, ready for clients.
    ///
    /// On the first start it writes DIR/etc (swift.conf, rings, builders, server configurations: files
    /// any Swift operator recognises and could start as separate services) and DIR/srv/<device>. Later
    /// starts serve what is there. It prints one line that begins with "ready " and holds the auth URL,
    /// then the accounts. Ctrl-C or SIGTERM finish running requests and exit 0.
    Up(Up),
    /// Run the gateway (proxy server) that CONF describes.
    ProxyServer(ServerLine),
    /// Run the account server that CONF describes.
    AccountServer(ServerLine),
    /// Run the container server that CONF describes.
    ContainerServer(ServerLine),
    /// Run the object server that CONF describes.
    ObjectServer(ServerLine),
    /// Make all replicas of account databases equal (CONF: account-server.conf).
    AccountReplicator(ReplicatorLine),
    /// Make all replicas of container databases equal (CONF: container-server.conf).
    ContainerReplicator(ReplicatorLine),
    /// Deliver the listing updates that no container server took at once (CONF: object-server.conf).
    ObjectUpdater(Upkeep),
    /// Look all account databases over and put aside those that are damaged (CONF: account-server.conf).
    AccountAuditor(Upkeep),
    /// Look all container databases over and put aside those that are damaged (CONF: container-server.conf).
    ContainerAuditor(Upkeep),
    /// Bring objects to where they belong: every primary has what the others have (CONF: object-server.conf).
    ObjectReplicator(ObjectReplicatorLine),
    /// Read all objects again and put aside those that no longer match their checksum (CONF:
    /// object-server.conf).
    ObjectAuditor(ObjectAuditorLine),
    /// Tell accounts how many objects and bytes their containers hold (CONF: container-server.conf).
    ContainerUpdater(Upkeep),
    /// Delete what accounts leave behind that were deleted (CONF: account-server.conf).
    AccountReaper(Upkeep),
    /// Move objects to the policy of their container (CONF: container-reconciler.conf).
    ContainerReconciler(Upkeep),
    /// Delete what lifecycle rules of S3's buckets make due (CONF: container-server.conf).
    ContainerLifecycle(Upkeep),
    /// Deliver the events of S3's buckets to webhooks (CONF: container-server.conf).
    ContainerNotifier(Upkeep),
    /// Send what changes in synced containers to their counterparts elsewhere (CONF: container-server.conf).
    ContainerSync(Upkeep),
    /// Delete objects whose time is over (CONF: object-expirer.conf or object-server.conf).
    ObjectExpirer(Expirer),
    /// Make and change rings: FILE SUBCOMMAND …; without words, all subcommands are explained.
    #[command(disable_help_flag = true)]
    RingBuilder(ServerWords),
    /// The ring builder under OpenStack's other name: it takes the directory's lock even for looking.
    #[command(disable_help_flag = true, hide = true)]
    RingBuilderSafe(ServerWords),
    /// Make one ring of several builders: COMPOSITE_FILE show | compose BUILDER BUILDER … --output RING.
    #[command(disable_help_flag = true)]
    RingComposer(ServerWords),
    /// Ask the storage servers of a cluster how they are (their pipelines have recon).
    Recon(operator_tools::recon::ReconArguments),
    /// Make containers and objects on a sample of all partitions, for dispersion-report.
    DispersionPopulate(operator_tools::dispersion::PopulateArguments),
    /// Say how many copies of what dispersion-populate made are where the rings say.
    DispersionReport(operator_tools::dispersion::ReportArguments),
    /// Load an object store as a workload says, and report how it bore it (COSBench's workloads or its own).
    Bench(bench::arguments::BenchArguments),
    /// Say what to buy for a cluster, what a cluster would bear, and how sure that is.
    Advise(advisor::arguments::AdviseArguments),
    /// Sign an upload form for browsers and print it (for the formpost filter).
    FormSignature(operator_tools::form_signature::FormSignatureArguments),
    /// Show which nodes are responsible for an account, a container, an object or a partition.
    GetNodes(operator_tools::get_nodes::GetNodesArguments),
    /// Say what an object's file on a device holds, whether it is whole, and where the object belongs.
    ObjectInfo(operator_tools::object_info::ObjectInfoArguments),
    /// Look for errors of drives in the kernel's log, and unmount bad ones (called by cron).
    DriveAudit(operator_tools::drive_audit::DriveAuditArguments),
    /// Count the listing updates that wait on this node, for the recon filter (called by cron).
    ReconCron(operator_tools::recon_cron::ReconCronArguments),
    /// Ask the reconciler to look after an object that may be in a wrong policy.
    ReconcilerEnqueue(operator_tools::reconciler_enqueue::ReconcilerEnqueueArguments),
    /// Print what a server's configuration says, defaults filled in.
    Config(operator_tools::config::ConfigArguments),
    /// List Swift's processes that have run for long.
    Oldies(operator_tools::oldies::OldiesArguments),
    /// List Swift's processes that no pid file knows, and signal them when asked.
    Orphans(operator_tools::orphans::OrphansArguments),
    /// Say what an account's database holds, and where it belongs.
    AccountInfo(operator_tools::database_info::DatabaseInfoArguments),
    /// Make and exchange the certificates that nodes of a cluster show each other (cluster_tls).
    ClusterCa(operator_tools::cluster_ca::ClusterCaArguments),
    /// Make, list, limit, rotate and delete the access keys of S3 that the cluster keeps for an account.
    ///
    /// The cluster keeps them where s3api has access_keys = true. It is asked as the account's owner: with -A, -U and
    /// -K for a user of TempAuth, or with the address and the token that `swift auth` prints for one of Keystone. The
    /// swift command's variables serve as well.
    Keys(operator_tools::keys::KeysArguments),
    /// Say what a container's database holds, how far it is sharded, and where it belongs.
    ContainerInfo(operator_tools::database_info::ContainerArguments),
}

/// `martlet up`.
#[derive(Debug, Args)]
pub struct Up {
    /// Where the cluster lives: its configuration and its data.
    #[arg(long, default_value = "./martlet-data", value_name = "DIR")]
    pub dir: PathBuf,
    /// Address and port for clients. Bound to anything but loopback, the first start makes random keys.
    #[arg(long, default_value = "127.0.0.1:8080", value_name = "IP:PORT")]
    pub bind: String,
    /// Devices (directories under DIR/srv) to make on the first start [default: 4].
    #[arg(long, value_name = "N")]
    pub devices: Option<u32>,
    /// Copies of everything, decided on the first start [default: 3].
    #[arg(long, value_name = "N")]
    pub replicas: Option<u32>,
    /// Partitions are 2^P, decided on the first start: about 100 per device at the cluster's final size [default: 10].
    #[arg(long, value_name = "P")]
    pub part_power: Option<u32>,
    /// Certificate in PEM to serve TLS with, decided on the first start; a file that changes is read again.
    #[arg(long, value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,
    /// The certificate's private key in PEM; in the certificate's file when not given.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
}

/// A server with a configuration file.
#[derive(Debug, Args)]
pub struct ServerLine {
    /// The server's configuration: a file such as /etc/swift/proxy-server.conf, or a conf.d directory.
    #[arg(value_name = "CONF")]
    pub conf: PathBuf,
    /// Read the configuration, say what is wrong with it, and serve nothing.
    #[arg(short = 't', long)]
    pub test_config: bool,
    /// Called as swift-…: log to standard error instead of to the system's log.
    #[arg(short, long)]
    verbose: bool,
    /// What swift-init says in words.
    #[arg(value_name = "WORD", value_parser = WORDS, hide = true)]
    words: Vec<String>,
}

/// What swift-init says without dashes.
const WORDS: [&str; 2] = ["once", "verbose"];

/// Upkeep, configured in the file of a server.
#[derive(Debug, Args)]
pub struct Upkeep {
    /// The server's configuration: a file such as /etc/swift/object-server.conf, or a conf.d directory.
    #[arg(value_name = "CONF")]
    pub conf: PathBuf,
    /// One pass, then exit.
    #[arg(short, long = "once")]
    once_flag: bool,
    /// Read the configuration, say what is wrong with it, and do nothing.
    #[arg(short = 't', long)]
    test_config: bool,
    /// Called as swift-…: log to standard error instead of to the system's log.
    #[arg(short, long)]
    verbose: bool,
    /// What swift-init says in words.
    #[arg(value_name = "WORD", value_parser = WORDS, hide = true)]
    words: Vec<String>,
}

/// How much a daemon does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passes {
    /// One pass after the other.
    Endless,
    /// One.
    One,
    /// It only looks whether it could start.
    None,
}

/// `martlet object-auditor`.
#[derive(Debug, Args)]
pub struct ObjectAuditorLine {
    #[command(flatten)]
    pub upkeep: Upkeep,
    /// Look only at names, metadata and lengths, at so many objects per second.
    #[arg(short, long, alias = "zero_byte_fps", value_name = "N")]
    pub zero_byte_fps: Option<f64>,
    /// Audit only these devices, separated by commas.
    #[arg(short, long, value_name = "DEVICES", value_delimiter = ',')]
    pub devices: Vec<String>,
}

/// `martlet account-replicator` and `martlet container-replicator`.
#[derive(Debug, Args)]
pub struct ReplicatorLine {
    #[command(flatten)]
    pub upkeep: Upkeep,
    /// Replicate only these devices, separated by commas; only with --once.
    #[arg(short, long, value_delimiter = ',', value_name = "DEVICES")]
    pub devices: Vec<String>,
    /// Replicate only these partitions, separated by commas; only with --once.
    #[arg(short, long, value_delimiter = ',', value_name = "PARTITIONS")]
    pub partitions: Vec<u32>,
}

/// The object-expirer.
#[derive(Debug, Args)]
pub struct Expirer {
    #[command(flatten)]
    pub upkeep: Upkeep,
    /// In how many parts the work is divided, each for a process of its own; wins over the configuration.
    #[arg(long, value_name = "N")]
    pub processes: Option<u64>,
    /// Which of the parts to do, from 0; wins over the configuration.
    #[arg(long, value_name = "N")]
    pub process: Option<u64>,
}

/// `martlet object-replicator`.
#[derive(Debug, Args)]
pub struct ObjectReplicatorLine {
    #[command(flatten)]
    pub replicator: ReplicatorLine,
    /// Replicate only these policies, separated by commas; only with --once.
    #[arg(short = 'i', long, value_delimiter = ',', value_name = "POLICIES")]
    pub policies: Vec<u32>,
}

/// Words that the command reads itself, because OpenStack's program has its own way with them.
#[derive(Debug, Args)]
pub struct ServerWords {
    /// What to do.
    #[arg(value_name = "WORD", trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<OsString>,
}

impl Upkeep {
    /// One pass only?
    pub fn once(&self) -> bool {
        self.passes() == Passes::One
    }

    /// What is done with the configuration.
    pub fn passes(&self) -> Passes {
        match self.once_flag || self.words.iter().any(|word| word == "once") {
            _ if self.test_config => Passes::None,
            true => Passes::One,
            false => Passes::Endless,
        }
    }
}

impl Cli {
    /// Reads the program's arguments, the name it was called by first. Ends the process on `--help`,
    /// `--version` and mistakes.
    pub fn from_args(args: impl Iterator<Item = OsString>) -> Self {
        let mut line = Self::command();
        let args = as_openstack_reads(&mut line, as_martlet(args.collect()));
        let read = args.and_then(|args| line.try_get_matches_from_mut(args));
        let read = read.and_then(|matches| Self::from_arg_matches(&matches));
        read.unwrap_or_else(|error| error.format(&mut line).exit())
    }
}

/// Commands without a counterpart in OpenStack.
const OURS: [&str; 5] = ["up", "cluster-ca", "bench", "advise", "keys"];

/// The words as OpenStack's programs read theirs; those of commands without a counterpart as they are.
fn as_openstack_reads(line: &mut clap::Command, mut args: Vec<OsString>) -> Result<Vec<OsString>, clap::Error> {
    let name = args.get(1).filter(|name| OURS.iter().all(|own| *name != *own)).cloned();
    let Some(command) = name.as_ref().and_then(|name| line.find_subcommand(name)) else {
        return Ok(args);
    };
    match optparse::spelled_out(command, &args[2..]) {
        Ok(words) => args.splice(2.., words),
        Err(mistake) => {
            let kind = match mistake {
                OptionMistake::Unknown(_) => ErrorKind::UnknownArgument,
                OptionMistake::ValueUnwanted(_) => ErrorKind::TooManyValues,
                OptionMistake::ValueMissing(_) => ErrorKind::InvalidValue,
            };
            // So that the message can say how the subcommand is used.
            line.build();
            let command = name.and_then(|name| line.find_subcommand_mut(name));
            return Err(command.map_or_else(
                || clap::Error::new(kind),
                |command| command.error(kind, mistake.into_text()),
            ));
        }
    };
    Ok(args)
}

/// `swift-object-server CONF …` → `martlet object-server CONF …`.
fn as_martlet(mut args: Vec<OsString>) -> Vec<OsString> {
    if program::link(&args) == Some("bench") {
        args.splice(..1, ["martlet", "bench", "swift"].map(OsString::from));
    } else if let Some(command) = program::link(&args).map(OsString::from) {
        args.splice(..1, ["martlet".into(), command]);
    }
    args
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_declaration_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_link_acts_as_its_command() {
        let cli = Cli::from_args(
            ["/usr/bin/swift-object-server", "/etc/swift/object-server.conf", "-v"]
                .map(Into::into)
                .into_iter(),
        );
        match cli.command {
            Command::ObjectServer(server) => assert_eq!(server.conf, Path::new("/etc/swift/object-server.conf")),
            other => panic!("{other:?}"),
        }
        for once in ["once", "--once"] {
            let line = ["swift-object-updater", "/etc/swift/object-server.conf", once, "verbose"];
            match Cli::from_args(line.map(Into::into).into_iter()).command {
                Command::ObjectUpdater(upkeep) => assert!(upkeep.once()),
                other => panic!("{other:?}"),
            }
        }
        let line = [
            "martlet",
            "cluster-ca",
            "issue",
            "ca",
            "--role",
            "object",
            "--name",
            "n",
            "--role",
            "upkeep",
        ];
        match Cli::from_args(line.map(Into::into).into_iter()).command {
            Command::ClusterCa(line) => assert!(format!("{line:?}").contains("role: [Object, Upkeep]"), "{line:?}"),
            other => panic!("{other:?}"),
        }
        let line = ["martlet", "bench", "run", "SmlRead", "--verify"];
        let cli = Cli::from_args(line.map(Into::into).into_iter());
        assert!(matches!(cli.command, Command::Bench(_)), "{cli:?}");
        let cli = Cli::from_args(
            ["/usr/bin/swift-bench", "--saio", "-c", "4"]
                .map(Into::into)
                .into_iter(),
        );
        assert!(format!("{cli:?}").contains("saio: true"), "{cli:?}");
        let cli = Cli::from_args(["martlet", "up"].map(Into::into).into_iter());
        match cli.command {
            Command::Up(up) => assert_eq!((up.devices, up.replicas, up.part_power), (None, None, None)),
            other => panic!("{other:?}"),
        }
    }
}
