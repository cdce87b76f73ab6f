//! HTTP dates: `Tue, 14 Nov 2023 22:13:21 GMT`, written in that form and read in the three of RFC 9110 §5.6.7.
//!
//! Always holds: what is written here is read back as the same second. No clock is asked.

const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];
const DAY: u64 = 86_400;

/// Seconds since 1970 → (year, month, day, hour, minute, second) in UTC.
/// The calendar arithmetic is Howard Hinnant's `civil_from_days`.
pub fn civil(seconds: u64) -> (u64, u64, u64, u64, u64, u64) {
    let (days, rest) = (seconds / DAY + 719_468, seconds % DAY);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (year, month, day, rest / 3600, rest / 60 % 60, rest % 60)
}

fn days_from_civil(year: u64, month: u64, day: u64) -> Option<u64> {
    let year = year.checked_sub(u64::from(month <= 2))?;
    let (era, year_of_era) = (year / 400, year % 400);
    let day_of_year = (153 * if month > 2 { month - 3 } else { month + 9 } + 2) / 5 + day - 1;
    (era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year).checked_sub(719_468)
}

/// Seconds since 1970 in the form every HTTP/1.1 sender writes.
pub fn format(seconds: u64) -> String {
    let (year, month, day, hour, minute, second) = civil(seconds);
    let weekday = DAYS[((seconds / DAY + 3) % 7) as usize];
    let month = MONTHS[(month - 1) as usize];
    format!("{weekday}, {day:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} GMT")
}

/// Reads `Tue, 14 Nov 2023 22:13:21 GMT`, `Tuesday, 14-Nov-23 22:13:21 GMT` and `Tue Nov 14 22:13:21 2023`;
/// anything else is `None` (and a condition that cannot be read is ignored). Before 1970 is 1970. What stands behind
/// the time, such as another zone, counts for nothing, as with OpenStack.
pub fn parse(text: &str) -> Option<u64> {
    let words: Vec<&str> = text
        .split([' ', ',', '-', '+'])
        .filter(|w| !w.is_empty())
        .take(8)
        .collect();
    match words[..] {
        [_, month, day, time, year, ..] if time.contains(':') => assemble(year, month, day, time),
        [_, day, month, year, time, ..] => assemble(year, month, day, time),
        _ => None,
    }
}

fn assemble(year: &str, month: &str, day: &str, time: &str) -> Option<u64> {
    let month = MONTHS
        .iter()
        .position(|m| month.len() >= 3 && month.get(..3).is_some_and(|short| short.eq_ignore_ascii_case(m)))?
        as u64
        + 1;
    let number = |text: &str| {
        (text.len() <= 4 && text.bytes().all(|b| b.is_ascii_digit()))
            .then(|| text.parse::<u64>().ok())
            .flatten()
    };
    let year = match number(year)? {
        short @ 0..=69 if year.len() <= 2 => short + 2000,
        short @ 70..=99 if year.len() <= 2 => short + 1900,
        full => full,
    };
    let mut clock = time.splitn(3, ':').map(number);
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    let day = number(day)?;
    let sane = (1..=31).contains(&day) && hour < 24 && minute < 60 && second <= 60;
    if sane && year < 1970 {
        return Some(0);
    }
    sane.then(|| days_from_civil(year, month, day))
        .flatten()
        .map(|days| days * DAY + hour * 3600 + minute * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn three_forms_of_one_second() {
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
        ] {
            assert_eq!(parse(text), Some(1_700_000_001), "{text}");
        }
        for text in [
            "",
            "yesterday",
            "Tue, 99 Nov 2023 22:13:21 GMT",
            "Tue, 14 Nov 2023 25:13:21 GMT",
            "1700000001",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn written_is_read_back(seconds in 0u64..253_402_300_800) {
            prop_assert_eq!(parse(&format(seconds)), Some(seconds));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC*") {
            let _ = parse(&text);
        }
    }
}
