//! Checksums in bodies, as COSBench's `hashCheck` has them.
//!
//! ```text
//! 0                        length - 40                                          length
//! | content                | !!!! | MD5 of the content, 32 hexadecimal digits | !!!! |
//! ```
//!
//! A body of 40 bytes or less has no checksum. COSBench has no page about it: this is what COSBench 0.4.2 wrote to a
//! store that kept it.
//! Always holds: a body is as long with its checksum as it was asked to be.

use super::{ContentKey, Contents};
use md5::{Digest as _, Md5};
use vocabulary::hex;

/// Bytes of a checksum with its guards.
const TAIL: usize = 40;
const GUARD: &[u8] = b"!!!!";

fn tail(md5: Md5) -> Vec<u8> {
    let digits = hex::encode(md5.finalize());
    [GUARD, digits.as_bytes(), GUARD].concat()
}

/// `content` with its checksum behind it.
pub fn with_checksum(mut content: Vec<u8>) -> Vec<u8> {
    let tail = tail(Md5::new().chain_update(&content));
    content.extend_from_slice(&tail);
    content
}

/// Makes a body, piece after piece.
pub struct HashedBody {
    md5: Md5,
    /// Where the checksum begins.
    end: u64,
    tail: Option<Vec<u8>>,
}

impl HashedBody {
    /// Of so many bytes, the checksum among them.
    pub fn new(length: u64) -> Self {
        Self {
            md5: Md5::new(),
            end: match length > TAIL as u64 {
                true => length - TAIL as u64,
                false => length,
            },
            tail: None,
        }
    }

    /// The next piece, which begins at `offset`.
    pub fn fill(&mut self, contents: &Contents, key: ContentKey, offset: u64, piece: &mut [u8]) {
        let of_content = self.end.saturating_sub(offset).min(piece.len() as u64) as usize;
        let (content, rest) = piece.split_at_mut(of_content);
        contents.fill(key, offset, content);
        self.md5.update(&*content);
        if !rest.is_empty() {
            let md5 = &self.md5;
            let tail = self.tail.get_or_insert_with(|| tail(md5.clone()));
            let from = (offset + of_content as u64 - self.end) as usize;
            rest.copy_from_slice(&tail[from..from + rest.len()]);
        }
    }
}

/// Compares a body with its checksum, piece after piece.
#[derive(Default)]
pub struct ChecksumCheck {
    md5: Md5,
    /// The last bytes that came: a checksum, if these were all.
    held: Vec<u8>,
    bytes: u64,
}

impl ChecksumCheck {
    /// Takes the next piece.
    pub fn take(&mut self, piece: &[u8]) {
        self.bytes += piece.len() as u64;
        self.held.extend_from_slice(piece);
        let sure = self.held.len().saturating_sub(TAIL);
        self.md5.update(&self.held[..sure]);
        self.held.drain(..sure);
    }

    /// Whether the body, which is over, ends with its checksum.
    pub fn fits(self) -> bool {
        self.bytes <= TAIL as u64 || self.held == tail(self.md5)
    }
}

#[cfg(test)]
mod tests {
    use super::{ChecksumCheck, HashedBody, with_checksum};
    use crate::content::Contents;
    use crate::workload::BodyContent;

    fn fits(body: &[u8], piece: usize) -> bool {
        let mut check = ChecksumCheck::default();
        body.chunks(piece).for_each(|piece| check.take(piece));
        check.fits()
    }

    /// The last 40 bytes of an object of 500 bytes with `content=zero`, as COSBench wrote it.
    #[test]
    fn checksums_are_those_of_cosbench() {
        let theirs = [&[0; 460][..], b"!!!!b84ae69de4df8dcf4e21ed3dee2264d6!!!!"].concat();
        let contents = Contents::new();
        let key = contents.key("c", "o", BodyContent::Zero);
        for piece in [1, 7, 40, 499, 4096] {
            let (mut body, mut made) = (vec![1; 500], HashedBody::new(500));
            for (at, part) in body.chunks_mut(piece).enumerate() {
                made.fill(&contents, key, (at * piece) as u64, part);
            }
            assert_eq!(body, theirs, "{piece}");
            assert!(fits(&body, piece));
            body[3] = 1;
            assert!(!fits(&body, piece));
        }
        assert_eq!(with_checksum(vec![0; 460]), theirs);
    }

    #[test]
    fn short_bodies_have_no_checksum() {
        let contents = Contents::new();
        let key = contents.key("c", "o", BodyContent::Random);
        let (mut plain, mut hashed) = ([0; 40], [0; 40]);
        contents.fill(key, 0, &mut plain);
        HashedBody::new(40).fill(&contents, key, 0, &mut hashed);
        assert!(plain == hashed && fits(&hashed, 40));
        let mut longer = [0; 41];
        HashedBody::new(41).fill(&contents, key, 0, &mut longer);
        assert!(longer[0] == plain[0] && &longer[1..5] == b"!!!!" && fits(&longer, 41));
        assert!(!fits(&[b'!'; 41], 41), "a body that ends without a checksum");
    }
}
