//! When something was written: Swift's timestamps, with their offsets and file-name encodings.
//!
//! A timestamp counts tens of microseconds since 1970 (Swift's precision) and carries an offset
//! that orders rewrites of the same moment. Newest wins everywhere, so ordering is (ticks, offset).
//! Spellings: *normal* `1700000000.12345`, *internal* `1700000000.12345_0000000000000001` (only
//! when the offset is not zero), and in `.meta` names several timestamps joined as hexadecimal
//! deltas. Source: `doc/source/overview_architecture.rst` and observed file names.
//! Always holds: `normal()` is 16 characters, sorts as text like the time sorts, up to the year 2286.

use crate::calendar;
use std::fmt;
use std::str::FromStr;

/// Ticks per second: Swift keeps five decimals.
pub const TICKS_PER_SECOND: u64 = 100_000;
const MAX_TICKS: u64 = 10_000_000_000 * TICKS_PER_SECOND - 1;
/// Of the *normal* spelling.
const NORMAL_LENGTH: usize = 16;
/// Where that has its decimal point.
const POINT: usize = 10;

/// A moment at which something was written; ordered, newest greatest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp {
    ticks: u64,
    offset: u64,
}

/// Why a text is not a timestamp.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a timestamp: expected seconds like 1700000000.12345")]
pub struct TimestampError(pub String);

impl Timestamp {
    /// The beginning of time, which Swift uses for "never".
    pub const ZERO: Timestamp = Timestamp { ticks: 0, offset: 0 };

    /// From tens of microseconds since 1970; refused beyond ten-digit seconds.
    pub fn from_ticks(ticks: u64) -> Result<Self, TimestampError> {
        if ticks > MAX_TICKS {
            return Err(TimestampError(ticks.to_string()));
        }
        Ok(Self { ticks, offset: 0 })
    }

    /// From whole microseconds since 1970, rounded down to Swift's precision and capped at its end.
    pub fn from_micros(micros: u64) -> Self {
        Self {
            ticks: (micros / 10).min(MAX_TICKS),
            offset: 0,
        }
    }

    /// From whole seconds since 1970, capped at the end of Swift's range.
    pub fn from_seconds(seconds: u64) -> Self {
        Self {
            ticks: seconds.saturating_mul(TICKS_PER_SECOND).min(MAX_TICKS),
            offset: 0,
        }
    }

    /// Newer than this one, and older than any other moment.
    pub fn just_after(self) -> Self {
        self.with_offset(self.offset.saturating_add(1))
    }

    /// The same moment, `offset` rewrites later.
    pub fn with_offset(self, offset: u64) -> Self {
        Self { offset, ..self }
    }

    /// Tens of microseconds since 1970.
    pub fn ticks(self) -> u64 {
        self.ticks
    }

    /// The rewrite count of this moment; zero for what clients write.
    pub fn offset(self) -> u64 {
        self.offset
    }

    /// Whole seconds, rounded down.
    pub fn seconds(self) -> u64 {
        self.ticks / TICKS_PER_SECOND
    }

    /// Whole seconds, rounded up: what `Last-Modified` shows, so that it never precedes the write.
    pub fn seconds_ceil(self) -> u64 {
        self.ticks.div_ceil(TICKS_PER_SECOND)
    }

    /// Seconds as a number, for arithmetic that needs no exactness.
    pub fn as_f64(self) -> f64 {
        self.ticks as f64 / TICKS_PER_SECOND as f64
    }

    /// The later of "one tick after `self`" and itself: the smallest timestamp that beats `self`.
    pub fn next_tick(self) -> Self {
        Self {
            ticks: (self.ticks + 1).min(MAX_TICKS),
            offset: 0,
        }
    }

    /// The spelling for clients, `1700000000.12345`: 16 characters, no offset.
    pub fn normal(self) -> String {
        Self { offset: 0, ..self }.internal()
    }

    /// The spelling between servers and in file names: `normal`, then `_` and 16 hexadecimal digits
    /// when the offset is not zero.
    pub fn internal(self) -> String {
        let mut text = String::with_capacity(if self.offset == 0 { 16 } else { 33 });
        // Writing to a String cannot fail.
        let _ = fmt::Write::write_fmt(&mut text, format_args!("{self}"));
        text
    }

    /// `2023-11-14T22:13:20.123450`, the spelling of `last_modified` in listings.
    pub fn iso(self) -> String {
        let mut text = calendar::iso(self.seconds(), 'T');
        let micros = (self.ticks % TICKS_PER_SECOND) * 10;
        // Writing to a String cannot fail.
        let _ = fmt::Write::write_fmt(&mut text, format_args!(".{micros:06}"));
        text
    }

    /// Reads what [`Timestamp::iso`] writes, with up to six decimals.
    pub fn from_iso(text: &str) -> Option<Self> {
        let (seconds, rest) = calendar::parse_iso(text, calendar::LAST_SECOND)?;
        let decimals = rest.strip_prefix('.')?;
        if decimals.is_empty() || decimals.len() > 6 || !decimals.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let micros: u64 = format!("{decimals:0<6}").parse().ok()?;
        Self::from_ticks(seconds * TICKS_PER_SECOND + micros / 10).ok()
    }

