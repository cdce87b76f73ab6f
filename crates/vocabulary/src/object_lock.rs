//! Object lock (S3): the retention and the legal hold of a stored object, and whether it may go or change.
//!
//! Both are items of the object's transient system metadata, each with the moment at which it was set, so that a POST
//! can change them, replication carries them, and two that meet merge to one:
//!
//! ```text
//! X-Object-Transient-Sysmeta-S3api-Retention   GOVERNANCE;1800000000;1795187419.55300   mode; end in seconds; set at
//!                                              NONE;0;1795187420.00000                  taken away
//! X-Object-Transient-Sysmeta-S3api-Legal-Hold  ON;1795187419.55300
//! X-Container-Sysmeta-S3api-Object-Lock        Enabled[;GOVERNANCE;30D]                 of a bucket, its default
//! ```
//! Always holds: merging is commutative and idempotent, the item that was set last wins, but none wins over a
//! COMPLIANCE retention that lasts longer; what cannot be read holds the object until a legal hold is taken away anew.
//! Deliberately absent: clocks (the caller says what time it is), who may bypass what.
//! Rules: AWS, "Locking objects with Object Lock". Page: `docs/operating/s3.md`.

use crate::Timestamp;
use crate::calendar;
use std::fmt;
use std::str::FromStr;

/// The retention among an object's metadata, as it is spelled there.
pub const RETENTION: &str = "X-Object-Transient-Sysmeta-S3api-Retention";
/// The legal hold.
pub const LEGAL_HOLD: &str = "X-Object-Transient-Sysmeta-S3api-Legal-Hold";
/// The lock of a bucket among its container's system metadata, without their prefix.
pub const BUCKET_LOCK: &str = "s3api-object-lock";

/// The longest default retention, in days (AWS); a hundred years.
pub const MOST_DAYS: u32 = 36_500;
/// The same in years.
pub const MOST_YEARS: u32 = 100;
const SECONDS_PER_DAY: u64 = 86_400;
const ENABLED: &str = "Enabled";

/// Which users may end a retention before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetentionMode {
    /// Those who may bypass it.
    Governance,
    /// None.
    Compliance,
}

impl RetentionMode {
    /// As S3 and the metadata spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Governance => "GOVERNANCE",
            Self::Compliance => "COMPLIANCE",
        }
    }

    /// From S3's spelling; `None` of anything else.
    pub fn read(text: &str) -> Option<Self> {
        [Self::Governance, Self::Compliance]
            .into_iter()
            .find(|mode| mode.name() == text)
    }
}

/// Until when an object stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Which users may end it before.
    pub mode: RetentionMode,
    /// Its first second without it, since 1970.
    pub until: u64,
}

/// An item and when it was set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetAt<T> {
    /// What was set.
    pub value: T,
    /// When.
    pub at: Timestamp,
}

/// What keeps an object: nothing, a retention, a legal hold, or both.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ObjectLock {
    /// The retention; `None` inside where one was taken away.
    pub retention: Option<SetAt<Option<Retention>>>,
    /// Whether it is under legal hold.
    pub hold: Option<SetAt<bool>>,
}

/// Holds what cannot be read.
const UNREADABLE: SetAt<bool> = SetAt {
    value: true,
    at: Timestamp::ZERO,
};

impl ObjectLock {
    /// From the values of [`RETENTION`] and [`LEGAL_HOLD`].
    pub fn read(retention: Option<&[u8]>, hold: Option<&[u8]>) -> Self {
        let text = |value| std::str::from_utf8(value).unwrap_or_default();
        let read_hold = hold.map(|value| parse_hold(text(value)).unwrap_or(UNREADABLE));
        match retention.map(|value| parse_retention(text(value))) {
            None => Self {
                retention: None,
                hold: read_hold,
            },
            Some(Some(retention)) => Self {
                retention: Some(retention),
                hold: read_hold,
            },
            Some(None) => Self {
                retention: None,
                hold: read_hold.or(Some(UNREADABLE)),
            },
        }
    }

    /// A retention alone, or that there is none any more.
    pub fn of_retention(value: Option<Retention>, at: Timestamp) -> Self {
        Self {
            retention: Some(SetAt { value, at }),
            hold: None,
        }
    }

    /// A legal hold alone, or its end.
    pub fn of_hold(value: bool, at: Timestamp) -> Self {
        Self {
            retention: None,
            hold: Some(SetAt { value, at }),
        }
    }

