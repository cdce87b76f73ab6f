//! Which files' bodies were found to match their checksum lately.
//!
//! Hashing 4 KiB on each GET costs more than reading it. A body that was verified is not hashed
//! again while the file is the same: device, inode, change time and size all alike. What this gives
//! up: a drive that spoils bytes below the file system is noticed by a read only after the mark
//! expired (an hour by default) instead of at once; the auditor, which never uses marks, finds it as
//! before. Marks expire, are bounded, die with the process, and can be turned off.
//! Always holds: a file that changed within the last second is never marked, because the change
//! time is too coarse to show a second change in the same tick.

use lru::LruCache;
use parking_lot::Mutex;
use std::num::NonZeroUsize;
use std::time::Duration;
use vocabulary::Timestamp;
use world::files::FileInfo;

const COARSE: u64 = 1;

#[derive(PartialEq, Eq, Hash, Clone, Copy)]
struct BodyIdentity {
    device: u64,
    inode: u64,
    changed: (i64, i64),
    size: u64,
}

pub(crate) struct VerifiedMarks {
    marks: Option<Mutex<LruCache<BodyIdentity, Duration>>>,
    lasting: Duration,
}

fn identity(info: &FileInfo) -> BodyIdentity {
    let FileInfo {
        device,
        inode,
        changed,
        size,
        ..
    } = *info;
    BodyIdentity {
        device,
        inode,
        changed,
        size,
    }
}

/// Whether a change after `now` would show in the change time.
pub(crate) fn is_stable(info: &FileInfo, now: Timestamp) -> bool {
    let changed = u64::try_from(info.changed.0).unwrap_or(u64::MAX);
    changed.saturating_add(COARSE) < now.seconds()
}

impl VerifiedMarks {
    pub(crate) fn new(capacity: usize, lasting: Duration) -> Self {
        let marks = NonZeroUsize::new(capacity).map(|capacity| Mutex::new(LruCache::new(capacity)));
        Self { marks, lasting }
    }

    /// Whether the body was verified since the file last changed; `elapsed` is the world's clock.
    pub(crate) fn holds(&self, info: &FileInfo, elapsed: Duration) -> bool {
        let Some(marks) = &self.marks else { return false };
        let marked = marks.lock().get(&identity(info)).copied();
        marked.is_some_and(|at| elapsed.saturating_sub(at) < self.lasting)
    }

    /// Remembers that the body, read after `info` was taken, matched.
    pub(crate) fn mark(&self, info: &FileInfo, elapsed: Duration, now: Timestamp) {
        if let Some(marks) = &self.marks
            && is_stable(info, now)
        {
            marks.lock().put(identity(info), elapsed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use world::files::FileKind;

    #[test]
    fn a_mark_is_for_one_state_of_one_file_and_one_hour() {
        let marks = VerifiedMarks::new(10, Duration::from_secs(60));
        let (kind, changed, modified) = (FileKind::File, (100, 0), (100, 0));
        let (size, device, inode) = (5, 1, 2);
        let file = FileInfo {
            kind,
            size,
            device,
            inode,
            changed,
            modified,
        };
        let second = Duration::from_secs;
        marks.mark(&file, second(1), Timestamp::from_seconds(101));
        assert!(!marks.holds(&file, second(1)), "changed a moment ago");
        marks.mark(&file, second(1), Timestamp::from_seconds(110));
        assert!(marks.holds(&file, second(60)));
        assert!(!marks.holds(&file, second(61)));
        assert!(!marks.holds(
            &FileInfo {
                changed: (100, 1),
                ..file
            },
            second(2)
        ));
        let off = VerifiedMarks::new(0, second(60));
        off.mark(&file, second(1), Timestamp::from_seconds(110));
        assert!(!off.holds(&file, second(1)));
    }
}
