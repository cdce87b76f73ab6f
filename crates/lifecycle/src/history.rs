//! Which versions of a key are due: its versions come newest first, one after the other.
//!
//! An older version is as old as its successor, so that the walk keeps what it has seen of the key.
//! Always holds: the current version is never taken for an older one; an older version whose successor has not been
//! seen stays; a delete marker goes only where nothing stands behind it.
//! Source: AWS, "Lifecycle rules for versioned buckets".

use crate::due::DayLength;
use crate::rule::{KnownTags, LifecycleRules, LifecycleSubject};
use vocabulary::Timestamp;

/// A version as it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedVersion {
    /// The key.
    pub key: String,
    /// Whether it is what clients see, or the marker that hides the key.
    pub is_latest: bool,
    /// Whether it is a delete marker.
    pub is_marker: bool,
    /// Its bytes.
    pub size: u64,
    /// When it was written, or its metadata were changed last.
    pub changed: Timestamp,
    /// When it took the place of the one before.
    pub became: Timestamp,
}

/// What becomes of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VersionFate {
    /// Nothing.
    Stays,
    /// It is current and due: where versions are kept a delete marker hides it, elsewhere it goes.
    Expires,
    /// The older version goes.
    Goes,
    /// The delete marker goes if nothing stands behind it.
    GoesIfLast,
    /// Its tags decide.
    DependsOnTags,
}

/// What has been seen of the key that is walked over.
#[derive(Debug, Clone, Default)]
pub struct KeyHistory {
    key: String,
    /// When the version came that was seen last.
    successor: Option<Timestamp>,
    /// Older versions that have been seen.
    noncurrent: u64,
}

/// A version among those of its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedVersion {
    /// The version.
    pub version: ListedVersion,
    /// When the next newer one came.
    successor: Option<Timestamp>,
    /// Newer ones beside the current.
    newer: u64,
}

impl KeyHistory {
    /// The version that comes next in the listing, in its place.
    pub fn place(&mut self, version: ListedVersion) -> PlacedVersion {
        if self.key != version.key {
            *self = Self {
                key: version.key.clone(),
                ..Self::default()
            };
        }
        let successor = self.successor.replace(version.became);
        let newer = self.noncurrent;
        self.noncurrent += u64::from(!version.is_latest);
        PlacedVersion {
            version,
            successor,
            newer,
        }
    }
}

impl LifecycleRules {
    /// What becomes of a version now.
    pub fn fate(&self, placed: &PlacedVersion, tags: KnownTags<'_>, now: u64, length: DayLength) -> VersionFate {
        let version = &placed.version;
        let subject = match version.is_marker {
            true => LifecycleSubject::bare(&version.key),
            false => LifecycleSubject {
                key: &version.key,
                size: Some(version.size),
                tags,
            },
        };
        let (is_due, then) = match (version.is_latest, version.is_marker, placed.successor) {
            (true, true, _) => {
                let is_due = self.is_marker_due(&version.key, version.became, now, length);
                (Some(is_due), VersionFate::GoesIfLast)
            }
            (true, false, _) => (
                self.is_expired(&subject, version.changed, now, length),
                VersionFate::Expires,
            ),
            (false, _, Some(since)) => (
                self.is_noncurrent_due(&subject, since, placed.newer, now, length),
                VersionFate::Goes,
            ),
            (false, _, None) => (Some(false), VersionFate::Stays),
        };
        match is_due {
            Some(true) => then,
            Some(false) => VersionFate::Stays,
            None => VersionFate::DependsOnTags,
        }
    }

