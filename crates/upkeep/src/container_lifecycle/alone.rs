//! Whether a delete marker is all that is left of its key.
//!
//! A database that was away when a version was written lists the marker with nothing behind it. Without its marker the
//! version would have no newer one beside it, and no rule would ever make it due. So a marker goes only while each
//! primary of the hidden container lists it, and nothing else of its key; of a container that OpenStack's daemons have
//! sharded each primary of the shards that may have the key's versions.
//! Always holds: one server that does not answer, or says something else than the others, is enough for the marker to
//! stay.

use super::NAME;
use super::remover::{Remover, RuledBucket};
use super::rows::{BucketRow, DELETE_MARKER};
use crate::ring_client::{NodeResponse, context_of};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use peer::message::ReadContainer;
use peer::message::header_names::{X_ALLOW_RESERVED_NAMES, X_RECORD_TYPE};
use std::collections::BTreeSet;
use std::sync::Arc;
use vocabulary::names::{RESERVED, quote};
use vocabulary::{EntityPath, Timestamp};

/// An answer with a page of rows is shorter.
const LONGEST_ANSWER: u64 = 16 << 20;
/// The container, its shards, and theirs.
const MOST_CONTAINERS: usize = 8;

/// What is said of a marker that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MarkerStanding {
    /// Nothing else is left of its key.
    Alone,
    /// There may be: servers list something else, or not the same.
    NotAlone,
    /// A server did not answer.
    Unknown,
}

/// What a container server lists of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ListedOfKey {
    /// Its versions.
    Versions(Vec<KeyVersion>),
    /// The shards that have them.
    Shards(Vec<EntityPath>),
}

/// A version, as its servers list it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeyVersion {
    /// In the container of versions.
    pub(super) name: String,
    pub(super) is_marker: bool,
}

/// Which rows of a key's versions are asked for.
pub(super) struct VersionsAsked {
    prefix: String,
    /// The page begins behind this name.
    pub(super) behind: String,
    /// … and ends before this one.
    end: String,
    limit: usize,
}

impl VersionsAsked {
    /// The first `limit`.
    pub(super) fn of_key(key: &str, limit: usize) -> Self {
        let prefix = format!("{RESERVED}{key}{RESERVED}");
        Self {
            behind: prefix.clone(),
            prefix,
            end: format!("{RESERVED}{key}\u{1}"),
            limit,
        }
    }

    /// None that is older than that: what names say decreases.
    pub(super) fn end_behind(&mut self, key: &str, since: Timestamp) {
        let left = 10_000_000_000_u64.saturating_sub(since.seconds());
        self.end = format!("{RESERVED}{key}{RESERVED}{left:010}");
    }

    fn query(&self) -> String {
        let text = |name: &str| quote(name).replace('/', "%2F");
        let (prefix, behind, end) = (text(&self.prefix), text(&self.behind), text(&self.end));
        let limit = self.limit;
        format!("format=json&limit={limit}&prefix={prefix}&marker={behind}&end_marker={end}&states=listing")
    }
}

impl Remover {
    /// Whether anything but its marker is left of a key.
    pub(super) async fn marker_standing(&self, bucket: &RuledBucket, key: &str) -> MarkerStanding {
        let (mut asked, mut next) = (BTreeSet::new(), Vec::from_iter(bucket.hidden()));
        let wanted = VersionsAsked::of_key(key, 2);
        let mut are_markers = vec![];
        while let Some(container) = next.pop() {
            // Asked again it may point at itself: then its own rows count.
            let kind = match asked.insert(container.path()) {
                true => "auto",
                false => "object",
            };
            let mut answers = vec![];
            for sent in self.ask_for_versions(&container, &wanted, kind).await {
                let place = sent.place.clone();
                match self.listed_of_key(sent).await {
                    Ok(listed) => answers.push(listed),
                    Err(why) => {
                        self.failures.note_at(place, bucket.path.with_object(key).path(), why);
                        return MarkerStanding::Unknown;
                    }
                }
            }
            match agreed(answers) {
                Some(ListedOfKey::Versions(rows)) => {
                    are_markers.extend(rows.iter().map(|version| version.is_marker));
                }
                Some(ListedOfKey::Shards(shards)) if asked.len() + shards.len() <= MOST_CONTAINERS => {
                    next.extend(shards);
                }
                _ => return MarkerStanding::NotAlone,
            }
        }
        match are_markers == [true] {
            true => MarkerStanding::Alone,
            false => MarkerStanding::NotAlone,
        }
    }

