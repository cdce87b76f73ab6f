//! Limits of processors and drives by control groups.
//!
//! One group for each node, below a group of this command: of version 2 where its controller `cpu` can be had, else of
//! version 1 (`cpu`, and `cpuacct` for the time that was used); where drives are limited, with `io` or `blkio`, too.
//! Always holds: a period is short, so that a node which used its share up does not wait for long, but not so short
//! that the kernel gives shares inexactly; a group that is dropped is gone with all of its processes.

mod drives;

use crate::model::cluster::DrivePower;
pub use drives::LimitedDriveWork;
use rustix::process::{Pid, Signal, kill_process};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use vocabulary::Fault;
use world::World;
use world::files::Purpose;

/// Where control groups are.
const ROOT: &str = "/sys/fs/cgroup";
/// How groups of this command are called; a process id follows.
pub const PREFIX: &str = "martlet-advise-";
/// Microseconds of a period that a node may use. The kernel looks at each tick (4 ms at 250 Hz) how much of it is left:
/// with less, a node would overdraw its share and then wait for several periods.
const LEAST_QUOTA: f64 = 4000.0;
/// Microseconds: the kernel takes no shorter and no longer periods.
const PERIODS: (f64, f64) = (1000.0, 1e6);
/// A wish: shorter periods cost more, longer ones are seen in the times of requests.
const PERIOD: f64 = 10_000.0;
/// Bytes of a file that says something of a group, at most.
const LONGEST: usize = 1 << 20;
/// The largest weight that a group can have beside other programs, by version: what a node may use it gets, whatever
/// else runs here. It gets no more.
const WEIGHTS: [(&str, &str); 2] = [("cpu.shares", "262144"), ("cpu.weight", "10000")];
/// How often ended processes are waited for, and how long each time.
const ENDS: (u32, Duration) = (200, Duration::from_millis(10));

/// Of control groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupVersion {
    /// A hierarchy for each controller.
    One,
    /// One hierarchy.
    Two,
}

/// The groups of this command.
pub struct ControlGroups {
    world: World,
    version: GroupVersion,
    /// One folder for each hierarchy.
    folders: Vec<PathBuf>,
    has_drives: bool,
}

/// The group of a node.
pub struct NodeGroup {
    world: World,
    version: GroupVersion,
    folders: Vec<PathBuf>,
    drives: Vec<LimitedDrive>,
}

/// A block device that a node's processes are limited on.
#[derive(Debug, Clone, PartialEq)]
pub struct LimitedDrive {
    /// `7:0`.
    pub device: String,
    /// What it bears.
    pub bears: DrivePower,
}

/// What is written into which file for so many processors; none lifts the limit.
fn limit_files(version: GroupVersion, processors: Option<f64>) -> Vec<(&'static str, String)> {
    let (quota, period) = processors.map_or((None, PERIOD), |processors| {
        let period = PERIOD.max(LEAST_QUOTA / processors).clamp(PERIODS.0, PERIODS.1).round();
        (Some((processors * period).round().max(LEAST_QUOTA)), period)
    });
    match version {
        GroupVersion::Two => {
            let quota = quota.map_or("max".to_owned(), |quota| quota.to_string());
            vec![("cpu.max", format!("{quota} {period}"))]
        }
        GroupVersion::One => {
            let quota = quota.map_or("-1".to_owned(), |quota| quota.to_string());
            // The limit is lifted first: a period that is too short for the old quota is refused.
            vec![
                ("cpu.cfs_quota_us", "-1".to_owned()),
                ("cpu.cfs_period_us", period.to_string()),
                ("cpu.cfs_quota_us", quota),
            ]
        }
    }
}

fn write(world: &World, path: &Path, text: &str) -> io::Result<()> {
    world
        .files
        .open(path, Purpose::Change)?
        .write_all_at(text.as_bytes(), 0)
}

/// Reads a file of the kernel, which does not say how long it is.
pub fn read_special(world: &World, path: &Path) -> io::Result<String> {
    let (file, mut bytes, mut part) = (world.files.open(path, Purpose::Read)?, vec![], [0; 4096]);
    loop {
        match file.read_at(&mut part, bytes.len() as u64)? {
            0 => return String::from_utf8(bytes).map_err(io::Error::other),
            _ if bytes.len() >= LONGEST => return Err(io::ErrorKind::FileTooLarge.into()),
            read => bytes.extend_from_slice(&part[..read]),
        }
    }
}

