//! The bytes of a large object: runs of bytes of other objects, one after the other.
//!
//! Comes in: [`Pieces`], which say what comes next. Goes out: one [`Body`]. Each piece is asked for when
//! the one before has been sent, so a download holds one response and a chunk of it, whatever its size.
//! Always holds: the body ends properly only after the last byte of the last piece; a piece that cannot
//! be had, is not what the manifest says, or has other bytes than its entity tag says ends it in an error.
//! What can be known before the first byte is known then ([`Joined::start`]), so that the client gets a status.
//! Deliberately absent: manifests and listings, which are the features' own (`slo/`, `dlo.rs`).

mod open;
mod pace;

use bytes::Bytes;
use futures_util::stream::unfold;
use http::Method;
use http::header::{HeaderMap, HeaderValue, RANGE, USER_AGENT};
use md5::{Digest, Md5};
use open::OpenSegment;
pub use pace::Pace;
use peer::{Body, BodyError};
use request_pipeline::reply::BrokenSegments;
use request_pipeline::{ClientRequest, CustomerKeyRefusal, Next, Response, reply};
use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use vocabulary::hex;
use vocabulary::names::quote;
use vocabulary::{ByteRange, EntityPath};
use world::Clock;

/// What a client says about its own request that holds for the segments as well.
const PASSED_ON: [&str; 2] = ["x-newest", "x-open-expired"];

/// Says it of a feature's own request, too.
pub fn pass_on(client: &ClientRequest, own: &mut ClientRequest) {
    for name in PASSED_ON {
        if let Some(value) = client.headers.get(name) {
            own.headers.insert(name, value.clone());
        }
    }
}

/// Why a piece cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SegmentFailure {
    /// It is gone, forbidden, or not what the manifest says.
    #[error("{0}")]
    Conflict(String),
    /// It is encrypted with the key of a client, which the request does not have.
    #[error(transparent)]
    Sealed(#[from] CustomerKeyRefusal),
    /// Storage could not say.
    #[error("{0}")]
    Unavailable(String),
}

impl SegmentFailure {
    /// The answer when nothing has been sent yet.
    pub fn response(&self, method: &Method) -> Response {
        if let Self::Sealed(refusal) = self {
            return refusal.answer();
        }
        tracing::error!("{self}");
        match self {
            SegmentFailure::Sealed(_) | SegmentFailure::Conflict(_) => {
                let mut response = reply::status_for(method, 409);
                response.extensions_mut().insert(BrokenSegments);
                response
            }
            SegmentFailure::Unavailable(_) => reply::status_for(method, 503),
        }
    }
}

/// What comes next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// These bytes.
    Data(Bytes),
    /// Bytes of an object.
    Object(ObjectPiece),
}

/// Bytes of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectPiece {
    /// Which.
    pub path: EntityPath,
    /// Which of its bytes; all of them when absent.
    pub range: Option<ByteRange>,
    /// What its entity tag must be.
    pub etag: Option<String>,
    /// How many bytes it must have in all.
    pub size: Option<u64>,
}

/// Says what comes next; may ask for manifests and listings to know.
#[async_trait::async_trait]
pub trait Pieces: Send {
    /// The next piece; `None` at the end.
    async fn next(&mut self, asking: &Asking) -> Result<Option<Piece>, SegmentFailure>;
}

/// How a feature asks for parts of a large object.
pub struct Asking {
    next: Next,
    /// What the client asked, without its body.
    client: ClientRequest,
    source: &'static str,
    agent: HeaderValue,
    clock: Arc<dyn Clock>,
    /// Elapsed time after which nothing more is asked for, and how long that was.
    deadline: (Duration, Duration),
}

impl Asking {
    /// Where the client is.
    pub fn from(&self) -> IpAddr {
        self.client.from.ip()
    }

