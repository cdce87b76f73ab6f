//! A container's or an account's answer, which is held as a whole before anything is made of it.
//!
//! Comes in: the answer of a server that was found. Goes out: the same with its body in memory, or 503.
//! Always holds: the answers that are being read at a time take no more room together than [`Shared`] has for them,
//! whatever servers send; an answer that would take more than [`MOST_VALUES`] as values is no listing, and is not
//! parsed.
//! Deliberately absent: how long an answer stays until its client has it (`answer.rs` in `peer`), what the rows say.

use crate::read::ReadSource;
use crate::shared::Shared;
use bytes::{Bytes, BytesMut};
use memchr::memchr_iter;
use peer::{Body, BodyError};
use request_pipeline::{MemorySeat, NoRoom, Response, reply};
use std::net::IpAddr;

/// Bytes of one answer: ten thousand of the longest names, each byte of them escaped, have half as many.
const MOST: u64 = 128 << 20;
/// Bytes of an answer whose server is not to be blamed if it came no further.
const MUCH: u64 = 1 << 20;
/// Bytes of the values that one answer may be read into; a listing of 670,000 objects takes as many.
const MOST_VALUES: u64 = 1 << 30;
/// About what a value takes while its list grows, and what an object takes in addition.
const VALUE: u64 = 160;
const OBJECT: u64 = 640;

/// Why there is no answer.
enum Unread {
    Body(BodyError),
    NoRoom(NoRoom),
    NotAListing,
}

/// The answer of a node that has it, as a whole, for a client at this address.
pub(crate) async fn whole(shared: &Shared, from: IpAddr, source: ReadSource) -> Response {
    let (head, body) = source.response.into_parts();
    let patience = shared.options.recoverable_node_timeout;
    let mut seat = shared.listings.enter_from(from);
    let why = match shared.world.timeout(patience, collect(body, &mut seat)).await {
        Ok(Ok(body)) => return Response::from_parts(head, Body::whole(body)),
        Ok(Err(Unread::NoRoom(no_room))) => return no_room.answer(),
        Ok(Err(Unread::Body(error))) => format!("its answer broke off: {error}"),
        Ok(Err(Unread::NotAListing)) => "its answer is longer than a listing can be".to_owned(),
        // It comes from the server's memory: with so many other answers beside it that there was no time for all of it.
        Err(error) if seat.bytes() >= MUCH => {
            let node = &source.node;
            tracing::warn!(
                "{}:{}/{}: a listing came too slowly: {error}",
                node.ip,
                node.port,
                node.device
            );
            return NoRoom.answer();
        }
        Err(error) => format!("its answer stalled: {error}"),
    };
    shared.suppression.error(&source.node, &why);
    reply::status(503)
}

async fn collect(mut body: Body, seat: &mut MemorySeat) -> Result<Bytes, Unread> {
    let Some(first) = next(&mut body, seat).await? else {
        return Ok(Bytes::new());
    };
    let Some(second) = next(&mut body, seat).await? else {
        return listing(first);
    };
    // Reserved, so that it does not grow by doubling: what the server does not send takes no memory.
    let length = body.length().unwrap_or_default().min(MOST);
    let mut all = BytesMut::with_capacity(usize::try_from(length).unwrap_or_default());
    all.extend_from_slice(&first);
    all.extend_from_slice(&second);
    while let Some(chunk) = next(&mut body, seat).await? {
        all.extend_from_slice(&chunk);
        if all.len() as u64 > MOST {
            return Err(Unread::Body(BodyError::TooLarge(MOST)));
        }
    }
    listing(all.freeze())
}

async fn next(body: &mut Body, seat: &mut MemorySeat) -> Result<Option<Bytes>, Unread> {
    let chunk = body.next().await.transpose().map_err(Unread::Body)?;
    if let Some(chunk) = &chunk {
        seat.grow(chunk.len() as u64).map_err(Unread::NoRoom)?;
    }
    Ok(chunk)
}

fn listing(text: Bytes) -> Result<Bytes, Unread> {
    match can_be_listing(&text) {
        true => Ok(text),
        false => Err(Unread::NotAListing),
    }
}

/// Whether a JSON text takes no more than [`MOST_VALUES`] when it is read. What stands inside names is counted only
/// where all of it together would be too much.
fn can_be_listing(json: &[u8]) -> bool {
    let count = |byte| memchr_iter(byte, json).count() as u64;
    let most = (count(b',') + count(b'[')) * VALUE + count(b'{') * (OBJECT + VALUE);
    most <= MOST_VALUES || size_of_values(json) <= MOST_VALUES
}

/// About as many bytes as the values of a JSON text take, counted until that is too much.
fn size_of_values(json: &[u8]) -> u64 {
    let (mut size, mut is_text, mut is_escaped) = (0, false, false);
    for byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_text,
            b'"' => is_text = !is_text,
            b'{' if !is_text => size += OBJECT + VALUE,
            b',' | b'[' if !is_text => size += VALUE,
            _ => {}
        }
        if size > MOST_VALUES {
            break;
        }
    }
    size
}

#[cfg(test)]
mod tests {
    use super::*;
    use request_pipeline::MemoryRoom;

    fn stream(piece: &'static [u8], count: usize) -> Body {
        let pieces = std::iter::repeat_n(Ok(Bytes::from_static(piece)), count);
        Body::stream(futures_util::stream::iter(pieces), None)
    }

    #[test]
    fn rubbish_is_no_listing() {
        assert!(!can_be_listing("{},".repeat(2 << 20).as_bytes()));
        assert!(!can_be_listing("[".repeat(8 << 20).as_bytes()));
        let name = format!("{}\\\"", "{[,".repeat(341));
        let row = format!("{{\"bytes\": 7, \"hash\": \"0\", \"name\": \"{name}\"}}, ");
        assert!(can_be_listing(row.repeat(10_000).as_bytes()));
        assert!(can_be_listing(b"") && can_be_listing(b"\"\\"));
    }

    #[tokio::test]
    async fn answers_share_the_room_while_they_are_read() {
        static PIECE: [u8; 1000] = [b' '; 1000];
        let room = MemoryRoom::of(20_000);
        let mut held = room.enter("a");
        assert_eq!(collect(stream(&PIECE, 6), &mut held).await.ok().unwrap().len(), 6000);
        let refused = collect(stream(&PIECE, 5), &mut room.enter("a")).await;
        assert!(matches!(refused, Err(Unread::NoRoom(_))));
        assert_eq!(
            collect(stream(&PIECE, 1), &mut room.enter("a"))
                .await
                .ok()
                .unwrap()
                .len(),
            1000
        );
        drop(held);
        assert_eq!(
            collect(stream(&PIECE, 5), &mut room.enter("a"))
                .await
                .ok()
                .unwrap()
                .len(),
            5000
        );
    }
}
