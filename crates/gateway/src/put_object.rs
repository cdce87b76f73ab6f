//! PUT of an object: to all replicas at once, streamed, answered at quorum.
//!
//! check → describe → write → conclude. A body up to [`SMALL`] is written whole, like any other write, so that a
//! failing node is simply replaced; a longer one streams: when its first piece is here, all replicas are asked
//! ("Expect"), those that refuse are replaced by handoffs, and the bytes flow once a quorum has agreed. There are two
//! paths because a streamed body cannot be sent again to a handoff, and costs an object server a second job on its
//! device's workers.
//! The body's MD5 is computed once, here; services of this process use it ([`peer::Digest`]).
//! Features may have more to say once the body has been read ([`request_pipeline::Footers`]): a small body's
//! message simply gets it as headers, a streamed one carries it at its end ([`peer::Footer`]).
//! What is newer than the PUT and ahead of this gateway's clock is passed before any body flows (`write_order.rs`).
//! Always holds: fewer than a quorum of whole replicas is no success; a body that ends early, or does not match
//! the client's ETag, becomes no object on any replica. Each replica gets the MD5 of what was sent, in front of a
//! small body and behind a streamed one, so that one which has received something else stores nothing; no success
//! is answered where one has said that it stored something else.

use crate::backend::{Reply, context_of, header, target, text};
use crate::constraints::{check_metadata, declared_length};
use crate::content_type;
use crate::expiry::deletion_time;
use crate::fan::{BodyEnd, Fan, OpenReplica};
use crate::fan_out::{self, MakeCall};
use crate::located::{LocatedObject, Updates, check_name, forwarded_headers, refusal_of};
use crate::opening::{Opening, PutCalls};
use crate::shared::Shared;
use crate::upload_body::UploadBody;
use crate::write_clock::WriteTime;
use bytes::Bytes;
use http::header::{ETAG, EXPECT, HeaderMap};
use md5::{Digest as _, Md5};
use peer::message::PutObject;
use peer::{Body, BodyError, Digest, Footer};
use request_pipeline::{ClientRequest, Footers, Response, WriteTimeSlot, reply};
use std::sync::Arc;
use vocabulary::conditional::bare_etag;
use vocabulary::hex;
use vocabulary::metadata::Entity;

/// Bodies up to this size are read before the first replica is asked.
const SMALL: u64 = 64 * 1024;

/// Answers the PUT of an object.
pub(crate) async fn handle(shared: &Arc<Shared>, request: ClientRequest, object: LocatedObject) -> Response {
    put(shared, request, object).await.unwrap_or_else(|refusal| refusal)
}

async fn put(shared: &Arc<Shared>, mut request: ClientRequest, object: LocatedObject) -> Result<Response, Response> {
    let (length, deletion) = check(shared, &mut request, &object)?;
    let body = std::mem::replace(&mut request.body, Body::empty());
    let mut upload = Upload::describe(shared, request, object, (length, deletion))?;
    let written = match length {
        Some(length) if upload.is_written_whole(length) => upload.write_whole(body, length).await?,
        _ => upload.write_streamed(upload.begin(body).await?).await?,
    };
    Ok(upload.conclude(written))
}

/// The MD5 of what a server says that it has stored.
fn stored_as(reply: &Reply) -> Option<&str> {
    let stored = (reply.status == 201).then_some(&reply.headers)?;
    header(stored, "etag").map(bare_etag)
}

/// What headers say that the MD5 is.
fn promised_etag(headers: &HeaderMap) -> Option<String> {
    let etag = header(headers, "etag").map(bare_etag)?;
    (!etag.is_empty()).then(|| etag.to_owned())
}

