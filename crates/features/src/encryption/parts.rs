//! The answer to a GET of several ranges: each part is decrypted by itself.
//!
//! `multipart/byteranges` as the gateway and OpenStack's proxies write it: every part's head says in
//! `Content-Range` which bytes follow, and so how many.
//! Always holds: as many bytes come out as go in, when they go in (a part's bytes never wait); a head is
//! bounded.

use super::cipher::{BodyKey, Cipher};
use bytes::{Bytes, BytesMut};
use peer::BodyError;
use vocabulary::ByteRange;

/// Bytes that a part's head may have.
const MAX_HEAD: usize = 16 * 1024;

enum State {
    /// In a head; what there is of it has been passed on, and is kept until its end.
    Head(Vec<u8>),
    /// So many more bytes of a range.
    Range(Box<Cipher>, u64),
}

/// Decrypts the parts of a body.
pub(super) struct ByteRangeParts {
    content: BodyKey,
    state: State,
}

impl ByteRangeParts {
    pub(super) fn new(content: BodyKey) -> Self {
        Self {
            content,
            state: State::Head(Vec::new()),
        }
    }

    /// The next bytes; heads and boundaries as they are.
    pub(super) fn decrypt(&mut self, bytes: &Bytes) -> Result<Bytes, BodyError> {
        let mut bytes = BytesMut::from(&bytes[..]);
        let mut left = &mut bytes[..];
        while !left.is_empty() {
            let done = self.step(left)?;
            left = &mut left[done..];
        }
        Ok(bytes.freeze())
    }

    /// Deals with the first bytes; answers with how many those were.
    fn step(&mut self, bytes: &mut [u8]) -> Result<usize, BodyError> {
        match &mut self.state {
            State::Range(cipher, left) => {
                let take = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                cipher.apply(&mut bytes[..take]);
                *left -= take as u64;
                if *left == 0 {
                    self.state = State::Head(Vec::new());
                }
                Ok(take)
            }
            State::Head(head) => {
                let before = head.len();
                head.extend_from_slice(bytes);
                let Some(end) = head_end(head) else {
                    return match head.len() <= MAX_HEAD {
                        true => Ok(bytes.len()),
                        false => Err(BodyError::Corrupt),
                    };
                };
                let range = content_range(&head[..end]).ok_or(BodyError::Corrupt)?;
                if !range.is_empty() {
                    self.state = State::Range(Box::new(self.content.cipher_from(range.start)), range.len());
                } else {
                    self.state = State::Head(Vec::new());
                }
                Ok(end - before)
            }
        }
    }
}

/// Where the bytes of a part begin.
fn head_end(head: &[u8]) -> Option<usize> {
    memchr::memmem::find(head, b"\r\n\r\n").map(|at| at + 4)
}

fn content_range(head: &[u8]) -> Option<ByteRange> {
    let head = std::str::from_utf8(head).ok()?;
    let line = |line: &str| {
        let (name, value) = line.split_once(':')?;
        name.trim()
            .eq_ignore_ascii_case("content-range")
            .then(|| value.trim().to_owned())
    };
    let value = head.lines().find_map(line)?;
    let (range, _total) = value.strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let (start, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    let end = last.checked_add(1)?;
    (start <= end).then_some(ByteRange { start, end })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encryption::cipher::crypt;
    use crate::encryption::keymaster::Key;
    use proptest::prelude::*;

    const KEY: [u8; 32] = [3; 32];
    const IV: [u8; 16] = [4; 16];

    fn body(plain: &[u8], ranges: &[(usize, usize)]) -> Vec<u8> {
        let mut body = Vec::new();
        for (at, (from, to)) in ranges.iter().enumerate() {
            body.extend_from_slice(if at == 0 { b"--bnd\r\n" } else { b"\r\n--bnd\r\n" });
            let head = format!(
                "Content-Type: text/plain\r\nContent-Range: bytes {from}-{}/{}\r\n\r\n",
                to - 1,
                plain.len()
            );
            body.extend_from_slice(head.as_bytes());
            body.extend_from_slice(&plain[*from..*to]);
        }
        body.extend_from_slice(b"\r\n--bnd--");
        body
    }

    fn decrypt(body: &[u8], size: usize) -> Result<Vec<u8>, BodyError> {
        let mut parts = ByteRangeParts::new(BodyKey {
            key: Key::new(KEY),
            iv: IV,
        });
        let pieces = body
            .chunks(size)
            .map(|piece| parts.decrypt(&Bytes::copy_from_slice(piece)));
        let pieces: Result<Vec<Bytes>, _> = pieces.collect();
        pieces.map(|pieces| pieces.concat())
    }

    #[test]
    fn every_part_is_decrypted_from_its_place() {
        let plain: Vec<u8> = (0..200).collect();
        let encrypted = crypt(&Key::new(KEY), &IV, &plain);
        let ranges = [(3, 10), (150, 200), (0, 33), (199, 200)];
        for size in [1, 2, 7, 64, 1000] {
            assert_eq!(
                decrypt(&body(&encrypted, &ranges), size).unwrap(),
                body(&plain, &ranges),
                "{size}"
            );
        }
    }

    #[test]
    fn what_is_no_part_is_refused() {
        for bad in [
            "--bnd\r\nContent-Type: x\r\n\r\nabc",
            "--bnd\r\nContent-Range: bytes 5-x/9\r\n\r\nabc",
            "--bnd\r\nContent-Range: bytes 5-3/9\r\n\r\nabc",
            "--bnd\r\nContent-Range: bytes 5-18446744073709551615/9\r\n\r\nabc",
        ] {
            assert_eq!(decrypt(bad.as_bytes(), 5), Err(BodyError::Corrupt));
        }
        assert_eq!(decrypt(&[b'x'; 2 * MAX_HEAD], 999), Err(BodyError::Corrupt));
    }

    proptest! {
        #[test]
        fn any_bytes_are_decrypted_or_refused(
            text in "(--b|\r\n|\r\n\r\n|Content-Range: bytes |[0-9]{1,3}|-|/|:|\\PC){0,30}", size in 1usize..9,
        ) {
            if let Ok(out) = decrypt(text.as_bytes(), size) {
                prop_assert_eq!(out.len(), text.len());
            }
        }
    }
}
