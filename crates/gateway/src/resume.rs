//! A GET's body that survives its node: when it breaks off, the next replica goes on.
//!
//! The replacement must be the same write (entity tag and timestamp). What a remote node sent before it broke may have
//! been wrong (a server that finds a checksum mismatch can only hang up), so the replacement is read from the beginning
//! of the range and must agree with what the client has got, by a hash kept on the way. A service in this process says
//! by itself when its bytes are wrong ([`BodyError::Corrupt`]); then the client's download fails, as it must. What
//! replaces it when its drive fails is read from the beginning, too, where that is the whole object: servers verify
//! only what is read as a whole.
//! Always holds: the client gets exactly the promised bytes, or a broken connection.
//! Deliberately absent: proof of what a service in this process had sent before its drive failed, and of parts of
//! objects that are longer than a server's first look: nothing has compared these with a checksum.

use crate::backend::{Question, header, text};
use crate::candidates::{Candidate, Candidates};
use crate::read::{self, ReadSource};
use crate::route::Route;
use crate::shared::Shared;
use bytes::Bytes;
use http::header::{HeaderValue, RANGE};
use peer::message::{Message, ReadObject, RequestContext};
use peer::{Body, BodyError};
use request_pipeline::Response;
use std::sync::Arc;
use xxhash_rust::xxh3::Xxh3;

struct Download {
    shared: Arc<Shared>,
    candidates: Candidates,
    reading: Reading,
    /// What identifies the write that is being read.
    etag: Option<HeaderValue>,
    timestamp: Option<HeaderValue>,
    /// First byte asked for, and how many there are.
    start: u64,
    length: u64,
    /// That is the whole object.
    is_whole: bool,
    sent: u64,
    source: Current,
    over: bool,
}

struct Current {
    node: crate::nodes::Node,
    body: Body,
    /// Of what it gave from the beginning of the range; only kept for nodes that cannot say by themselves that they
    /// were wrong, and for those that stand in for them.
    hash: Option<Box<Xxh3>>,
}

/// What is read of an object, whichever node it is read from.
#[derive(Clone)]
pub(crate) struct Reading {
    pub(crate) context: RequestContext,
    pub(crate) read: ReadObject,
}

impl Reading {
    fn question(&self) -> Question {
        Question::new(self.context.clone(), Message::ReadObject(self.read.clone()))
    }

    /// The same of another range; of everything without one.
    pub(crate) fn of_range(mut self, range: Option<&str>) -> Self {
        let headers = Arc::make_mut(&mut self.read.headers);
        match range {
            Some(range) => drop(headers.insert(RANGE, text(range))),
            None => drop(headers.remove(RANGE)),
        }
        self
    }
}

/// A GET or HEAD of one range or the whole, failing over even in the middle of the body.
pub(crate) async fn get(shared: &Arc<Shared>, route: Route, reading: Reading, newest: bool) -> Response {
    let mut candidates = Candidates::new(shared, route);
    match read::find(shared, &mut candidates, &reading.question(), newest).await {
        Err(refusal) => refusal,
        Ok(source) if reading.read.head_only || !source.response.status().is_success() => source.response,
        Ok(source) => download(shared, candidates, reading, source),
    }
}

/// The client's response to a GET answered by `source`; `candidates` are the nodes not tried yet.
fn download(shared: &Arc<Shared>, candidates: Candidates, mut reading: Reading, source: ReadSource) -> Response {
    let (head, body) = source.response.into_parts();
    // The rest is asked for as a range, which must not be ignored.
    reading.read.ignores_range_if = None;
    let length = body
        .length()
        .or_else(|| header(&head.headers, "content-length")?.parse().ok());
    let (Some(length), false) = (length, body.as_whole().is_some()) else {
        return Response::from_parts(head, body);
    };
    let range = header(&head.headers, "content-range");
    let start = range.and_then(first_byte).unwrap_or(0);
    let is_whole = range.is_none_or(|range| range.ends_with(&format!("/{length}")));
    let is_local = shared.peers.is_local(&source.node.ip, source.node.port);
    let hash = (!is_local).then(Box::default);
    let download = Download {
        shared: shared.clone(),
        candidates,
        reading,
        etag: head.headers.get("etag").cloned(),
        timestamp: head.headers.get("x-timestamp").cloned(),
        start,
        length,
        is_whole,
        sent: 0,
        source: Current {
            node: source.node,
            body,
            hash,
        },
        over: false,
    };
    let chunks = futures_util::stream::unfold(download, |mut download| async move {
        let chunk = download.next().await?;
        Some((chunk, download))
    });
    Response::from_parts(head, Body::stream(chunks, Some(length)))
}

fn first_byte(content_range: &str) -> Option<u64> {
    content_range.strip_prefix("bytes ")?.split_once('-')?.0.parse().ok()
}

