//! Whether a bucket's container servers agree on its rules.
//!
//! A database that was away (a drive, a server) may know rules that have been taken away since, or nothing of versions
//! that are kept since. What it makes due would be deleted although no rule asks for that any more.
//! Always holds: rules count only while more than half of the primaries answer and all that answer know just these; a
//! bucket whose servers differ waits until replication has made them equal. What is due counts by the clocks of those
//! that answer, too (`clocks.rs`).

use super::clocks::{AskedBetween, ClocksDiffer};
use super::remover::RuledBucket;
use super::{ContainerLifecycle, NAME};
use crate::ring_client::{NodeResponse, context_of};
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use lifecycle::text_of_pieces;
use peer::message::ReadContainer;
use peer::message::header_names::X_VERSIONS_CONTAINER;
use vocabulary::PolicyIndex;

/// Why a bucket is left for this pass.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReasonToWait {
    /// Its servers do not say that its rules count.
    #[error("{0}")]
    Rules(&'static str),
    /// Nor what time it is.
    #[error(transparent)]
    Clocks(ClocksDiffer),
    /// Objects of its policy are nowhere.
    #[error("its storage policy {0} is not in swift.conf")]
    Policy(PolicyIndex),
    /// Servers fail.
    #[error("what is due could not be deleted, as servers failed or did not answer")]
    Servers,
    /// The gateway cannot read what stands in its rows.
    #[error(
        "the versions in it are encrypted: the pipeline of this daemon's gateway (internal_client_conf_path) needs the \
         filters keymaster and encryption that proxies have"
    )]
    Encrypted,
    /// A page of it cannot be had.
    #[error("{0}")]
    Listing(String),
}

impl ContainerLifecycle {
    /// The second since 1970 by which the bucket is judged, if the rules count that it is judged by.
    pub(super) async fn agreed_time(&self, bucket: &RuledBucket) -> Result<u64, ReasonToWait> {
        let head = |target| ReadContainer {
            head_only: true,
            ..ReadContainer::new(target)
        };
        let place = (&bucket.path, bucket.path.clone());
        let clock = &self.state.world().clock;
        let first = clock.now();
        let sent = self
            .containers
            .send_to_primaries(&context_of(NAME), place, Bytes::new(), head)
            .await;
        let asked = AskedBetween {
            first,
            last: clock.now(),
        };
        let answers: Vec<_> = sent.iter().map(|response| says(response, bucket)).collect();
        if let Some(why) = judge(&answers) {
            return Err(ReasonToWait::Rules(why));
        }
        let dated = sent.iter().filter_map(|node| Some((&*node.place, node.date()?)));
        let most = self.options.max_clock_skew;
        asked.earliest(dated, most).map_err(ReasonToWait::Clocks)
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
    text_of_pieces(value).as_deref() == Some(&bucket.stored)
        && value(X_VERSIONS_CONTAINER.as_str()).is_some() == bucket.keeps_versions()
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
    use vocabulary::EntityPath;

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
        let bucket = |stored: &str, keeps_versions: bool| RuledBucket {
            path: EntityPath::account("a").with_container("c"),
            rules: LifecycleRules::default(),
            stored: stored.to_owned(),
            versions: keeps_versions.then(|| "v".to_owned()),
            policy: PolicyIndex::LEGACY,
            now: 100,
            day: DayLength::Calendar,
        };
        let mut headers = HeaderMap::new();
        assert!(!is_same(&headers, &bucket("[]", false)));
        headers.insert("x-container-sysmeta-s3api-lifecycle-0", HeaderValue::from_static("[]"));
        assert!(is_same(&headers, &bucket("[]", false)));
        assert!(!is_same(&headers, &bucket("[1]", false)) && !is_same(&headers, &bucket("[]", true)));
        headers.insert(X_VERSIONS_CONTAINER, HeaderValue::from_static("v"));
        assert!(is_same(&headers, &bucket("[]", true)) && !is_same(&headers, &bucket("[]", false)));
    }
}
