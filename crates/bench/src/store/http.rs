//! One connection to a store, and one request at a time on it: HTTP/1.1 as a benchmark needs it.
//!
//! Own code, and not the client that Martlet's servers have: what a request costs here is taken from what the store is
//! asked, so that nothing is parsed but the head of an answer, and nothing allocated but once for each connection.
//! Always holds: an answer is read to its end before the connection takes another request; a connection on which
//! anything went wrong is closed.
//! Source: RFC 9112 (HTTP/1.1), sections 6 and 7 for where a body ends.

use crate::content::hashed::{ChecksumCheck, HashedBody};
use crate::content::{ContentKey, Contents};
use crate::figures::Failure;
use peer::Url;
use std::io;
use std::mem::MaybeUninit;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use world::{Stream, World};

/// Headers of an answer: more are refused.
const MOST_HEADERS: usize = 256;
/// A head of an answer that is longer is refused.
const LONGEST_HEAD: usize = 64 << 10;

/// A connection.
pub struct StoreConnection {
    stream: Box<dyn Stream>,
    buffer: Vec<u8>,
    /// Bytes of the buffer that were read and not used.
    filled: std::ops::Range<usize>,
    /// The head of the last answer, where that was one to an unknown user.
    refusal: Vec<u8>,
}

/// What goes to the store: a head that is complete, and a body.
#[derive(Clone, Copy)]
pub struct Outgoing<'a> {
    /// The verb is HEAD: its answer has no body.
    pub is_head: bool,
    /// Request line and headers, with the empty line.
    pub head: &'a [u8],
    /// Length and content of the body.
    pub body: Option<SentBody<'a>>,
    /// What the answer's body has to be.
    pub expects: Option<ExpectedBody<'a>>,
}

/// A body that has to come.
#[derive(Clone, Copy)]
pub enum ExpectedBody<'a> {
    /// This content, from there on.
    Made(ContentKey, u64, &'a Contents),
    /// Any, with its checksum at its end.
    Hashed,
}

type Expected<'a> = Option<ExpectedBody<'a>>;

/// Of an answer whose head and body are wanted: more is not kept.
const MOST_KEPT: usize = 16 << 20;

/// A body to be sent.
#[derive(Clone, Copy)]
pub struct SentBody<'a> {
    /// Bytes.
    pub length: u64,
    /// Where in the source they begin.
    pub offset: u64,
    /// In chunks, as the head says.
    pub chunked: bool,
    /// Where the bytes are from.
    pub source: BodySource<'a>,
}

/// Where bytes of a body are from.
#[derive(Clone, Copy)]
pub enum BodySource<'a> {
    /// Made.
    Made(ContentKey, &'a Contents),
    /// Made, with its checksum at its end.
    Hashed(ContentKey, &'a Contents),
    /// There.
    Given(&'a [u8]),
}

/// An answer, read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreAnswer {
    /// Its status.
    pub status: u16,
    /// When its first byte came, by the world's clock.
    pub first_byte: Duration,
    /// Bytes of its body.
    pub bytes: u64,
    /// The connection may be used again.
    pub is_kept: bool,
    /// The body was not what was expected.
    pub is_wrong: bool,
}

/// Where a body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    Length(u64),
    Chunks,
    Close,
}

impl StoreConnection {
    /// Connects; `buffer` is how many bytes are read and written at a time.
    pub async fn open(world: &World, url: &Url, tls: Option<&TlsConnector>, buffer: usize) -> Result<Self, Failure> {
        let stream = world.network.connect(url.host().to_owned(), url.port()).await;
        let stream = stream.map_err(|_| Failure::Connect)?;
        let stream: Box<dyn Stream> = match tls.filter(|_| url.is_over_tls()) {
            None => stream,
            Some(tls) => {
                let name = ServerName::try_from(url.host().to_owned()).map_err(|_| Failure::Connect)?;
                Box::new(tls.connect(name, stream).await.map_err(|_| Failure::Connect)?)
            }
        };
        Ok(Self {
            stream,
            buffer: vec![0; buffer.max(4096)],
            filled: 0..0,
            refusal: vec![],
        })
    }

