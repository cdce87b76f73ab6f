//! What may be asked of a listing, and which range of names can answer it.
//!
//! Pure. Names are compared byte by byte in UTF-8, which is SQLite's BINARY collation.
//! Always holds: a [`Range`] excludes no name that the question includes.

use vocabulary::PolicyIndex;
use vocabulary::names::RESERVED;

/// Which rows of deleted things a listing shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Deleted {
    /// None, as clients want it.
    #[default]
    Hide,
    /// Live and deleted ones, as upkeep wants it.
    Show,
}

/// A question. Empty texts ask for nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListQuery {
    /// At most this many entries.
    pub limit: usize,
    /// Begin behind this name.
    pub marker: String,
    /// End before this name.
    pub end_marker: String,
    /// Only names that begin so.
    pub prefix: String,
    /// Names that share what goes up to this, behind the prefix, become one entry.
    pub delimiter: String,
    /// Only what lies directly in this pseudo-directory; takes the place of prefix and delimiter.
    pub path: Option<String>,
    /// From the end; then `marker` is above and `end_marker` below.
    pub reverse: bool,
    /// Only objects of this policy; `None` for all.
    pub policy: Option<PolicyIndex>,
    /// Rows of deleted objects.
    pub deleted: Deleted,
    /// Also names that begin with NUL, which belong to Swift itself.
    pub reserved: bool,
}

impl Default for ListQuery {
    fn default() -> Self {
        Self {
            limit: 10_000,
            marker: String::new(),
            end_marker: String::new(),
            prefix: String::new(),
            delimiter: String::new(),
            path: None,
            reverse: false,
            policy: Some(PolicyIndex::LEGACY),
            deleted: Deleted::Hide,
            reserved: false,
        }
    }
}

/// Above every UTF-8 text.
const TOP: &[u8] = &[0xff];

/// Names from `low` (included) to `high` (excluded).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) low: Vec<u8>,
    pub(crate) high: Vec<u8>,
}

/// The question in the form the walk uses.
pub(crate) struct QueryPlan {
    pub(crate) prefix: String,
    pub(crate) delimiter: String,
    pub(crate) within_path: bool,
    /// A shared prefix equal to this has been listed already.
    pub(crate) listed: String,
    pub(crate) range: Range,
}

impl ListQuery {
    pub(crate) fn plan(&self) -> QueryPlan {
        let (prefix, delimiter) = match self.path.as_deref() {
            None => (self.prefix.clone(), self.delimiter.clone()),
            Some("") => (String::new(), "/".to_owned()),
            Some(path) => (format!("{}/", path.trim_end_matches('/')), "/".to_owned()),
        };
        let (above, below) = match self.reverse {
            false => (&self.marker, &self.end_marker),
            true => (&self.end_marker, &self.marker),
        };
        QueryPlan {
            range: self.range(&prefix, above, below),
            within_path: self.path.is_some(),
            listed: above.clone(),
            prefix,
            delimiter,
        }
    }

    fn range(&self, prefix: &str, above: &str, below: &str) -> Range {
        let mut low = prefix.as_bytes().to_vec();
        let mut high = end_of_prefix(prefix.as_bytes());
        if !above.is_empty() {
            low = low.max(just_after(above.as_bytes()));
        }
        if !below.is_empty() {
            high = high.min(below.as_bytes().to_vec());
        }
        if !self.reserved {
            low = low.max(end_of_prefix(RESERVED.to_string().as_bytes()));
        }
        Range { low, high }
    }
}

/// The smallest text above `name`.
pub(crate) fn just_after(name: &[u8]) -> Vec<u8> {
    let mut bytes = name.to_vec();
    bytes.push(0);
    bytes
}

/// The smallest bytes above everything that begins with `prefix`. No byte of UTF-8 is 0xff.
pub(crate) fn end_of_prefix(prefix: &[u8]) -> Vec<u8> {
    let mut bytes = prefix.to_vec();
    match bytes.last_mut() {
        Some(last) => *last = last.saturating_add(1),
        None => bytes = TOP.to_vec(),
    }
    bytes
}

/// What a name becomes in a listing with a delimiter.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SeenName<'n> {
    /// Itself.
    Name,
    /// Part of this shared prefix; `listed` when the prefix itself is an entry.
    Shared { prefix: &'n str, listed: bool },
    /// The pseudo-directory that was asked about: no entry.
    Itself,
}

impl QueryPlan {
    pub(crate) fn see<'n>(&self, name: &'n str) -> SeenName<'n> {
        if self.delimiter.is_empty() {
            return SeenName::Name;
        }
        let after = name.get(self.prefix.len()..).unwrap_or_default();
        let end = after.find(&self.delimiter).map(|at| at + self.delimiter.len());
        match (self.within_path, end) {
            (true, _) if after.is_empty() => SeenName::Itself,
            (true, Some(end)) if end < after.len() => SeenName::Shared {
                prefix: &name[..self.prefix.len() + end],
                listed: false,
            },
            (false, Some(end)) => {
                let prefix = &name[..self.prefix.len() + end];
                SeenName::Shared {
                    prefix,
                    listed: prefix != self.listed,
                }
            }
            _ => SeenName::Name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_leave_nothing_out() {
        let query = ListQuery {
            prefix: "a".into(),
            marker: "ab".into(),
            end_marker: "x".into(),
            ..ListQuery::default()
        };
        let range = query.plan().range;
        assert_eq!((range.low.as_slice(), range.high.as_slice()), (&b"ab\0"[..], &b"b"[..]));
        let range = ListQuery::default().plan().range;
        assert_eq!((range.low.as_slice(), range.high.as_slice()), (&b"\x01"[..], TOP));
    }
}
