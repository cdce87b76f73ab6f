//! Heads of messages on their way in: names that HTTP libraries refuse are encoded before hyper sees them.
//!
//! [`Heads`] watches the bytes that a connection delivers. It knows where heads end and how long bodies
//! are, looks only at the former, and changes only bytes of header names
//! ([`vocabulary::header_name`]) and bytes of a request's address that OpenStack takes raw and hyper does not
//! ([`is_raw`]): they are escaped as clients should have done. Nearly every head needs no change: then nothing is
//! copied.
//! Always holds: what comes out does not depend on how the bytes were cut into pieces; bytes of bodies
//! and of values are never changed; a message whose length cannot be known (hyper refuses it) ends the
//! changing for its connection.
//! Deliberately absent: judging messages. hyper does.

use memchr::memchr;
use vocabulary::header_name::{encode_byte, is_encoded};

/// What of a line is kept that comes in several pieces: enough for every header that matters here.
const LONGEST_KEPT: usize = 256;

/// Informational answers (1xx) that may come before an answer: storage servers send two. hyper reads any number of them
/// without a pause, which keeps a thread from all else.
const MOST_INFORMATIONAL: usize = 100;

/// Which side of a connection is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// Requests.
    Server,
    /// Answers to requests that [`Heads::begin`] announces.
    Client,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// Before the first line of a head; empty lines may come first.
    Start,
    /// The first line of a request up to its line break.
    Request,
    FirstLine,
    LineStart,
    /// After `\r` at the start of a line.
    LineStartCr,
    Name,
    Value,
    /// So many bytes of a body.
    Body(u64),
    /// The line that says how long the next chunk is; its digits so far, while there are only digits.
    ChunkSize {
        size: u64,
        digits: bool,
    },
    /// A chunk and the line break behind it.
    Chunk(u64),
    ChunkEnd,
    /// Trailers, whose lines end with both bytes of a line break: whether the line has had a byte yet, and whether the
    /// last one was the first of a line break.
    Trailer {
        empty: bool,
        cr: bool,
    },
    /// Nothing more is looked at.
    Blind,
}

/// See the module's header.
#[derive(Debug)]
pub(crate) struct Heads {
    side: Side,
    at: At,
    /// The beginning of the current line, when it came in earlier pieces.
    carried: Vec<u8>,
    body: Framing,
    /// How many answers were informational since [`Heads::begin`].
    informational: usize,
}

/// Whether OpenStack Swift takes this byte of an address as it is, and hyper refuses it, or, worse, cuts the address
/// off there (`#`), so that the request would be for another object. A space ends an address in both.
const fn is_raw(byte: u8) -> bool {
    matches!(byte, b'#' | b'<' | b'>' | b'`' | 0..=9 | 0x0b..=0x0c | 0x0e..=0x1f | 0x7f..)
}

/// [`is_raw`] of every byte: addresses are long, and each is looked at.
static RAW: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < table.len() {
        table[byte] = is_raw(byte as u8); // below 256
        byte += 1;
    }
    table
};

/// Appends an address with each raw byte as `%XX`.
fn escape(target: &[u8], out: &mut Vec<u8>) {
    for byte in target {
        match is_raw(*byte) {
            false => out.push(*byte),
            true => {
                let [high, low] = vocabulary::hex::upper_pair(*byte);
                out.extend([b'%', high, low]);
            }
        }
    }
}

/// What the head says so far about the body behind it.
#[derive(Debug, Default)]
struct Framing {
    length: Option<u64>,
    coding: Option<Coding>,
    informational: bool,
    odd: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Coding {
    Chunked,
    Other,
}

/// Bytes on their way through [`Heads`].
struct Piece<'a> {
    bytes: &'a [u8],
    /// The next byte to be looked at.
    at: usize,
    /// Where the current line starts.
    line: usize,
    /// What to hand on instead of the bytes, once some of them have changed.
    out: Option<Vec<u8>>,
    /// Up to where the bytes are in `out`.
    copied: usize,
}

impl<'a> Piece<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            at: 0,
            line: 0,
            out: None,
            copied: 0,
        }
    }

    fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// Hands on what `write` appends instead of the next `length` bytes.
    fn replace(&mut self, length: usize, write: impl FnOnce(&mut Vec<u8>)) {
        let room = self.bytes.len() + 64;
        let out = self.out.get_or_insert_with(|| Vec::with_capacity(room));
        out.extend(self.bytes.get(self.copied..self.at).unwrap_or_default());
        write(out);
        self.at += length;
        self.copied = self.at;
    }

    fn finish(self) -> Option<Vec<u8>> {
        let mut out = self.out?;
        out.extend(self.bytes.get(self.copied..).unwrap_or_default());
        Some(out)
    }
}

