//! `recon`: asks every storage server of the rings how it is, and says what came of it as OpenStack's `swift-recon`
//! does.
//!
//! | question | file |
//! |---|---|
//! | what can be asked for | `arguments.rs` |
//! | who is asked, and how | `scout.rs` |
//! | figures of daemons and of machines | `figures.rs` |
//! | devices: mounted, how full | `devices.rs` |
//! | do all say the same: rings, clocks, versions | `agreement.rs` |
//! | the summary line of a figure | `summary.rs` |
//! | where lines go, and `--json` | `writer.rs` |
//!
//! Always holds: nothing is changed anywhere; whatever a server answers costs at most a line about that server; hosts
//! stand in the order of their addresses, so that two runs can be compared. Times are in UTC.
//! Deliberately absent: what the figures mean to whom; proxies, which are in no ring.
//! Compared with `swift-recon` in `tests/operator/test_swift_recon.py`.

mod agreement;
mod arguments;
mod devices;
mod figures;
mod scout;
mod summary;
mod writer;

pub use arguments::ReconArguments;

use crate::console::{Console, ToolStatus};
use peer::Peers;
use scout::{ReconServer, Scout};
use std::io;
use writer::ReportWriter;

/// What a check needs.
struct Checks<'a, 'c, 'w> {
    scout: Scout<'a>,
    writer: &'a mut ReportWriter<'c, 'w>,
    arguments: &'a ReconArguments,
}

/// What can be checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Check {
    Async,
    Auditor,
    Updater,
    Expirer,
    Sharding,
    Reconstruction,
    Replication,
    Unmounted,
    Load,
    DiskUsage,
    Md5,
    Quarantined,
    Sockets,
    Validate,
    DriveAudit,
    Time,
    Versions,
}

/// `--all`, in the order of OpenStack's.
const OF_ALL: [Check; 17] = [
    Check::Async,
    Check::Auditor,
    Check::Updater,
    Check::Expirer,
    Check::Sharding,
    Check::Reconstruction,
    Check::Replication,
    Check::Unmounted,
    Check::Load,
    Check::DiskUsage,
    Check::Md5,
    Check::Quarantined,
    Check::Sockets,
    Check::Validate,
    Check::DriveAudit,
    Check::Time,
    Check::Versions,
];

/// The order of those that are named, which is another one.
const ONE_BY_ONE: [Check; 17] = [
    Check::Async,
    Check::Unmounted,
    Check::Replication,
    Check::Auditor,
    Check::Updater,
    Check::Expirer,
    Check::Sharding,
    Check::Reconstruction,
    Check::Validate,
    Check::Load,
    Check::DiskUsage,
    Check::Md5,
    Check::Quarantined,
    Check::Sockets,
    Check::DriveAudit,
    Check::Time,
    Check::Versions,
];

impl Check {
    /// Whether it makes sense for servers of a kind. One that is named although it does not gets a line that says so.
    fn fits(self, kind: ReconServer) -> bool {
        match self {
            Check::Async | Check::Expirer | Check::Reconstruction => kind == ReconServer::Object,
            Check::Updater => kind != ReconServer::Account,
            Check::Sharding => kind == ReconServer::Container,
            _ => true,
        }
    }

    fn is_asked_for(self, arguments: &ReconArguments) -> bool {
        match self {
            Check::Async => arguments.r#async,
            Check::Auditor => arguments.auditor,
            Check::Updater => arguments.updater,
            Check::Expirer => arguments.expirer,
            Check::Sharding => arguments.sharding,
            Check::Reconstruction => arguments.reconstruction,
            Check::Replication => arguments.replication,
            Check::Unmounted => arguments.unmounted,
            Check::Load => arguments.loadstats,
            Check::DiskUsage => arguments.diskusage,
            Check::Md5 => arguments.md5,
            Check::Quarantined => arguments.quarantined,
            Check::Sockets => arguments.sockstat,
            Check::Validate => arguments.validate_servers,
            Check::DriveAudit => arguments.driveaudit,
            Check::Time => arguments.time,
            Check::Versions => arguments.swift_versions,
        }
    }
}

/// Asks and tells.
pub async fn run(arguments: &ReconArguments, peers: &Peers, console: &mut Console<'_>) -> io::Result<ToolStatus> {
    let mut writer = ReportWriter::new(console, arguments.json);
    writer.rule()?;
    if arguments.timeout < 0 {
        writer.refuse("Timeout value out of range")?;
        return Ok(ToolStatus::FAILURE);
    }
    let mut kinds = vec![];
    for word in &arguments.server_types {
        let Some(kind) = ReconServer::named(word) else {
            writer.refuse("Invalid Server Type")?;
            return Ok(ToolStatus::FAILURE);
        };
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    if kinds.is_empty() {
        kinds.push(ReconServer::Object);
    }
    for kind in kinds {
        let scout = match Scout::new(arguments, peers, kind) {
            Ok(scout) => scout,
            Err(scout::ScoutError::Policy(name)) => {
                writer.refuse(&format!("Invalid Storage Policy: {name}"))?;
                // As OpenStack's ends then.
                return Ok(ToolStatus::SUCCESS);
            }
            Err(scout::ScoutError::Files(why)) => {
                writer.refuse(&why.what)?;
                return Ok(ToolStatus::FAILURE);
            }
        };
        let mut checks = Checks {
            scout,
            writer: &mut writer,
            arguments,
        };
        checks.all().await?;
    }
    writer.end()?;
    Ok(ToolStatus::SUCCESS)
}

impl Checks<'_, '_, '_> {
    /// Every check that is asked for.
    async fn all(&mut self) -> io::Result<()> {
        let (kind, hosts) = (self.scout.kind, self.scout.hosts.len());
        self.writer.begin_kind(kind.word(), hosts)?;
        self.writer.line(format_args!(
            "--> Starting reconnaissance on {hosts} hosts ({})",
            kind.word()
        ))?;
        self.writer.rule()?;
        let arguments = self.arguments;
        match arguments.all {
            true => {
                for check in OF_ALL.iter().filter(|check| check.fits(kind)) {
                    self.one(*check).await?;
                }
            }
            false => {
                for check in ONE_BY_ONE.iter().filter(|check| check.is_asked_for(arguments)) {
                    self.one(*check).await?;
                }
            }
        }
        Ok(())
    }

    async fn one(&mut self, check: Check) -> io::Result<()> {
        match check {
            Check::Async => self.async_pendings().await,
            Check::Auditor => self.auditor().await,
            Check::Updater => self.updater().await,
            Check::Expirer => self.expirer().await,
            Check::Sharding => self.sharding().await,
            Check::Reconstruction => self.reconstruction().await,
            Check::Replication => self.replication().await,
            Check::Unmounted => self.unmounted().await,
            Check::Load => self.load().await,
            Check::DiskUsage => self.disk_usage().await,
            Check::Md5 => {
                self.rings().await?;
                self.swift_conf().await
            }
            Check::Quarantined => self.quarantined().await,
            Check::Sockets => self.sockets().await,
            Check::Validate => self.validate().await,
            Check::DriveAudit => self.drive_audit().await,
            Check::Time => self.time().await,
            Check::Versions => self.versions().await,
        }
    }

    /// The line that a check begins with.
    fn begin(&mut self, check: &'static str, line: &str) -> io::Result<()> {
        self.writer.begin_check(check);
        let now = self.scout.now();
        self.writer.line(format_args!("[{}] {line}", summary::date(now)))
    }
}