impl Download {
    async fn next(&mut self) -> Option<Result<Bytes, BodyError>> {
        if self.over || self.sent >= self.length {
            return None;
        }
        loop {
            match self.read().await {
                Ok(chunk) => {
                    self.sent += chunk.len() as u64;
                    return Some(Ok(chunk));
                }
                Err(BodyError::Corrupt) => return self.give_up(BodyError::Corrupt),
                Err(error) => {
                    self.shared
                        .suppression
                        .error(&self.source.node, &format!("its body broke off: {error}"));
                    if let Err(error) = self.replace_source(error).await {
                        return self.give_up(error);
                    }
                }
            }
        }
    }

    fn give_up(&mut self, error: BodyError) -> Option<Result<Bytes, BodyError>> {
        self.over = true;
        Some(Err(error))
    }

    async fn read(&mut self) -> Result<Bytes, BodyError> {
        let chunk = next_chunk(&self.shared, &mut self.source.body).await?;
        if self.sent + chunk.len() as u64 > self.length {
            return Err(BodyError::TooLarge(self.length));
        }
        if let Some(hash) = &mut self.source.hash {
            hash.update(&chunk);
        }
        Ok(chunk)
    }

    /// Goes on with another node; the error is that of the one before when there is none.
    async fn replace_source(&mut self, error: BodyError) -> Result<(), BodyError> {
        let from_start = self.is_whole || self.source.hash.is_some();
        let skip = if from_start { self.sent } else { 0 };
        let from = self.start + self.sent - skip;
        let range = format!("bytes={from}-{}", self.start + self.length - 1);
        let question = self.reading.clone().of_range(Some(&range)).question();
        while let Some(candidate) = self.next_candidate(&question) {
            let call = question.call(self.candidates.route(), &candidate.node);
            let limit = self.shared.options.recoverable_node_timeout;
            let Some(response) = self.shared.ask(&candidate.node, call, limit).await else {
                continue;
            };
            if !self.is_same_write(&response, from) {
                continue;
            }
            let is_local = self.shared.peers.is_local(&candidate.node.ip, candidate.node.port);
            let is_kept = self.source.hash.is_some() || from_start && !is_local;
            let hash = is_kept.then(Box::default);
            let mut next = Current {
                node: candidate.node,
                body: response.into_body(),
                hash,
            };
            match self.agrees(&mut next, skip).await {
                Ok(true) => {
                    self.source = next;
                    return Ok(());
                }
                Ok(false) => return Err(BodyError::Corrupt),
                Err(error) => self
                    .shared
                    .suppression
                    .error(&next.node, &format!("its body broke off: {error}")),
            }
        }
        Err(error)
    }

    fn next_candidate(&mut self, question: &Question) -> Option<Candidate> {
        let next = self.candidates.next(&self.shared, question);
        next.or_else(|| self.candidates.next_silent(&self.shared))
    }

    fn is_same_write(&self, response: &Response, from: u64) -> bool {
        let headers = response.headers();
        let begins = header(headers, "content-range").and_then(first_byte).unwrap_or(0);
        response.status().is_success()
            && headers.get("etag") == self.etag.as_ref()
            && headers.get("x-timestamp") == self.timestamp.as_ref()
            && begins == from
    }

    /// Reads `skip` bytes of `next`; whether they are what was sent, as far as that is in doubt.
    async fn agrees(&self, next: &mut Current, skip: u64) -> Result<bool, BodyError> {
        let mut left = skip;
        while left > 0 {
            let mut chunk = next_chunk(&self.shared, &mut next.body).await?;
            let take = usize::try_from(left).unwrap_or(usize::MAX).min(chunk.len());
            let head = chunk.split_to(take);
            if let Some(hash) = &mut next.hash {
                hash.update(&head);
            }
            left -= head.len() as u64;
            if !chunk.is_empty() {
                // What is left of the chunk belongs to the client: put it back in front.
                let length = next.body.length().map(|l| l + chunk.len() as u64);
                let rest = std::mem::replace(&mut next.body, Body::empty());
                next.body = put_back(chunk, rest, length);
            }
        }
        let both = self.source.hash.as_ref().zip(next.hash.as_ref());
        Ok(both.is_none_or(|(sent, next)| sent.digest() == next.digest()))
    }
}

fn put_back(chunk: Bytes, rest: Body, length: Option<u64>) -> Body {
    let chunks = futures_util::stream::unfold((Some(chunk), rest), |(front, mut rest)| async move {
        match front {
            Some(chunk) => Some((Ok(chunk), (None, rest))),
            None => rest.next().await.map(|chunk| (chunk, (None, rest))),
        }
    });
    Body::stream(chunks, length)
}

async fn next_chunk(shared: &Shared, body: &mut Body) -> Result<Bytes, BodyError> {
    match shared
        .world
        .timeout(shared.options.recoverable_node_timeout, body.next())
        .await
    {
        Ok(Some(chunk)) => chunk,
        Ok(None) => Err(BodyError::Abandoned),
        Err(_) => Err(BodyError::TimedOut),
    }
}