fn make(world: &World, folder: &Path) -> io::Result<()> {
    match world.files.make_directory(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// Ends all processes of a group, and removes it.
fn remove(world: &World, folder: &Path) {
    for _ in 0..ENDS.0 {
        let inside = read_special(world, &folder.join("cgroup.procs")).unwrap_or_default();
        for pid in inside.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?)) {
            // It may have ended meanwhile.
            let _ = kill_process(pid, Signal::KILL);
        }
        if world.files.remove_directory(folder).is_ok() || world.files.info(folder).is_err() {
            return;
        }
        world.clock.block(ENDS.1);
    }
    tracing::warn!("{}: its processes do not end; remove it by hand", folder.display());
}

/// Removes groups of commands that were killed.
fn remove_leftovers(world: &World, root: &Path) {
    let mut names = vec![];
    if let Ok(directory) = world.files.open_directory(root) {
        let _ = directory.list(&mut |name| names.extend(name.to_str().map(str::to_owned)));
    }
    let left = names.iter().filter(|name| is_left(world, name));
    for group in left.map(|name| root.join(name)) {
        let mut nodes = vec![];
        if let Ok(directory) = world.files.open_directory(&group) {
            let _ = directory.list(&mut |name| nodes.push(group.join(name)));
        }
        let is_folder = |path: &&PathBuf| world.files.open_directory(path).is_ok();
        nodes.iter().filter(is_folder).for_each(|node| remove(world, node));
        remove(world, &group);
    }
}

/// Whether a name is that of a command whose process is no more.
pub fn is_left(world: &World, name: &str) -> bool {
    let pid = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
    let pid = pid.and_then(|pid| pid.parse::<u32>().ok());
    pid.is_some_and(|pid| world.files.info(Path::new(&format!("/proc/{pid}"))).is_err())
}

impl ControlGroups {
    /// Those of this machine, for drives too where a plan limits them.
    pub fn make(world: &World, has_drives: bool) -> Result<Self, Fault> {
        Self::below(world, Path::new(ROOT), has_drives).map_err(|error| {
            Fault::caller(format!(
                "no control group that limits {} can be made below {ROOT} ({error}): run this as root, in a container \
                 with control groups that may be written; or measure without limits by --unlimited",
                if has_drives {
                    "processors and drives"
                } else {
                    "processors"
                }
            ))
        })
    }

    fn below(world: &World, root: &Path, has_drives: bool) -> io::Result<Self> {
        let controllers = read_special(world, &root.join("cgroup.controllers")).unwrap_or_default();
        let (version, mut roots) = match controllers.split_whitespace().any(|one| one == "cpu") {
            true => (GroupVersion::Two, vec![root.to_owned()]),
            false => (GroupVersion::One, vec![root.join("cpu"), root.join("cpuacct")]),
        };
        if has_drives && version == GroupVersion::One {
            roots.push(root.join("blkio"));
        }
        let wanted = if has_drives { "+cpu +io" } else { "+cpu" };
        roots.iter().for_each(|root| remove_leftovers(world, root));
        // Of a command that limited drives.
        remove_leftovers(world, &root.join("blkio"));
        let name = format!("{PREFIX}{}", std::process::id());
        let groups = Self {
            world: world.clone(),
            version,
            folders: roots.iter().map(|root| root.join(&name)).collect(),
            has_drives,
        };
        for (root, folder) in roots.iter().zip(&groups.folders) {
            if version == GroupVersion::Two {
                write(world, &root.join("cgroup.subtree_control"), wanted)?;
            }
            make(world, folder)?;
            if version == GroupVersion::Two {
                write(world, &folder.join("cgroup.subtree_control"), wanted)?;
            }
        }
        let (file, weight) = WEIGHTS[usize::from(version == GroupVersion::Two)];
        write(world, &groups.folders[0].join(file), weight)?;
        // So that a lack is found before anything runs.
        let tried = groups.node("trial", vec![])?;
        tried.limit(Some(0.1))?;
        tried.used()?;
        let needed = tried.drives_folder().join(drives::needed_file(version));
        if has_drives && world.files.info(&needed).is_err() {
            let why = "its controller io (version 1: blkio) has no limits of devices: the kernel needs \
                       CONFIG_BLK_DEV_THROTTLING; or leave drive, transfer and operations out of the plan's [storage]";
            return Err(io::Error::other(why));
        }
        drop(tried);
        Ok(groups)
    }

