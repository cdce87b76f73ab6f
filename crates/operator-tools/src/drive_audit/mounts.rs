//! What is mounted below the devices directory, and what the kernel calls it in its log.

use std::io;
use std::path::Path;
use world::World;
use world::files::{Purpose, read_bytes_at};

/// Lists of the kernel are shorter.
const LONGEST: usize = 4 << 20;

/// One mount.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mounted {
    /// Where.
    pub(super) place: String,
    /// `sdb1`, `dm-3`; none where the kernel does not list it.
    pub(super) kernel_name: Option<String>,
}

/// The devices that are mounted below a directory.
pub(super) fn below(world: &World, directory: &Path) -> io::Result<Vec<Mounted>> {
    let mounts = text(world, Path::new("/proc/mounts"))?;
    let partitions = text(world, Path::new("/proc/partitions"))?;
    let found = parse_mounts(&mounts, directory);
    let found = found.map(|(device, place)| Mounted {
        place,
        kernel_name: numbers(&device).and_then(|numbers| name_of(&partitions, numbers)),
    });
    Ok(found.collect())
}

/// Files in /proc have no length.
fn text(world: &World, path: &Path) -> io::Result<String> {
    let file = world.files.open(path, Purpose::Read)?;
    let bytes = read_bytes_at(&*file, LONGEST, 0)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn parse_mounts<'a>(mounts: &'a str, directory: &'a Path) -> impl Iterator<Item = (String, String)> + 'a {
    mounts.lines().filter_map(move |line| {
        let mut fields = line.split_whitespace();
        let (device, place) = (fields.next()?, fields.next()?);
        let is_below = device.starts_with('/') && Path::new(place).starts_with(directory);
        is_below.then(|| (device.to_owned(), place.to_owned()))
    })
}

/// Major and minor number of a device file.
fn numbers(device: &str) -> Option<(u32, u32)> {
    let stat = rustix::fs::stat(device).ok()?;
    Some((rustix::fs::major(stat.st_rdev), rustix::fs::minor(stat.st_rdev)))
}

fn name_of(partitions: &str, numbers: (u32, u32)) -> Option<String> {
    let mut lines = partitions
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    let line = lines.find(|fields| match fields.as_slice() {
        [major, minor, _, _] => (major.parse(), minor.parse()) == (Ok(numbers.0), Ok(numbers.1)),
        _ => false,
    });
    line.map(|fields| fields[3].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_the_kernels_lists() {
        let mounts = "/dev/sdb1 /srv/node/sdb1 xfs rw 0 0\nproc /srv/node/p proc rw 0 0\n/dev/sdc1 /srv/node-old/c xfs rw 0 0\n/dev/sda1 / ext4 rw 0 0\n";
        let found: Vec<_> = parse_mounts(mounts, Path::new("/srv/node")).collect();
        assert_eq!(found, [("/dev/sdb1".to_owned(), "/srv/node/sdb1".to_owned())]);
        let partitions = "major minor  #blocks  name\n\n   8       17  100 sdb1\n 253  3 100 dm-3\n";
        assert_eq!(name_of(partitions, (8, 17)).as_deref(), Some("sdb1"));
        assert_eq!(name_of(partitions, (8, 18)), None);
    }

    proptest! {
        #[test]
        fn any_list_is_read(text in "\\PC*") {
            let _ = parse_mounts(&text, Path::new("/srv")).count();
            let _ = name_of(&text, (1, 1));
        }
    }
}