/// Refuses what must not be stored; answers with the declared length and the deletion time.
fn check(
    shared: &Shared,
    request: &mut ClientRequest,
    object: &LocatedObject,
) -> Result<(Option<u64>, Option<u64>), Response> {
    if request.headers.contains_key("if-none-match") && request.header("if-none-match").is_none_or(|v| v.trim() != "*")
    {
        return Err(reply::plain(400, "If-None-Match only supports *"));
    }
    if request.header("etag") == Some("") {
        request.headers.remove("etag");
    }
    let length = declared_length(request)?;
    let limits = &shared.options.limits;
    if length.is_some_and(|length| length > limits.max_file_size) {
        return Err(reply::plain(413, "Your request is too large."));
    }
    check_name(shared, &object.path)?;
    content_type::resolve(request, object.path.object.as_deref().unwrap_or(""))?;
    let deletion = deletion_time(request, shared.world.clock.now())?;
    check_metadata(request, Entity::Object, limits)?;
    Ok((length, deletion))
}

/// A PUT that has been checked.
struct Upload {
    shared: Arc<Shared>,
    calls: PutCalls,
    time: WriteTime,
    /// What the client says the MD5 is.
    promised: Option<String>,
    length: Option<u64>,
    /// The client sends nothing before "100 Continue" has come.
    expects: bool,
    /// What features will say at the end.
    footers: Option<Footers>,
    /// A feature wants to know the timestamp.
    time_slot: Option<WriteTimeSlot>,
}

/// What replicas have answered to a body that was sent to its end.
struct Written {
    replies: Vec<Reply>,
    md5: String,
}

impl Upload {
    /// What is to be written, and which servers are to be sent its rows.
    fn describe(
        shared: &Arc<Shared>,
        request: ClientRequest,
        object: LocatedObject,
        (length, deletion): (Option<u64>, Option<u64>),
    ) -> Result<Self, Response> {
        if let Some(at) = deletion {
            request.notes.remark(format!("x-delete-at:{at}"));
        }
        let time = shared.write_time_of(&request)?;
        let updates = Arc::new(Updates::of(shared, &object, deletion));
        let mut headers = forwarded_headers(&request);
        let context = context_of(&request, &mut headers);
        let message = PutObject {
            timestamp: time.timestamp.into(),
            policy: object.policy.into(),
            ..PutObject::decode(target(object.path), headers)
        };
        Ok(Self {
            shared: shared.clone(),
            calls: PutCalls {
                context,
                message,
                route: object.route,
                updates,
            },
            time,
            promised: promised_etag(&request.headers),
            length,
            expects: request.headers.contains_key(EXPECT),
            time_slot: request.extensions.get::<WriteTimeSlot>().cloned(),
            footers: request.footers,
        })
    }

    /// Whether the body is received before the first replica is asked. A conditional write asks all of them first:
    /// one of them may have the object already.
    fn is_written_whole(&self, length: u64) -> bool {
        length <= SMALL && self.calls.message.if_none_match.is_none()
    }

    async fn write_whole(&mut self, body: Body, length: u64) -> Result<Written, Response> {
        let bytes = self.receive(body, length).await?;
        if self.calls.message.write_lock.is_some() && self.time.is_own {
            // What was written while the body came is older than what is written under the lock.
            self.time = self.shared.new_write_time();
            self.calls.message.timestamp = self.time.timestamp.into();
        }
        if let Some(footers) = self.footers.take() {
            self.overlay(footers()?);
        }
        let md5 = hex::encode(Md5::digest(&bytes));
        self.check_promised(self.promised.as_deref(), &md5)?;
        self.calls.message.etag.get_or_insert_with(|| text(&md5));
        let (calls, digest) = (self.calls.clone(), Digest::known(md5.as_str()));
        let mut make_call: MakeCall = Arc::new(move |replica, node| {
            let body = Body::whole(bytes.clone()).with_digest(digest.clone());
            calls.call(replica, node).with_body(body)
        });
        loop {
            let replies = fan_out::write(&self.shared, &self.calls.route, make_call.clone()).await;
            if self.is_final(&replies, replies.len())? {
                return Ok(Written { replies, md5 });
            }
            make_call = fan_out::retimed(make_call, self.time.timestamp);
        }
    }

