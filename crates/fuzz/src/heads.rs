//! Heads of requests: what `peer` hands to hyper, compared with what hyper's parser makes of it.
//!
//! The bytes that come out must be, head by head and body by body, those that went in, but for escaped bytes in names
//! and addresses. Where one head ends and the next begins is decided here by httparse and hyper's rules of framing: if
//! `peer` saw a boundary elsewhere it would change bytes of a body, which is how requests are smuggled.

use crate::input::cut;
use peer::escape_requests;
use vocabulary::header_name;

/// More than hyper takes; a message with more is refused.
const MOST_HEADERS: usize = 100;

pub(crate) fn heads(bytes: &[u8]) {
    let (size, sent) = cut(bytes);
    let given = escape_requests([sent]);
    assert_eq!(
        escape_requests(sent.chunks(size)),
        given,
        "pieces of {size} change what comes out"
    );
    let (mut sent, mut given) = (sent, &given[..]);
    while let Some((sent_rest, given_rest)) = message(sent, given) {
        (sent, given) = (sent_rest, given_rest);
    }
}

/// Compares one message; what is behind it, while hyper would read on.
fn message<'a>(sent: &'a [u8], given: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let Ok(httparse::Status::Complete(length)) = request.parse(given) else {
        return None;
    };
    let body = framing(&request)?;
    let lines = given[..length].iter().filter(|byte| **byte == b'\n').count();
    let end = end_of_lines(sent, lines);
    same_head(&sent[..end], &given[..length]);
    let (sent, given) = (&sent[end..], &given[length..]);
    let length = match body {
        Framing::Length(length) => usize::try_from(length).unwrap_or(usize::MAX).min(given.len()),
        Framing::Chunked => end_of_chunks(given).ok()?.unwrap_or(given.len()),
    };
    assert!(
        sent.len() >= length && sent[..length] == given[..length],
        "bytes of a body were changed"
    );
    Some((&sent[length..], &given[length..]))
}

/// Where so many lines end.
fn end_of_lines(bytes: &[u8], lines: usize) -> usize {
    let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    ends.map(|(at, _)| at + 1)
        .nth(lines.wrapping_sub(1))
        .unwrap_or(bytes.len())
}

/// The given head says what the sent one says, line by line.
fn same_head(sent: &[u8], given: &[u8]) {
    let (mut sent, mut given) = (sent.split(|b| *b == b'\n'), given.split(|b| *b == b'\n'));
    let mut has_request_line = false;
    loop {
        match (sent.next(), given.next()) {
            (None, None) => break,
            (Some(sent), Some(given)) if !has_request_line => {
                assert_eq!(
                    unescaped(sent),
                    unescaped(given),
                    "the request line says something else"
                );
                has_request_line = !sent.is_empty() && sent != b"\r";
            }
            (Some(sent), Some(given)) => {
                let (sent_name, sent_value) = split_name(sent);
                let (given_name, given_value) = split_name(given);
                let decoded = header_name::decode(std::str::from_utf8(given_name).unwrap_or_default());
                assert_eq!(sent_name, &*decoded, "another name");
                assert_eq!(sent_value, given_value, "another value");
            }
            (sent, given) => panic!("a line more or less: {sent:?}, {given:?}"),
        }
    }
}

fn split_name(line: &[u8]) -> (&[u8], &[u8]) {
    let colon = line.iter().position(|byte| *byte == b':');
    line.split_at(colon.unwrap_or(line.len()))
}

fn unescaped(line: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(line.len());
    let mut rest = line;
    while let Some((byte, tail)) = rest.split_first() {
        let digits = tail.first_chunk::<2>().filter(|_| *byte == b'%');
        let value = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        match value.filter(|_| digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))) {
            Some(value) => {
                out.push(value);
                rest = &tail[2..];
            }
            None => {
                out.push(*byte);
                rest = tail;
            }
        }
    }
    out
}

enum Framing {
    Length(u64),
    Chunked,
}

/// How hyper delimits the body; `None` when it refuses the message, or gives the connection away.
fn framing(request: &httparse::Request<'_, '_>) -> Option<Framing> {
    if request.method == Some("CONNECT") {
        return None;
    }
    let (mut length, mut coding) = (None, None);
    for header in request.headers.iter() {
        if header.name.eq_ignore_ascii_case("transfer-encoding") {
            let last = header.value.rsplit(|byte| *byte == b',').next().unwrap_or_default();
            coding = Some(last.trim_ascii().eq_ignore_ascii_case(b"chunked"));
        } else if header.name.eq_ignore_ascii_case("content-length") {
            let text = std::str::from_utf8(header.value).ok()?;
            let parsed: u64 = text.parse().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit()))?;
            if length.is_some_and(|before| before != parsed) {
                return None;
            }
            length = Some(parsed);
        }
    }
    match coding {
        Some(true) => (request.version == Some(1)).then_some(Framing::Chunked),
        Some(false) => None,
        None => Some(Framing::Length(length.unwrap_or(0))),
    }
}

/// hyper refuses these chunks.
struct BadChunks;

/// Where a chunked body ends; `None` when it is not all there.
fn end_of_chunks(bytes: &[u8]) -> Result<Option<usize>, BadChunks> {
    let mut at = 0;
    loop {
        let line = &bytes[at..];
        let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        let Some(behind) = line.get(digits) else {
            return Ok(None);
        };
        if digits == 0 || !matches!(behind, b'\r' | b' ' | b'\t' | b';') {
            return Err(BadChunks);
        }
        let size = std::str::from_utf8(&line[..digits]).map_err(|_| BadChunks)?;
        let size = usize::from_str_radix(size, 16).map_err(|_| BadChunks)?;
        let Some(end) = line.iter().position(|byte| *byte == b'\n') else {
            return Ok(None);
        };
        if !line[..end].ends_with(b"\r") || line[digits..end - 1].contains(&b'\r') {
            return Err(BadChunks);
        }
        at += end + 1;
        if size == 0 {
            return end_of_trailers(bytes, at);
        }
        at = at.checked_add(size).ok_or(BadChunks)?;
        match bytes.get(at..at.saturating_add(2)) {
            Some(b"\r\n") => at += 2,
            Some(_) => return Err(BadChunks),
            None => return Ok(None),
        }
    }
}

fn end_of_trailers(bytes: &[u8], mut at: usize) -> Result<Option<usize>, BadChunks> {
    loop {
        let Some(end) = bytes[at..].iter().position(|byte| *byte == b'\r') else {
            return Ok(None);
        };
        match bytes.get(at + end + 1) {
            None => return Ok(None),
            Some(b'\n') if end == 0 => return Ok(Some(at + 2)),
            Some(b'\n') => at += end + 2,
            Some(_) => return Err(BadChunks),
        }
    }
}
