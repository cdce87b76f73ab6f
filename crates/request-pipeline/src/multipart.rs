//! `multipart/form-data` as it comes: part after part, each in chunks, never more of it in memory than one chunk and a
//! part's headers.
//!
//! Always holds: a part's headers are at most [`MAX_HEADERS`] long and a boundary [`MAX_BOUNDARY`]; no byte is searched
//! again for a line's end because others have come, for a boundary no more than that is long: forms are read before it
//! is known who sends them. A part whose end never comes is an error, not a part.
//! Deliberately absent: what parts mean.
//! Source: RFC 2046, RFC 7578, and what OpenStack Swift takes, which has no limit on boundaries.

use bytes::{Buf, Bytes, BytesMut};
use memchr::memmem::Finder;
use peer::{Body, BodyError};
use std::sync::Arc;
use std::time::Duration;
use world::Clock;

/// Bytes that the headers of one part may have.
pub const MAX_HEADERS: usize = 32 << 10;
/// Bytes of a boundary (RFC 2046, section 5.1.1); those of browsers and libraries have 16 to 60.
pub const MAX_BOUNDARY: usize = 70;
/// Bytes that may come before the first part, besides its boundary.
const MAX_PREAMBLE: usize = 4096;
/// How long a client may send nothing.
const PATIENCE: Duration = Duration::from_secs(60);

/// Why a form cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Broken {
    /// It does not begin with its boundary, or that is too long.
    Start,
    /// It ends in the middle of a part.
    End,
    /// The headers of a part are too long.
    Headers,
    /// The client went away or was too slow.
    Client(BodyError),
}

/// A form on its way.
pub struct Multipart {
    body: Body,
    clock: Arc<dyn Clock>,
    buffer: BytesMut,
    /// Bytes of the buffer in which no line ends.
    searched: usize,
    /// `\r\n--boundary`.
    delimiter: Finder<'static>,
    is_over: bool,
}

/// The headers of a part that matter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PartHeaders {
    /// `name` of its `Content-Disposition`.
    pub name: Option<String>,
    /// `filename` of it; not empty.
    pub filename: Option<String>,
    /// `Content-Type`.
    pub content_type: Option<Vec<u8>>,
    /// `Content-Encoding`.
    pub content_encoding: Option<Vec<u8>>,
}

impl Multipart {
    /// The form in `body`, with this boundary.
    pub fn new(body: Body, boundary: &str, clock: Arc<dyn Clock>) -> Self {
        Self {
            body,
            clock,
            buffer: BytesMut::new(),
            searched: 0,
            delimiter: Finder::new(format!("\r\n--{boundary}").as_bytes()).into_owned(),
            is_over: false,
        }
    }

    /// Reads up to the first part.
    pub async fn start(&mut self) -> Result<(), Broken> {
        let boundary = self.delimiter.needle()[4..].len();
        if boundary > MAX_BOUNDARY {
            return Err(Broken::Start);
        }
        loop {
            let line = match self.line() {
                Some(line) => line,
                None if self.buffer.len() > MAX_PREAMBLE + boundary => return Err(Broken::Start),
                None if self.fill().await? => continue,
                None => self.rest(),
            };
            match line.trim_ascii() {
                b"" if line.is_empty() => return Err(Broken::Start),
                b"" => {}
                line if line == &self.delimiter.needle()[2..] => return Ok(()),
                _ => return Err(Broken::Start),
            }
        }
    }

    /// The headers of the next part; `None` when there is none.
    pub async fn part(&mut self) -> Result<Option<PartHeaders>, Broken> {
        let mut headers = Vec::new();
        loop {
            if self.is_over {
                return Ok(None);
            }
            let Some(line) = self.line() else {
                if self.buffer.len() + headers.len() > MAX_HEADERS {
                    return Err(Broken::Headers);
                }
                self.is_over = !self.fill().await?;
                continue;
            };
            if line.trim_ascii().is_empty() {
                return Ok(Some(PartHeaders::read(&headers)));
            }
            headers.extend_from_slice(&line);
            if headers.len() > MAX_HEADERS {
                return Err(Broken::Headers);
            }
        }
    }