impl Heads {
    pub(crate) fn new(side: Side) -> Self {
        let at = match side {
            Side::Server => At::Start,
            Side::Client => At::Blind,
        };
        Self {
            side,
            at,
            carried: Vec::new(),
            body: Framing::default(),
            informational: 0,
        }
    }

    /// The next bytes are the head of an answer.
    pub(crate) fn begin(&mut self) {
        self.at = At::Start;
        self.carried.clear();
        self.body = Framing::default();
        self.informational = 0;
    }

    /// Whether so many informational answers came that the connection is to end.
    pub(crate) fn has_too_many(&self) -> bool {
        self.informational > MOST_INFORMATIONAL
    }

    /// What to hand on instead of `bytes`; `None` when they may stay as they are.
    pub(crate) fn pass(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        let mut piece = Piece::new(bytes);
        while let Some(byte) = bytes.get(piece.at).copied() {
            match self.at {
                At::Blind => break,
                At::Start if matches!(byte, b'\r' | b'\n') => piece.at += 1,
                At::Start => {
                    piece.line = piece.at;
                    self.at = match self.side {
                        Side::Server => At::Request,
                        Side::Client => At::FirstLine,
                    };
                }
                At::Request => self.request(&mut piece),
                At::FirstLine | At::Value => self.value(&mut piece),
                At::LineStart | At::LineStartCr => self.line_start(&mut piece, byte),
                At::Name => self.name(&mut piece),
                At::Body(left) | At::Chunk(left) => {
                    let passed = left.min(piece.rest().len() as u64);
                    // At most what is left of `bytes`.
                    piece.at += passed as usize;
                    self.at = match (self.at, left - passed) {
                        (At::Body(_), 0) => self.next_head(),
                        (At::Body(_), left) => At::Body(left),
                        (_, 0) => At::ChunkEnd,
                        (_, left) => At::Chunk(left),
                    };
                }
                At::ChunkSize { .. } | At::ChunkEnd | At::Trailer { .. } => {
                    piece.at += 1;
                    self.at = self.chunking(byte);
                }
            }
        }
        if matches!(
            self.at,
            At::Request | At::FirstLine | At::LineStart | At::LineStartCr | At::Name | At::Value
        ) {
            self.carry(bytes.get(piece.line..).unwrap_or_default());
        }
        piece.finish()
    }

    /// Takes the line of a request.
    fn request(&mut self, piece: &mut Piece<'_>) {
        let rest = piece.rest();
        let end = memchr(b'\n', rest);
        let target = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
        match target.iter().any(|byte| RAW[usize::from(*byte)]) {
            true => piece.replace(target.len(), |out| escape(target, out)),
            false => piece.at += target.len(),
        }
        if end.is_some() {
            self.at = At::FirstLine;
        }
    }

    /// Takes what is left of a line.
    fn value(&mut self, piece: &mut Piece<'_>) {
        let Some(end) = memchr(b'\n', piece.rest()) else {
            piece.at = piece.bytes.len();
            return;
        };
        let end = piece.at + end;
        self.judge(piece.bytes.get(piece.line..end).unwrap_or_default());
        piece.at = end + 1;
        piece.line = piece.at;
        self.at = At::LineStart;
    }

    /// Decides what a line is by its first bytes: the end of the head, a name, or more of the line before.
    fn line_start(&mut self, piece: &mut Piece<'_>, byte: u8) {
        self.at = match (self.at, byte) {
            (_, b'\n') => {
                piece.at += 1;
                self.after_head()
            }
            (At::LineStart, b'\r') => {
                piece.at += 1;
                At::LineStartCr
            }
            // A continued line, which hyper refuses.
            (At::LineStart, b' ' | b'\t') => At::Value,
            (At::LineStart, _) => At::Name,
            _ => At::Value,
        };
    }

    /// Takes a name up to the first byte that must be encoded, and encodes that.
    fn name(&mut self, piece: &mut Piece<'_>) {
        let rest = piece.rest();
        let plain = rest.iter().position(|b| *b == b':' || *b == b'\n' || is_encoded(*b));
        piece.at += plain.unwrap_or(rest.len());
        match piece.bytes.get(piece.at) {
            None => {}
            Some(b':' | b'\n') => self.at = At::Value,
            Some(odd) => piece.replace(1, |out| encode_byte(*odd, out)),
        }
    }

    fn carry(&mut self, part: &[u8]) {
        let room = LONGEST_KEPT.saturating_sub(self.carried.len());
        self.carried.extend(part.iter().take(room));
    }

    /// Looks at a whole line of a head, the last piece of it given.
    fn judge(&mut self, last: &[u8]) {
        let first = self.at == At::FirstLine;
        if self.carried.is_empty() {
            return self.body.learn(self.side, first, last);
        }
        self.carry(last);
        self.body.learn(self.side, first, &self.carried);
        self.carried.clear();
    }

