//! Whether a bucket's container servers agree on its rules.
//!
//! A database that was away (a drive, a server) may know rules that have been taken away since, or nothing of versions
//! that are kept since. What it makes due would be deleted although no rule asks for that any more.
//! Always holds: rules count only while more than half of the primaries answer and all that answer know just these; a
//! bucket whose servers differ waits until replication has made them equal.

use super::remover::RuledBucket;
use super::{ContainerLifecycle, NAME, VERSIONS};
use crate::ring_client::{NodeResponse, context_of};
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use lifecycle::text_of_pieces;
use peer::message::ReadContainer;

impl ContainerLifecycle {
    /// Why the rules by which the bucket is judged do not count, if they do not.
    pub(super) async fn reason_to_wait(&self, bucket: &RuledBucket) -> Option<&'static str> {
        let head = |target| ReadContainer {
            head_only: true,
            ..ReadContainer::new(target)
        };
        let place = (&bucket.path, bucket.path.clone());
        let sent = self
            .containers
            .send_to_primaries(&context_of(NAME), place, Bytes::new(), head)
            .await;
        let answers: Vec<_> = sent.iter().map(|response| says(response, bucket)).collect();
        judge(&answers)
    }
}

/// Whether a server says the same of the bucket; nothing where it says nothing.
fn says(response: &NodeResponse, bucket: &RuledBucket) -> Option<bool> {
    let response = response.response.as_ref().ok()?;
    match response.status() {
        status if status.is_success() => Some(is_same(response.headers(), bucket)),
        // Gone there, or not there yet.
        StatusCode::NOT_FOUND => Some(false),
        _ => None,
    }
}

fn is_same(headers: &HeaderMap, bucket: &RuledBucket) -> bool {
    let value = |name: &str| headers.get(name)?.to_str().ok().filter(|value| !value.is_empty());
    text_of_pieces(value).as_deref() == Some(&bucket.stored) && value(VERSIONS).is_some() == bucket.keeps_versions
}

fn judge(answers: &[Option<bool>]) -> Option<&'static str> {
    let responses = answers.iter().flatten();
    if responses.clone().any(|is_same| !is_same) {
        return Some("its rules or its versioning have changed, or its servers do not agree on them yet");
    }
    (responses.count() * 2 <= answers.len()).then_some("too few of its servers say which rules it has")
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use lifecycle::{DayLength, LifecycleRules};
    use vocabulary::{EntityPath, PolicyIndex};

    #[test]
    fn one_that_differs_is_enough_and_most_have_to_answer() {
        let (same, other, nothing) = (Some(true), Some(false), None);
        for (answers, counts) in [
            (&[same, same, same][..], true),
            (&[same, same, nothing], true),
            (&[same, same, other], false),
            (&[same, nothing, nothing], false),
            (&[other, nothing, nothing], false),
            (&[same], true),
            (&[same, nothing], false),
            (&[], false),
        ] {
            assert_eq!(judge(answers).is_none(), counts, "{answers:?}");
        }
    }

    #[test]
    fn rules_and_versions_are_compared_as_they_are_stored() {
        let bucket = |stored: &str, keeps_versions| RuledBucket {
            path: EntityPath::account("a").with_container("c"),
            rules: LifecycleRules::default(),
            stored: stored.to_owned(),
            keeps_versions,
            policy: PolicyIndex::LEGACY,
            now: 100,
            day: DayLength::Calendar,
        };
        let mut headers = HeaderMap::new();
        assert!(!is_same(&headers, &bucket("[]", false)));
        headers.insert("x-container-sysmeta-s3api-lifecycle-0", HeaderValue::from_static("[]"));
        assert!(is_same(&headers, &bucket("[]", false)));
        assert!(!is_same(&headers, &bucket("[1]", false)) && !is_same(&headers, &bucket("[]", true)));
        headers.insert(VERSIONS, HeaderValue::from_static("v"));
        assert!(is_same(&headers, &bucket("[]", true)) && !is_same(&headers, &bucket("[]", false)));
    }
}
