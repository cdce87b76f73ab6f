//! When something is due.
//!
//! Days are counted as AWS counts them: from the second that begins a state of an object, rounded up to the next
//! midnight UTC. Source: AWS, "Lifecycle configuration elements", "How Amazon S3 calculates how long an object has been
//! noncurrent", "Removing expired object delete markers".

use crate::rule::{KnownTags, LifecycleExpiration, LifecycleRule, LifecycleRules, LifecycleSubject};
use vocabulary::Timestamp;

const DAY: u64 = 24 * 60 * 60;

/// How long a day of the rules is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DayLength {
    /// As long as it is, and the time that it leads to is rounded up to a midnight.
    #[default]
    Calendar,
    /// So many seconds, without rounding: to try rules out.
    Seconds(u64),
}

impl DayLength {
    /// The second that is so many days after `since`.
    pub fn after(self, since: Timestamp, days: u32) -> u64 {
        let (since, days) = (since.seconds_ceil(), u64::from(days));
        match self {
            Self::Calendar => (since + days * DAY).next_multiple_of(DAY),
            Self::Seconds(length) => since.saturating_add(days.saturating_mul(length)),
        }
    }
}

/// When a current version expires, and by which rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpiryDue<'a> {
    /// The second since 1970.
    pub at: u64,
    /// The rule's ID.
    pub rule: &'a str,
}

impl LifecycleRule {
    fn expires_at(&self, written: Timestamp, length: DayLength) -> Option<u64> {
        match self.expiration? {
            LifecycleExpiration::Days(days) => Some(length.after(written, days)),
            LifecycleExpiration::Date(at) => Some(at),
            LifecycleExpiration::DeleteMarkers(_) => None,
        }
    }

    fn goes_at(&self, since: Timestamp, newer: u64, length: DayLength) -> Option<u64> {
        let rule = self.noncurrent?;
        let kept = u64::from(rule.newer_versions.unwrap_or(0));
        (newer >= kept).then(|| length.after(since, rule.days))
    }
}

