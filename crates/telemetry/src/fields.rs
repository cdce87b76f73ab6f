//! Fields of log lines: quoted, cut short, or `-`.

use percent_encoding::{AsciiSet, percent_encode};
use std::fmt::{self, Display, Formatter, Write};
use std::time::Duration;
use vocabulary::calendar;
use vocabulary::names::QUOTED;

/// What stays as it is in the proxy's line: letters, digits, `_.-~`, `/` and `:`.
const PLAIN: &AsciiSet = &QUOTED.remove(b':');

/// Percent-encoded bytes, `-` for none.
pub(crate) struct QuotedField<'a>(pub(crate) &'a [u8]);

impl Display for QuotedField<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            b"" => f.write_char('-'),
            bytes => Display::fmt(&percent_encode(bytes, PLAIN), f),
        }
    }
}

/// A path that OpenStack quotes twice: as part of the URL, and again as a field.
pub(crate) struct TwiceQuoted<'a>(pub(crate) &'a str);

impl Display for TwiceQuoted<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let bytes = self.0.as_bytes();
        let mut plain = 0;
        for (at, byte) in bytes.iter().enumerate() {
            if byte.is_ascii_alphanumeric() || b"_.-~/".contains(byte) {
                continue;
            }
            // What lies between two other bytes is ASCII, so these are whole characters.
            f.write_str(self.0.get(plain..at).unwrap_or_default())?;
            write!(f, "%25{byte:02X}")?;
            plain = at + 1;
        }
        f.write_str(self.0.get(plain..).unwrap_or_default())
    }
}

/// A secret: its first `reveal` characters and `...`, or all of it when it has no more.
pub(crate) struct Obscured<'a> {
    pub(crate) secret: &'a [u8],
    pub(crate) reveal: usize,
}

impl Obscured<'_> {
    fn split(&self) -> (&[u8], &'static str) {
        match self.secret.get(..self.reveal) {
            Some(start) if start.len() < self.secret.len() => (start, "..."),
            _ => (self.secret, ""),
        }
    }
}

impl Display for Obscured<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (start, rest) = self.split();
        write!(f, "{}{rest}", percent_encode(start, PLAIN))
    }
}

/// A number, `-` for zero and for none.
pub(crate) struct Count(pub(crate) u64);

impl Display for Count {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_char('-'),
            count => Display::fmt(&count, f),
        }
    }
}

/// Text as it is, `-` for none.
pub(crate) struct PlainField<'a>(pub(crate) &'a [u8]);

impl Display for PlainField<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_char('-');
        }
        for chunk in self.0.utf8_chunks() {
            for c in chunk.valid().chars() {
                f.write_char(if c.is_control() { '?' } else { c })?;
            }
            if !chunk.invalid().is_empty() {
                f.write_char('?')?;
            }
        }
        Ok(())
    }
}

/// A storage policy's index, `-` for none.
pub(crate) struct PolicyField(pub(crate) Option<u32>);

impl Display for PolicyField {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => f.write_char('-'),
            Some(index) => Display::fmt(&index, f),
        }
    }
}

/// Seconds since 1970 with nine decimals.
pub(crate) struct Nanoseconds(pub(crate) Duration);

impl Display for Nanoseconds {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}", self.0.as_secs(), self.0.subsec_nanos())
    }
}

/// A moment, its parts set apart as the two kinds of line do.
pub(crate) struct LogMoment {
    pub(crate) seconds: u64,
    /// Between date and time, and within the time.
    pub(crate) separators: (char, char),
}

impl Display for LogMoment {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let time = calendar::utc(self.seconds);
        let (day, month, year) = (time.day(), calendar::short(calendar::month_name(time)), time.year());
        let (hour, minute, second) = (time.hour(), time.minute(), time.second());
        let (between, within) = self.separators;
        write!(
            f,
            "{day:02}/{month}/{year:04}{between}{hour:02}{within}{minute:02}{within}{second:02}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fields_as_openstack_writes_them() {
        let show = |d: &dyn Display| d.to_string();
        assert_eq!(show(&QuotedField(b"")), "-");
        assert_eq!(
            show(&QuotedField("curl 1.0 \"q\" ü%".as_bytes())),
            "curl%201.0%20%22q%22%20%C3%BC%25"
        );
        assert_eq!(show(&TwiceQuoted("/v1/a:b/ü o")), "/v1/a%253Ab/%25C3%25BC%2520o");
        let obscured = |secret: &'static str, reveal| {
            Obscured {
                secret: secret.as_bytes(),
                reveal,
            }
            .to_string()
        };
        assert_eq!(obscured("AUTH_tk0123456789abcdef", 16), "AUTH_tk012345678...");
        assert_eq!(obscured("exactly16chars..", 16), "exactly16chars..");
        assert_eq!(obscured("x", 0), "...");
        assert_eq!(show(&PlainField(b"a\xffb\tc")), "a?b?c");
        assert_eq!(show(&Nanoseconds(Duration::new(12, 34))), "12.000000034");
        let moment = LogMoment {
            seconds: 1_795_177_426,
            separators: ('/', '/'),
        };
        assert_eq!(show(&moment), "20/Nov/2026/12/23/46");
    }

    proptest! {
        #[test]
        fn quoting_twice_is_quoting_twice(path in "\\PC*") {
            let once = vocabulary::names::quote(&path);
            prop_assert_eq!(TwiceQuoted(&path).to_string(), percent_encode(once.as_bytes(), PLAIN).to_string());
        }
    }
}
