//! `If-Match`, `If-None-Match`, `If-Modified-Since`, `If-Unmodified-Since`: one decision table.
//!
//! Always holds: an absent or unreadable date decides nothing; an entity tag matches with or
//! without quotes, as Swift's do.

use crate::Timestamp;
use crate::calendar::parse_http;

/// What the conditions of a request say about the object as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Go on.
    Proceed,
    /// 304 for reads.
    NotModified,
    /// 412.
    PreconditionFailed,
}

/// The four headers as sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conditions {
    if_match: Option<Tags>,
    if_none_match: Option<Tags>,
    if_modified_since: Option<u64>,
    if_unmodified_since: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Tags {
    any: bool,
    tags: Vec<String>,
}

impl Tags {
    fn parse(header: &str) -> Self {
        let tags: Vec<String> = header
            .split(',')
            .map(|t| bare_etag(t).to_owned())
            .filter(|t| !t.is_empty())
            .collect();
        Self {
            any: tags.iter().any(|t| t == "*"),
            tags,
        }
    }

    fn match_any(&self, etags: &[&str]) -> bool {
        self.any || self.tags.iter().any(|t| etags.contains(&t.as_str()))
    }
}

/// An entity tag without white space and quotes. A weak one (`W/"…"`) stays as it is and so matches
/// nothing, as in Swift.
pub fn bare_etag(text: &str) -> &str {
    let text = text.trim();
    text.trim_matches('"')
}

impl Conditions {
    /// From the values of the four headers.
    pub fn new(
        if_match: Option<&str>,
        if_none_match: Option<&str>,
        if_modified_since: Option<&str>,
        if_unmodified_since: Option<&str>,
    ) -> Self {
        Self {
            if_match: if_match.map(Tags::parse),
            if_none_match: if_none_match.map(Tags::parse),
            if_modified_since: if_modified_since.and_then(parse_http),
            if_unmodified_since: if_unmodified_since.and_then(parse_http),
        }
    }

    /// Whether any of the four is in force.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// `If-None-Match: *`: the writer insists that nothing is there.
    pub fn insists_on_absence(&self) -> bool {
        self.if_none_match.as_ref().is_some_and(|t| t.any)
    }

    /// `If-Match` with anything in it: the reader insists that something is there.
    pub fn insists_on_presence(&self) -> bool {
        self.if_match.is_some()
    }

    /// Whether `If-None-Match` holds entity tags other than `*` (Swift takes only `*` on writes).
    pub fn has_specific_none_match(&self) -> bool {
        self.if_none_match.as_ref().is_some_and(|t| !t.any)
    }

    /// For a read of what exists under any of `etags`, last modified at `modified`.
    pub fn check_read(&self, etags: &[&str], modified: Timestamp) -> Outcome {
        let seconds = modified.seconds_ceil();
        if self.if_none_match.as_ref().is_some_and(|t| t.match_any(etags)) {
            Outcome::NotModified
        } else if self.if_match.as_ref().is_some_and(|t| !t.match_any(etags)) {
            Outcome::PreconditionFailed
        } else if self.if_modified_since.is_some_and(|since| seconds <= since) {
            Outcome::NotModified
        } else if self.if_unmodified_since.is_some_and(|since| seconds > since) {
            Outcome::PreconditionFailed
        } else {
            Outcome::Proceed
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_row_per_decision() {
        use Outcome::{NotModified, PreconditionFailed, Proceed};
        let modified = Timestamp::from_seconds(1_700_000_000);
        let (same, later, earlier) = (
            "Tue, 14 Nov 2023 22:13:20 GMT",
            "Tue, 14 Nov 2023 22:13:21 GMT",
            "Tue, 14 Nov 2023 22:13:19 GMT",
        );
        let table = [
            (None, None, None, None, Proceed),
            (Some("\"x\", y"), None, None, None, Proceed),
            (Some("*"), None, None, None, Proceed),
            (Some("z"), None, None, None, PreconditionFailed),
            (None, Some("x"), None, None, NotModified),
            (None, Some("*"), None, None, NotModified),
            (None, Some("z"), None, None, Proceed),
            (Some("z"), Some("x"), None, None, NotModified),
            (None, None, Some(same), None, NotModified),
            (None, None, Some(earlier), None, Proceed),
            (None, None, Some("rubbish"), None, Proceed),
            (None, None, None, Some(same), Proceed),
            (None, None, None, Some(earlier), PreconditionFailed),
            (None, None, None, Some(later), Proceed),
            (
                None,
                None,
                None,
                Some("Thu, 01 Jan 0001 00:00:00 GMT"),
                PreconditionFailed,
            ),
            (Some("W/\"x\""), None, None, None, PreconditionFailed),
        ];
        for (m, n, since, unmodified, expected) in table {
            let conditions = Conditions::new(m, n, since, unmodified);
            assert_eq!(
                conditions.check_read(&["x"], modified),
                expected,
                "{m:?} {n:?} {since:?} {unmodified:?}"
            );
        }
    }
}