    /// Whether what `answered` replicas have said stands; else it is to be asked again.
    fn is_final(&mut self, replies: &[Reply], answered: usize) -> Result<bool, Response> {
        let (path, replicas) = (&self.calls.message.target.path, self.calls.route.replicas());
        self.time
            .is_final(&self.shared.write_clock, path, replies, (answered, replicas))
    }

    /// A body that streams. Its first piece is awaited before any replica is asked: a client that sends next to nothing
    /// costs no object server a place. One that waits to hear whether its body is wanted hears that from the replicas.
    async fn begin(&self, body: Body) -> Result<UploadBody, Response> {
        let mut body = UploadBody::new(&self.shared, body);
        let asks_first = self.expects || self.calls.message.if_none_match.is_some();
        if !asks_first && !body.begin().await? && self.length.is_some() {
            return Err(self.shared.client_left());
        }
        Ok(body)
    }

    /// A small body.
    async fn receive(&self, body: Body, length: u64) -> Result<Bytes, Response> {
        let limit = self.shared.options.client_timeout;
        match self.shared.world.timeout(limit, body.collect(length)).await {
            Ok(Ok(bytes)) if bytes.len() as u64 == length => Ok(bytes),
            Err(_) | Ok(Err(BodyError::TimedOut)) => Err(self.shared.client_stalled()),
            Ok(Ok(_) | Err(_)) => Err(self.shared.client_left()),
        }
    }

    /// What features have said at the end wins over what came first.
    fn overlay(&mut self, footers: HeaderMap) {
        self.promised = promised_etag(&footers).or(self.promised.take());
        let headers = Arc::make_mut(&mut self.calls.message.headers);
        for (name, value) in footers {
            match name {
                Some(ETAG) => self.calls.message.etag = Some(value),
                Some(name) => drop(headers.insert(name, value)),
                None => {}
            }
        }
    }

    fn check_promised(&self, promised: Option<&str>, md5: &str) -> Result<(), Response> {
        match promised {
            Some(promised) if promised != md5 => Err(self.mismatch()),
            _ => Ok(()),
        }
    }

    /// 422, naming the write that was not made.
    fn mismatch(&self) -> Response {
        let mut response = reply::status(422);
        response
            .headers_mut()
            .insert("last-modified", text(&self.time.timestamp.last_modified()));
        response
    }

    fn conclude(&self, Written { replies, md5 }: Written) -> Response {
        if let Some(other) = replies
            .iter()
            .find_map(|reply| stored_as(reply).filter(|etag| *etag != md5))
        {
            let path = self.calls.message.target.path.path();
            tracing::error!("a server has stored {path} with MD5 {other} that was sent as {md5}: its PUT failed");
            return reply::status(500);
        }
        let statuses: Vec<u16> = replies.iter().map(|r| r.status).collect();
        let quorum = quorum::size(self.calls.route.replicas());
        let best = match self.time.is_own {
            true => quorum::best(&statuses, quorum).map(|index| (statuses[index], index)),
            false => quorum::best_reading_as(&statuses, quorum, 409, 201),
        };
        let Some((status, index)) = best else {
            return reply::status(503);
        };
        match status {
            201 => {
                if let Some(slot) = &self.time_slot {
                    slot.note(self.time.timestamp);
                }
                if statuses.contains(&422) {
                    let path = self.calls.message.target.path.path();
                    tracing::warn!("a server received other bytes of {path} than were sent: faulty network or memory?");
                }
                let mut response = reply::html(201, String::new());
                response.headers_mut().insert("etag", text(&md5));
                response
                    .headers_mut()
                    .insert("last-modified", text(&self.time.timestamp.last_modified()));
                response
            }
            // Something newer came while this was under way: the client's write was first and has been overtaken.
            409 => reply::status(202),
            422 => self.mismatch(),
            _ => refusal_of(replies[index].clone()),
        }
    }