    /// Sends a request and reads its answer.
    pub async fn exchange(&mut self, world: &World, outgoing: &Outgoing<'_>) -> Result<StoreAnswer, Failure> {
        self.exchange_keeping(world, outgoing, None).await
    }

    /// [`StoreConnection::exchange`], with head and body of the answer where `kept` is there to take them.
    pub async fn exchange_keeping(
        &mut self,
        world: &World,
        outgoing: &Outgoing<'_>,
        kept: Option<&mut Vec<u8>>,
    ) -> Result<StoreAnswer, Failure> {
        // A store that refuses a body says so while it is sent, and may read no further: its answer counts then.
        let sent = self.send(outgoing).await;
        match self.receive(world, outgoing, kept).await {
            Err(failure) => Err(failure),
            Ok(answer) => Ok(StoreAnswer {
                is_kept: answer.is_kept && sent.is_ok(),
                ..answer
            }),
        }
    }

    /// [`StoreConnection::exchange`], and whether the answer has a header.
    pub async fn exchange_looking_for(
        &mut self,
        world: &World,
        outgoing: &Outgoing<'_>,
        header: &str,
    ) -> Result<(StoreAnswer, bool), Failure> {
        let answer = self.exchange(world, outgoing).await?;
        // An answer to HEAD is nothing but its head, which lies in the buffer as it came.
        let head = String::from_utf8_lossy(&self.buffer[..self.filled.start]);
        let names = head
            .lines()
            .filter_map(|line| line.split_once(':'))
            .map(|(name, _)| name);
        let has_it = names.into_iter().any(|name| name.eq_ignore_ascii_case(header));
        Ok((answer, has_it))
    }