    /// A group without a limit yet, of a node that has drives where the groups are for them.
    pub fn node(&self, name: &str, drives: Vec<LimitedDrive>) -> io::Result<NodeGroup> {
        let group = NodeGroup {
            world: self.world.clone(),
            version: self.version,
            folders: self.folders.iter().map(|folder| folder.join(name)).collect(),
            drives: if self.has_drives { drives } else { vec![] },
        };
        group
            .folders
            .iter()
            .try_for_each(|folder| make(&self.world, folder))
            .map(|()| group)
    }
}

impl Drop for ControlGroups {
    fn drop(&mut self) {
        self.folders.iter().for_each(|folder| remove(&self.world, folder));
    }
}

impl NodeGroup {
    /// Sets how many processors its processes may use together, and what its drives bear; none lifts all limits.
    pub fn limit(&self, processors: Option<f64>) -> io::Result<()> {
        let files = limit_files(self.version, processors);
        let mut files = files.iter();
        files.try_for_each(|(file, text)| write(&self.world, &self.folders[0].join(file), text))?;
        for drive in &self.drives {
            let bears = processors.is_some().then_some(drive.bears);
            for (file, text) in drives::limit_files(self.version, &drive.device, bears) {
                write(&self.world, &self.drives_folder().join(file), &text)?;
            }
        }
        Ok(())
    }

    /// Where limits of drives are written: the only folder, or the last one.
    fn drives_folder(&self) -> &Path {
        &self.folders[self.folders.len() - 1]
    }

    /// Seconds at their limits of all drives until now, four of each; and what they have done together.
    pub fn drives_used(&self) -> io::Result<(Vec<f64>, LimitedDriveWork)> {
        let files = drives::use_files(self.version).iter();
        let read = |file: &&str| match self.drives.is_empty() {
            true => Ok(String::new()),
            false => read_special(&self.world, &self.drives_folder().join(file)),
        };
        let texts: Vec<String> = files.map(read).collect::<io::Result<_>>()?;
        let (mut seconds, mut all) = (vec![], LimitedDriveWork::default());
        for drive in &self.drives {
            let used = drives::used(self.version, &drive.device, &texts);
            seconds.extend(drives::at_limits(used, drive.bears));
            all = all.with(used, |one, other| one + other);
        }
        Ok((seconds, all))
    }

    /// Seconds of processor time that its processes have used.
    pub fn used(&self) -> io::Result<f64> {
        let number = |text: &str| text.trim().parse::<f64>().map_err(io::Error::other);
        match self.version {
            GroupVersion::One => {
                let text = read_special(&self.world, &self.folders[1].join("cpuacct.usage"))?;
                Ok(number(&text)? / 1e9)
            }
            GroupVersion::Two => {
                let text = read_special(&self.world, &self.folders[0].join("cpu.stat"))?;
                let line = text.lines().find_map(|line| line.strip_prefix("usage_usec "));
                Ok(number(line.unwrap_or_default())? / 1e6)
            }
        }
    }

    /// Files that a process writes itself into to join.
    pub fn doors(&self) -> Vec<PathBuf> {
        let doors = self.folders.iter().map(|folder| folder.join("cgroup.procs"));
        doors.collect()
    }
}

impl Drop for NodeGroup {
    fn drop(&mut self) {
        self.folders.iter().for_each(|folder| remove(&self.world, folder));
    }
}

#[cfg(test)]
mod tests {
    use super::{GroupVersion, is_left, limit_files};
    use world::World;

    #[test]
    fn a_share_of_a_processor_is_a_quota_of_a_short_period() {
        let two = |processors| limit_files(GroupVersion::Two, processors)[0].1.clone();
        assert_eq!(two(Some(0.1)), "4000 40000");
        assert_eq!(two(Some(0.05)), "4000 80000");
        assert_eq!(two(Some(0.25)), "4000 16000");
        assert_eq!(two(Some(0.005)), "4000 800000");
        assert_eq!(two(Some(2.0)), "20000 10000");
        assert_eq!(two(None), "max 10000");
        let one = limit_files(GroupVersion::One, Some(0.05));
        assert_eq!(one[1], ("cpu.cfs_period_us", "80000".to_owned()));
        assert_eq!(one[2], ("cpu.cfs_quota_us", "4000".to_owned()));
    }

    #[test]
    fn what_a_killed_command_left_is_known_by_its_name() {
        let world = World::real();
        assert!(!is_left(&world, &format!("martlet-advise-{}", std::process::id())));
        // Linux gives no process such a number.
        assert!(is_left(&world, "martlet-advise-4194305") && is_left(&world, "martlet-advise-4194305-2"));
        assert!(!is_left(&world, "martlet-advise-x") && !is_left(&world, "system.slice"));
    }
}