    fn after_head(&mut self) -> At {
        self.carried.clear();
        let body = std::mem::take(&mut self.body);
        if self.side == Side::Client {
            self.informational += usize::from(body.informational);
            return if body.informational { At::Start } else { At::Blind };
        }
        match (body.odd, body.coding, body.length) {
            (true, ..) | (_, Some(Coding::Other), _) => At::Blind,
            (_, Some(Coding::Chunked), _) => At::ChunkSize { size: 0, digits: true },
            (_, None, None | Some(0)) => At::Start,
            (_, None, Some(length)) => At::Body(length),
        }
    }

    fn next_head(&self) -> At {
        match self.side {
            Side::Server => At::Start,
            Side::Client => At::Blind,
        }
    }

    /// One byte of what stands between chunks.
    fn chunking(&self, byte: u8) -> At {
        match (self.at, byte) {
            (At::ChunkSize { size: 0, .. }, b'\n') => At::Trailer { empty: true, cr: false },
            (At::ChunkSize { size, .. }, b'\n') => At::Chunk(size),
            (At::ChunkSize { size, digits: true }, _) => match char::from(byte).to_digit(16) {
                Some(digit) => size.checked_mul(16).map_or(At::Blind, |size| At::ChunkSize {
                    size: size | u64::from(digit),
                    digits: true,
                }),
                None => At::ChunkSize { size, digits: false },
            },
            (At::ChunkEnd, b'\n') => At::ChunkSize { size: 0, digits: true },
            (At::Trailer { empty: true, cr: true }, b'\n') => self.next_head(),
            (At::Trailer { cr: true, .. }, b'\n') => At::Trailer { empty: true, cr: false },
            (At::Trailer { cr: true, .. }, _) => At::Blind,
            (At::Trailer { empty, .. }, b'\r') => At::Trailer { empty, cr: true },
            (At::Trailer { .. }, _) => At::Trailer {
                empty: false,
                cr: false,
            },
            (at, _) => at,
        }
    }
}

/// What hyper is given of a connection on which clients send `pieces`. For tests of the whole.
pub fn escape_requests<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut heads = Heads::new(Side::Server);
    let mut given = Vec::new();
    for piece in pieces {
        given.extend(heads.pass(piece).unwrap_or_else(|| piece.to_vec()));
    }
    given
}

impl Framing {
    fn learn(&mut self, side: Side, first: bool, line: &[u8]) {
        match line.first() {
            Some(b'c' | b'C') if side == Side::Server => {
                if let Some(value) = value_of(line, b"content-length") {
                    self.learn_length(value);
                    self.odd |= line.len() >= LONGEST_KEPT;
                }
            }
            Some(b't' | b'T') if side == Side::Server => {
                if let Some(value) = value_of(line, b"transfer-encoding") {
                    self.odd |= line.len() >= LONGEST_KEPT;
                    let last = value.rsplit(|b| *b == b',').next().unwrap_or_default();
                    self.coding = Some(match last.trim_ascii().eq_ignore_ascii_case(b"chunked") {
                        true => Coding::Chunked,
                        false => Coding::Other,
                    });
                }
            }
            Some(b'H') if side == Side::Client && first => {
                // "HTTP/1.1 100 Continue"
                let status = line.get(9..12).unwrap_or_default();
                self.informational = status.starts_with(b"1") && status != b"101";
            }
            _ => {}
        }
    }

    fn learn_length(&mut self, value: &[u8]) {
        let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
        let length: Option<u64> = std::str::from_utf8(value)
            .ok()
            .filter(|_| digits)
            .and_then(|v| v.parse().ok());
        self.odd |= length.is_none() || self.length.is_some_and(|before| Some(before) != length);
        self.length = length;
    }
}