    /// Of an older version that goes: how many newer ones beside the current must be there for that. A listing may have
    /// some that are gone.
    pub fn newer_wanted(&self, placed: &PlacedVersion, tags: KnownTags<'_>, now: u64, length: DayLength) -> u64 {
        let mut with_fewer = placed.clone();
        let mut fewer = 0..placed.newer;
        let enough = fewer.find(|newer| {
            with_fewer.newer = *newer;
            self.fate(&with_fewer, tags, now, length) == VersionFate::Goes
        });
        enough.unwrap_or(placed.newer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::{LifecycleExpiration, LifecycleFilter, LifecycleRule, NoncurrentExpiration};

    const LENGTH: DayLength = DayLength::Seconds(10);

    /// `KEY TIME`, with `*` behind the current one and `-` before a marker.
    fn listed(text: &str) -> ListedVersion {
        let (key, time) = text.split_once(' ').unwrap();
        let at = Timestamp::from_seconds(time.trim_end_matches('*').parse().unwrap());
        ListedVersion {
            key: key.trim_start_matches('-').into(),
            is_latest: time.ends_with('*'),
            is_marker: key.starts_with('-'),
            size: 5,
            changed: at,
            became: at,
        }
    }

    fn fates(rules: &LifecycleRules, now: u64, listing: &[&str]) -> Vec<VersionFate> {
        let mut history = KeyHistory::default();
        let fates = listing.iter().map(|text| {
            let placed = history.place(listed(text));
            rules.fate(&placed, KnownTags::Unknown, now, LENGTH)
        });
        fates.collect()
    }

    fn rules(expiration: Option<u32>, noncurrent: Option<(u32, u32)>) -> LifecycleRules {
        let rule = LifecycleRule {
            is_enabled: true,
            expiration: expiration.map(LifecycleExpiration::Days),
            noncurrent: noncurrent.map(|(days, kept)| NoncurrentExpiration {
                days,
                newer_versions: Some(kept),
            }),
            ..LifecycleRule::default()
        };
        LifecycleRules { rules: vec![rule] }
    }

    #[test]
    fn older_versions_are_as_old_as_their_successors() {
        use VersionFate::{Expires, Goes, GoesIfLast, Stays};
        let both = rules(Some(3), Some((2, 0)));
        // The first of b became an older version at 100, the last of a at 95, that of c at 99.
        let listing = ["a 100*", "a 95", "a 10", "b 100*", "b 10", "-c 99*", "c 10"];
        let early = [Stays, Stays, Goes, Stays, Stays, Stays, Goes];
        assert_eq!(fates(&both, 119, &listing), early);
        let later = [Stays, Goes, Goes, Stays, Goes, Stays, Goes];
        assert_eq!(fates(&both, 120, &listing), later);
        let last = [Expires, Goes, Goes, Expires, Goes, GoesIfLast, Goes];
        assert_eq!(fates(&both, 130, &listing), last);
    }

    #[test]
    fn some_older_versions_are_kept() {
        use VersionFate::{Goes, Stays};
        let kept = rules(None, Some((1, 2)));
        let listing = ["a 50*", "a 40", "-a 30", "a 20", "a 10", "b 9", "b 8"];
        let expected = [Stays, Stays, Stays, Goes, Goes, Stays, Stays];
        assert_eq!(fates(&kept, 1000, &listing), expected);
    }

    #[test]
    fn no_more_newer_versions_are_wanted_than_a_rule_keeps() {
        let mut history = KeyHistory::default();
        let listing = ["a 50*", "a 40", "a 30", "a 20", "a 10"];
        let placed = listing.map(|text| history.place(listed(text)));
        let wanted = |rules: &LifecycleRules| rules.newer_wanted(&placed[4], KnownTags::Unknown, 1000, LENGTH);
        assert_eq!(wanted(&rules(None, Some((1, 2)))), 2);
        assert_eq!(wanted(&rules(None, Some((1, 0)))), 0);
        let mut two = rules(None, Some((1, 3)));
        two.rules.extend(rules(None, Some((1, 1))).rules);
        assert_eq!(wanted(&two), 1);
        // That rule is not due yet.
        two.rules[1].noncurrent = Some(NoncurrentExpiration {
            days: 1000,
            newer_versions: Some(1),
        });
        assert_eq!(wanted(&two), 3);
    }

    #[test]
    fn tags_decide_about_older_versions_too() {
        let mut tagged = rules(None, Some((1, 0)));
        tagged.rules[0].filter = LifecycleFilter {
            tags: vec![("k".into(), "v".into())],
            ..LifecycleFilter::default()
        };
        use VersionFate::{DependsOnTags, Stays};
        assert_eq!(
            fates(&tagged, 1000, &["a 50*", "a 40", "-a 30"]),
            [Stays, DependsOnTags, Stays]
        );
        let mut history = KeyHistory::default();
        history.place(listed("a 50*"));
        let placed = history.place(listed("a 40"));
        let tags = [("k".to_owned(), "v".to_owned())];
        let fate = tagged.fate(&placed, KnownTags::These(&tags), 1000, LENGTH);
        assert_eq!(fate, VersionFate::Goes);
    }
}
