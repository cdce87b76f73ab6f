//! How long a certificate or a list holds.

use rcgen::CertificateParams;
use std::time::Duration;
use world::World;

/// How far clocks may be behind.
pub(super) const CLOCKS_BEHIND: u64 = 3600;
const DAY: u64 = 24 * 3600;

/// From when until when, in seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Validity {
    pub(super) from: u64,
    pub(super) until: u64,
}

impl Validity {
    /// From now on.
    pub(super) fn of_days(world: &World, days: u32) -> Self {
        let now = world.clock.now().seconds();
        Self {
            from: now.saturating_sub(CLOCKS_BEHIND),
            until: now.saturating_add(u64::from(days) * DAY),
        }
    }

    /// Writes it into what is to be signed.
    pub(super) fn set(self, params: &mut CertificateParams) {
        let time = |seconds| rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(seconds);
        (params.not_before, params.not_after) = (time(self.from), time(self.until));
    }
}
