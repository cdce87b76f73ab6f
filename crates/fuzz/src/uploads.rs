//! Bodies of uploads: forms, MIME, archives, manifests, lists. The pieces in which they come change nothing.

use crate::input::{block_on, body, cut, text};
use features::bulk::decode::{Compression, Decoded};
use features::bulk::tar::{Archive, TarEntry, Unreadable};
use features::bulk::{list, list_room::ListSeat};
use features::large_objects::slo::{check_manifest, manifest};
use object_server::mime::{MimeEvent, MimeSplitter, NotMime, PartHead};
use request_pipeline::MemoryRoom;
use request_pipeline::multipart::{Broken, Multipart, PartHeaders, parameters_of};
use std::sync::Arc;
use world::clock::RealClock;

/// Nothing here comes in more than one piece of this size.
const WHOLE: usize = 1 << 20;
/// Decompressed bytes that are looked at.
const MOST_DECOMPRESSED: usize = 4 << 20;

/// `multipart/form-data`.
pub(crate) fn formpost(bytes: &[u8]) {
    let (size, form) = cut(bytes);
    let whole = block_on(parts(form, WHOLE));
    assert_eq!(block_on(parts(form, size)), whole, "pieces of {size}");
    let taken: usize = whole.iter().flatten().map(|(_, data)| data.len()).sum();
    assert!(taken <= form.len());
    let text = text(form);
    let length: usize = parameters_of(&text)
        .iter()
        .map(|(name, value)| name.len() + value.len())
        .sum();
    // A letter of another alphabet may be longer in small.
    assert!(length <= 3 * text.len());
}

async fn parts(form: &[u8], size: usize) -> Result<Vec<(PartHeaders, Vec<u8>)>, Broken> {
    let mut multipart = Multipart::new(body(form, size), "B", Arc::new(RealClock::new()));
    multipart.start().await?;
    let mut parts = Vec::new();
    while let Some(headers) = multipart.part().await? {
        parts.push((headers, multipart.value(1000).await?));
    }
    Ok(parts)
}

/// MIME between gateways and object servers.
pub(crate) fn mime(bytes: &[u8]) {
    let (size, sent) = cut(bytes);
    let whole = split(sent, WHOLE);
    assert_eq!(split(sent, size), whole, "pieces of {size}");
    let taken: usize = whole.iter().flatten().map(|(_, data)| data.len()).sum();
    assert!(taken <= sent.len());
}

fn split(bytes: &[u8], size: usize) -> Result<Vec<(PartHead, Vec<u8>)>, NotMime> {
    let mut splitter = MimeSplitter::new("bnd");
    let mut pieces = bytes.chunks(size);
    let mut parts: Vec<(PartHead, Vec<u8>)> = Vec::new();
    loop {
        match splitter.next_event()? {
            MimeEvent::Hungry => match pieces.next() {
                Some(piece) => splitter.feed(piece),
                None => return Err(NotMime("it ends too early")),
            },
            MimeEvent::Part(head) => parts.push((head, vec![])),
            MimeEvent::Data(data) => match parts.last_mut() {
                Some((_, taken)) => taken.extend_from_slice(&data),
                None => panic!("data before any part"),
            },
            MimeEvent::PartEnd => {}
            MimeEvent::End => return Ok(parts),
        }
    }
}

/// Archives, as the second byte says: plain or compressed.
pub(crate) fn tar(bytes: &[u8]) {
    let (size, rest) = cut(bytes);
    let Some((kind, sent)) = rest.split_first() else { return };
    let compression = match kind % 3 {
        0 => Compression::None,
        1 => Compression::Gzip,
        _ => Compression::Bzip2,
    };
    let whole = block_on(entries(sent, WHOLE, compression));
    let in_pieces = block_on(entries(sent, size, compression));
    // How much of a damaged file is decompressed before that is seen depends on its pieces.
    if compression == Compression::None || whole.1.is_none() && in_pieces.1.is_none() {
        assert_eq!(in_pieces, whole, "pieces of {size}");
    }
    let taken: usize = whole
        .0
        .iter()
        .map(|(entry, length)| entry.name.len().min(1) + length)
        .sum();
    assert!(compression != Compression::None || taken <= sent.len());
}

/// The entries with the lengths of their data, and what was wrong behind them.
async fn entries(sent: &[u8], size: usize, compression: Compression) -> (Vec<(TarEntry, usize)>, Option<Unreadable>) {
    let mut archive = Archive::new(Decoded::new(body(sent, size), compression));
    let (mut found, mut looked_at) = (Vec::new(), 0);
    loop {
        let entry = match archive.entry().await {
            Ok(Some(entry)) => entry,
            Ok(None) => return (found, None),
            Err(problem) => return (found, Some(problem)),
        };
        let mut length = 0;
        // Every third is not read, and skipped.
        while found.len() % 3 != 2 {
            match archive.chunk().await {
                Ok(Some(chunk)) => length += chunk.len(),
                Ok(None) => break,
                Err(problem) => return (found, Some(problem)),
            }
            looked_at += length;
            if looked_at > MOST_DECOMPRESSED {
                return (vec![], None);
            }
        }
        assert!(length as u64 <= entry.size);
        found.push((entry, length));
        if found.len() > 4096 {
            return (vec![], None);
        }
    }
}

/// Lists of names to delete.
pub(crate) fn bulk_list(bytes: &[u8]) {
    let (size, sent) = cut(bytes);
    let seat = || ListSeat::in_room(&MemoryRoom::default(), "a");
    let (mut one, mut other) = (seat(), seat());
    let whole = block_on(list::read(body(sent, WHOLE), 20, &mut one));
    let in_pieces = block_on(list::read(body(sent, size), 20, &mut other));
    assert_eq!(whole.is_ok(), in_pieces.is_ok(), "pieces of {size}");
    if let (Ok(whole), Ok(in_pieces)) = (whole, in_pieces) {
        assert!(whole.len() <= 20);
        assert_eq!(whole.len(), in_pieces.len());
    }
}

/// Manifests of large objects, as they are sent and as they are stored.
pub(crate) fn slo_manifest(bytes: &[u8]) {
    match check_manifest(bytes, "/c/m", 5) {
        Ok(entries) => assert!(entries <= bytes.len()),
        Err(fault) => assert!(fault.what.ends_with('\n') && fault.what.len() <= 1_100 * (bytes.len() + 200)),
    }
    let Ok(segments) = manifest::read(bytes) else { return };
    let _ = (segments.length(), segments.etag());
    for segment in segments.iter() {
        if let manifest::Content::Object(object) = &segment.content {
            assert!(object.names().is_some() && segment.length <= object.size);
            assert!(
                object
                    .range
                    .is_none_or(|range| range.start < range.end && range.end <= object.size)
            );
        }
    }
    // Fields without a meaning are not looked at when a manifest is read: they may be no text, or too large a number.
    if serde_json::from_slice::<serde_json::Value>(bytes).is_err() {
        return;
    }
    let raw =
        manifest::raw(bytes).map(|text| serde_json::from_str::<Vec<serde_json::Value>>(&text).map(|list| list.len()));
    assert!(matches!(raw, Ok(Ok(length)) if length == segments.len()), "{raw:?}");
}