    /// What each server of a container lists.
    pub(super) async fn ask_for_versions(
        &self,
        container: &EntityPath,
        wanted: &VersionsAsked,
        kind: &'static str,
    ) -> Vec<NodeResponse> {
        let allowed = (X_ALLOW_RESERVED_NAMES, HeaderValue::from_static("true"));
        let headers: Arc<HeaderMap> = Arc::new([allowed].into_iter().collect());
        let query = wanted.query();
        let read = |target| ReadContainer {
            query: query.clone(),
            record_type: Some(HeaderValue::from_static(kind)),
            headers: headers.clone(),
            ..ReadContainer::new(target)
        };
        self.containers
            .send_to_primaries(&context_of(NAME), (container, container.clone()), Bytes::new(), read)
            .await
    }

    pub(super) async fn listed_of_key(&self, sent: NodeResponse) -> Result<ListedOfKey, String> {
        if !sent.is_success() {
            return Err(sent.why());
        }
        let (head, body) = sent.response.map_err(|error| error.to_string())?.into_parts();
        let patience = self.containers.timeouts.response;
        let body = self.world.timeout(patience, body.collect(LONGEST_ANSWER)).await;
        let body = body.map_err(|_| "the answer came too slowly".to_owned())?;
        let body = body.map_err(|error| error.to_string())?;
        let are_shards = head.headers.get(X_RECORD_TYPE).is_some_and(|kind| kind == "shard");
        listed(&body, are_shards).ok_or_else(|| "the answer is no listing".to_owned())
    }
}

fn listed(body: &[u8], are_shards: bool) -> Option<ListedOfKey> {
    let rows: Vec<BucketRow> = serde_json::from_slice(body).ok()?;
    if !are_shards {
        let version = |row: &BucketRow| KeyVersion {
            name: row.name().to_owned(),
            is_marker: row.content_type() == DELETE_MARKER,
        };
        return Some(ListedOfKey::Versions(rows.iter().map(version).collect()));
    }
    let shard = |row: &BucketRow| {
        let path = EntityPath::split(row.name()).ok()?;
        path.container.as_ref()?;
        Some(EntityPath { object: None, ..path })
    };
    rows.iter().map(shard).collect::<Option<_>>().map(ListedOfKey::Shards)
}

/// What all say, if they say the same.
fn agreed(mut answers: Vec<ListedOfKey>) -> Option<ListedOfKey> {
    let first = answers.pop()?;
    answers.iter().all(|other| *other == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(json: &str) -> ListedOfKey {
        listed(json.as_bytes(), false).unwrap()
    }

    #[test]
    fn servers_that_differ_agree_on_nothing() {
        let marker = parsed(r#"[{"name": "m", "content_type": "application/x-deleted;swift_versions_deleted=1"}]"#);
        let version = parsed(r#"[{"name": "v", "content_type": "t"}]"#);
        let are_markers = |listed: &ListedOfKey| match listed {
            ListedOfKey::Versions(versions) => versions.iter().map(|version| version.is_marker).collect(),
            ListedOfKey::Shards(_) => vec![],
        };
        assert_eq!((are_markers(&marker), are_markers(&version)), (vec![true], vec![false]));
        let all = |answers: &[&ListedOfKey]| agreed(answers.iter().copied().cloned().collect());
        assert_eq!(all(&[&marker, &marker, &marker]), Some(marker.clone()));
        for differing in [[&version, &marker, &marker], [&marker, &marker, &parsed("[]")]] {
            assert_eq!(all(&differing), None);
        }
        assert_eq!(all(&[]), None);
    }

    #[test]
    fn shards_are_known_by_their_paths() {
        let shards = listed(br#"[{"name": ".shards_a/c-1", "lower": ""}]"#, true).unwrap();
        let path = EntityPath::account(".shards_a").with_container("c-1");
        assert_eq!(shards, ListedOfKey::Shards(vec![path]));
        assert_eq!(listed(br#"[{"name": "no path"}]"#, true), None);
        assert_eq!(listed(b"<html>", false), None);
    }
}
