//! The calendar: seconds since 1970 as dates and times in UTC, in the forms that Swift writes and reads.
//!
//! | form | where |
//! |---|---|
//! | `Tue, 14 Nov 2023 22:13:21 GMT` | headers, written; two older forms and what Python reads beside them, read |
//! | `2023-11-14T22:13:21` | listings, manifests, tokens, signed addresses, logs |
//!
//! The arithmetic is `jiff`'s; the fixed-width texts are filled in here, because every reply has two of them.
//! Always holds: what is written here is read back as the same second; a date that does not exist, such as
//! 30 February, is refused as OpenStack refuses it. No clock is asked.

pub use jiff::civil::DateTime;
use jiff::civil::{Date, Time};
use jiff::tz::Offset;

/// The months in English; the first three letters are their short names.
pub const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
/// The days of the week in English, from Sunday; the first three letters are their short names.
pub const WEEKDAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];
/// The last second of a minute, where a time must exist.
pub const LAST_SECOND: u8 = 59;
/// The last second that Python's `strptime` reads by itself: two leap seconds.
pub const LAST_LEAP_SECOND: u8 = 61;

/// The first three letters of a month or a day.
pub fn short(name: &'static str) -> &'static str {
    name.get(..3).unwrap_or(name)
}

/// The month's name.
pub fn month_name(time: DateTime) -> &'static str {
    MONTHS[time.month().unsigned_abs() as usize - 1]
}

/// The name of the day of the week.
pub fn weekday_name(time: DateTime) -> &'static str {
    WEEKDAYS[time.weekday().to_sunday_zero_offset().unsigned_abs() as usize]
}

/// Seconds since 1970 as date and time in UTC. Behind the calendar's end, in December 9999, is its last second.
pub fn utc(seconds: u64) -> DateTime {
    let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
    let time = jiff::Timestamp::from_second(seconds).unwrap_or(jiff::Timestamp::MAX);
    Offset::UTC.to_datetime(time)
}

/// Seconds since 1970 of a date and time in UTC; `None` before.
pub fn since_1970(time: DateTime) -> Option<u64> {
    let seconds = time
        .duration_since(DateTime::constant(1970, 1, 1, 0, 0, 0, 0))
        .as_secs();
    u64::try_from(seconds).ok()
}

/// Seconds since 1970 of a year, month and day, and an hour, minute and second, in UTC; `None` before, and where
/// there is no such time.
pub fn seconds_of(date: [u16; 3], clock: [u8; 3]) -> Option<u64> {
    since_1970(existing(date, clock)?)
}

/// The date and time of these numbers; `None` where there is none.
fn existing(date: [u16; 3], clock: [u8; 3]) -> Option<DateTime> {
    let small = |number: u16| i8::try_from(number).ok();
    let date = Date::new(i16::try_from(date[0]).ok()?, small(date[1])?, small(date[2])?).ok()?;
    let [hour, minute, second] = clock.map(u16::from).map(small);
    Some(DateTime::from_parts(date, Time::new(hour?, minute?, second?, 0).ok()?))
}