    /// The next bytes of the part; `None` at its end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Broken> {
        loop {
            if let Some(at) = self.delimiter.find(&self.buffer) {
                if at > 0 {
                    return Ok(Some(self.buffer.split_to(at).freeze()));
                }
                self.buffer.advance(self.delimiter.needle().len());
                return self.finish_boundary().await.map(|()| None);
            }
            let safe = self.buffer.len().saturating_sub(self.delimiter.needle().len() - 1);
            if safe > 0 {
                return Ok(Some(self.buffer.split_to(safe).freeze()));
            }
            if !self.fill().await? {
                return Err(Broken::End);
            }
        }
    }

    /// What comes behind a boundary on its line: nothing, or the dashes that end the form.
    async fn finish_boundary(&mut self) -> Result<(), Broken> {
        loop {
            if self.buffer.starts_with(b"--") {
                self.is_over = true;
                return Ok(());
            }
            if self.line().is_some() {
                return Ok(());
            }
            if self.buffer.len() > MAX_HEADERS {
                return Err(Broken::Headers);
            }
            if !self.fill().await? {
                self.is_over = true;
                return Ok(());
            }
        }
    }

    /// All of a part, at most `limit` bytes of it.
    pub async fn value(&mut self, limit: usize) -> Result<Vec<u8>, Broken> {
        let mut value = Vec::new();
        while let Some(chunk) = self.chunk().await? {
            let room = limit - value.len();
            value.extend_from_slice(&chunk[..chunk.len().min(room)]);
        }
        Ok(value)
    }

    /// The next line, with what ends it, if that has come.
    fn line(&mut self) -> Option<BytesMut> {
        let Some(end) = memchr::memchr(b'\n', &self.buffer[self.searched..]) else {
            self.searched = self.buffer.len();
            return None;
        };
        let length = std::mem::take(&mut self.searched) + end + 1;
        Some(self.buffer.split_to(length))
    }

    /// All that has come and is no line.
    fn rest(&mut self) -> BytesMut {
        self.searched = 0;
        self.buffer.split()
    }

    /// Reads on; `false` at the end of the body.
    async fn fill(&mut self) -> Result<bool, Broken> {
        let read = world::clock::timeout(&*self.clock, PATIENCE, self.body.next()).await;
        match read {
            Ok(Some(Ok(chunk))) => self.buffer.extend_from_slice(&chunk),
            Ok(Some(Err(error))) => return Err(Broken::Client(error)),
            Ok(None) => return Ok(false),
            Err(_) => return Err(Broken::Client(BodyError::TimedOut)),
        }
        Ok(true)
    }
}

impl PartHeaders {
    fn read(lines: &[u8]) -> Self {
        let mut found = Self::default();
        for line in lines.split(|b| *b == b'\n') {
            let Some(colon) = line.iter().position(|b| *b == b':') else {
                continue;
            };
            let (name, value) = (line[..colon].trim_ascii(), line[colon + 1..].trim_ascii());
            match name.to_ascii_lowercase().as_slice() {
                b"content-disposition" => found.read_disposition(&text(value)),
                b"content-type" => found.content_type = Some(value.to_vec()),
                b"content-encoding" => found.content_encoding = Some(value.to_vec()),
                _ => {}
            }
        }
        found
    }

    fn read_disposition(&mut self, value: &str) {
        let (kind, parameters) = value.split_once(';').unwrap_or((value, ""));
        if kind.trim() != "form-data" {
            return;
        }
        for (name, value) in parameters_of(parameters) {
            match name.as_str() {
                "name" => self.name = Some(value),
                "filename" => self.filename = Some(value).filter(|name| !name.is_empty()),
                _ => {}
            }
        }
    }
}

/// UTF-8, or what has always been taken for Latin-1.
fn text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().map(|byte| char::from(*byte)).collect(),
    }
}

/// `name="value"; other=value`: names in lower case, values without their quotes.
pub fn parameters_of(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((name, value)) = rest.split_once('=') {
        let name = name.trim_start_matches(|c: char| c == ';' || c.is_ascii_whitespace());
        let value = value.trim_start();
        let (value, after) = match value.strip_prefix('"') {
            Some(quoted) => {
                let end = end_of_quoted(quoted);
                (&quoted[..end], quoted.get(end + 1..).unwrap_or(""))
            }
            None => value.split_once(';').unwrap_or((value, "")),
        };
        let value = value.trim_matches('"');
        let name = name.rsplit(';').next().unwrap_or(name).trim();
        found.push((name.to_ascii_lowercase(), value.to_owned()));
        rest = after;
    }
    found
}

