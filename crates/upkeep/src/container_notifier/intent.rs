//! Was the write of an intent made? The gateway that noted it has not said so: it was killed, or could not.
//!
//! The object tells: a PUT leaves the id of its event as a mark in it. What was written over since hides that, and a
//! deletion leaves no mark, so there the time decides.
//! Always holds: what cannot be decided counts as made, once the time has passed in which it could still be under way.

use super::NotifierShared;
use crate::internal_client::{InternalRequest, UnexpectedStatus};
use http::header::{HeaderMap, HeaderName};
use http::{Method, StatusCode};
use notification::{EVENT_MARK, ObjectEvent, QueuedEvent, WrittenFacts, shown_of_large};
use vocabulary::conditional::bare_etag;
use vocabulary::names::quote;
use vocabulary::{EntityPath, Timestamp};

pub(super) const X_NEWEST: HeaderName = HeaderName::from_static("x-newest");
/// Where the size and the tag of an object made of parts are.
const SIZES: [&str; 2] = ["x-object-sysmeta-slo-size", "content-length"];
const ETAG_OF_PARTS: &str = "x-object-sysmeta-s3api-etag";
const ETAG_OF_LARGE: &str = "x-object-sysmeta-slo-etag";

/// What became of an intent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum IntentFate {
    /// The write was made.
    Made(WrittenFacts),
    /// It was not made so far.
    NotMade,
    /// Something newer is in its place.
    Overtaken,
}

/// Looks at the object.
pub(super) async fn look(shared: &NotifierShared, entry: &QueuedEvent) -> Result<IntentFate, UnexpectedStatus> {
    let path = EntityPath::account(entry.account.as_str())
        .with_container(entry.bucket.as_str())
        .with_object(entry.key.as_str());
    let mut head = InternalRequest::new(Method::HEAD, path).with(X_NEWEST, "true");
    if let Some(version) = &entry.version {
        head.query = format!("version-id={}", quote(version));
    }
    let found = shared.client.ask(&head, &[2, 404]).await?;
    let fate = fate(entry, found.status(), found.headers());
    if matches!(fate, IntentFate::Made(_)) || entry.event.is_removal() {
        return Ok(fate);
    }
    // What was written may be a symbolic link, whose mark is in itself and not in what it leads to.
    head.query = "symlink=get".to_owned();
    let link = shared.client.ask(&head, &[2, 404]).await?;
    Ok(match has_mark(entry, link.status(), link.headers()) {
        true => IntentFate::Made(facts(link.headers())),
        false => fate,
    })
}

fn has_mark(entry: &QueuedEvent, status: StatusCode, found: &HeaderMap) -> bool {
    status.is_success() && found.get(EVENT_MARK).is_some_and(|mark| mark == entry.id.as_str())
}

fn fate(entry: &QueuedEvent, status: StatusCode, found: &HeaderMap) -> IntentFate {
    let is_there = status.is_success();
    if has_mark(entry, status, found) {
        return IntentFate::Made(facts(found));
    }
    if entry.event.is_removal() && !is_there {
        return IntentFate::Made(WrittenFacts::default());
    }
    match time(found).is_some_and(|time| time > entry.noted()) {
        // A version that was to be deleted is what it was.
        true if entry.event != ObjectEvent::Delete || entry.version.is_none() => IntentFate::Overtaken,
        _ => IntentFate::NotMade,
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// When the object was written, or deleted.
fn time(headers: &HeaderMap) -> Option<Timestamp> {
    text(headers, "x-timestamp")?.parse().ok()
}

fn facts(headers: &HeaderMap) -> WrittenFacts {
    let known = |name: &str| text(headers, name).filter(|etag| !etag.is_empty());
    let etag = known(ETAG_OF_PARTS).map(str::to_owned);
    let etag = etag.or_else(|| known(ETAG_OF_LARGE).map(shown_of_large));
    let etag = etag.or_else(|| known("etag").map(str::to_owned));
    WrittenFacts {
        at: time(headers).map(Timestamp::ticks),
        size: SIZES.iter().find_map(|name| text(headers, name)?.parse().ok()),
        etag: etag.map(|etag| bare_etag(&etag).to_owned()),
        version: text(headers, "x-object-version-id").map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn entry(event: ObjectEvent) -> QueuedEvent {
        QueuedEvent {
            id: "6f0c".into(),
            account: "a".into(),
            bucket: "b".into(),
            key: "k".into(),
            event,
            rule: "r".into(),
            noted: Timestamp::from_seconds(1000).ticks(),
            written: None,
            version: None,
            region: String::new(),
            request: String::new(),
            user: String::new(),
            from: String::new(),
        }
    }

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect()
    }

    #[test]
    fn the_object_tells_what_became_of_an_intent() {
        use ObjectEvent::{Delete, Put};
        let older = ("x-timestamp", "999.00000");
        let newer = ("x-timestamp", "1001.00000");
        let mark = (EVENT_MARK, "6f0c");
        let other = (EVENT_MARK, "6f0d");
        for (event, status, found, expected) in [
            (Put, 200, &[other, older][..], Some(IntentFate::NotMade)),
            (Put, 200, &[other, newer], Some(IntentFate::Overtaken)),
            (Put, 200, &[newer], Some(IntentFate::Overtaken)),
            (Put, 404, &[], Some(IntentFate::NotMade)),
            (Put, 200, &[mark, newer], None),
            (Delete, 404, &[], None),
            (Delete, 200, &[older], Some(IntentFate::NotMade)),
            (Delete, 200, &[newer], Some(IntentFate::Overtaken)),
        ] {
            let fate = fate(&entry(event), StatusCode::from_u16(status).unwrap(), &headers(found));
            match expected {
                Some(expected) => assert_eq!(fate, expected, "{event:?} {status} {found:?}"),
                None => assert!(matches!(fate, IntentFate::Made(_)), "{event:?} {status} {found:?}"),
            }
        }
        let mut of_version = entry(Delete);
        of_version.version = Some("1.0".into());
        assert_eq!(
            fate(&of_version, StatusCode::OK, &headers(&[newer])),
            IntentFate::NotMade
        );
    }

    #[test]
    fn tags_are_those_that_s3_shows() {
        let plain = ("etag", "\"of the manifest\"");
        for (also, expected) in [
            (&[][..], "of the manifest"),
            (&[("x-object-sysmeta-s3api-etag", "")], "of the manifest"),
            (
                &[
                    ("x-object-sysmeta-s3api-etag", "parts-2"),
                    ("x-object-sysmeta-slo-etag", "large"),
                ],
                "parts-2",
            ),
            (&[("x-object-sysmeta-slo-etag", "large")], "large-N"),
        ] {
            let found = headers(&[also, &[plain]].concat());
            assert_eq!(facts(&found).etag.as_deref(), Some(expected));
        }
    }

    #[test]
    fn facts_are_the_objects() {
        let found = headers(&[
            (EVENT_MARK, "6f0c"),
            ("x-timestamp", "1001.00000"),
            ("content-length", "99"),
            ("x-object-sysmeta-slo-size", "7"),
            ("etag", "\"abc\""),
        ]);
        let expected = WrittenFacts {
            at: Some(Timestamp::from_seconds(1001).ticks()),
            size: Some(7),
            etag: Some("abc".into()),
            version: None,
        };
        assert_eq!(
            fate(&entry(ObjectEvent::Put), StatusCode::OK, &found),
            IntentFate::Made(expected)
        );
    }
}
