//! Sizes and speeds as people write them: `16TB`, `1.5 TiB`, `200GiB/h`, `100MB/s`.
//!
//! Always holds: no text panics; what may mean bits (`16Tb`, `16tb`) is refused; what is read is finite and not
//! negative.

use vocabulary::Fault;

/// Names of units and what they are in bytes, longest names first.
const UNITS: [(&str, f64); 17] = [
    ("kib", 1024.0),
    ("mib", 1_048_576.0),
    ("gib", 1_073_741_824.0),
    ("tib", 1_099_511_627_776.0),
    ("pib", 1_125_899_906_842_624.0),
    ("kb", 1e3),
    ("mb", 1e6),
    ("gb", 1e9),
    ("tb", 1e12),
    ("pb", 1e15),
    ("k", 1e3),
    ("m", 1e6),
    ("g", 1e9),
    ("t", 1e12),
    ("p", 1e15),
    ("b", 1.0),
    ("", 1.0),
];

/// Prefixes of units, in small letters, and as they are written.
const PREFIXES: [(&str, &str); 10] = [
    ("k", "k"),
    ("m", "M"),
    ("g", "G"),
    ("t", "T"),
    ("p", "P"),
    ("ki", "Ki"),
    ("mi", "Mi"),
    ("gi", "Gi"),
    ("ti", "Ti"),
    ("pi", "Pi"),
];

/// Refuses `16Tb` and `16tb`, which may mean either: a small b after a prefix.
fn no_bits(text: &str) -> Result<(), Fault> {
    let text = text.trim();
    let unit = text
        .trim_start_matches(|it: char| it.is_ascii_digit() || it == '.')
        .trim();
    let Some(rest) = unit.strip_suffix('b') else {
        return Ok(());
    };
    match PREFIXES.iter().find(|(small, _)| *small == rest.to_lowercase()) {
        Some((_, prefix)) => {
            let number = text.strip_suffix(unit).unwrap_or(text).trim();
            Err(Fault::caller(format!(
                "'{text}' may mean bits: write {number}{prefix}B"
            )))
        }
        None => Ok(()),
    }
}

/// Bytes.
pub fn bytes(text: &str) -> Result<f64, Fault> {
    let refuse = || Fault::caller(format!("'{text}' is no size: write 16TB, 1.5TiB or 200000000"));
    let small = text.trim().to_lowercase();
    let digits = small
        .find(|it: char| !(it.is_ascii_digit() || it == '.'))
        .unwrap_or(small.len());
    let (number, unit) = small.split_at(digits);
    let number: f64 = number.parse().map_err(|_| refuse())?;
    no_bits(text)?;
    let unit = UNITS.iter().find(|(name, _)| *name == unit.trim());
    let bytes = number * unit.ok_or_else(refuse)?.1;
    if bytes.is_finite() { Ok(bytes) } else { Err(refuse()) }
}

/// Bytes per second.
pub fn speed(text: &str) -> Result<f64, Fault> {
    let refuse = || Fault::caller(format!("'{text}' is no speed: write 200GiB/h or 100MB/s"));
    let (size, per) = text.rsplit_once('/').ok_or_else(refuse)?;
    let seconds = match per.trim() {
        "s" | "sec" | "second" => 1.0,
        "m" | "min" | "minute" => 60.0,
        "h" | "hour" => 3600.0,
        "d" | "day" => 86400.0,
        _ => return Err(refuse()),
    };
    no_bits(size)?;
    let speed = bytes(size).map_err(|_| refuse())? / seconds;
    if speed > 0.0 { Ok(speed) } else { Err(refuse()) }
}

/// A size for people.
pub fn shown(bytes: f64) -> String {
    let names = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut value = bytes;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < names.len() {
        value /= 1024.0;
        unit += 1;
    }
    let places = if unit == 0 || value >= 100.0 { 0 } else { 1 };
    format!("{value:.places$} {}", names[unit])
}

/// A time for people.
pub fn hours(hours: f64) -> String {
    match hours {
        it if it < 1.0 => format!("{:.0} min", it * 60.0),
        it if it < 48.0 => format!("{it:.1} h"),
        it => format!("{:.1} days", it / 24.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_and_speeds() {
        assert_eq!(bytes("16TB"), Ok(16e12));
        assert_eq!(bytes("1.5 TiB"), Ok(1.5 * 1_099_511_627_776.0));
        assert_eq!(bytes("512"), Ok(512.0));
        assert_eq!(speed("3600B/h"), Ok(1.0));
        assert_eq!(speed("100MB/s"), Ok(1e8));
        // Bits or bytes: it is not guessed.
        for (wrong, right) in [
            ("16Tb", "16TB"),
            ("1.5 TIb", "1.5TiB"),
            ("100Mb/s", "100MB"),
            ("16tb", "16TB"),
            ("64 gb", "64GB"),
            ("4kib", "4KiB"),
            ("200kb/s", "200kB"),
        ] {
            let why = if wrong.contains('/') {
                speed(wrong)
            } else {
                bytes(wrong)
            }
            .unwrap_err()
            .what;
            assert!(why.contains("may mean bits") && why.ends_with(right), "{why}");
        }
        assert_eq!(
            (bytes("16t"), bytes("4b"), bytes("4tB")),
            (Ok(16e12), Ok(4.0), Ok(4e12))
        );
        for wrong in ["", "16zb", "16 cowb", "x", "-1", "nan", "inf", "1ZB", "1..2", "TB"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
        for wrong in ["1GB", "0/s", "1GB/year", "/s"] {
            assert!(speed(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn for_people() {
        assert_eq!(shown(1536.0), "1.5 KiB");
        assert_eq!(shown(200.0 * 1_073_741_824.0), "200 GiB");
        assert_eq!(hours(0.5), "30 min");
        assert_eq!(hours(72.0), "3.0 days");
    }

    proptest! {
        #[test]
        fn nothing_panics(text in ".*") {
            let _ = (bytes(&text), speed(&text));
        }
    }
}
