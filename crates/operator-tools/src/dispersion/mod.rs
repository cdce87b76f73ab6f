//! `dispersion-populate` and `dispersion-report`: containers and objects all over the rings, and how many of their
//! copies are where they belong.
//!
//! Comes in: `dispersion.conf`, the rings. Goes out: `dispersion_<policy>_<n>` (containers) and
//! `dispersion_objects_<policy>/dispersion_<n>` (objects), as OpenStack's programs name them, so that each program
//! reports on what the other one made.
//! Always holds: nothing but what has these names is made; a report changes nothing. Storage servers are asked
//! directly.
//!
//! | question | file |
//! |---|---|
//! | the token for the gateway, and requests with it | `account.rs` |
//! | making containers and objects | `populate.rs` |
//! | counting copies | `report.rs` |
//! | servers that do not answer | `silent.rs` |
//! | how far either has come | `progress.rs` |
//!
//! Compared with OpenStack's in `tests/operator/test_dispersion.py`.

mod account;
mod populate;
mod progress;
mod report;
mod silent;

pub use populate::{PopulateArguments, run as populate};
pub use report::{ReportArguments, run as report};

use crate::conf_file::ConfSection;
use crate::console::ToolStop;
use crate::swift_dir::read_ring;
use crate::words::path;
use account::Account;
use clap::Args;
use placement::Ring;
use settings::SwiftConf;
use settings::dispersion::{DispersionSettings, SECTION};
use std::path::PathBuf;
use vocabulary::{Fault, HashPrefix, Partition, Policy};
use world::World;

/// The options of both programs.
#[derive(Debug, Clone, Args)]
#[command(args_override_self = true)]
pub struct Common {
    /// The configuration, with a section [dispersion].
    #[arg(value_name = "CONF", default_value = "/etc/swift/dispersion.conf", value_parser = path())]
    pub conf: PathBuf,
    /// What OpenStack's program overlooks too.
    #[arg(hide = true)]
    pub overlooked: Vec<String>,
    /// Look after containers, leave objects out.
    #[arg(long)]
    pub container_only: bool,
    /// Look after objects, leave containers out.
    #[arg(long)]
    pub object_only: bool,
    /// Do not verify certificates.
    #[arg(long)]
    pub insecure: bool,
    /// Authorities in PEM that vouch for the certificates of Keystone and the gateway.
    #[arg(long, value_name = "FILE", value_parser = path())]
    pub cafile: Option<PathBuf>,
    /// The storage policy; without it the default one.
    #[arg(short = 'P', long, value_name = "POLICY")]
    pub policy_name: Option<String>,
}

/// What both programs work with.
struct Ground<'a> {
    world: &'a World,
    settings: DispersionSettings,
    policy: Policy,
    hash: HashPrefix,
    containers: Ring,
    objects: Ring,
}

impl<'a> Ground<'a> {
    fn read(world: &'a World, common: &Common) -> Result<Self, ToolStop> {
        let line = |error: &dyn std::fmt::Display| Fault::caller(error.to_string());
        if !common.conf.exists() {
            return Err(ToolStop::caller(format!(
                "Unable to read config file: {}",
                common.conf.display()
            )));
        }
        let section = ConfSection::read(&common.conf, SECTION)?;
        for name in ["auth_url", "auth_user", "auth_key"] {
            if section.text(name, "")?.is_empty() {
                let conf = common.conf.display();
                return Err(ToolStop::caller(format!("{conf}: [{SECTION}] has no {name}")));
            }
        }
        let mut settings = DispersionSettings::load(&common.conf).map_err(|error| line(&error))?;
        settings.keystone_api_insecure |= common.insecure;
        if let Some(file) = &common.cafile {
            settings.cafile = Some(file.clone());
        }
        let swift = SwiftConf::load_from_dir(&settings.swift_dir).map_err(|error| line(&error))?;
        let policy = match &common.policy_name {
            None => swift.policies.default_policy(),
            Some(name) => (swift.policies.by_name(name))
                .ok_or_else(|| ToolStop::caller(format!("Unable to find policy: {name}")))?,
        };
        let ring = |name: &str| {
            let path = settings.swift_dir.join(format!("{name}.ring.gz"));
            read_ring(world, &path)
        };
        Ok(Self {
            world,
            containers: ring("container")?,
            objects: ring(&policy.index.ring_name())?,
            policy: policy.clone(),
            hash: swift.hash,
            settings,
        })
    }

    async fn account(&self) -> Result<Account, ToolStop> {
        Ok(Account::open(self.world, &self.settings).await?)
    }

    /// What the names of containers begin with.
    fn container_prefix(&self) -> String {
        format!("dispersion_{}_", self.policy.index.0)
    }

    /// Where objects are.
    fn objects_container(&self) -> String {
        format!("dispersion_objects_{}", self.policy.index.0)
    }

    fn partition_of_container(&self, account: &str, container: &str) -> Partition {
        self.hash
            .container(account, container)
            .partition(self.containers.part_power())
    }

    fn partition_of_object(&self, account: &str, name: &str) -> Partition {
        let hash = self.hash.object(account, &self.objects_container(), name);
        hash.partition(self.objects.part_power())
    }
}

/// A time in the largest unit that it passes: `59s`, `2m`, `3h`.
fn shortly(seconds: f64) -> String {
    let (mut amount, mut unit) = (seconds, 's');
    for larger in ['m', 'h'] {
        if amount > 60.0 {
            (amount, unit) = (amount / 60.0, larger);
        } else {
            break;
        }
    }
    format!("{}{unit}", amount.round_ties_even())
}

/// The beginning of a line that takes the place of what the terminal showed.
const ANEW: &str = "\r\x1b[K";

#[cfg(test)]
mod tests {
    use super::shortly;

    #[test]
    fn times_are_shown_in_the_largest_unit_that_they_pass() {
        for (seconds, shown) in [
            (0.2, "0s"),
            (60.0, "60s"),
            (61.0, "1m"),
            (75.0, "1m"),
            (3_600.0, "60m"),
            (9_000.0, "2h"),
            (360_000.0, "100h"),
        ] {
            assert_eq!(shortly(seconds), shown);
        }
    }
}
