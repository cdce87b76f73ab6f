//! How much the drives of devices have to do, as the kernel has counted.
//!
//! Always holds: a device whose drive the kernel does not count (tmpfs, a file system over the network) has no figures.

use std::path::Path;
use telemetry::metrics::MetricsPage;
use telemetry::metrics::catalogue::{DEVICE_BUSY, DEVICE_OPERATION_SECONDS, DEVICE_OPERATIONS};
use world::files::{FileSystem, Purpose, read_full_at};

/// The kernel's line of figures is shorter.
const STATISTICS: usize = 1024;

/// What the kernel has counted of a block device since it is there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct DriveWork {
    /// Reads and writes that have ended, and the milliseconds that they took.
    operations: u64,
    milliseconds: u64,
    /// Milliseconds in which there was something to do.
    busy: u64,
}

impl DriveWork {
    /// Of the block device that a file system is on; none where it is on none, such as tmpfs.
    pub(super) fn of(files: &dyn FileSystem, root: &Path) -> Option<Self> {
        let device = files.info(root).ok()?.device;
        let (major, minor) = numbers(device);
        let file = files
            .open(
                Path::new(&format!("/sys/dev/block/{major}:{minor}/stat")),
                Purpose::Read,
            )
            .ok()?;
        let mut bytes = [0; STATISTICS];
        let length = read_full_at(&*file, &mut bytes, 0).ok()?;
        Self::read(std::str::from_utf8(&bytes[..length]).ok()?)
    }

    /// Source: the kernel's Documentation/block/stat.rst: reads, merged, sectors, milliseconds; the same of writes;
    /// under way, milliseconds with something under way.
    fn read(text: &str) -> Option<Self> {
        let fields: Vec<u64> = text
            .split_whitespace()
            .map_while(|field| field.parse().ok())
            .take(10)
            .collect();
        let [reads, _, _, reading, writes, _, _, writing, _, busy] = fields[..] else {
            return None;
        };
        Some(Self {
            operations: reads.saturating_add(writes),
            milliseconds: reading.saturating_add(writing),
            busy,
        })
    }

    pub(super) fn report(self, device: &str, page: &mut MetricsPage) {
        page.whole(&DEVICE_OPERATIONS, &[device], self.operations);
        page.real(&DEVICE_OPERATION_SECONDS, &[device], self.milliseconds as f64 / 1e3);
        page.real(&DEVICE_BUSY, &[device], self.busy as f64 / 1e3);
    }
}

/// Major and minor number, as Linux packs them (makedev(3)).
fn numbers(device: u64) -> (u64, u64) {
    let major = ((device >> 8) & 0xfff) | ((device >> 32) & !0xfff);
    let minor = (device & 0xff) | ((device >> 12) & !0xff);
    (major, minor & 0xffff_ffff)
}

#[cfg(test)]
mod tests {
    use super::{DriveWork, numbers};
    use proptest::prelude::*;

    #[test]
    fn figures_are_those_of_the_kernel() {
        let line = "  26  2  1634  40  300  7  9016  1250  0  980  1290 0 0 0 0 5 6\n";
        let work = DriveWork {
            operations: 326,
            milliseconds: 1290,
            busy: 980,
        };
        assert_eq!(DriveWork::read(line), Some(work));
        assert_eq!(
            (DriveWork::read("1 2 3"), DriveWork::read("1 2 3 4 x 6 7 8 9 10")),
            (None, None)
        );
        // makedev(8, 17) and makedev(259, 300).
        assert_eq!((numbers(0x811), numbers(0x11_032c)), ((8, 17), (259, 300)));
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "[0-9 ]{0,120}") {
            DriveWork::read(&text);
        }
    }
}
