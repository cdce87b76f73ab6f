//! What servers say to each other, and memcached to gateways.

use crate::input::{block_on, body, cut, text};
use bytes::Bytes;
use features::listings::listing_rows;
use listing_engine::wire::{Numbered, Summary};
use listing_engine::{Kind, Metadata, ShardRange, SyncPoint};
use object_engine::{decode_hashes, encode_hashes};
use peer::deletes;
use peer::ssync::{LineError, Lines, Offer, Wish};
use serde_json::Value;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use world::World;

/// Lines of SSYNC: in any pieces; offers and wishes are read from what was written of them.
pub(crate) fn ssync(bytes: &[u8]) {
    let (size, sent) = cut(bytes);
    let whole = block_on(lines(sent, 1 << 20));
    assert_eq!(block_on(lines(sent, size)), whole, "pieces of {size}");
    for line in &whole.0 {
        let line = text(line);
        if let Ok(offer) = Offer::parse(&line) {
            assert_eq!(Offer::parse(&offer.line()), Ok(offer), "{line}");
            assert_eq!(offer.wish(Some(&offer)), None, "of what it has a server wishes nothing");
            assert!(offer.wish(None).is_some());
        }
        if let Ok((hash, wish)) = Wish::parse(&line) {
            assert_eq!(Wish::parse(&wish.line(hash)), Ok((hash, wish)));
        }
    }
}

async fn lines(sent: &[u8], size: usize) -> (Vec<Bytes>, Option<LineError>) {
    let mut lines = Lines::new(&World::real(), body(sent, size), Duration::from_secs(5));
    let mut found = Vec::new();
    loop {
        match lines.next().await {
            Ok(Some(line)) => found.push(line),
            Ok(None) => return (found, None),
            Err(error) => return (found, Some(error)),
        }
    }
}

/// Bodies of REPLICATE: suffix hashes, and the JSON of databases' replicators.
pub(crate) fn replicate(bytes: &[u8]) {
    if let Ok(hashes) = decode_hashes(bytes) {
        assert_eq!(decode_hashes(&encode_hashes(&hashes)), Ok(hashes));
    }
    let words = text(bytes);
    if let Ok(metadata) = Metadata::from_json(&words) {
        assert_eq!(Metadata::from_json(&metadata.to_json()), Ok(metadata));
    }
    let Ok(value) = serde_json::from_slice::<Value>(bytes) else {
        return;
    };
    if let Some(summary) = Summary::from_answer(&value) {
        let args = summary.to_sync();
        let again = Summary::from_sync(&args[1..]);
        let expected = Summary {
            point: -1,
            shard_max_row: None,
            ..summary
        };
        assert_eq!(again, Some(expected));
    }
    let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
    if let Some(summary) = list.get(1..).and_then(Summary::from_sync) {
        assert_eq!(Summary::from_sync(&summary.to_sync()[1..]).as_ref(), Some(&summary));
    }
    for item in list.iter().chain([&value]) {
        for kind in [Kind::Container, Kind::Account] {
            if let Some(row) = Numbered::from_json(kind, item) {
                assert_eq!(Numbered::from_json(kind, &row.to_json()).as_ref(), Some(&row), "{item}");
            }
        }
        if let Some(point) = SyncPoint::from_json(item) {
            assert_eq!(SyncPoint::from_json(&point.to_json()).as_ref(), Some(&point));
        }
        if let Some(range) = ShardRange::from_json(item) {
            assert_eq!(ShardRange::from_json(&range.to_json()).as_ref(), Some(&range));
        }
        assert!(listing_engine::wire::ascii(item).is_ascii());
    }
}

/// Many deletions in one body.
pub(crate) fn deletes(bytes: &[u8]) {
    if let Some(list) = deletes::decode(bytes) {
        assert!(list.requests.len() <= deletes::MOST_DELETES);
        let again = match list.only_checks {
            true => deletes::encode_check(&list.requests),
            false => deletes::encode(&list.requests),
        };
        assert_eq!(deletes::decode(&again), Some(list));
    }
    if let Some(checked) = deletes::decode_checked(bytes, 3) {
        assert_eq!(
            deletes::decode_checked(&deletes::encode_checked(&checked), 3),
            Some(checked)
        );
    }
    if let Some(statuses) = deletes::decode_statuses(bytes, 3) {
        assert_eq!(
            deletes::decode_statuses(&deletes::encode_statuses(&statuses), 3),
            Some(statuses)
        );
    }
}

/// Listings of servers, as clients get them: whatever names say, XML stays what XML may be, and what is read for it is
/// read for plain text.
pub(crate) fn listings(bytes: &[u8]) {
    for reserved in [false, true] {
        let plain = listing_rows::plain(bytes, reserved);
        for xml in [
            listing_rows::account_xml(bytes, "a<\"&", reserved),
            listing_rows::container_xml(bytes, "c<\"&", reserved),
        ] {
            let Ok(xml) = xml else { continue };
            let wrong = xml.find(|c: char| c < ' ' && !"\t\n\r".contains(c) || matches!(c, '\u{fffe}' | '\u{ffff}'));
            assert_eq!(wrong, None, "XML has no such character: {xml:?}");
            assert_eq!(xml.matches('<').count(), xml.matches('>').count(), "{xml:?}");
            assert!(plain.is_ok(), "only the XML is read");
        }
    }
    if let Ok(Some(filtered)) = listing_rows::json_without_reserved(bytes) {
        let again = listing_rows::json_without_reserved(filtered.as_bytes());
        assert!(matches!(&again, Ok(None)) || again == Ok(Some(filtered)), "{again:?}");
    }
}

/// What a memcached answers: at most what was asked for.
pub(crate) fn memcache(bytes: &[u8]) {
    let read = |keys| {
        block_on(async {
            let (ours, mut theirs) = tokio::io::duplex(bytes.len() + 1024);
            theirs.write_all(bytes).await.ok()?;
            theirs.shutdown().await.ok()?;
            memcache::read_reply(Box::new(ours), keys).await
        })
    };
    let found = read(["a", "b"]);
    let swapped = read(["b", "a"]).map(|[b, a]| [a, b]);
    assert_eq!(found, swapped, "the order of keys decides what they mean");
}
