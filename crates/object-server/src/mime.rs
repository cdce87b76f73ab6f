//! Bodies wrapped in MIME: the object, then what became known while it was sent, then the commit.
//!
//! ```text
//! --boundary CRLF
//! X-Document: object body CRLF CRLF
//! <bytes> CRLF
//! --boundary CRLF
//! X-Document: object metadata CRLF
//! Content-MD5: <hex> CRLF CRLF
//! <JSON object of headers> CRLF
//! --boundary CRLF                      (multi-phase only)
//! X-Document: put commit CRLF CRLF     (after the second 100 Continue)
//! commit_confirmation CRLF
//! --boundary--
//! ```
//!
//! [`MimeSplitter`] is pure: bytes in, events out. Source: `doc/source/overview_erasure_code.rst` ("Multi_Phase
//! Conversation") and what OpenStack's servers accept.
//! Always holds: it keeps no more than a delimiter's length of body, and heads are bounded.

use bytes::{Bytes, BytesMut};

/// Bytes that a part's head may have.
const MAX_HEAD: usize = 8 * 1024;

/// Why it is not MIME.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotMime(pub &'static str);

/// What the next bytes mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MimeEvent {
    /// Nothing yet: feed more.
    Hungry,
    /// A part begins.
    Part(PartHead),
    /// Some of the part's bytes.
    Data(Bytes),
    /// The part is over; another follows.
    PartEnd,
    /// The last part is over.
    End,
}

/// The headers of a part; names in lower case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PartHead(Vec<(String, String)>);

