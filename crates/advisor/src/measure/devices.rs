//! Drives of a limited storage node: a file of its own for each, a loop device on it, an ext4 file system, mounted.
//!
//! Always holds: mounts are seen by the node's own processes alone; a drive has a device of its own, so that what is
//! written to it is bounded by itself.

use super::limits::LimitedDrive;
use super::namespaces::{Namespaces, OwnParts};
use super::plan::MeasurePlan;
use super::scratch::make_folders;
use std::path::{Path, PathBuf};
use vocabulary::Fault;
use world::World;

/// Makes drives: their room in bytes, then each file and the folder that it is mounted on. Inodes have room for the
/// attributes of an object; nothing writes to a drive that no request asked for.
const MOUNT: &str = "room=$1; shift
while [ $# -gt 0 ]; do
    truncate -s \"$room\" \"$1\"
    mkfs.ext4 -q -F -m 0 -I 512 -E nodiscard,lazy_journal_init=1 \"$1\"
    mount -t ext4 -o loop,noatime,noinit_itable \"$1\" \"$2\"
    shift 2
done";

/// A node's own namespaces, with its drives mounted in `srv` where they are limited, and those drives.
pub fn mounted(
    world: &World,
    plan: &MeasurePlan,
    srv: &Path,
    network: bool,
    is_limited: bool,
) -> Result<(Option<Namespaces>, Vec<LimitedDrive>), Fault> {
    let folders: Vec<PathBuf> = (0..plan.drives).map(|drive| srv.join(format!("d{drive}"))).collect();
    folders.iter().try_for_each(|folder| make_folders(world, folder))?;
    let own = OwnParts {
        network,
        mounts: is_limited,
    };
    let Some(bears) = plan.drive.filter(|_| is_limited) else {
        let made = network.then(|| Namespaces::make("a network namespace", own, "", &[]));
        return Ok((made.transpose()?, vec![]));
    };
    let mut words = vec![format!("{:.0}", plan.drive_room)];
    for folder in &folders {
        words.push(folder.with_extension("image").display().to_string());
        words.push(folder.display().to_string());
    }
    let what = "drives on loop devices with ext4 (needs mkfs.ext4, and mount as root)";
    let made = Namespaces::make(what, own, MOUNT, &words)?;
    let devices = made.devices(world, &folders)?;
    let drives = devices.into_iter().map(|device| LimitedDrive { device, bears });
    Ok((Some(made), drives.collect()))
}