    /// The head of the answer before, if it had status 401.
    pub fn take_refusal(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.refusal)
    }

    async fn send(&mut self, outgoing: &Outgoing<'_>) -> io::Result<()> {
        let Some(body) = &outgoing.body else {
            return self.stream.write_all(outgoing.head).await;
        };
        self.filled = 0..0;
        // Head and first piece go together: one packet where both are small.
        let mut used = outgoing.head.len();
        if used + 64 > self.buffer.len() {
            self.stream.write_all(outgoing.head).await?;
            used = 0;
        } else {
            self.buffer[..used].copy_from_slice(outgoing.head);
        }
        let mut hashed = HashedBody::new(body.length);
        let mut offset = 0;
        while offset < body.length {
            let room = self.buffer.len() - used - if body.chunked { CHUNK_MARKS } else { 0 };
            let piece = (body.length - offset).min(room as u64) as usize;
            if body.chunked {
                used = self.chunk_mark(used, piece);
            }
            let place = &mut self.buffer[used..used + piece];
            match body.source {
                BodySource::Made(key, contents) => contents.fill(key, body.offset + offset, place),
                BodySource::Hashed(key, contents) => hashed.fill(contents, key, offset, place),
                BodySource::Given(bytes) => place.copy_from_slice(&bytes[(body.offset + offset) as usize..][..piece]),
            }
            used += piece;
            if body.chunked {
                self.buffer[used..used + 2].copy_from_slice(b"\r\n");
                used += 2;
            }
            offset += piece as u64;
            if offset < body.length {
                self.stream.write_all(&self.buffer[..used]).await?;
                used = 0;
            }
        }
        if body.chunked {
            self.stream.write_all(&self.buffer[..used]).await?;
            return self.stream.write_all(b"0\r\n\r\n").await;
        }
        self.stream.write_all(&self.buffer[..used]).await
    }

    /// Writes the length of a chunk into the buffer; answers where the chunk begins.
    fn chunk_mark(&mut self, at: usize, length: usize) -> usize {
        let mark = format!("{length:x}\r\n");
        self.buffer[at..at + mark.len()].copy_from_slice(mark.as_bytes());
        at + mark.len()
    }

    async fn receive(
        &mut self,
        world: &World,
        outgoing: &Outgoing<'_>,
        mut kept: Option<&mut Vec<u8>>,
    ) -> Result<StoreAnswer, Failure> {
        self.filled = 0..0;
        let mut first_byte = Duration::ZERO;
        let head = loop {
            match read_head(&self.buffer[self.filled.clone()], outgoing.is_head)? {
                Some(head) => {
                    if let Some(kept) = &mut kept {
                        kept.clear();
                        kept.extend_from_slice(&self.buffer[self.filled.start..][..head.length]);
                    }
                    if head.status == 401 {
                        self.refusal = self.buffer[self.filled.start..][..head.length].to_vec();
                    }
                    self.filled.start += head.length;
                    // `100 Continue` and its like come before the answer.
                    if head.status >= 200 {
                        break head;
                    }
                }
                None if self.read_more().await? == 0 => return Err(Failure::Broken),
                None => first_byte = world.clock.elapsed(),
            }
        };
        let mut reading = Reading {
            bytes: 0,
            is_wrong: false,
            checksum: None,
            kept,
        };
        let expects = outgoing.expects.filter(|_| head.status < 300);
        if let Some(ExpectedBody::Hashed) = expects {
            reading.checksum = Some(ChecksumCheck::default());
        }
        match head.framing {
            Framing::Length(length) => self.body(length, expects, &mut reading).await?,
            Framing::Chunks => self.chunks(expects, &mut reading).await?,
            Framing::Close => self.body_until_close(expects, &mut reading).await?,
        }
        if let Some(checksum) = reading.checksum.take() {
            reading.is_wrong |= !checksum.fits();
        }
        Ok(StoreAnswer {
            status: head.status,
            first_byte,
            bytes: reading.bytes,
            is_kept: head.is_kept && head.framing != Framing::Close && self.filled.is_empty(),
            is_wrong: reading.is_wrong,
        })
    }

    /// Reads what is there, behind what is in the buffer; 0 at the end.
    async fn read_more(&mut self) -> Result<usize, Failure> {
        if self.filled.is_empty() {
            self.filled = 0..0;
        } else if self.filled.end == self.buffer.len() {
            if self.filled.start == 0 {
                if self.buffer.len() >= LONGEST_HEAD {
                    return Err(Failure::Broken);
                }
                self.buffer.resize(LONGEST_HEAD, 0);
            } else {
                self.buffer.copy_within(self.filled.clone(), 0);
                self.filled = 0..self.filled.len();
            }
        }
        let read = self.stream.read(&mut self.buffer[self.filled.end..]).await;
        let read = read.map_err(|_| Failure::Broken)?;
        self.filled.end += read;
        Ok(read)
    }

    /// Reads so many bytes of a body.
    async fn body(&mut self, length: u64, expects: Expected<'_>, reading: &mut Reading<'_>) -> Result<(), Failure> {
        let mut left = length;
        while left > 0 {
            if self.filled.is_empty() && self.read_more().await? == 0 {
                return Err(Failure::ShortBody);
            }
            let piece = (self.filled.len() as u64).min(left) as usize;
            let start = self.filled.start;
            reading.take(&self.buffer[start..start + piece], expects);
            self.filled.start += piece;
            left -= piece as u64;
        }
        Ok(())
    }

    async fn chunks(&mut self, expects: Expected<'_>, reading: &mut Reading<'_>) -> Result<(), Failure> {
        loop {
            let line = self.line().await?;
            let digits = line.split(|byte| *byte == b';').next().unwrap_or_default();
            let length = std::str::from_utf8(digits)
                .ok()
                .and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok());
            match length.ok_or(Failure::Broken)? {
                0 => break,
                length => self.body(length, expects, reading).await?,
            }
            if !self.line().await?.is_empty() {
                return Err(Failure::Broken);
            }
        }
        // Trailers.
        while !self.line().await?.is_empty() {}
        Ok(())
    }

    async fn body_until_close(&mut self, expects: Expected<'_>, reading: &mut Reading<'_>) -> Result<(), Failure> {
        while !self.filled.is_empty() || self.read_more().await? > 0 {
            reading.take(&self.buffer[self.filled.clone()], expects);
            self.filled = 0..0;
        }
        Ok(())
    }

    /// A line, without its end.
    async fn line(&mut self) -> Result<Vec<u8>, Failure> {
        loop {
            let filled = &self.buffer[self.filled.clone()];
            if let Some(end) = filled.iter().position(|byte| *byte == b'\n') {
                let line = filled[..end].strip_suffix(b"\r").unwrap_or(&filled[..end]).to_vec();
                self.filled.start += end + 1;
                return Ok(line);
            }
            if self.read_more().await? == 0 {
                return Err(Failure::ShortBody);
            }
        }
    }
}