    /// On behalf of `client`, as `source` (`SLO`, `DLO`), for at most `max_time`.
    pub fn new(
        client: &ClientRequest,
        next: Next,
        source: &'static str,
        clock: Arc<dyn Clock>,
        max_time: Duration,
    ) -> Self {
        Self {
            next,
            client: client.without_body(),
            source,
            agent: agent(client, &format!("{source} MultipartGET")),
            deadline: (clock.elapsed() + max_time, max_time),
            clock,
        }
    }

    /// A request of the feature's own, authorised as the client's.
    pub fn request(&self, entity: EntityPath) -> ClientRequest {
        let mut request = self.client.subrequest(Method::GET, entity, self.source);
        request.headers.insert(USER_AGENT, self.agent.clone());
        pass_on(&self.client, &mut request);
        request
    }

    /// Sends a request down the rest of the pipeline.
    pub async fn send(&self, request: ClientRequest) -> Response {
        self.next.clone().run(request).await
    }

    /// The path of the large object, for messages.
    pub fn large_object(&self) -> &str {
        &self.client.path
    }

    /// The account of the large object, whose segments are meant.
    pub fn account(&self) -> &str {
        self.client.entity.as_ref().map_or("", |entity| &entity.account)
    }

    /// The clock that paces.
    pub fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    fn check_time(&self) -> Result<(), SegmentFailure> {
        if self.clock.elapsed() <= self.deadline.0 {
            return Ok(());
        }
        Err(SegmentFailure::Conflict(format!(
            "While processing manifest {}, max LO GET time of {}s exceeded",
            self.large_object(),
            self.deadline.1.as_secs()
        )))
    }

    /// What a refusal means, by its status.
    pub async fn refused(&self, what: &str, path: &EntityPath, response: Response) -> SegmentFailure {
        let status = response.status();
        if let Some(refusal) = response.extensions().get::<CustomerKeyRefusal>() {
            return SegmentFailure::Sealed(*refusal);
        }
        // Pages are short; one that is not says nothing that is worth reading.
        let page = response.into_body().collect(64 * 1024).await.unwrap_or_default();
        let page = String::from_utf8_lossy(&page[..page.len().min(60)]).into_owned();
        let text = format!(
            "While processing manifest {}, got {} ({page}...) while retrieving {what} {}",
            self.large_object(),
            status.as_u16(),
            path.path()
        );
        match status.is_server_error() {
            true => SegmentFailure::Unavailable(text),
            false => SegmentFailure::Conflict(text),
        }
    }

    async fn open(&self, piece: ObjectPiece) -> Result<OpenSegment, SegmentFailure> {
        self.check_time()?;
        let mut request = self.request(piece.path.clone());
        request.query = "multipart-manifest=get".into();
        if let Some(range) = &piece.range {
            let value = format!("bytes={}-{}", range.start, range.end.saturating_sub(1));
            request.headers.insert(RANGE, header_text(&value));
        }
        let response = self.send(request).await;
        if !response.status().is_success() {
            return Err(self.refused("segment", &piece.path, response).await);
        }
        OpenSegment::of(piece, response)
    }
}

/// Runs of bytes that are gathered in front of the first segment, and the bytes of them, before the client gets a
/// status in any case.
const MOST_READY: (usize, usize) = (16, 64 << 10);

/// Pieces on their way to a client.
pub struct Joined {
    asking: Asking,
    pieces: Box<dyn Pieces>,
    /// Bytes that come before the open segment.
    ready: VecDeque<Bytes>,
    open: Option<OpenSegment>,
    /// Bytes that the client has been promised and has not got.
    left: Option<u64>,
    over: bool,
}

impl Joined {
    /// Opens the first segment, so that a failure can still be said with a status. `length` is how many
    /// bytes the pieces are to have in all, if that is known.
    pub async fn start(asking: Asking, pieces: Box<dyn Pieces>, length: Option<u64>) -> Result<Self, SegmentFailure> {
        let mut joined = Self {
            asking,
            pieces,
            ready: VecDeque::new(),
            open: None,
            left: length,
            over: false,
        };
        let mut bytes_ready = 0;
        while joined.ready.len() < MOST_READY.0
            && bytes_ready < MOST_READY.1
            && let Some(piece) = joined.pieces.next(&joined.asking).await?
        {
            match piece {
                Piece::Data(bytes) => {
                    bytes_ready += bytes.len();
                    joined.ready.push_back(bytes);
                }
                Piece::Object(piece) => {
                    joined.open = Some(joined.asking.open(piece).await?);
                    break;
                }
            }
        }
        Ok(joined)
    }

