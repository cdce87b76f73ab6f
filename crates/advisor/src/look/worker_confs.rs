//! How many worker processes the configurations of OpenStack's servers in this directory ask for, and how many
//! processors this machine has.
//!
//! Always holds: what cannot be read is left out; `workers = auto`, which is the default, is as many as processors.

use settings::Document;
use std::path::{Path, PathBuf};
use world::World;
use world::files::{Purpose, read_full_at};

/// Servers that have such an option.
const SERVERS: [&str; 4] = ["proxy", "object", "container", "account"];
/// The list of processors is shorter.
const LONGEST: usize = 4096;

/// A configuration that says a number.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct WorkerConf {
    /// `proxy`, `object` and so on.
    pub server: String,
    pub path: PathBuf,
    pub workers: u64,
}

/// All configurations in a directory that say a number; the gateways' may be another one.
pub(super) fn read(swift_dir: &Path, proxy_conf: Option<&Path>) -> Vec<WorkerConf> {
    let one = |server: &str| {
        let own = swift_dir.join(format!("{server}-server.conf"));
        let path = proxy_conf.filter(|_| server == "proxy").map_or(own, Path::to_path_buf);
        let document = Document::load(&path).ok()?;
        // Ports of devices have processes of their own.
        let ports = document.lookup("DEFAULT", "servers_per_port");
        let is_each = ports.is_some_and(|option| option.value.trim().parse::<u64>().is_ok_and(|count| count > 0));
        let workers = document.lookup("DEFAULT", "workers")?.value.trim().parse().ok()?;
        (!is_each).then(|| WorkerConf {
            server: server.to_owned(),
            path,
            workers,
        })
    };
    SERVERS.into_iter().filter_map(one).collect()
}

/// Processors of this machine that are switched on.
pub(super) fn processors(world: &World) -> Option<u64> {
    let file = world
        .files
        .open(Path::new("/sys/devices/system/cpu/online"), Purpose::Read)
        .ok()?;
    let mut bytes = [0; LONGEST];
    let length = read_full_at(&*file, &mut bytes, 0).ok()?;
    vocabulary::processors::count(std::str::from_utf8(&bytes[..length]).ok()?)
}

#[cfg(test)]
mod tests {
    use super::read;
    use std::path::Path;

    #[test]
    fn numbers_are_read_and_auto_is_none() {
        let root = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(root.path().join(name), text).unwrap();
        write("proxy-server.conf", "[DEFAULT]\nworkers = 1\n");
        write("object-server.conf", "[DEFAULT]\nworkers = 1\nservers_per_port = 2\n");
        write("container-server.conf", "[DEFAULT]\nworkers = auto\n");
        let found: Vec<_> = read(root.path(), None)
            .into_iter()
            .map(|one| (one.server, one.workers))
            .collect();
        assert_eq!(found, [("proxy".to_owned(), 1)]);
        assert_eq!(read(root.path(), Some(Path::new("/nowhere"))), []);
    }
}
