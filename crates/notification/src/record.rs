//! The document that a webhook gets: one record of an event, in S3's form.
//!
//! Source: AWS, "Event message structure" (version 2.1).

use crate::queue::QueuedEvent;
use serde_json::{Map, Value, json};
use vocabulary::Timestamp;
use vocabulary::names::quote;

/// The entity tag of a large object of Swift's as S3 shows it: with a hyphen, so that no client takes it for an MD5.
pub fn shown_of_large(etag: &str) -> String {
    format!("{}-N", etag.trim_matches('"'))
}

/// The document of an event whose write is done, or taken for done.
pub fn document(entry: &QueuedEvent) -> Value {
    let facts = entry.written.clone().unwrap_or_default();
    let at = facts.at.and_then(|ticks| Timestamp::from_ticks(ticks).ok());
    let at = at.unwrap_or_else(|| entry.noted());
    let mut object = Map::new();
    object.insert("key".into(), encoded(&entry.key).into());
    if let Some(size) = facts.size.filter(|_| !entry.event.is_removal()) {
        object.insert("size".into(), size.into());
    }
    if let Some(etag) = facts.etag.filter(|_| !entry.event.is_removal()) {
        object.insert("eTag".into(), etag.into());
    }
    if let Some(version) = facts.version.or_else(|| entry.version.clone()) {
        object.insert("versionId".into(), version.into());
    }
    object.insert("sequencer".into(), sequencer(at).into());
    json!({ "Records": [{
        "eventVersion": "2.1",
        "eventSource": "aws:s3",
        "awsRegion": entry.region,
        "eventTime": time(at),
        "eventName": entry.event.name(),
        "userIdentity": { "principalId": entry.user },
        "requestParameters": { "sourceIPAddress": entry.from },
        "responseElements": { "x-amz-request-id": entry.request, "x-amz-id-2": entry.request },
        "s3": {
            "s3SchemaVersion": "1.0",
            "configurationId": entry.rule,
            "bucket": {
                "name": entry.bucket,
                "ownerIdentity": { "principalId": entry.account },
                "arn": format!("arn:aws:s3:::{}", entry.bucket),
            },
            "object": object,
        },
    }] })
}

/// A key as forms encode it: a space is `+`.
fn encoded(key: &str) -> String {
    quote(key).replace("%20", "+")
}

/// `2026-11-25T23:40:00.123Z`.
fn time(at: Timestamp) -> String {
    let iso = at.iso();
    // Six decimals become three.
    format!("{}Z", iso.get(..iso.len() - 3).unwrap_or(&iso))
}

/// Of two events of a key the later one has the greater text; each has 16 digits.
fn sequencer(at: Timestamp) -> String {
    format!("{:016X}", at.ticks())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ObjectEvent;
    use crate::queue::WrittenFacts;
    use crate::queue::tests::entry;

    #[test]
    fn records_have_s3s_form() {
        let mut entry = entry(ObjectEvent::Put);
        entry.written = Some(WrittenFacts {
            at: Some(179_519_731_512_345),
            size: Some(5),
            etag: Some("abc".into()),
            version: Some("1795197315.12345".into()),
        });
        let document = document(&entry);
        let record = &document["Records"][0];
        assert_eq!(record["eventName"], "ObjectCreated:Put");
        assert_eq!(record["eventTime"], "2026-11-20T17:55:15.123Z");
        assert_eq!(record["responseElements"]["x-amz-request-id"], "tx1");
        assert_eq!(record["s3"]["configurationId"], "new");
        assert_eq!(
            record["s3"]["object"],
            json!({ "key": "in/a+%2B%C3%BC", "size": 5, "eTag": "abc", "versionId": "1795197315.12345",
                    "sequencer": "0000A345B1D3B419" })
        );
    }

    #[test]
    fn what_has_gone_has_no_size() {
        let mut entry = entry(ObjectEvent::Delete);
        entry.version = Some("v".into());
        entry.written = Some(WrittenFacts {
            size: Some(0),
            etag: Some("x".into()),
            ..WrittenFacts::default()
        });
        let document = document(&entry);
        let object = document["Records"][0]["s3"]["object"].as_object().unwrap();
        let names: Vec<&str> = object.keys().map(String::as_str).collect();
        assert_eq!(names, ["key", "versionId", "sequencer"]);
    }

    #[test]
    fn sequencers_are_ordered() {
        let at = |ticks| sequencer(Timestamp::from_ticks(ticks).unwrap());
        assert!(at(1) < at(2) && at(0xF) < at(0x10) && at(0) < at(179_519_731_512_345));
    }
}
