//! Buckets whose versions are not asked for again at once: each question may cost a time-out.
//!
//! Always holds: those of long ago are forgotten when another is noted.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::Duration;

const FOR: Duration = Duration::from_secs(60);

/// Buckets whose versions some server did not list a moment ago, and until when that counts.
#[derive(Default)]
pub(super) struct UnlistedBuckets(Mutex<HashMap<String, Duration>>);

impl UnlistedBuckets {
    /// Whether that counts now.
    pub(super) fn has(&self, bucket: &str, now: Duration) -> bool {
        self.0.lock().get(bucket).is_some_and(|until| *until > now)
    }

    /// One did not.
    pub(super) fn note(&self, bucket: String, now: Duration) {
        let mut known = self.0.lock();
        known.retain(|_, until| *until > now);
        known.insert(bucket, now.saturating_add(FOR));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_left_alone_for_a_minute() {
        let (buckets, at) = (UnlistedBuckets::default(), Duration::from_secs);
        buckets.note("/a/b".into(), at(5));
        assert!(buckets.has("/a/b", at(64)) && !buckets.has("/a/b", at(65)) && !buckets.has("/a/c", at(5)));
        buckets.note("/a/c".into(), at(70));
        assert_eq!(buckets.0.lock().len(), 1);
    }
}
