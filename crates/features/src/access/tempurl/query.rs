//! What a signed address says in its query.
//!
//! Always holds: of a parameter that comes several times the first counts; what is not UTF-8 is no
//! signature, no time and no prefix.

use percent_encoding::percent_decode;
use vocabulary::calendar::{LAST_LEAP_SECOND, parse_iso};

/// The parameters of a signed address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Signed {
    /// `temp_url_sig`; empty when it is missing or not text.
    pub signature: String,
    /// `temp_url_expires`, as it was sent.
    pub expires: String,
    /// `temp_url_prefix`: the signature is good for all objects whose names begin so.
    pub prefix: Option<String>,
    /// `temp_url_ip_range`: and only for clients from there.
    pub ip_range: Option<String>,
    /// `filename`; what is not UTF-8 in it is replaced.
    pub filename: Option<String>,
    /// `inline`, with any value or none.
    pub inline: bool,
}

impl Signed {
    /// Reads a query; `None` when it is not that of a signed address. Cheap for any other query.
    pub fn read(query: &str) -> Option<Self> {
        if !query.contains("temp_url_") && !query.contains('%') {
            return None;
        }
        let mut signed = Self::default();
        let (mut has_signature, mut has_expires) = (None, None);
        for pair in query.split('&') {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = decode(name);
            let text = || String::from_utf8(decode(value)).unwrap_or_default();
            match name.as_slice() {
                b"temp_url_sig" => has_signature = has_signature.or_else(|| Some(text())),
                b"temp_url_expires" => has_expires = has_expires.or_else(|| Some(text())),
                b"temp_url_prefix" => {
                    signed.prefix = signed.prefix.or_else(|| Some(not_text_matches_nothing(value)));
                }
                b"temp_url_ip_range" => signed.ip_range = signed.ip_range.or_else(|| Some(text())),
                b"filename" => {
                    let name = || String::from_utf8_lossy(&decode(value)).into_owned();
                    signed.filename = signed.filename.or_else(|| Some(name()));
                }
                b"inline" => signed.inline = true,
                _ => {}
            }
        }
        if has_signature.is_none() && has_expires.is_none() {
            return None;
        }
        signed.signature = has_signature.unwrap_or_default();
        signed.expires = has_expires.unwrap_or_default();
        signed.filename = signed.filename.filter(|name| !name.is_empty());
        Some(signed)
    }

    /// The query that goes on: only what belongs to the signature, so that no client that has a signed address
    /// can ask for more than it was made for.
    pub fn query(&self) -> String {
        let mut query = format!(
            "temp_url_sig={}&temp_url_expires={}",
            encode(self.signature.as_bytes()),
            encode(self.expires.as_bytes())
        );
        if let Some(prefix) = &self.prefix {
            query.push_str(&format!("&temp_url_prefix={}", encode(prefix.as_bytes())));
        }
        if let Some(filename) = &self.filename {
            query.push_str(&format!("&filename={}", encode(filename.as_bytes())));
        }
        if self.inline {
            query.push_str("&inline=");
        }
        query
    }

    /// When it ends, in seconds since 1970; `None` for what is no time.
    pub fn ends(&self) -> Option<u64> {
        seconds(&self.expires)
    }
}

fn decode(text: &str) -> Vec<u8> {
    percent_decode(text.replace('+', " ").as_bytes()).collect()
}

/// A name has no NUL: a prefix that cannot be read begins none.
fn not_text_matches_nothing(value: &str) -> String {
    String::from_utf8(decode(value)).unwrap_or_else(|_| "\0".into())
}

fn encode(bytes: &[u8]) -> String {
    percent_encoding::percent_encode(bytes, percent_encoding::NON_ALPHANUMERIC).to_string()
}

/// Reads seconds since 1970, or a time like `2026-11-20T15:43:55Z`.
fn seconds(text: &str) -> Option<u64> {
    number(text.trim()).or_else(|| iso(text))
}

/// A number as Python reads it: with a plus, and single underscores between digits.
fn number(text: &str) -> Option<u64> {
    let digits = text.strip_prefix('+').unwrap_or(text);
    let well_spaced = digits
        .split('_')
        .all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()));
    well_spaced.then(|| digits.replace('_', "").parse().ok()).flatten()
}

/// `2026-11-20T15:43:55Z` as `strptime` reads it: either case, leading zeros not needed.
fn iso(text: &str) -> Option<u64> {
    let (seconds, rest) = parse_iso(text, LAST_LEAP_SECOND)?;
    rest.eq_ignore_ascii_case("z").then_some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_first_of_each_counts() {
        let signed = Signed::read("temp_url_sig=a%2Bb&temp_url_expires=5&temp_url_sig=c&inline&filename=x+y").unwrap();
        assert_eq!((signed.signature.as_str(), signed.expires.as_str()), ("a+b", "5"));
        assert!(signed.inline);
        assert_eq!(signed.filename.as_deref(), Some("x y"));
        assert_eq!(
            signed.query(),
            "temp_url_sig=a%2Bb&temp_url_expires=5&filename=x%20y&inline="
        );
        let signed = Signed::read("%74emp_url_sig=a&temp_url_prefix=&x=y&filename=&multipart-manifest=put").unwrap();
        assert_eq!((signed.prefix.as_deref(), signed.filename.as_deref()), (Some(""), None));
        assert_eq!(signed.query(), "temp_url_sig=a&temp_url_expires=&temp_url_prefix=");
        for other in ["", "prefix=a%20b", "format=json", "temp_url_prefix=x"] {
            assert_eq!(Signed::read(other), None, "{other}");
        }
    }

    #[test]
    fn times_as_python_reads_them() {
        for (text, expected) in [
            ("1795189435", Some(1_795_189_435)),
            (" 1795189435\n", Some(1_795_189_435)),
            ("+1795189435", Some(1_795_189_435)),
            ("1_795_189_435", Some(1_795_189_435)),
            ("2026-11-20T15:43:55Z", Some(1_795_189_435)),
            ("2026-11-20t15:43:55z", Some(1_795_189_435)),
            ("2027-1-1T0:0:0Z", Some(1_798_761_600)),
            ("2027-01-01T00:00:60Z", Some(1_798_761_660)),
            ("2000-02-29T00:00:00Z", Some(951_782_400)),
            ("1970-01-01T00:00:00Z", Some(0)),
            ("1795189435.0", None),
            ("1__0", None),
            ("_1", None),
            ("", None),
            ("-5", None),
            ("2027-01-01", None),
            ("2027-01-01T00:00:00", None),
            (" 2027-01-01T00:00:00Z", None),
            ("2027-02-30T00:00:00Z", None),
            ("2027-01-01T24:00:00Z", None),
            ("2026-11-20T15:43:55+0000", None),
            ("2026-11-20T15:43:55:00Z", None),
        ] {
            assert_eq!(seconds(text), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_query_is_read(query in "\\PC{0,60}", times in "[0-9TtZz:+_ -]{0,24}") {
            if let Some(signed) = Signed::read(&format!("temp_url_sig={query}")) {
                prop_assert_eq!(Signed::read(&signed.query()).unwrap().query(), signed.query());
            }
            let _ = seconds(&times);
        }
    }
}
