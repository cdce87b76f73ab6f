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
use vocabulary::EntityPath;
use vocabulary::names::{RESERVED, quote};

/// An answer with a few rows is far shorter.
const LONGEST_ANSWER: u64 = 1 << 20;
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
enum ListedOfKey {
    /// Whether these versions are delete markers.
    Versions(Vec<bool>),
    /// The shards that have them.
    Shards(Vec<EntityPath>),
}

impl Remover {
    /// Whether anything but its marker is left of a key.
    pub(super) async fn marker_standing(&self, bucket: &RuledBucket, key: &str) -> MarkerStanding {
        let (mut asked, mut next) = (BTreeSet::new(), Vec::from_iter(bucket.hidden()));
        let mut versions = vec![];
        while let Some(container) = next.pop() {
            // Asked again it may point at itself: then its own rows count.
            let kind = match asked.insert(container.path()) {
                true => "auto",
                false => "object",
            };
            let mut answers = vec![];
            for sent in self.ask_for_versions(&container, key, kind).await {
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
                Some(ListedOfKey::Versions(more)) => versions.extend(more),
                Some(ListedOfKey::Shards(shards)) if asked.len() + shards.len() <= MOST_CONTAINERS => {
                    next.extend(shards);
                }
                _ => return MarkerStanding::NotAlone,
            }
        }
        match versions == [true] {
            true => MarkerStanding::Alone,
            false => MarkerStanding::NotAlone,
        }
    }

    async fn ask_for_versions(&self, container: &EntityPath, key: &str, kind: &'static str) -> Vec<NodeResponse> {
        let allowed = (X_ALLOW_RESERVED_NAMES, HeaderValue::from_static("true"));
        let headers: Arc<HeaderMap> = Arc::new([allowed].into_iter().collect());
        let prefix = format!("{RESERVED}{key}{RESERVED}");
        let first = quote(&prefix).replace('/', "%2F");
        let behind = quote(&format!("{RESERVED}{key}\u{1}")).replace('/', "%2F");
        let query = format!("format=json&limit=2&prefix={first}&marker={first}&end_marker={behind}&states=listing");
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

    async fn listed_of_key(&self, sent: NodeResponse) -> Result<ListedOfKey, String> {
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
        let are_markers = rows.iter().map(|row| row.content_type() == DELETE_MARKER);
        return Some(ListedOfKey::Versions(are_markers.collect()));
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
        assert_eq!(marker, ListedOfKey::Versions(vec![true]));
        assert_eq!(version, ListedOfKey::Versions(vec![false]));
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