    async fn write_streamed(&mut self, body: UploadBody) -> Result<Written, Response> {
        let footers = self.footers.take();
        // Where the client has said the MD5, each replica compares that.
        let is_footer_needed = footers.is_some() || self.calls.message.etag.is_none();
        let end = BodyEnd {
            digest: Digest::default(),
            footer: is_footer_needed.then(Footer::default),
        };
        let (replicas, early) = self.open_in_order(&end).await?;
        // A replica that is sent nothing may have stored the object before it was seen to wait for more.
        let is_stored = |reply: &&Reply| reply.status == 201 || self.has_it(reply);
        let stored = early.iter().filter(is_stored).count();
        let quorum = quorum::size(self.calls.route.replicas()).saturating_sub(stored);
        let mut fan = Fan {
            shared: &self.shared,
            replicas,
            quorum,
        };
        // One replica that has what must not be there yet speaks for all: the others may have missed it.
        let exists = early.iter().any(|reply| reply.status == 412);
        let is_everywhere = fan.replicas.is_empty() && early.iter().all(|reply| reply.status == 409);
        if exists || is_everywhere || !quorum::is_possible(fan.replicas.len(), quorum) {
            fan.abort();
            return Err(self.refused(&early));
        }
        let most = self.shared.options.limits.max_file_size;
        let pumped = fan.pump(body, self.length, most).await;
        match pumped.and_then(|md5| self.end_body(md5, footers, &end)) {
            Ok(md5) => {
                let replies = fan.finish(self.shared.clone()).await;
                let replies = early.into_iter().chain(replies).collect();
                Ok(Written { replies, md5 })
            }
            Err(failure) => {
                fan.abort();
                Err(failure)
            }
        }
    }

    /// The body is whole: what is known only now is said to all replicas, unless the body must not stay.
    fn end_body(&self, md5: String, footers: Option<Footers>, end: &BodyEnd) -> Result<String, Response> {
        let mut headers = footers.map(|footers| footers()).transpose()?.unwrap_or_default();
        let promised = promised_etag(&headers);
        self.check_promised(promised.as_deref().or(self.promised.as_deref()), &md5)?;
        end.digest.set(md5.clone());
        if let Some(footer) = &end.footer {
            // Other nodes check by it what has reached them.
            headers.insert("etag", text(&md5));
            footer.set(headers);
        }
        Ok(md5)
    }

    /// Asks all replicas to take the body. Those that have something newer say so before the body has begun: if it is
    /// ahead of this gateway's clock, all are asked again. What they get meanwhile was written while the body came.
    async fn open_in_order(&mut self, end: &BodyEnd) -> Result<(Vec<OpenReplica>, Vec<Reply>), Response> {
        loop {
            let opening = Opening {
                shared: &self.shared,
                calls: &self.calls,
                length: self.length,
                end,
            };
            let (replicas, early) = opening.open_all().await;
            let again = match self.is_final(&early, early.len() + replicas.len()) {
                Ok(true) => return Ok((replicas, early)),
                // Nothing waits for a body that has none: a condition would now find what this PUT has stored.
                Ok(false) if early.iter().any(|reply| reply.status == 201) => Err(reply::status(503)),
                again => again,
            };
            let (shared, quorum) = (&*self.shared, 0);
            Fan {
                shared,
                replicas,
                quorum,
            }
            .abort();
            again?;
            self.calls.message.timestamp = self.time.timestamp.into();
        }
    }

    /// Whether a server needs this write no more, which came with its sender's time: it has it, or something newer.
    fn has_it(&self, reply: &Reply) -> bool {
        !self.time.is_own && reply.status == 409
    }

    /// Not enough replicas would take the body: what they said, if they agree. What came with its sender's time is sent
    /// for those that have missed it: that one server has it, or something newer, is not enough.
    fn refused(&self, early: &[Reply]) -> Response {
        let conflicts = early.iter().filter(|reply| reply.status == 409).count();
        let enough = match self.time.is_own {
            true => 1,
            false => quorum::size(self.calls.route.replicas()),
        };
        match early {
            early if early.iter().any(|reply| reply.status == 412) => reply::status(412),
            _ if conflicts >= enough => reply::status(202),
            early if early.iter().any(|reply| reply.status == 431) => reply::status(431),
            _ => reply::status(503),
        }
    }
}