/// Length of a chunk in digits, and both line ends.
const CHUNK_MARKS: usize = 16 + 4;

/// A body that is read.
struct Reading<'a> {
    bytes: u64,
    is_wrong: bool,
    checksum: Option<ChecksumCheck>,
    kept: Option<&'a mut Vec<u8>>,
}

impl Reading<'_> {
    fn take(&mut self, piece: &[u8], expects: Expected<'_>) {
        if let Some(ExpectedBody::Made(key, from, contents)) = expects {
            self.is_wrong |= !contents.fits(key, from + self.bytes, piece);
        }
        if let Some(checksum) = &mut self.checksum {
            checksum.take(piece);
        }
        if let Some(kept) = &mut self.kept {
            let room = MOST_KEPT.saturating_sub(kept.len());
            kept.extend_from_slice(&piece[..piece.len().min(room)]);
        }
        self.bytes += piece.len() as u64;
    }
}

struct Head {
    status: u16,
    length: usize,
    framing: Framing,
    is_kept: bool,
}

/// The head of an answer; nothing when it is not whole yet.
fn read_head(bytes: &[u8], to_head: bool) -> Result<Option<Head>, Failure> {
    // Not written before: an answer has a dozen headers, and room for all of them is eight kilobytes.
    let mut headers = [const { MaybeUninit::uninit() }; MOST_HEADERS];
    let mut response = httparse::Response::new(&mut []);
    let parsed =
        httparse::ParserConfig::default().parse_response_with_uninit_headers(&mut response, bytes, &mut headers);
    let httparse::Status::Complete(length) = parsed.map_err(|_| Failure::Broken)? else {
        return Ok(None);
    };
    let (Some(status), Some(version)) = (response.code, response.version) else {
        return Err(Failure::Broken);
    };
    let (mut framing, mut is_kept) = (Framing::Close, version == 1);
    for header in response.headers.iter() {
        let value = || {
            std::str::from_utf8(header.value)
                .map(str::trim)
                .map_err(|_| Failure::Broken)
        };
        if header.name.eq_ignore_ascii_case("content-length") && framing != Framing::Chunks {
            framing = Framing::Length(value()?.parse().map_err(|_| Failure::Broken)?);
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") && value()?.eq_ignore_ascii_case("chunked") {
            framing = Framing::Chunks;
        } else if header.name.eq_ignore_ascii_case("connection") {
            is_kept = match value()? {
                word if word.eq_ignore_ascii_case("close") => false,
                word if word.eq_ignore_ascii_case("keep-alive") => true,
                _ => is_kept,
            };
        }
    }
    if to_head || status < 200 || status == 204 || status == 304 {
        framing = Framing::Length(0);
    }
    Ok(Some(Head {
        status,
        length,
        framing,
        is_kept,
    }))
}

#[cfg(test)]
mod tests {
    use super::{Framing, read_head};

    #[test]
    fn heads_say_where_bodies_end() {
        for (head, to_head, framing, is_kept) in [
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
                false,
                Framing::Length(5),
                true,
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
                true,
                Framing::Length(0),
                true,
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n",
                false,
                Framing::Chunks,
                false,
            ),
            ("HTTP/1.1 204 No Content\r\n\r\n", false, Framing::Length(0), true),
            ("HTTP/1.0 200 OK\r\n\r\n", false, Framing::Close, false),
        ] {
            let read = read_head(head.as_bytes(), to_head).unwrap().unwrap();
            assert_eq!(
                (read.framing, read.is_kept, read.length),
                (framing, is_kept, head.len()),
                "{head}"
            );
            assert!(
                read_head(&head.as_bytes()[..head.len() - 1], to_head)
                    .unwrap()
                    .is_none()
            );
        }
        assert!(read_head(b"nonsense\r\n\r\n", false).is_err());
    }
}