    /// `Mon, 14 Nov 2023 22:13:21 GMT` of the second rounded up, for `Last-Modified`.
    pub fn last_modified(self) -> String {
        calendar::http(self.seconds_ceil())
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // No moment has more digits: MAX_TICKS.
        let (mut digits, mut rest) = ([b'.'; NORMAL_LENGTH], self.ticks);
        for at in (0..NORMAL_LENGTH).rev().filter(|at| *at != POINT) {
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        // Digits are ASCII.
        f.write_str(str::from_utf8(&digits).unwrap_or_default())?;
        match self.offset {
            0 => Ok(()),
            offset => write!(f, "_{offset:016x}"),
        }
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Timestamp {
    type Err = TimestampError;

    /// Reads both spellings and any plain decimal number of seconds (`1`, `1700000000.5`), rounding
    /// to five decimals as Swift does.
    fn from_str(text: &str) -> Result<Self, TimestampError> {
        if let Some(ticks) = parse_normal(text) {
            return Ok(Self { ticks, offset: 0 });
        }
        let refuse = || TimestampError(text.chars().take(64).collect());
        let (number, offset) = match text.split_once('_') {
            None => (text, 0),
            Some((number, hex)) => (number, parse_hex(hex).ok_or_else(refuse)?),
        };
        let ticks = parse_decimal(number).ok_or_else(refuse)?;
        Ok(Self { ticks, offset })
    }
}

/// [`parse_decimal`] of what nearly all timestamps look like, without a search for its parts.
fn parse_normal(text: &str) -> Option<u64> {
    let bytes: &[u8; NORMAL_LENGTH] = text.as_bytes().try_into().ok()?;
    let mut ticks = 0;
    for (at, byte) in bytes.iter().enumerate() {
        match (at, byte) {
            (POINT, b'.') => {}
            (POINT, _) => return None,
            (_, b'0'..=b'9') => ticks = ticks * 10 + u64::from(byte - b'0'),
            _ => return None,
        }
    }
    Some(ticks)
}

fn parse_hex(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.len() <= 16 && text.bytes().all(|b| b.is_ascii_hexdigit());
    digits.then(|| u64::from_str_radix(text, 16).ok()).flatten()
}

/// Seconds with up to any number of decimals → ticks, the sixth decimal rounding half up.
fn parse_decimal(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let all_digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty()) || whole.len() > 20 || !all_digits(whole) || !all_digits(fraction) {
        return None;
    }
    let seconds: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let digit = |i: usize| fraction.as_bytes().get(i).map_or(0, |b| u64::from(b - b'0'));
    let part = (0..5).fold(0, |sum, i| sum * 10 + digit(i));
    let ticks = seconds.checked_mul(TICKS_PER_SECOND)?.checked_add(part)? + u64::from(digit(5) >= 5);
    (ticks <= MAX_TICKS).then_some(ticks)
}

/// Several timestamps in one text, as `.meta` names and container rows spell them: the first in
/// internal form, each further one as a signed hexadecimal count of ticks from the one before.
/// Trailing timestamps equal to their predecessor are written as `+0` only when `explicit`.
pub fn encode_series(first: Timestamp, rest: &[Timestamp], explicit: bool) -> String {
    let mut text = first.internal();
    let mut kept = rest;
    if !explicit {
        while kept
            .last()
            .is_some_and(|last| *last == if kept.len() == 1 { first } else { kept[kept.len() - 2] })
        {
            kept = &kept[..kept.len() - 1];
        }
    }
    let mut previous = first;
    for &next in kept {
        let (sign, delta) = match next.ticks >= previous.ticks {
            true => ('+', next.ticks - previous.ticks),
            false => ('-', previous.ticks - next.ticks),
        };
        text.push(sign);
        text.push_str(&format!("{delta:x}"));
        previous = next;
    }
    text
}

/// The inverse of [`encode_series`] for up to three timestamps; missing ones equal their predecessor. One without a
/// difference has its predecessor's offset too, as OpenStack's `decode_timestamps` reads it.
pub fn decode_series(text: &str) -> Result<[Timestamp; 3], TimestampError> {
    let refuse = || TimestampError(text.chars().take(96).collect());
    let mut parts = split_signed(text);
    let first: Timestamp = parts.next().map_or("", |(_, part)| part).parse()?;
    let mut series = [first; 3];
    for slot in 1..4 {
        let Some((sign, part)) = parts.next() else { break };
        if slot == 3 {
            return Err(refuse());
        }
        let delta = parse_hex(part).ok_or_else(refuse)?;
        if delta == 0 {
            continue;
        }
        let base = series[slot - 1].ticks;
        let ticks = if sign == '-' {
            base.checked_sub(delta)
        } else {
            base.checked_add(delta)
        };
        let ticks = ticks.filter(|t| *t <= MAX_TICKS).ok_or_else(refuse)?;
        for later in &mut series[slot..] {
            *later = Timestamp { ticks, offset: 0 };
        }
    }
    Ok(series)
}

fn split_signed(text: &str) -> impl Iterator<Item = (char, &str)> {
    let mut rest = Some(('+', text));
    std::iter::from_fn(move || {
        let (sign, tail) = rest.take()?;
        match tail.find(['+', '-']) {
            Some(at) => {
                rest = Some((char::from(tail.as_bytes()[at]), &tail[at + 1..]));
                Some((sign, &tail[..at]))
            }
            None => Some((sign, tail)),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn spellings() {
        let t: Timestamp = "1700000000.12345".parse().unwrap();
        assert_eq!(t.normal(), "1700000000.12345");
        assert_eq!(t.with_offset(15).internal(), "1700000000.12345_000000000000000f");
        assert_eq!(t.with_offset(15).internal().parse::<Timestamp>().unwrap().offset(), 15);
        assert_eq!("1".parse::<Timestamp>().unwrap().normal(), "0000000001.00000");
        assert_eq!("1.000005".parse::<Timestamp>().unwrap().normal(), "0000000001.00001");
        assert_eq!(t.iso(), "2023-11-14T22:13:20.123450");
        for (text, expected) in [
            ("2023-11-14T22:13:20.12345", Some(t)),
            ("2023-11-14T22:13:20.123456", Some(t)),
            ("2023-11-14T22:13:20", None),
            ("2023-11-14T22:13:20.1234567", None),
            ("2023-02-30T22:13:20.1", None),
            ("2023-11-14T22:13:60.1", None),
        ] {
            assert_eq!(Timestamp::from_iso(text), expected, "{text}");
        }
        assert_eq!(t.last_modified(), "Tue, 14 Nov 2023 22:13:21 GMT");
        for bad in ["", ".", "-1", "nan", "1e3", "1_", "1_xyz", "99999999999", "１"] {
            assert!(bad.parse::<Timestamp>().is_err(), "{bad}");
        }
    }

    #[test]
    fn series_spell_deltas() {
        let at = |ticks| Timestamp::from_ticks(ticks).unwrap();
        let (a, b) = (at(170_000_000_012_345), at(170_000_000_012_300));
        assert_eq!(encode_series(a, &[b], false), "1700000000.12345-2d");
        assert_eq!(encode_series(a, &[a, a], false), "1700000000.12345");
        assert_eq!(encode_series(a, &[a], true), "1700000000.12345+0");
        assert_eq!(decode_series("1700000000.12345-2d").unwrap(), [a, b, b]);
        assert!(decode_series("1700000000.12345-2d+1+1").is_err());
    }

    #[test]
    fn no_difference_keeps_the_offset() {
        let first: Timestamp = "1700000000.12345_2".parse().unwrap();
        let later: Timestamp = "1700000000.12346".parse().unwrap();
        assert_eq!(decode_series("1700000000.12345_2+0+1").unwrap(), [first, first, later]);
        assert_eq!(decode_series("1700000000.12345_2-0").unwrap(), [first; 3]);
        assert_eq!(decode_series("1700000000.12345_2+1+0").unwrap(), [first, later, later]);
    }

    proptest! {
        #[test]
        fn text_and_time_sort_alike(a in 0..=MAX_TICKS, b in 0..=MAX_TICKS) {
            let (x, y) = (Timestamp::from_ticks(a).unwrap(), Timestamp::from_ticks(b).unwrap());
            prop_assert_eq!(x.cmp(&y), x.normal().cmp(&y.normal()));
            prop_assert_eq!(x.internal().parse::<Timestamp>().unwrap(), x);
            prop_assert_eq!(parse_decimal(&x.normal()), Some(x.ticks()));
            prop_assert_eq!(Timestamp::from_iso(&x.iso()), Some(x));
            let series = decode_series(&encode_series(x, &[y, x], false)).unwrap();
            prop_assert_eq!(series, [x, y, x]);
        }

        #[test]
        fn the_short_way_to_read_is_the_long_one(at in 0..NORMAL_LENGTH, other in "[0-9._+ ex１]") {
            let mut text = "1700000000.12345".to_owned();
            text.replace_range(at..=at, &other);
            if let Some(ticks) = parse_normal(&text) {
                prop_assert_eq!(parse_decimal(&text), Some(ticks));
            }
            let spelled_so = text.len() == NORMAL_LENGTH && at != POINT;
            prop_assert_eq!(parse_normal(&text).is_some(), other == "." && at == POINT
                || spelled_so && other.bytes().all(|byte| byte.is_ascii_digit()));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC*") {
            let _ = text.parse::<Timestamp>();
            let _ = decode_series(&text);
            let _ = Timestamp::from_iso(&text);
        }
    }
}