    /// The body.
    pub fn into_body(self) -> Body {
        let length = self.left;
        let chunks = unfold(self, |mut joined| async move {
            let chunk = joined.next().await?;
            joined.over |= chunk.is_err();
            Some((chunk, joined))
        });
        Body::stream(chunks, length)
    }

    async fn next(&mut self) -> Option<Result<Bytes, BodyError>> {
        if self.over {
            return None;
        }
        let chunk = match self.bytes().await {
            Ok(Some(chunk)) => chunk,
            Ok(None) if self.left.is_some_and(|left| left > 0) => return Some(Err(BodyError::Abandoned)),
            Ok(None) => return None,
            Err(error) => return Some(Err(error)),
        };
        if let Some(left) = self.left {
            let Some(left) = left.checked_sub(chunk.len() as u64) else {
                tracing::error!("{} has more bytes than it should", self.asking.large_object());
                return Some(Err(BodyError::TooLarge(left)));
            };
            self.left = Some(left);
        }
        Some(Ok(chunk))
    }

    async fn bytes(&mut self) -> Result<Option<Bytes>, BodyError> {
        loop {
            if let Some(bytes) = self.ready.pop_front() {
                return Ok(Some(bytes));
            }
            if let Some(open) = &mut self.open {
                if let Some(chunk) = open.next().await? {
                    return Ok(Some(chunk));
                }
                self.open = None;
            }
            match self.pieces.next(&self.asking).await.map_err(broken)? {
                None => return Ok(None),
                Some(Piece::Data(bytes)) if bytes.is_empty() => {}
                Some(Piece::Data(bytes)) => return Ok(Some(bytes)),
                Some(Piece::Object(piece)) => {
                    let open = self.asking.open(piece).await.map_err(broken)?;
                    self.check_fits(&open)?;
                    self.open = Some(open);
                }
            }
        }
    }

    /// A segment that has grown is found before its surplus would be cut off unnoticed.
    fn check_fits(&self, open: &OpenSegment) -> Result<(), BodyError> {
        match (self.left, open.left) {
            (Some(left), Some(length)) if length > left => {
                tracing::error!(
                    "{} has grown while {} was read",
                    open.path.path(),
                    self.asking.large_object()
                );
                Err(BodyError::TooLarge(left))
            }
            _ => Ok(()),
        }
    }
}

fn broken(failure: SegmentFailure) -> BodyError {
    tracing::error!("{failure}");
    BodyError::Broken(failure.to_string())
}

/// `User-Agent` of what a feature asks: the client's, and what for.
pub fn agent(client: &ClientRequest, purpose: &str) -> HeaderValue {
    let text = match client.header(USER_AGENT.as_str()) {
        Some(agent) => format!("{agent} {purpose}"),
        None => purpose.to_owned(),
    };
    header_text(&text)
}

/// A header value of text; what cannot be one is percent-encoded.
pub fn header_text(text: &str) -> HeaderValue {
    HeaderValue::from_bytes(text.as_bytes())
        .or_else(|_| HeaderValue::from_str(&quote(text)))
        .unwrap_or(HeaderValue::from_static(""))
}

/// A header's text; `None` when absent or not UTF-8.
pub fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    std::str::from_utf8(headers.get(name)?.as_bytes()).ok()
}

/// The MD5 of some bytes, in hexadecimal.
pub fn md5_hex(bytes: &[u8]) -> String {
    hex::encode(Md5::digest(bytes))
}

#[cfg(test)]
mod tests;
