//! Limits of block devices by control groups: bytes and operations a second, of reads and of writes.
//!
//! With version 2 the controller is `io`, with version 1 `blkio`. What a process writes is counted when it syncs (or
//! writes past the page cache); the journal of a file system is written by the kernel and is not limited.
//! Always holds: a device that is not named has no limit; what was used is said in seconds at the limit, so that a
//! second of them in a second is a device that is busy.

use super::GroupVersion;
use crate::model::cluster::DrivePower;

/// Files that must be there for drives to be limited, by version.
pub fn needed_file(version: GroupVersion) -> &'static str {
    match version {
        GroupVersion::One => "blkio.throttle.read_bps_device",
        GroupVersion::Two => "io.max",
    }
}

/// What is written into which file for a device (`7:0`); none lifts its limits.
pub fn limit_files(version: GroupVersion, device: &str, drive: Option<DrivePower>) -> Vec<(&'static str, String)> {
    let [transfer, operations] = match drive {
        Some(drive) => [drive.transfer, drive.operations].map(|one| Some(one.round().max(1.0))),
        None => [None, None],
    };
    match version {
        GroupVersion::Two => {
            let shown = |limit: Option<f64>| limit.map_or("max".to_owned(), |limit| limit.to_string());
            let (bytes, operations) = (shown(transfer), shown(operations));
            let text = format!("{device} rbps={bytes} wbps={bytes} riops={operations} wiops={operations}");
            vec![("io.max", text)]
        }
        GroupVersion::One => {
            // 0 is no limit there.
            let line = |limit: Option<f64>| format!("{device} {}", limit.unwrap_or(0.0));
            vec![
                ("blkio.throttle.read_bps_device", line(transfer)),
                ("blkio.throttle.write_bps_device", line(transfer)),
                ("blkio.throttle.read_iops_device", line(operations)),
                ("blkio.throttle.write_iops_device", line(operations)),
            ]
        }
    }
}

/// Files that say what a group has used.
pub fn use_files(version: GroupVersion) -> &'static [&'static str] {
    match version {
        GroupVersion::One => &["blkio.throttle.io_service_bytes", "blkio.throttle.io_serviced"],
        GroupVersion::Two => &["io.stat"],
    }
}

/// What a device has done until now, from the texts of [`use_files`]. A device that they do not name was not used.
pub fn used(version: GroupVersion, device: &str, texts: &[String]) -> LimitedDriveWork {
    let lines = |text: &str| -> Vec<Vec<String>> {
        let words = text
            .lines()
            .map(|line| line.split_whitespace().map(str::to_owned).collect());
        words
            .filter(|words: &Vec<String>| words.first().is_some_and(|one| one == device))
            .collect()
    };
    let [read, written, reads, writes] = match version {
        GroupVersion::One => {
            let number = |file: usize, kind: &str| {
                let lines = texts.get(file).map_or(vec![], |text| lines(text));
                let found = lines.iter().find(|words| words.get(1).is_some_and(|one| one == kind));
                found.and_then(|words| words.get(2)?.parse().ok()).unwrap_or(0.0)
            };
            [
                number(0, "Read"),
                number(0, "Write"),
                number(1, "Read"),
                number(1, "Write"),
            ]
        }
        GroupVersion::Two => {
            let words = texts.first().map_or(vec![], |text| lines(text)).concat();
            ["rbytes=", "wbytes=", "rios=", "wios="].map(|key| {
                let found = words.iter().find_map(|word| word.strip_prefix(key)?.parse().ok());
                found.unwrap_or(0.0)
            })
        }
    };
    LimitedDriveWork {
        read,
        written,
        reads,
        writes,
    }
}

/// Bytes and operations of drives until now, or in a second.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LimitedDriveWork {
    /// Bytes that were read.
    pub read: f64,
    /// Bytes that were written.
    pub written: f64,
    /// Operations that read.
    pub reads: f64,
    /// Operations that wrote.
    pub writes: f64,
}

impl LimitedDriveWork {
    /// Each figure of both, put together.
    pub fn with(self, other: Self, put: impl Fn(f64, f64) -> f64) -> Self {
        Self {
            read: put(self.read, other.read),
            written: put(self.written, other.written),
            reads: put(self.reads, other.reads),
            writes: put(self.writes, other.writes),
        }
    }
}

/// Seconds that a drive would take at its limits for what it did: of bytes and operations, of reads and writes. A
/// control group bounds each of them by itself.
pub fn at_limits(work: LimitedDriveWork, drive: DrivePower) -> [f64; 4] {
    [
        work.read / drive.transfer,
        work.written / drive.transfer,
        work.reads / drive.operations,
        work.writes / drive.operations,
    ]
}

#[cfg(test)]
mod tests {
    use super::{LimitedDriveWork, at_limits, limit_files, used};
    use crate::measure::limits::GroupVersion;
    use crate::model::cluster::DrivePower;

    const DRIVE: DrivePower = DrivePower {
        transfer: 5e6,
        operations: 100.0,
    };

    #[test]
    fn a_device_is_limited_and_freed() {
        let two = |drive| limit_files(GroupVersion::Two, "7:1", drive)[0].1.clone();
        assert_eq!(two(Some(DRIVE)), "7:1 rbps=5000000 wbps=5000000 riops=100 wiops=100");
        assert_eq!(two(None), "7:1 rbps=max wbps=max riops=max wiops=max");
        let one = limit_files(GroupVersion::One, "7:1", Some(DRIVE));
        assert_eq!(one[1], ("blkio.throttle.write_bps_device", "7:1 5000000".to_owned()));
        assert_eq!(one[2], ("blkio.throttle.read_iops_device", "7:1 100".to_owned()));
        assert_eq!(limit_files(GroupVersion::One, "7:1", None)[3].1, "7:1 0");
    }

    #[test]
    fn what_was_used_is_read_of_both_versions() {
        let one = |number: u32| format!("7:0 Read 9\n7:1 Read {number}\n7:1 Write 7\n7:1 Sync 1\nTotal 3\n");
        let texts = [one(5_000_000), one(50)];
        let work = LimitedDriveWork {
            read: 5e6,
            written: 7.0,
            reads: 50.0,
            writes: 7.0,
        };
        assert_eq!(used(GroupVersion::One, "7:1", &texts), work);
        let two = "7:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0\n7:1 rbytes=5000000 wbytes=7 rios=50 wios=7\n";
        let found = used(GroupVersion::Two, "7:1", &[two.to_owned()]);
        assert_eq!(found, work);
        assert_eq!(at_limits(found, DRIVE)[2], 0.5);
        let nothing = LimitedDriveWork::default();
        assert_eq!(used(GroupVersion::Two, "7:9", &[two.to_owned()]), nothing);
        assert_eq!(used(GroupVersion::One, "7:9", &[]), nothing);
    }
}