impl PartHead {
    /// The value of the header `name`.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(found, _)| found == name)
            .map(|(_, value)| value.as_str())
    }

    fn parse(bytes: &[u8]) -> Result<Self, NotMime> {
        let text = std::str::from_utf8(bytes).map_err(|_| NotMime("a part's head is not text"))?;
        let line = |line: &str| {
            let (name, value) = line.split_once(':')?;
            Some((name.trim().to_ascii_lowercase(), value.trim().to_owned()))
        };
        let lines = text.lines().filter(|text| !text.is_empty());
        let headers: Option<Vec<_>> = lines.map(line).collect();
        headers
            .map(Self)
            .ok_or(NotMime("a part's head has a line without a colon"))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SplitterState {
    Preamble,
    Head,
    Body,
    Over,
}

/// Splits a multipart body.
pub struct MimeSplitter {
    /// `CRLF--boundary`.
    delimiter: Vec<u8>,
    buffer: BytesMut,
    state: SplitterState,
}

impl MimeSplitter {
    /// Of a body that begins with this boundary.
    pub fn new(boundary: &str) -> Self {
        Self {
            delimiter: format!("\r\n--{boundary}").into_bytes(),
            buffer: BytesMut::new(),
            state: SplitterState::Preamble,
        }
    }

    /// The next bytes of the body.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// What they mean.
    pub fn next_event(&mut self) -> Result<MimeEvent, NotMime> {
        match self.state {
            SplitterState::Preamble => self.preamble(),
            SplitterState::Head => self.head(),
            SplitterState::Body => self.body(),
            SplitterState::Over => Ok(MimeEvent::End),
        }
    }

    /// Empty lines, then the first boundary.
    fn preamble(&mut self) -> Result<MimeEvent, NotMime> {
        while self.buffer.starts_with(b"\r\n") {
            drop(self.buffer.split_to(2));
        }
        let start = &self.delimiter[2..];
        let known = self.buffer.len().min(start.len());
        if self.buffer[..known] != start[..known] && &self.buffer[..] != b"\r" {
            return Err(NotMime("the body does not begin with its boundary"));
        }
        if self.buffer.len() < start.len() + 2 {
            return Ok(MimeEvent::Hungry);
        }
        let length = start.len();
        drop(self.buffer.split_to(length));
        self.after_boundary()
    }

    /// `CRLF`: a part follows. `--`: none does.
    fn after_boundary(&mut self) -> Result<MimeEvent, NotMime> {
        let mark = self.buffer.split_to(2);
        self.state = match &mark[..] {
            b"\r\n" => SplitterState::Head,
            b"--" => SplitterState::Over,
            _ => return Err(NotMime("a boundary is followed by neither a line's end nor two dashes")),
        };
        self.next_event()
    }

    fn head(&mut self) -> Result<MimeEvent, NotMime> {
        // A head without lines ends at once.
        let end = match self.buffer.starts_with(b"\r\n") {
            true => Some((0, 2)),
            false => find(&self.buffer, b"\r\n\r\n").map(|at| (at, at + 4)),
        };
        match end {
            Some((length, end)) if length <= MAX_HEAD => {
                let head = PartHead::parse(&self.buffer.split_to(end)[..length])?;
                self.state = SplitterState::Body;
                Ok(MimeEvent::Part(head))
            }
            None if self.buffer.len() <= MAX_HEAD => Ok(MimeEvent::Hungry),
            _ => Err(NotMime("a part's head is too long")),
        }
    }

    fn body(&mut self) -> Result<MimeEvent, NotMime> {
        match find(&self.buffer, &self.delimiter) {
            Some(0) if self.buffer.len() < self.delimiter.len() + 2 => Ok(MimeEvent::Hungry),
            Some(0) => {
                let length = self.delimiter.len();
                let mark = &self.buffer[length..length + 2];
                let more = mark == b"\r\n";
                if !more && mark != b"--" {
                    return Err(NotMime("a boundary is followed by neither a line's end nor two dashes"));
                }
                drop(self.buffer.split_to(length + 2));
                self.state = if more { SplitterState::Head } else { SplitterState::Over };
                Ok(if more { MimeEvent::PartEnd } else { MimeEvent::End })
            }
            Some(at) => Ok(MimeEvent::Data(self.buffer.split_to(at).freeze())),
            None => {
                // The end may be the beginning of a delimiter.
                let sure = self.buffer.len().saturating_sub(self.delimiter.len() - 1);
                match sure {
                    0 => Ok(MimeEvent::Hungry),
                    _ => Ok(MimeEvent::Data(self.buffer.split_to(sure).freeze())),
                }
            }
        }
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    memchr::memmem::find(haystack, needle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// All parts of what comes in pieces of `size`.
    fn split(bytes: &[u8], size: usize) -> Result<Vec<(PartHead, Vec<u8>)>, NotMime> {
        let mut splitter = MimeSplitter::new("bnd");
        let mut pieces = bytes.chunks(size.max(1));
        let mut parts: Vec<(PartHead, Vec<u8>)> = Vec::new();
        loop {
            match splitter.next_event()? {
                MimeEvent::Hungry => match pieces.next() {
                    Some(piece) => splitter.feed(piece),
                    None => return Err(NotMime("cut short")),
                },
                MimeEvent::Part(head) => parts.push((head, Vec::new())),
                MimeEvent::Data(data) => parts.last_mut().unwrap().1.extend_from_slice(&data),
                MimeEvent::PartEnd => {}
                MimeEvent::End => return Ok(parts),
            }
        }
    }

    #[test]
    fn parts_come_out_as_they_went_in() {
        let text = b"--bnd\r\nX-Document: object body\r\n\r\nhel\r\n--lo\r\n\
                     --bnd\r\nX-Document: a\r\nB: c:d\r\n\r\n\r\n--bnd\r\n\r\nx\r\n--bnd--";
        for size in [1, 2, 3, 7, 1000] {
            let parts = split(text, size).unwrap();
            assert_eq!(parts.len(), 3, "{size}");
            assert_eq!(parts[0].0.get("x-document"), Some("object body"));
            assert_eq!(parts[0].1, b"hel\r\n--lo");
            assert_eq!((parts[1].0.get("b"), parts[1].1.len()), (Some("c:d"), 0));
            assert_eq!(parts[2].1, b"x");
        }
        assert!(split(b"\r\n--bnd\r\n\r\n\r\n--bnd--", 1).is_ok());
        assert_eq!(split(b"--bnd--", 1), Ok(vec![]));
        for bad in [
            &b"no boundary"[..],
            b"preamble\r\n--bnd\r\n\r\n",
            b"--bndx\r\n\r\n",
            b"--bnd\r\nnocolon\r\n\r\n\r\n--bnd--",
        ] {
            assert!(split(bad, 3).is_err());
        }
        let long = [&b"--bnd\r\nX: "[..], &[b'x'; MAX_HEAD + 1]].concat();
        assert_eq!(split(&long, 100), Err(NotMime("a part's head is too long")));
    }

    proptest! {
        #[test]
        fn any_bytes_are_split_or_refused(text in "(--bnd|\r\n|--|x|:|\\PC){0,30}", size in 1usize..9) {
            let _ = split(text.as_bytes(), size);
        }

        #[test]
        fn any_body_survives(body: Vec<u8>, size in 1usize..70) {
            prop_assume!(find(&[&body[..], b"\r\n"].concat(), b"\r\n--bnd").is_none());
            let text = [&b"--bnd\r\nA: b\r\n\r\n"[..], &body, b"\r\n--bnd--"].concat();
            let parts = split(&text, size).unwrap();
            prop_assert_eq!(&parts[0].1, &body);
        }
    }
}
