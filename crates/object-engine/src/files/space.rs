//! The reserve: room that clients may not use up, so that upkeep and databases can still breathe.
//!
//! Asking the file system on each write would cost a call each; the answer is kept for a moment and
//! what was promised since is subtracted, so that the reserve is missed by little at worst.

use durable_fs::Reserve;
use parking_lot::Mutex;
use std::time::Duration;
use world::files::Space;

const KEPT_FOR: Duration = Duration::from_millis(200);

pub(crate) struct SpaceGuard {
    reserve: Reserve,
    known: Mutex<Option<KnownSpace>>,
}

struct KnownSpace {
    asked: Duration,
    space: Space,
    promised: u64,
}

impl SpaceGuard {
    pub(crate) fn new(reserve: Reserve) -> Self {
        let known = Mutex::new(None);
        Self { reserve, known }
    }

    /// Refuses when `size` more bytes would not leave the reserve alone.
    pub(crate) fn admit(
        &self,
        size: u64,
        now: Duration,
        ask: impl FnOnce() -> std::io::Result<Space>,
    ) -> Result<(), SpaceError> {
        if self.reserve.is_off() {
            return Ok(());
        }
        let mut known = self.known.lock();
        let fresh = known
            .as_ref()
            .is_some_and(|known| now.saturating_sub(known.asked) < KEPT_FOR);
        if !fresh {
            let (asked, space, promised) = (now, ask()?, 0);
            *known = Some(KnownSpace { asked, space, promised });
        }
        let Some(known) = known.as_mut() else { return Ok(()) };
        let left = known
            .space
            .available
            .saturating_sub(known.promised)
            .saturating_sub(size);
        let total = known.space.total;
        if self.reserve.is_short(left, total) {
            return Err(match self.reserve {
                Reserve::Bytes(reserve) => SpaceError::ShortOfBytes { left, reserve },
                Reserve::Percent(percent) => SpaceError::ShortOfPercent { left, total, percent },
            });
        }
        known.promised += size;
        Ok(())
    }
}

/// Why bytes are not admitted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SpaceError {
    /// The reserve would be touched.
    #[error("{left} bytes would be left of a reserve of {reserve}")]
    ShortOfBytes { left: u64, reserve: u64 },
    /// The reserve would be touched.
    #[error("{left} of {total} bytes would be left of a reserve of {percent} %")]
    ShortOfPercent { left: u64, total: u64, percent: f64 },
    /// The file system does not say how much room there is.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISK: Space = Space {
        total: 1000,
        available: 100,
        files: 0,
        free_files: 0,
    };

    fn admit(guard: &SpaceGuard, size: u64, millis: u64) -> bool {
        guard.admit(size, Duration::from_millis(millis), || Ok(DISK)).is_ok()
    }

    #[test]
    fn the_reserve_stays_untouched() {
        let percent = SpaceGuard::new(Reserve::Percent(1.0));
        assert!(admit(&percent, 80, 0));
        assert!(!admit(&percent, 10, 1), "promises count");
        assert!(admit(&percent, 9, 1));
        assert!(admit(&percent, 80, 300), "asked again");
        let bytes = SpaceGuard::new(Reserve::Bytes(99));
        assert!(admit(&bytes, 0, 0));
        assert!(!admit(&bytes, 1, 0));
        assert!(admit(&SpaceGuard::new(Reserve::Bytes(0)), 1 << 40, 0));
    }
}