/// The value of a header line, if that is its name.
fn value_of<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (found, value) = line.split_at_checked(name.len())?;
    let value = value.strip_prefix(b":")?;
    found.eq_ignore_ascii_case(name).then(|| value.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// All of `bytes` through a new watcher, in pieces of these sizes, then in one.
    fn passed(bytes: &[u8], cuts: &[usize]) -> Vec<u8> {
        let mut heads = Heads::new(Side::Server);
        let (mut out, mut rest) = (Vec::new(), bytes);
        for cut in cuts.iter().copied().chain([usize::MAX]) {
            let (piece, tail) = rest.split_at(cut.min(rest.len()));
            out.extend(heads.pass(piece).unwrap_or_else(|| piece.to_vec()));
            rest = tail;
        }
        out
    }

    fn text(bytes: &[u8]) -> String {
        String::from_utf8_lossy(&passed(bytes, &[])).into_owned()
    }

    #[test]
    fn only_names_and_addresses_change() {
        let head = "GET /ü%20 HTTP/1.1\r\nHost: ü%\r\nX-Ü%a: ö%: x\r\n\r\n";
        assert_eq!(
            text(head.as_bytes()),
            "GET /%C3%BC%20 HTTP/1.1\r\nHost: ü%\r\nX-%c3%9c%25a: ö%: x\r\n\r\n"
        );
        assert_eq!(
            text(b"PUT /a#b<`>\x01\x7f?c#d HTTP/1.1\r\nX: #\r\n\r\n"),
            "PUT /a%23b%3C%60%3E%01%7F?c%23d HTTP/1.1\r\nX: #\r\n\r\n"
        );
        let plain = b"GET /%20 HTTP/1.1\r\nhost: x\r\n\r\n";
        assert_eq!(Heads::new(Side::Server).pass(plain), None);
    }

    #[test]
    fn bodies_stay_and_the_next_head_is_found() {
        let next = "PUT / HTTP/1.1\r\nü: 1\r\n\r\n";
        let encoded = "PUT / HTTP/1.1\r\n%c3%bc: 1\r\n\r\n";
        for before in [
            "\r\nPUT / HTTP/1.1\r\ncontent-LENGTH:  7 \r\n\r\nü: b\r\n\r",
            "PUT / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: x, Chunked\r\n\r\n8;x\r\nü: b\r\n\r\r\n0A\r\nü: 4567890\r\n0\r\nü: trailer\r\n\r\n",
            "GET / HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\nContent-Length: 0\n\n",
        ] {
            assert_eq!(text(format!("{before}{next}").as_bytes()), format!("{before}{encoded}"));
        }
        // To hyper a bare line feed ends no line of trailers: what follows is another one, and no head.
        let trailers = "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nT: x\n\r\nü: y\r\n\r\n";
        assert_eq!(
            text(format!("{trailers}{next}").as_bytes()),
            format!("{trailers}{encoded}")
        );
        for odd in [
            "PUT / HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n",
            "PUT / HTTP/1.1\r\nContent-Length: +3\r\n\r\n",
            "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked, x\r\n\r\n",
            "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
        ] {
            assert_eq!(text(format!("{odd}{next}").as_bytes()), format!("{odd}{next}"));
        }
    }

    #[test]
    fn answers_begin_when_they_are_announced() {
        let mut heads = Heads::new(Side::Client);
        let answer = "HTTP/1.1 100 Continue\r\nü: 1\r\n\r\nHTTP/1.1 200 OK\r\nü: 2\r\n\r\nü: 3".as_bytes();
        assert_eq!(heads.pass(answer), None);
        heads.begin();
        let encoded = "HTTP/1.1 100 Continue\r\n%c3%bc: 1\r\n\r\nHTTP/1.1 200 OK\r\n%c3%bc: 2\r\n\r\nü: 3";
        assert_eq!(heads.pass(answer), Some(encoded.into()));
        heads.begin();
        let out: Vec<u8> = answer
            .iter()
            .flat_map(|b| heads.pass(&[*b]).unwrap_or_else(|| vec![*b]))
            .collect();
        assert_eq!(out, encoded.as_bytes());
    }

    /// Pieces that heads and bodies are made of.
    fn message() -> impl Strategy<Value = Vec<u8>> {
        let line = prop_oneof![
            Just("content-length: 5".to_owned()),
            Just("Content-Length: 5".to_owned()),
            Just("transfer-encoding: chunked".to_owned()),
            "[a-zü%/]{1,5}: [a-zü%:]{0,5}",
        ];
        let body = prop_oneof![
            Just(String::new()),
            Just("ü: \n".to_owned()),
            Just("3\r\nü:\r\n0\r\n\r\n".to_owned())
        ];
        (prop::collection::vec(line, 0..4), body)
            .prop_map(|(lines, body)| format!("PUT /ü HTTP/1.1\r\n{}\r\n\r\n{body}", lines.join("\r\n")).into_bytes())
    }

    proptest! {
        #[test]
        fn cuts_change_nothing(
            messages in prop::collection::vec(message(), 1..4), cuts in prop::collection::vec(0usize..20, 0..40)
        ) {
            let bytes = messages.concat();
            prop_assert_eq!(passed(&bytes, &cuts), passed(&bytes, &[]));
        }

        #[test]
        fn any_bytes_are_survived(
            bytes in prop::collection::vec(any::<u8>(), 0..200), cuts in prop::collection::vec(0usize..9, 0..40)
        ) {
            let whole = passed(&bytes, &[]);
            prop_assert_eq!(&passed(&bytes, &cuts), &whole);
            prop_assert!(whole.len() >= bytes.len());
        }
    }
}
