//! `Content-Disposition` of what a signed address gives: a file to keep, unless a header or the query says otherwise.
//!
//! Always holds: what comes from names and queries is percent-encoded, so it cannot end a header or a quoted
//! string.

use percent_encoding::{AsciiSet, percent_encode};
use vocabulary::names::QUOTED;

/// What a parameter's plain value leaves as it is; its extended value is quoted whole.
const KEPT_IN_QUOTES: &AsciiSet = &QUOTED.remove(b' ');

/// What decides: the query, the object's own header, and its name.
pub struct Wishes<'a> {
    /// The query's `filename`.
    pub filename: Option<&'a [u8]>,
    /// The query's `inline`.
    pub inline: bool,
    /// The answer is a page about the object or container, made for browsers.
    pub is_page: bool,
    /// The object's own header.
    pub stored: Option<&'a [u8]>,
    /// The object's name.
    pub name: &'a str,
}

impl Wishes<'_> {
    /// The header's value.
    pub fn disposition(&self) -> Vec<u8> {
        match (self.filename, self.stored) {
            (Some(name), _) if self.inline => with_name("inline", name),
            (None, _) if self.inline || self.is_page => b"inline".to_vec(),
            (Some(name), _) => with_name("attachment", name),
            (None, Some(stored)) => stored.to_vec(),
            (None, None) => with_name("attachment", last_part(self.name).as_bytes()),
        }
    }
}

fn with_name(kind: &str, name: &[u8]) -> Vec<u8> {
    let quoted = percent_encode(name, KEPT_IN_QUOTES);
    let extended = percent_encode(name, QUOTED);
    format!("{kind}; filename=\"{quoted}\"; filename*=UTF-8''{extended}").into_bytes()
}

fn last_part(name: &str) -> &str {
    let name = name.trim_end_matches('/');
    name.rsplit_once('/').map_or(name, |(_, last)| last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header_of(filename: Option<&str>, inline: bool, stored: Option<&str>, name: &str) -> String {
        let wishes = Wishes {
            filename: filename.map(str::as_bytes),
            inline,
            is_page: false,
            stored: stored.map(str::as_bytes),
            name,
        };
        String::from_utf8(wishes.disposition()).unwrap()
    }

    #[test]
    fn as_openstack_answers() {
        assert_eq!(
            header_of(None, false, None, "o"),
            "attachment; filename=\"o\"; filename*=UTF-8''o"
        );
        assert_eq!(
            header_of(None, false, None, "p/q/ü \"x\\;y/"),
            "attachment; filename=\"%C3%BC %22x%5C%3By\"; filename*=UTF-8''%C3%BC%20%22x%5C%3By"
        );
        assert_eq!(header_of(None, false, Some("inline; x=y"), "o"), "inline; x=y");
        assert_eq!(header_of(None, true, Some("x"), "o"), "inline");
        assert_eq!(
            header_of(Some("z"), true, None, "o"),
            "inline; filename=\"z\"; filename*=UTF-8''z"
        );
        assert_eq!(
            header_of(Some("/i/want/it/"), false, Some("x"), "o"),
            "attachment; filename=\"/i/want/it/\"; filename*=UTF-8''/i/want/it/"
        );
    }

    proptest! {
        #[test]
        fn no_name_leaves_the_quotes(filename in any::<String>(), name in any::<String>()) {
            for value in [header_of(Some(&filename), true, None, ""), header_of(None, false, None, &name)] {
                prop_assert_eq!(value.matches('"').count(), 2);
                prop_assert!(http::HeaderValue::from_str(&value).is_ok());
            }
        }
    }
}
