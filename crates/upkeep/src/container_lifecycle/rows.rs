//! Rows of a bucket's listing, as rules see them.

use lifecycle::ListedVersion;
use serde::Deserialize;
use serde_json::Value;
use vocabulary::Timestamp;
use vocabulary::names::quote;

/// The content type of a version that is a deletion.
pub(super) const DELETE_MARKER: &str = "application/x-deleted;swift_versions_deleted=1";
/// The entity tag of what was encrypted with a secret that is not known, as listings have it.
const UNKNOWN: &str = "<unknown>";
/// The version of what was written while no versions were kept.
pub(super) const NULL: &str = "null";

/// A row, as far as it is looked at. Servers list what their databases hold, sizes below zero and nulls too: what is
/// not as it should be makes the row one that is left alone.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct BucketRow {
    name: Value,
    bytes: Value,
    hash: Value,
    content_type: Value,
    last_modified: Value,
    version_id: Value,
    is_latest: Value,
    slo_etag: Value,
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

impl BucketRow {
    /// The key.
    pub(super) fn name(&self) -> &str {
        text(&self.name)
    }

    /// The version; `null` for what has none.
    pub(super) fn version_id(&self) -> &str {
        self.version_id.as_str().unwrap_or(NULL)
    }

    /// Its type.
    pub(super) fn content_type(&self) -> &str {
        text(&self.content_type)
    }

    /// When it was changed last.
    pub(super) fn changed(&self) -> Option<Timestamp> {
        Timestamp::from_iso(text(&self.last_modified))
    }

    /// Whether it may be a large object of segments: what is encrypted, or cannot be decrypted, does not say.
    pub(super) fn may_be_large(&self) -> bool {
        let hash = text(&self.hash);
        hash.contains("slo_etag=") || self.slo_etag.is_string() || hash == UNKNOWN || self.is_encrypted()
    }

    /// Whether the gateway has left the entity tag encrypted, and what stands beside it: where a link leads to, say.
    pub(super) fn is_encrypted(&self) -> bool {
        text(&self.hash).contains("swift_meta=")
    }

    /// What rules look at. Where `are_versions` the row is one of a listing of versions.
    pub(super) fn listed(&self, are_versions: bool) -> Option<ListedVersion> {
        let changed = self.changed()?;
        let became = self.version_id().parse().unwrap_or(changed);
        Some(ListedVersion {
            key: self.name.as_str()?.to_owned(),
            is_latest: !are_versions || self.is_latest.as_bool().unwrap_or(false),
            is_marker: are_versions && self.content_type() == DELETE_MARKER,
            size: self.bytes.as_u64()?,
            changed,
            became,
        })
    }
}

/// Where a page of a listing begins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PageMarker {
    pub(super) name: String,
    /// Of a listing of versions.
    pub(super) version: String,
}

impl PageMarker {
    /// The parameters that ask for the page behind it.
    pub(super) fn query(&self, prefix: &str, limit: usize, are_versions: bool) -> String {
        let mut query = format!("format=json&limit={limit}");
        let mut add = |name: &str, value: &str| {
            if !value.is_empty() {
                query.push_str(&format!("&{name}={}", quote(value).replace('/', "%2F")));
            }
        };
        add("prefix", prefix);
        add("marker", &self.name);
        if are_versions {
            add("version_marker", &self.version);
            query.push_str("&versions=true");
        }
        query
    }

    /// Whether a page with this last row goes on behind it.
    pub(super) fn is_before(&self, last: &BucketRow, are_versions: bool) -> bool {
        match last.name().cmp(&self.name) {
            std::cmp::Ordering::Greater => true,
            std::cmp::Ordering::Equal => are_versions && last.version_id() != self.version,
            std::cmp::Ordering::Less => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(json: &str) -> BucketRow {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn rows_are_read_as_rules_see_them() {
        let plain = row(
            r#"{"name": "a", "bytes": 5, "hash": "x; slo_etag=y", "content_type": "t", "last_modified": "2009-10-12T17:50:30.000000"}"#,
        );
        let listed = plain.listed(false).unwrap();
        assert!(listed.is_latest && !listed.is_marker && plain.may_be_large());
        assert_eq!((listed.size, listed.became), (5, listed.changed));
        let marker = row(
            r#"{"name": "a", "bytes": 0, "hash": "x", "version_id": "0000000005.00000", "is_latest": false,
                "content_type": "application/x-deleted;swift_versions_deleted=1",
                "last_modified": "2009-10-12T17:50:30.000000"}"#,
        );
        let listed = marker.listed(true).unwrap();
        assert!(!listed.is_latest && listed.is_marker && !marker.may_be_large());
        assert_eq!(listed.became, Timestamp::from_seconds(5));
        for (hash, is_encrypted) in [("<unknown>", false), ("Y2lwaGVy; swift_meta=%7B%7D", true)] {
            let sealed = row(&format!(r#"{{"name": "a", "hash": "{hash}"}}"#));
            assert!(sealed.may_be_large() && sealed.is_encrypted() == is_encrypted, "{hash}");
        }
        for damaged in [
            r#"{"subdir": "a/"}"#,
            r#"{"name": "a", "bytes": -1, "last_modified": "2009-10-12T17:50:30.000000"}"#,
            r#"{"name": "a", "bytes": 1, "last_modified": null}"#,
        ] {
            assert_eq!(row(damaged).listed(false), None, "{damaged}");
        }
    }

    #[test]
    fn pages_go_on_behind_their_marker() {
        let marker = PageMarker {
            name: "a/b".into(),
            version: "2".into(),
        };
        let query = marker.query("a", 7, true);
        assert_eq!(
            query,
            "format=json&limit=7&prefix=a&marker=a%2Fb&version_marker=2&versions=true"
        );
        let version = |name: &str, id: &str| row(&format!(r#"{{"name": "{name}", "version_id": "{id}"}}"#));
        assert!(marker.is_before(&version("a/b", "1"), true) && marker.is_before(&version("b", "2"), false));
        assert!(!marker.is_before(&version("a/b", "2"), true) && !marker.is_before(&version("a", "1"), true));
        assert!(!marker.is_before(&version("a/b", "1"), false));
    }
}
