//! The program `rsync`, and how OpenStack Swift's replicators call it to carry a database.
//!
//! Always holds: it runs on threads of its own, so that a peer that stalls holds up no disk; it is
//! ended by its own time-outs, which are always given, or else when it takes longer than any transfer should.

use crate::faults::run_on;
use crate::program::run;
use placement::Device;
use std::ffi::OsString;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;
use vocabulary::Fault;
use world::{Workers, World};

/// Transfers that may wait.
const QUEUE: usize = 256;

/// The slowest transfer that is waited for, in bytes per second.
const SLOWEST: u64 = 64 << 10;

/// How to call it.
#[derive(Debug, Clone)]
pub struct RsyncOptions {
    /// `rsync_module`: where databases go, such as `{replication_ip}::container`.
    pub module: String,
    /// `rsync_compress`: compress what goes to other regions.
    pub compress: bool,
    /// For a connection.
    pub connect: Duration,
    /// Without any progress.
    pub stall: Duration,
}

/// Calls rsync, a few at a time.
pub(crate) struct RsyncRunner {
    world: World,
    parallel: usize,
    /// Started when first needed.
    threads: OnceLock<Option<Workers>>,
}

impl RsyncRunner {
    /// At most `parallel` at a time.
    pub(crate) fn new(world: World, parallel: usize) -> Self {
        Self {
            world,
            parallel: parallel.max(1),
            threads: OnceLock::new(),
        }
    }

    /// The lines of its output, some of them. The first `error_line` letters of its first complaint say why it failed.
    pub(crate) async fn call(
        &self,
        arguments: Vec<OsString>,
        limit: Duration,
        error_line: usize,
    ) -> Result<Vec<String>, Fault> {
        let start = || self.world.workers("rsync", self.parallel, QUEUE).ok();
        let threads = self.threads.get_or_init(start).as_ref();
        let threads = threads.ok_or_else(|| Fault::caller("no threads for rsync"))?;
        let clock = self.world.clock.clone();
        let ran = run_on(threads, move || run("rsync", &arguments, limit, &*clock)).await?;
        let Some((status, why)) = ran.failure() else {
            return Ok(ran.output);
        };
        let why: String = why.chars().take(error_line).collect();
        Err(Fault::peer(format!("rsync failed ({status}): {why}")))
    }
}

/// Brings databases to other servers.
pub(crate) struct DatabaseRsync {
    options: RsyncOptions,
    runner: RsyncRunner,
}

impl DatabaseRsync {
    /// At most `parallel` at a time.
    pub(crate) fn new(world: World, options: RsyncOptions, parallel: usize) -> Self {
        Self {
            options,
            runner: RsyncRunner::new(world, parallel),
        }
    }

    /// Brings `file` to `<device>/tmp/<name>` of `node`.
    pub(crate) async fn send(&self, file: &Path, node: &Device, name: &str, other_region: bool) -> Result<(), Fault> {
        let arguments = self.arguments(file, node, name, other_region);
        let length = self.runner.world.files.info(file).map_or(0, |info| info.size);
        let limit = self.options.connect + self.options.stall + Duration::from_secs(length / SLOWEST);
        self.runner.call(arguments, limit, usize::MAX).await.map(drop)
    }

    fn arguments(&self, file: &Path, node: &Device, name: &str, other_region: bool) -> Vec<OsString> {
        let seconds = |time: Duration| time.as_secs_f64().ceil().max(1.0);
        let mut arguments: Vec<OsString> = vec![
            "--quiet".into(),
            "--no-motd".into(),
            format!("--timeout={}", seconds(self.options.stall)).into(),
            format!("--contimeout={}", seconds(self.options.connect)).into(),
            "--whole-file".into(),
        ];
        if self.options.compress && other_region {
            arguments.push("--compress".into());
        }
        let module = module(&self.options.module, node);
        arguments.push(file.into());
        arguments.push(format!("{module}/{}/tmp/{name}", node.device).into());
        arguments
    }
}

/// Fills a device's fields into the operator's template.
pub(crate) fn module(template: &str, node: &Device) -> String {
    let bracketed = |ip: &str| match ip.contains(':') {
        true => format!("[{ip}]"),
        false => ip.to_owned(),
    };
    let fields = [
        ("id", node.id.to_string()),
        ("region", node.region.to_string()),
        ("zone", node.zone.to_string()),
        ("ip", bracketed(&node.ip)),
        ("port", node.port.to_string()),
        ("replication_ip", bracketed(&node.replication_ip)),
        ("replication_port", node.replication_port.to_string()),
        ("device", node.device.clone()),
        ("meta", node.meta.clone()),
    ];
    fields.iter().fold(template.to_owned(), |text, (name, value)| {
        text.replace(&format!("{{{name}}}"), value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rsync(module: &str, compress: bool) -> DatabaseRsync {
        let options = RsyncOptions {
            module: module.into(),
            compress,
            connect: Duration::from_millis(500),
            stall: Duration::from_secs(10),
        };
        DatabaseRsync::new(World::real(), options, 1)
    }

    /// The command lines are those of OpenStack Swift's replicator.
    #[test]
    fn called_as_openstack_calls_it() {
        let node = Device {
            replication_ip: "10.0.0.1".into(),
            replication_port: 6201,
            device: "sdb4".into(),
            ..Device::default()
        };
        let line = |rsync: &DatabaseRsync, node: &Device, far| {
            let words = rsync.arguments(Path::new("/srv/sda/tmp/x.db"), node, "id-sda", far);
            words
                .iter()
                .map(|word| word.to_string_lossy().into_owned())
                .collect::<Vec<_>>()
                .join(" ")
        };
        let plain = rsync("{replication_ip}::container", true);
        let common = "--quiet --no-motd --timeout=10 --contimeout=1 --whole-file";
        assert_eq!(
            line(&plain, &node, false),
            format!("{common} /srv/sda/tmp/x.db 10.0.0.1::container/sdb4/tmp/id-sda")
        );
        assert!(line(&plain, &node, true).contains("--whole-file --compress /srv"));
        let node = Device {
            replication_ip: "fe80::1".into(),
            ..node
        };
        let own = rsync("{replication_ip}::container_{device}", false);
        assert!(line(&own, &node, true).ends_with("/srv/sda/tmp/x.db [fe80::1]::container_sdb4/sdb4/tmp/id-sda"));
    }

    #[tokio::test]
    async fn a_failure_says_why() {
        let node = Device {
            replication_ip: "127.0.0.1".into(),
            device: "sda".into(),
            ..Device::default()
        };
        let failed = rsync("/nowhere/{replication_ip}", false)
            .send(Path::new("/nowhere/x"), &node, "id", false)
            .await;
        assert!(failed.unwrap_err().what.contains("rsync"), "what failed is named");
    }
}