impl LifecycleRules {
    /// When a current version that was written then expires: the earliest of all rules.
    pub fn expiry(
        &self,
        subject: &LifecycleSubject<'_>,
        written: Timestamp,
        length: DayLength,
    ) -> Option<ExpiryDue<'_>> {
        let fitting = self.enabled().filter(|rule| rule.filter.fits(subject));
        let due = fitting.filter_map(|rule| {
            let at = rule.expires_at(written, length)?;
            Some(ExpiryDue { at, rule: &rule.id })
        });
        due.min_by_key(|due| due.at)
    }

    /// Whether a current version that was written then is due now; nothing where its tags decide and are not known.
    pub fn is_expired(
        &self,
        subject: &LifecycleSubject<'_>,
        written: Timestamp,
        now: u64,
        length: DayLength,
    ) -> Option<bool> {
        self.is_due(subject, now, |rule| rule.expires_at(written, length))
    }

    /// The same of an older version since whose successor so much time has gone by, and that has so many newer ones
    /// beside the current.
    pub fn is_noncurrent_due(
        &self,
        subject: &LifecycleSubject<'_>,
        since: Timestamp,
        newer: u64,
        now: u64,
        length: DayLength,
    ) -> Option<bool> {
        self.is_due(subject, now, |rule| rule.goes_at(since, newer, length))
    }

    fn is_due(
        &self,
        subject: &LifecycleSubject<'_>,
        now: u64,
        at: impl Fn(&LifecycleRule) -> Option<u64>,
    ) -> Option<bool> {
        let mut depends_on_tags = false;
        for rule in self.enabled() {
            if !rule.filter.fits_but_for_tags(subject) || at(rule).is_none_or(|at| at > now) {
                continue;
            }
            if rule.filter.fits(subject) {
                return Some(true);
            }
            depends_on_tags |= subject.tags == KnownTags::Unknown;
        }
        (!depends_on_tags).then_some(false)
    }

    /// Whether a delete marker that was left then, and has nothing behind it, is due now.
    pub fn is_marker_due(&self, key: &str, left: Timestamp, now: u64, length: DayLength) -> bool {
        let subject = LifecycleSubject::bare(key);
        let mut fitting = self.enabled().filter(|rule| rule.filter.fits(&subject));
        fitting.any(|rule| match rule.expiration {
            Some(LifecycleExpiration::DeleteMarkers(wanted)) => wanted,
            _ => rule.expires_at(left, length).is_some_and(|at| at <= now),
        })
    }

    /// Whether an upload that was begun then is due now.
    pub fn is_upload_due(&self, key: &str, begun: Timestamp, now: u64, length: DayLength) -> bool {
        let subject = LifecycleSubject::bare(key);
        let mut fitting = self.enabled().filter(|rule| rule.filter.fits(&subject));
        fitting.any(|rule| {
            let days = rule.abort_after_days;
            days.is_some_and(|days| length.after(begun, days) <= now)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::{LifecycleFilter, NoncurrentExpiration};

    /// 2014-01-15 00:00 UTC.
    const MIDNIGHT: u64 = 1_389_744_000;
    const HOUR: u64 = 3600;

    fn rule(id: &str, expiration: LifecycleExpiration) -> LifecycleRule {
        LifecycleRule {
            id: id.into(),
            is_enabled: true,
            expiration: Some(expiration),
            ..LifecycleRule::default()
        }
    }

    fn rules(rules: &[LifecycleRule]) -> LifecycleRules {
        LifecycleRules { rules: rules.to_vec() }
    }

    fn object(key: &str) -> LifecycleSubject<'_> {
        LifecycleSubject {
            size: Some(1),
            tags: KnownTags::Unknown,
            ..LifecycleSubject::bare(key)
        }
    }

    #[test]
    fn days_end_at_midnight() {
        let at = |seconds| Timestamp::from_seconds(seconds);
        // AWS's example: written on 15 January at 10:30, with three days it is due on the 19th.
        assert_eq!(
            DayLength::Calendar.after(at(MIDNIGHT + 10 * HOUR + 1800), 3),
            MIDNIGHT + 4 * DAY
        );
        assert_eq!(DayLength::Calendar.after(at(MIDNIGHT), 1), MIDNIGHT + DAY);
        let later = Timestamp::from_ticks(at(MIDNIGHT).ticks() + 1).unwrap();
        assert_eq!(DayLength::Calendar.after(later, 1), MIDNIGHT + 2 * DAY);
        assert_eq!(DayLength::Seconds(10).after(at(MIDNIGHT), 3), MIDNIGHT + 30);
    }

    #[test]
    fn the_earliest_rule_counts() {
        let mut off = rule("off", LifecycleExpiration::Days(1));
        off.is_enabled = false;
        let mut elsewhere = rule("elsewhere", LifecycleExpiration::Days(1));
        elsewhere.filter.prefix = Some("b".into());
        let all = rules(&[
            off,
            elsewhere,
            rule("late", LifecycleExpiration::Days(5)),
            rule("early", LifecycleExpiration::Date(MIDNIGHT + 3 * DAY)),
            rule("markers", LifecycleExpiration::DeleteMarkers(true)),
        ]);
        let written = Timestamp::from_seconds(MIDNIGHT + 1);
        let due = all.expiry(&object("a"), written, DayLength::Calendar);
        let expected = ExpiryDue {
            at: MIDNIGHT + 3 * DAY,
            rule: "early",
        };
        assert_eq!(due, Some(expected));
        for (now, is_due) in [(MIDNIGHT + 3 * DAY - 1, false), (MIDNIGHT + 3 * DAY, true)] {
            let found = all.is_expired(&object("a"), written, now, DayLength::Calendar);
            assert_eq!(found, Some(is_due));
        }
    }

    #[test]
    fn tags_are_looked_at_only_where_they_decide() {
        let tagged = LifecycleRule {
            filter: LifecycleFilter {
                tags: vec![("k".into(), "v".into())],
                prefix: Some("a/".into()),
                ..LifecycleFilter::default()
            },
            ..rule("tagged", LifecycleExpiration::Days(1))
        };
        let all = rules(&[tagged, rule("plain", LifecycleExpiration::Days(10))]);
        let written = Timestamp::from_seconds(MIDNIGHT);
        let is_expired =
            |subject: &LifecycleSubject<'_>, now| all.is_expired(subject, written, MIDNIGHT + now, DayLength::Calendar);
        assert_eq!(is_expired(&object("a/1"), DAY), None);
        assert_eq!(is_expired(&object("b/1"), DAY), Some(false));
        assert_eq!(is_expired(&object("a/1"), DAY - 1), Some(false));
        assert_eq!(is_expired(&object("a/1"), 10 * DAY), Some(true));
        let tags = [("k".to_owned(), "v".to_owned())];
        let known = |tags| LifecycleSubject {
            tags: KnownTags::These(tags),
            ..object("a/1")
        };
        assert_eq!(is_expired(&known(&tags), DAY), Some(true));
        assert_eq!(is_expired(&known(&[]), DAY), Some(false));
    }

    #[test]
    fn newer_versions_keep_older_ones() {
        let old = LifecycleRule {
            noncurrent: Some(NoncurrentExpiration {
                days: 2,
                newer_versions: Some(1),
            }),
            is_enabled: true,
            ..LifecycleRule::default()
        };
        let all = rules(&[old]);
        let since = Timestamp::from_seconds(MIDNIGHT);
        let is_due =
            |newer, now| all.is_noncurrent_due(&object("a"), since, newer, MIDNIGHT + now, DayLength::Calendar);
        assert_eq!(is_due(0, 9 * DAY), Some(false));
        assert_eq!(is_due(1, 2 * DAY - 1), Some(false));
        assert_eq!(is_due(1, 2 * DAY), Some(true));
    }

    #[test]
    fn markers_and_uploads_have_neither_size_nor_tags() {
        let left = Timestamp::from_seconds(MIDNIGHT);
        let is_due = |rule: &LifecycleRule, now| {
            rules(std::slice::from_ref(rule)).is_marker_due("a", left, MIDNIGHT + now, DayLength::Calendar)
        };
        assert!(is_due(&rule("m", LifecycleExpiration::DeleteMarkers(true)), 0));
        assert!(!is_due(&rule("m", LifecycleExpiration::DeleteMarkers(false)), 9 * DAY));
        let mut days = rule("d", LifecycleExpiration::Days(1));
        assert!(!is_due(&days, DAY - 1) && is_due(&days, DAY));
        days.filter.larger_than = Some(0);
        assert!(!is_due(&days, DAY));
        days.filter = LifecycleFilter::default();
        days.filter.tags = vec![("k".into(), "v".into())];
        assert!(!is_due(&days, DAY));
        let upload = LifecycleRule {
            abort_after_days: Some(1),
            expiration: None,
            filter: LifecycleFilter::default(),
            ..days
        };
        let aborts = rules(&[upload]);
        assert!(!aborts.is_upload_due("a", left, MIDNIGHT + DAY - 1, DayLength::Calendar));
        assert!(aborts.is_upload_due("a", left, MIDNIGHT + DAY, DayLength::Calendar));
    }
}
