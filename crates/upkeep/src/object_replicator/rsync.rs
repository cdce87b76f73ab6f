//! The program rsync, as OpenStack Swift's object-replicator calls it: whole suffix directories into a
//! peer's module, then a REPLICATE that names them.
//!
//! Always holds: it runs on threads of its own and is ended after `rsync_timeout`; its output is kept
//! only in part.

use super::tasks::PartitionTask;
use super::{NAME, Shared};
use crate::ring_client::place;
use crate::rsync::{RsyncRunner, module};
use object_engine::PartitionKey;
use placement::Device;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;
use vocabulary::Fault;
use world::World;

/// rsync's own names for files on their way.
const TEMPORARIES: &str = "--exclude=.*.[0-9a-zA-Z][0-9a-zA-Z][0-9a-zA-Z][0-9a-zA-Z][0-9a-zA-Z][0-9a-zA-Z]";

/// How to call it.
#[derive(Debug, Clone)]
pub struct ObjectRsyncOptions {
    /// `rsync_module`: where objects go, such as `{replication_ip}::object`.
    pub module: String,
    /// The longest a transfer may take (`rsync_timeout`).
    pub timeout: Duration,
    /// Without any progress, and for a connection (`rsync_io_timeout`).
    pub io_timeout: String,
    /// Kilobytes per second, 0 for no limit (`rsync_bwlimit`).
    pub bwlimit: String,
    /// Compress what goes to other regions (`rsync_compress`).
    pub compress: bool,
    /// Longest line about a failure, 0 for no limit (`rsync_error_log_line_length`).
    pub error_line: usize,
    /// Say what was transferred (`log_rsync_transfers`).
    pub log_transfers: bool,
}

/// Brings suffix directories to other servers.
pub(super) struct ObjectRsync {
    options: ObjectRsyncOptions,
    runner: RsyncRunner,
}

impl ObjectRsync {
    pub(super) fn new(world: &World, options: ObjectRsyncOptions, parallel: usize) -> Self {
        Self {
            options,
            runner: RsyncRunner::new(world.clone(), parallel),
        }
    }

    /// The lines of its output, some of them.
    async fn call(&self, arguments: Vec<OsString>) -> Result<Vec<String>, Fault> {
        let error_line = match self.options.error_line {
            0 => usize::MAX,
            length => length,
        };
        self.runner.call(arguments, self.options.timeout, error_line).await
    }

    fn arguments(
        &self,
        root: &Path,
        key: PartitionKey,
        node: &Device,
        suffixes: &[String],
        far: bool,
    ) -> Vec<OsString> {
        let options = &self.options;
        let objects = key.policy.directory("objects");
        let partition = root.join(&objects).join(key.partition.to_string());
        let mut arguments: Vec<OsString> = [
            "--recursive",
            "--whole-file",
            "--human-readable",
            "--xattrs",
            "--itemize-changes",
            "--ignore-existing",
        ]
        .map(OsString::from)
        .to_vec();
        arguments.push(format!("--timeout={}", options.io_timeout).into());
        arguments.push(format!("--contimeout={}", options.io_timeout).into());
        arguments.push(format!("--bwlimit={}", options.bwlimit).into());
        arguments.push(TEMPORARIES.into());
        if options.compress && far {
            arguments.push("--compress".into());
        }
        arguments.extend(suffixes.iter().map(|suffix| partition.join(suffix).into()));
        let module = module(&options.module, node);
        arguments.push(format!("{module}/{}/{objects}/{}", node.device, key.partition).into());
        arguments
    }
}

impl Shared {
    /// Has rsync bring suffixes to `node`, and tells it.
    pub(super) async fn by_rsync(
        &self,
        rsync: &ObjectRsync,
        task: &PartitionTask,
        node: &Device,
        suffixes: &[String],
    ) -> Result<(), Fault> {
        let far = node.region != task.own.region;
        let arguments = rsync.arguments(&task.local.root, task.key, node, suffixes, far);
        let transferred = rsync.call(arguments).await?;
        if rsync.options.log_transfers {
            for line in transferred {
                tracing::debug!("{NAME}: to {}: {line}", place(node));
            }
        }
        let response = self.replicate(task.key, node, &suffixes.join("-")).await?;
        match response.status().is_success() {
            true => Ok(()),
            false => Err(Fault::peer(format!(
                "REPLICATE was answered with {}",
                response.status()
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vocabulary::PolicyIndex;

    fn rsync(module: &str) -> ObjectRsync {
        let options = ObjectRsyncOptions {
            module: module.into(),
            timeout: Duration::from_secs(5),
            io_timeout: "7".into(),
            bwlimit: "10M".into(),
            compress: true,
            error_line: 20,
            log_transfers: true,
        };
        ObjectRsync::new(&World::real(), options, 1)
    }

    /// Recorded from OpenStack Swift 2.38.3's replicator.
    #[test]
    fn called_as_openstack_calls_it() {
        let node = Device {
            replication_ip: "127.0.0.3".into(),
            replication_port: 6200,
            device: "sdc".into(),
            ..Device::default()
        };
        let key = PartitionKey {
            policy: PolicyIndex(0),
            partition: vocabulary::Partition(5),
        };
        let line = |rsync: ObjectRsync, far| {
            let words = rsync.arguments(Path::new("/srv/sda"), key, &node, &["abc".into(), "def".into()], far);
            let words: Vec<_> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
            words.join(" ")
        };
        let common = "--recursive --whole-file --human-readable --xattrs --itemize-changes --ignore-existing \
                      --timeout=7 --contimeout=7 --bwlimit=10M \
                      --exclude=.*.[0-9a-zA-Z][0-9a-zA-Z][0-9a-zA-Z][0-9a-zA-Z][0-9a-zA-Z][0-9a-zA-Z]";
        let suffixes = "/srv/sda/objects/5/abc /srv/sda/objects/5/def";
        assert_eq!(
            line(rsync("{replication_ip}::object{replication_port}"), true),
            format!("{common} --compress {suffixes} 127.0.0.3::object6200/sdc/objects/5")
        );
        assert_eq!(
            line(rsync("{replication_ip}::object"), false),
            format!("{common} {suffixes} 127.0.0.3::object/sdc/objects/5")
        );
    }

    #[tokio::test]
    async fn a_failure_says_why_and_no_more_than_wanted() {
        let rsync = rsync("x");
        let error = rsync.call(vec!["--no-such-option".into()]).await.unwrap_err().what;
        assert!(error.contains("rsync") && error.len() < 80, "{error}");
    }
}