    /// Nothing was ever set.
    pub fn is_empty(&self) -> bool {
        self.retention.is_none() && self.hold.is_none()
    }

    /// What both together amount to.
    #[must_use]
    pub fn merged(self, other: Self) -> Self {
        let newest_hold = |a: SetAt<bool>, b: SetAt<bool>| match (a.at, a.value) >= (b.at, b.value) {
            true => a,
            false => b,
        };
        Self {
            retention: either(self.retention, other.retention, merged_retention),
            hold: either(self.hold, other.hold, newest_hold),
        }
    }

    /// The same, set later than what it is to take the place of: the clock by which that was set may be ahead.
    #[must_use]
    pub fn after(self, before: &Self) -> Self {
        fn later<T>(item: SetAt<T>, before: Option<Timestamp>) -> SetAt<T> {
            let at = before.map_or(item.at, |before| item.at.max(before.next_tick()));
            SetAt { at, ..item }
        }
        Self {
            retention: self
                .retention
                .map(|item| later(item, before.retention.map(|item| item.at))),
            hold: self.hold.map(|item| later(item, before.hold.map(|item| item.at))),
        }
    }

    /// The retention that has not ended at `now`.
    pub fn active(&self, now: Timestamp) -> Option<Retention> {
        let retention = self.retention.and_then(|set| set.value);
        retention.filter(|retention| now.seconds() < retention.until)
    }

    /// Whether it is under legal hold.
    pub fn has_hold(&self) -> bool {
        self.hold.is_some_and(|hold| hold.value)
    }

    /// Whether the object must stay as it is at `now`. One who may bypass a GOVERNANCE retention, and says so, is not
    /// held up by one.
    pub fn is_held(&self, now: Timestamp, bypasses: bool) -> bool {
        let is_retained = |retention: Retention| retention.mode == RetentionMode::Compliance || !bypasses;
        self.has_hold() || self.active(now).is_some_and(is_retained)
    }

    /// Whether the object must stay whatever is asked for, so that no server can have deleted it rightly.
    pub fn is_in_compliance(&self, now: Timestamp) -> bool {
        self.active(now)
            .is_some_and(|retention| retention.mode == RetentionMode::Compliance)
    }

    /// Whether a client may set what `new` says. A COMPLIANCE retention can only become a longer one; a GOVERNANCE
    /// retention anything by those who may bypass it, and a longer one by others.
    pub fn may_become(&self, new: &Self, now: Timestamp, bypasses: bool) -> bool {
        let (Some(old), Some(new)) = (self.active(now), new.retention) else {
            return true;
        };
        let is_longer = |mode| new.value.is_some_and(|new| new.mode == mode && new.until >= old.until);
        is_longer(old.mode) || (old.mode == RetentionMode::Governance && bypasses)
    }

    /// The value of [`RETENTION`].
    pub fn stored_retention(&self) -> Option<String> {
        let SetAt { value, at } = self.retention?;
        Some(match value {
            Some(Retention { mode, until }) => format!("{};{until};{}", mode.name(), at.internal()),
            None => format!("NONE;0;{}", at.internal()),
        })
    }

    /// The value of [`LEGAL_HOLD`].
    pub fn stored_hold(&self) -> Option<String> {
        let SetAt { value, at } = self.hold?;
        Some(format!("{};{}", if value { "ON" } else { "OFF" }, at.internal()))
    }
}

fn either<T>(a: Option<T>, b: Option<T>, merge: impl FnOnce(T, T) -> T) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(merge(a, b)),
        (a, b) => a.or(b),
    }
}

/// The one set last; of two set at once the longer.
fn merged_retention(a: SetAt<Option<Retention>>, b: SetAt<Option<Retention>>) -> SetAt<Option<Retention>> {
    let rank = |set: &SetAt<Option<Retention>>| {
        let strength = |retention: Retention| (retention.until, retention.mode == RetentionMode::Compliance);
        set.value.map(strength).unwrap_or_default()
    };
    let (newer, older) = match (a.at, rank(&a)) >= (b.at, rank(&b)) {
        true => (a, b),
        false => (b, a),
    };
    let outlasts = |old: Retention| old.mode == RetentionMode::Compliance && rank(&older) > rank(&newer);
    match older.value.is_some_and(outlasts) {
        true => older,
        false => newer,
    }
}