/// Up to `most` digits, and at least one.
fn number(text: &str, most: usize) -> Option<u16> {
    let is_number = (1..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

/// Writes a number into its digits, with zeros in front.
fn put(digits: &mut [u8], number: i16) {
    let mut rest = number.unsigned_abs();
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
}

/// `Tue, 14 Nov 2023 22:13:21 GMT`: seconds since 1970 in the form that every HTTP/1.1 sender writes.
pub fn http(seconds: u64) -> String {
    let time = utc(seconds);
    let mut text = *b"Thu, 01 Jan 1970 00:00:00 GMT";
    text[..3].copy_from_slice(short(weekday_name(time)).as_bytes());
    put(&mut text[5..7], time.day().into());
    text[8..11].copy_from_slice(short(month_name(time)).as_bytes());
    put(&mut text[12..16], time.year());
    put(&mut text[17..19], time.hour().into());
    put(&mut text[20..22], time.minute().into());
    put(&mut text[23..25], time.second().into());
    String::from_utf8_lossy(&text).into_owned()
}

/// `2023-11-14T22:13:21`, seconds since 1970, with `separator` between date and time.
pub fn iso(seconds: u64, separator: char) -> String {
    let time = utc(seconds);
    let mut text = *b"1970-01-01 00:00:00";
    put(&mut text[..4], time.year());
    put(&mut text[5..7], time.month().into());
    put(&mut text[8..10], time.day().into());
    put(&mut text[11..13], time.hour().into());
    put(&mut text[14..16], time.minute().into());
    put(&mut text[17..19], time.second().into());
    let mut out = String::with_capacity("2023-11-14T22:13:21.123450".len());
    let text = String::from_utf8_lossy(&text);
    let (date, clock) = text.split_once(' ').unwrap_or_default();
    out.push_str(date);
    out.push(separator);
    out.push_str(clock);
    out
}

/// Reads `2023-11-14T22:13:21` at the beginning of a text as Python's `strptime` does: the year has four digits, the
/// other numbers need no leading zeros, and seconds go up to `last_second`. Returns the seconds since 1970, and what
/// follows in the text.
pub fn parse_iso(text: &str, last_second: u8) -> Option<(u64, &str)> {
    let (date, time) = text.split_once(['T', 't'])?;
    let mut date = date.split('-');
    let year = date.next().filter(|year| year.len() == 4)?;
    let date = [
        number(year, 4)?,
        number(date.next()?, 2)?,
        number(date.next()?, 2).filter(|_| date.next().is_none())?,
    ];
    let (hour, time) = time.split_once(':')?;
    let (minute, time) = time.split_once(':')?;
    let digits = time.bytes().take(2).take_while(u8::is_ascii_digit).count();
    let (second, rest) = time.split_at(digits);
    let small = |text| number(text, 2).and_then(|number| u8::try_from(number).ok());
    let second = small(second).filter(|second| *second <= last_second)?;
    let minute = existing(date, [small(hour)?, small(minute)?, 0])?;
    Some((since_1970(minute)? + u64::from(second), rest))
}

/// Reads `Tue, 14 Nov 2023 22:13:21 GMT`, `Tuesday, 14-Nov-23 22:13:21 GMT` and `Tue Nov 14 22:13:21 2023`, also
/// without the day of the week or the seconds; anything else is `None` (and a condition that cannot be read is
/// ignored). Before 1970 is 1970. What stands behind the time, such as another zone, counts for nothing, as with
/// OpenStack.
pub fn parse_http(text: &str) -> Option<u64> {
    let words = without_weekday(text.trim()).split([' ', '\t', '-', '+']);
    let mut words = words.filter(|word| !word.is_empty());
    let (first, second, third, fourth) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let (day, month) = match month_number(first) {
        Some(month) => (second, month),
        None => (first, month_number(second)?),
    };
    let (clock, year) = match third.contains(':') {
        true => (third, fourth),
        false => (fourth, third),
    };
    let mut clock = clock.splitn(3, ':').map(|part| u8::try_from(number(part, 4)?).ok());
    let clock = [clock.next()??, clock.next()??, clock.next().unwrap_or(Some(0))?];
    let year = match number(year, 4)? {
        short @ 0..=68 => short + 2000,
        short @ 69..=99 => short + 1900,
        full => full,
    };
    let time = existing([year, month, number(day, 4)?], clock)?;
    Some(since_1970(time).unwrap_or(0))
}

/// The day of the week is believed, whatever it is, before a comma; else it is known by its short name.
fn without_weekday(text: &str) -> &str {
    let end = text
        .find(|letter: char| !letter.is_ascii_alphabetic())
        .unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    let is_weekday = || WEEKDAYS.iter().any(|name| short(name).eq_ignore_ascii_case(word));
    match rest.strip_prefix(',') {
        Some(rest) => rest,
        None if is_weekday() => rest,
        None => text,
    }
}

/// From 1, of a short or a full name.
pub fn month_number(name: &str) -> Option<u16> {
    let is = |known: &&str| name.eq_ignore_ascii_case(known) || name.eq_ignore_ascii_case(&known[..3]);
    (1..)
        .zip(&MONTHS)
        .find_map(|(number, known)| is(known).then_some(number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn http_dates_are_read_as_openstack_reads_them() {
        for text in [
            "Tue, 14 Nov 2023 22:13:21 GMT",
            "Tuesday, 14-Nov-23 22:13:21 GMT",
            "Tue Nov 14 22:13:21 2023",
            "Tue, 14 Nov 2023 22:13:21",
            "Tue, 14 Nov 2023 22:13:21 +0200",
            "Tue, 14 Nov 2023 22:13:21 -0200",
            "Tue, 14 Nov 2023 22:13:21+0200",
            "Tue, 14 Nov 2023 22:13:21 EST",
            "Tue, 14 Nov 2023 22:13:21 GMT and more",
            "14 Nov 2023 22:13:21 GMT",
            "Foo,14 november 2023 22:13:21 GMT",
            "Tue, 14 Nov 0023 22:13:21 GMT",
            "Nov 14 22:13:21 2023",
        ] {
            assert_eq!(parse_http(text), Some(1_700_000_001), "{text}");
        }
        for (text, expected) in [
            ("Tue, 14 Nov 2023 22:13 GMT", 1_699_999_980),
            ("Thu, 29 Feb 2024 00:00:00 GMT", 1_709_164_800),
            ("Tue, 14 Nov 68 10:00:00 GMT", 3_120_112_800),
            ("Tue, 14 Nov 69 10:00:00 GMT", 0),
            ("Mon, 01 Jan 100 00:00:00 GMT", 0),
            ("Wed, 31 Dec 9999 23:59:59 GMT", 253_402_300_799),
        ] {
            assert_eq!(parse_http(text), Some(expected), "{text}");
        }
        for text in [
            "",
            "yesterday",
            "Tue, 99 Nov 2023 22:13:21 GMT",
            "Tue, 14 Nov 2023 25:13:21 GMT",
            "1700000001",
            "Sun, 30 Feb 2020 10:00:00 GMT",
            "Tue, 30 Feb 1969 10:00:00 GMT",
            "Sun Feb 29 10:00:00 2021",
            "Sun, 31-Apr-20 10:00:00 GMT",
            "Thu, 31 Dec 2020 23:59:60 GMT",
            "Sun, 0 Apr 2020 10:00:00 GMT",
            "Tue, 14 Nov 10000 10:00:00 GMT",
            "Tue, 14 Novx 2023 22:13:21 GMT",
            "Tue , 14 Nov 2023 22:13:21 GMT",
            "Foo 14 Nov 2023 22:13:21 GMT",
            "Nov, 14 2023 22:13:21",
            "Tue, 14 Nov 2023 22:13:21:00 GMT",
            "Tue, 14 Nov 2023",
        ] {
            assert_eq!(parse_http(text), None, "{text}");
        }
    }

    #[test]
    fn iso_times_are_read_up_to_what_follows_them() {
        for (text, expected) in [
            ("2026-11-20T15:43:55Z", Some((1_795_189_435, "Z"))),
            ("2026-11-20t15:43:55.250", Some((1_795_189_435, ".250"))),
            ("2027-1-1T0:0:0", Some((1_798_761_600, ""))),
            ("2000-02-29T00:00:00+05:00", Some((951_782_400, "+05:00"))),
            ("1970-01-01T00:00:00", Some((0, ""))),
            ("1969-12-31T23:59:59", None),
            ("2027-02-29T00:00:00", None),
            ("2027-01-01T24:00:00", None),
            ("2027-01-01T00:60:00", None),
            ("2027-01-01T00:00:60", None),
            ("227-01-01T00:00:00", None),
            ("2027-001-01T00:00:00", None),
            ("2027-01-01-01T00:00:00", None),
            ("2027-01-01 00:00:00", None),
            ("2027-01-01T00:00:", None),
            ("", None),
        ] {
            assert_eq!(parse_iso(text, LAST_SECOND), expected, "{text}");
        }
        let leap = |second| parse_iso(&format!("2027-01-01T00:00:{second}"), LAST_LEAP_SECOND).map(|read| read.0);
        assert_eq!([leap(61), leap(62)], [Some(1_798_761_661), None]);
    }

    #[test]
    fn the_last_second_is_not_passed() {
        assert_eq!(iso(u64::MAX, ' '), "9999-12-30 22:00:00");
        assert_eq!(http(0), "Thu, 01 Jan 1970 00:00:00 GMT");
    }

    proptest! {
        #[test]
        fn written_is_read_back(seconds in 0u64..253_402_207_200) {
            prop_assert_eq!(parse_http(&http(seconds)), Some(seconds));
            let text = iso(seconds, 'T');
            prop_assert_eq!(parse_iso(&text, LAST_SECOND), Some((seconds, "")));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC*", near in "[0-9T:.Z-]{0,24}|[A-Z][a-z]{2},? [0-9A-z: -]{0,30}") {
            for text in [text, near] {
                let _ = parse_http(&text);
                let _ = parse_iso(&text, LAST_SECOND);
            }
        }
    }
}