/// Where a quoted string ends: at the first quote that a semicolon follows, or nothing; browsers need not escape
/// others.
fn end_of_quoted(text: &str) -> usize {
    let ends = |(at, _): &(usize, &str)| text[at + 1..].is_empty() || text[at + 1..].starts_with(';');
    text.match_indices('"').find(ends).map_or(text.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::{StreamExt, stream};
    use proptest::prelude::*;
    use world::clock::RealClock;

    /// A form that comes in pieces of this size.
    fn form(bytes: &[u8], piece: usize) -> Multipart {
        let chunks: Vec<_> = bytes
            .chunks(piece.max(1))
            .map(|c| Ok(Bytes::copy_from_slice(c)))
            .collect();
        Multipart::new(
            Body::stream(stream::iter(chunks), None),
            "B",
            Arc::new(RealClock::new()),
        )
    }

    async fn read(bytes: &[u8], piece: usize) -> Result<Vec<(PartHeaders, Vec<u8>)>, Broken> {
        let mut form = form(bytes, piece);
        form.start().await?;
        let mut parts = Vec::new();
        while let Some(headers) = form.part().await? {
            parts.push((headers, form.value(1000).await?));
        }
        Ok(parts)
    }

    const WHOLE: &[u8] = b"\r\n--B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--B\r\n\
        content-disposition:form-data; name=f; filename=\"q\\\"x.txt\"\r\nContent-Type: image/png\r\n\r\n\
        x\r\n--\r\n--A\r--B\r\n--B--\r\nepilogue";

    #[tokio::test]
    async fn parts_are_the_same_in_any_pieces() {
        for piece in [1, 2, 3, 7, 50, 1000] {
            let parts = read(WHOLE, piece).await.unwrap();
            assert_eq!(parts.len(), 2);
            assert_eq!(
                (parts[0].0.name.as_deref(), parts[0].1.as_slice()),
                (Some("a"), &b"1"[..])
            );
            let (headers, data) = &parts[1];
            assert_eq!(headers.filename.as_deref(), Some("q\\\"x.txt"));
            assert_eq!(headers.content_type.as_deref(), Some(&b"image/png"[..]));
            assert_eq!(data, b"x\r\n--\r\n--A\r--B");
        }
    }

    #[tokio::test]
    async fn what_is_no_form_is_refused() {
        for (bytes, problem) in [
            (&b""[..], Broken::Start),
            (b"junk\r\n--B\r\n", Broken::Start),
            (b"--B--\r\n", Broken::Start),
            (b"--B\r\nx: y\r\n\r\ndata", Broken::End),
            (b"--B\r\nx: y\r\n\r\ndata\r\n--", Broken::End),
        ] {
            assert_eq!(read(bytes, 5).await, Err(problem), "{bytes:?}");
        }
        assert_eq!(read(b"--B\r\n", 5).await, Ok(vec![]));
        assert_eq!(read(b"--B\nx: y\n", 5).await, Ok(vec![]));
        let long = [&b"--B\r\nx: "[..], &vec![b'y'; MAX_HEADERS + 10]].concat();
        assert_eq!(read(&long, 1000).await, Err(Broken::Headers));
        let long = [&b"--B\r\n"[..], &b"x: y\r\n".repeat(MAX_HEADERS / 5)].concat();
        assert_eq!(read(&long, 1000).await, Err(Broken::Headers));
        let long = vec![b'-'; 100_000];
        assert_eq!(read(&long, 1000).await, Err(Broken::Start));
    }

    #[tokio::test]
    async fn lines_are_searched_once() {
        let pieces = [&b"--B"[..], b"\r\nx: y\r\n", &[b'z'; 5000], &[b'z'; 5000], b"z"];
        let stream = stream::iter(pieces).map(|piece| Ok(Bytes::from_static(piece)));
        let body = Body::stream(stream.chain(stream::pending()), None);
        let mut form = Multipart::new(body, "B", Arc::new(RealClock::new()));
        form.start().await.unwrap();
        assert!(futures_util::poll!(Box::pin(form.part())).is_pending());
        assert_eq!((form.buffer.len(), form.searched), (10_001, 10_001));
    }

    #[tokio::test]
    async fn long_boundaries_are_refused() {
        for (length, outcome) in [(70, Ok(())), (71, Err(Broken::Start)), (7000, Err(Broken::Start))] {
            let boundary = "b".repeat(length);
            let body = Body::whole(format!("--{boundary}\r\n"));
            let mut form = Multipart::new(body, &boundary, Arc::new(RealClock::new()));
            assert_eq!(form.start().await, outcome, "{length}");
        }
    }

    #[test]
    fn names_in_headers() {
        let read = |value: &str| {
            let mut headers = PartHeaders::default();
            headers.read_disposition(value);
            (headers.name.unwrap_or_default(), headers.filename.unwrap_or_default())
        };
        let both = |name: &str, filename: &str| (name.to_owned(), filename.to_owned());
        assert_eq!(read("form-data; name=\"a\"; filename=\"b;c=d\""), both("a", "b;c=d"));
        assert_eq!(read("form-data;name=a;filename=b"), both("a", "b"));
        assert_eq!(read("form-data; name=a; filename=\"b\"c\""), both("a", "b\"c"));
        assert_eq!(
            read("form-data; filename=\"b\" x=\"y\"; name=a"),
            both("a", "b\" x=\"y")
        );
        assert_eq!(read("form-data; filename; name=\"a"), both("a", ""));
        assert_eq!(read("form-data; NAME=\"a\"; filename=\"\""), both("a", ""));
        assert_eq!(read("attachment; name=\"a\""), both("", ""));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_form_or_not(tail in prop::collection::vec(any::<u8>(), 0..80), piece in 1_usize..20, words in "(--B|\r\n|x: y|--|B|;|=|\"| ){0,20}") {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            for text in [words.as_bytes(), &[&b"--B\r\n"[..], words.as_bytes(), &tail].concat()] {
                let (one, other) = runtime.block_on(async { (read(text, piece).await, read(text, 1000).await) });
                prop_assert_eq!(one, other);
            }
            let _ = parameters_of(&String::from_utf8_lossy(&tail));
        }
    }
}
