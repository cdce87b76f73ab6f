//! `recon`: asks every storage server of the rings how it is, and says what came of it as OpenStack's `swift-recon` does.
//!
//! | question | file |
//! |---|---|
//! | what can be asked for | `arguments.rs` |
//! | who is asked, and how | `scout.rs` |
//! | figures of daemons and of machines | `figures.rs` |
//! | devices: mounted, how full | `devices.rs` |
//! | do all say the same: rings, clocks, versions | `agreement.rs` |
//! | the summary line of a figure | `summary.rs` |
//! | where lines go, and `--json` | `teller.rs` |
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
mod teller;

pub use arguments::Arguments;

use crate::console::{Console, Status};
use scout::{Kind, Scout};
use std::io;
use teller::Teller;
use world::World;

/// What a check needs.
struct Checks<'a, 'c, 'w> {
    scout: Scout<'a>,
    teller: &'a mut Teller<'c, 'w>,
    arguments: &'a Arguments,
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
    fn fits(self, kind: Kind) -> bool {
        match self {
            Check::Async | Check::Expirer | Check::Reconstruction => kind == Kind::Object,
            Check::Updater => kind != Kind::Account,
            Check::Sharding => kind == Kind::Container,
            _ => true,
        }
    }

    fn is_asked_for(self, said: &Arguments) -> bool {
        match self {
            Check::Async => said.r#async,
            Check::Auditor => said.auditor,
            Check::Updater => said.updater,
            Check::Expirer => said.expirer,
            Check::Sharding => said.sharding,
            Check::Reconstruction => said.reconstruction,
            Check::Replication => said.replication,
            Check::Unmounted => said.unmounted,
            Check::Load => said.loadstats,
            Check::DiskUsage => said.diskusage,
            Check::Md5 => said.md5,
            Check::Quarantined => said.quarantined,
            Check::Sockets => said.sockstat,
            Check::Validate => said.validate_servers,
            Check::DriveAudit => said.driveaudit,
            Check::Time => said.time,
            Check::Versions => said.swift_versions,
        }
    }
}

/// Asks and tells.
pub async fn run(arguments: &Arguments, world: &World, console: &mut Console<'_>) -> io::Result<Status> {
    let mut teller = Teller::new(console, arguments.json);
    teller.rule()?;
    if arguments.timeout < 0 {
        teller.refuse("Timeout value out of range")?;
        return Ok(Status::FAILURE);
    }
    let mut kinds = vec![];
    for word in &arguments.server_types {
        let Some(kind) = Kind::named(word) else {
            teller.refuse("Invalid Server Type")?;
            return Ok(Status::FAILURE);
        };
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    if kinds.is_empty() {
        kinds.push(Kind::Object);
    }
    for kind in kinds {
        let scout = match Scout::new(arguments, world, kind) {
            Ok(scout) => scout,
            Err(scout::Unfit::Policy(name)) => {
                teller.refuse(&format!("Invalid Storage Policy: {name}"))?;
                // As OpenStack's ends then.
                return Ok(Status::SUCCESS);
            }
            Err(scout::Unfit::Files(why)) => {
                teller.refuse(&why)?;
                return Ok(Status::FAILURE);
            }
        };
        let mut checks = Checks {
            scout,
            teller: &mut teller,
            arguments,
        };
        checks.all().await?;
    }
    teller.end()?;
    Ok(Status::SUCCESS)
}

impl Checks<'_, '_, '_> {
    /// Every check that is asked for.
    async fn all(&mut self) -> io::Result<()> {
        let (kind, hosts) = (self.scout.kind, self.scout.hosts.len());
        self.teller.begin_kind(kind.word(), hosts)?;
        self.teller.line(format_args!(
            "--> Starting reconnaissance on {hosts} hosts ({})",
            kind.word()
        ))?;
        self.teller.rule()?;
        let said = self.arguments;
        match said.all {
            true => {
                for check in OF_ALL.iter().filter(|check| check.fits(kind)) {
                    self.one(*check).await?;
                }
            }
            false => {
                for check in ONE_BY_ONE.iter().filter(|check| check.is_asked_for(said)) {
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
        self.teller.begin_check(check);
        let now = self.scout.now();
        self.teller.line(format_args!("[{}] {line}", summary::date(now)))
    }
}