fn parse_retention(text: &str) -> Option<SetAt<Option<Retention>>> {
    let mut parts = text.split(';');
    let (mode, until, at) = (parts.next()?, parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    if parts.next().is_some() {
        return None;
    }
    let value = match mode {
        "NONE" => None,
        mode => Some(Retention {
            mode: RetentionMode::read(mode)?,
            until,
        }),
    };
    Some(SetAt { value, at })
}

fn parse_hold(text: &str) -> Option<SetAt<bool>> {
    let (value, at) = text.split_once(';')?;
    let value = match value {
        "ON" => true,
        "OFF" => false,
        _ => return None,
    };
    Some(SetAt {
        value,
        at: at.parse().ok()?,
    })
}

/// How long a new object is retained where its client says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetentionPeriod {
    /// So many times 24 hours.
    Days(u32),
    /// To the same day of a later year.
    Years(u32),
}

/// The retention that new objects of a bucket get by themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DefaultRetention {
    /// Which users may end it before.
    pub mode: RetentionMode,
    /// How long it is.
    pub period: RetentionPeriod,
}

impl DefaultRetention {
    /// That of an object written at `now`.
    pub fn from(&self, now: Timestamp) -> Retention {
        let began = now.seconds_ceil();
        let until = match self.period {
            RetentionPeriod::Days(days) => began + u64::from(days) * SECONDS_PER_DAY,
            RetentionPeriod::Years(years) => years_later(began, years),
        };
        Retention { mode: self.mode, until }
    }
}

/// The same time of the day in a later year; of 29 February the day after where the year has none.
fn years_later(began: u64, years: u32) -> u64 {
    let text = calendar::iso(began, 'T');
    let (year, rest) = text.split_at(4);
    let year = year.parse::<u32>().unwrap_or(1970) + years;
    let at = |rest: &str| {
        let text = format!("{year:04}{rest}");
        calendar::parse_iso(&text, calendar::LAST_SECOND).map(|(seconds, _)| seconds)
    };
    let found = at(rest).or_else(|| at(&rest.replacen("-02-29", "-03-01", 1)));
    found.unwrap_or(u64::MAX)
}

/// A bucket whose objects can be locked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BucketLock {
    /// What new objects get.
    pub default: Option<DefaultRetention>,
}

/// It is not the lock of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoBucketLock;

impl FromStr for BucketLock {
    type Err = NoBucketLock;

    fn from_str(text: &str) -> Result<Self, NoBucketLock> {
        let mut parts = text.split(';');
        if parts.next() != Some(ENABLED) {
            return Err(NoBucketLock);
        }
        let default = match (parts.next(), parts.next(), parts.next()) {
            (None, ..) => None,
            (Some(mode), Some(period), None) => Some(DefaultRetention {
                mode: RetentionMode::read(mode).ok_or(NoBucketLock)?,
                period: parse_period(period).ok_or(NoBucketLock)?,
            }),
            _ => return Err(NoBucketLock),
        };
        Ok(Self { default })
    }
}

fn parse_period(text: &str) -> Option<RetentionPeriod> {
    let number = |text: &str, most| text.parse().ok().filter(|number| (1..=most).contains(number));
    match (text.strip_suffix('D'), text.strip_suffix('Y')) {
        (Some(days), _) => number(days, MOST_DAYS).map(RetentionPeriod::Days),
        (_, Some(years)) => number(years, MOST_YEARS).map(RetentionPeriod::Years),
        _ => None,
    }
}

impl fmt::Display for BucketLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(ENABLED)?;
        match self.default {
            None => Ok(()),
            Some(DefaultRetention { mode, period }) => match period {
                RetentionPeriod::Days(days) => write!(f, ";{};{days}D", mode.name()),
                RetentionPeriod::Years(years) => write!(f, ";{};{years}Y", mode.name()),
            },
        }
    }
}

/// The bucket whose objects a container keeps: the bucket itself, or one that has its versions (`\0versions\0b`), the
/// parts of its uploads (`b+segments`), or versions of these.
pub fn bucket_of(container: &str) -> &str {
    let versions = container
        .strip_prefix(crate::names::RESERVED)
        .and_then(|rest| rest.strip_prefix("versions"))
        .and_then(|rest| rest.strip_prefix(crate::names::RESERVED));
    let shown = versions.unwrap_or(container);
    shown.strip_suffix("+segments").unwrap_or(shown)
}

#[cfg(test)]
mod tests;
