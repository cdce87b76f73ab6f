//! PUT of an object: to all replicas at once, streamed, answered at quorum.
//!
//! A small body (up to [`SMALL`]) is read first and then written like any other write, so that a
//! failing node is simply replaced. A larger one streams: all replicas are asked first ("Expect"),
//! those that refuse are replaced by handoffs, and the bytes flow once a quorum has agreed.
//! The body's MD5 is computed once, here; services of this process use it ([`peer::Digest`]).
//! Features may have more to say once the body has been read ([`request_pipeline::Footers`]): a small body's
//! request simply gets it as headers, a streamed one carries it at its end ([`peer::Footer`]).
//! Always holds: fewer than a quorum of whole replicas is no success; a body that ends early, or does not match
//! the client's ETag, becomes no object on any replica.

use crate::backend::{Reply, header, text};
use crate::constraints::{check_metadata, declared_length};
use crate::content_type;
use crate::expiry::deletion_time;
use crate::fan::{CHUNKS_AHEAD, End, Fan, Replica, hex};
use crate::fan_out::{self, MakeCall, Spares};
use crate::gateway::Shared;
use crate::nodes::Node;
use crate::object::{Place, Updates, check_name, refusal_of, storage_headers};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use http::header::{HeaderMap, HeaderValue};
use md5::{Digest as _, Md5};
use peer::{Body, Digest, Footer, RawCall, Target};
use request_pipeline::{ClientRequest, Footers, Response, reply};
use std::sync::Arc;
use tokio::sync::oneshot;
use vocabulary::Timestamp;
use vocabulary::conditional::bare_etag;
use vocabulary::metadata::Entity;

/// Bodies up to this size are read before the first replica is asked.
const SMALL: u64 = 64 * 1024;

/// One PUT under way.
struct Upload {
    shared: Arc<Shared>,
    place: Place,
    headers: HeaderMap,
    updates: Arc<Updates>,
    timestamp: Timestamp,
    /// What the client says the MD5 is.
    promised: Option<String>,
    length: Option<u64>,
    /// What features will say at the end.
    footers: Option<Footers>,
}

/// Answers the PUT of an object.
pub(crate) async fn handle(shared: &Arc<Shared>, mut request: ClientRequest, place: Place) -> Response {
    let (length, deletion) = match check(shared, &mut request, &place) {
        Ok(checked) => checked,
        Err(refusal) => return refusal,
    };
    if let Some(at) = deletion {
        request.notes.remark(format!("x-delete-at:{at}"));
    }
    let timestamp = match shared.timestamp_of(&request) {
        Ok(timestamp) => timestamp,
        Err(refusal) => return refusal,
    };
    // Nobody may have written when one of the replicas turns out to have the object: all are asked before the body is sent.
    let conditional = request.headers.contains_key("if-none-match");
    let headers = storage_headers(&request, &place, timestamp);
    let promised = promised_etag(&request.headers);
    let updates = Arc::new(Updates::of(shared, &place, deletion));
    let upload = Upload {
        shared: shared.clone(),
        place,
        headers,
        updates,
        timestamp,
        promised,
        length,
        footers: request.footers,
    };
    match length {
        Some(length) if length <= SMALL && !conditional => upload.small(request.body, length).await,
        _ => upload.streamed(request.body).await,
    }
}

/// What headers say that the MD5 is.
fn promised_etag(headers: &HeaderMap) -> Option<String> {
    let etag = header(headers, "etag").map(bare_etag)?;
    (!etag.is_empty()).then(|| etag.to_owned())
}

/// Refuses what must not be stored; answers with the declared length and the deletion time.
fn check(shared: &Shared, request: &mut ClientRequest, place: &Place) -> Result<(Option<u64>, Option<u64>), Response> {
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
    check_name(shared, &place.path)?;
    content_type::settle(request, place.path.object.as_deref().unwrap_or(""))?;
    let deletion = deletion_time(request, shared.world.clock.now())?;
    check_metadata(request, Entity::Object, limits)?;
    Ok((length, deletion))
}

impl Upload {
    async fn small(mut self, body: Body, length: u64) -> Response {
        let limit = self.shared.options.client_timeout;
        let bytes = match self.shared.world.timeout(limit, body.collect(length)).await {
            Ok(Ok(bytes)) if bytes.len() as u64 == length => bytes,
            Ok(Ok(_) | Err(_)) => return self.shared.client_left(),
            Err(_) => return self.shared.client_stalled(),
        };
        match self.footers.take().map(|footers| footers()) {
            Some(Ok(footers)) => self.overlay(footers),
            Some(Err(refusal)) => return refusal,
            None => {}
        }
        let md5 = hex(&Md5::digest(&bytes));
        if self.promised.as_ref().is_some_and(|promised| *promised != md5) {
            return self.mismatch();
        }
        let digest = Digest::known(md5.as_str());
        let (place, updates, headers) = (&self.place, self.updates.clone(), self.headers.clone());
        let (partition, path) = (place.route.partition, place.path.clone());
        let make_call: MakeCall = Arc::new(move |replica, node| {
            let target = Target {
                device: node.device.as_str().into(),
                partition: vocabulary::Partition(partition),
                path: path.clone(),
            };
            let mut call = RawCall::new(http::Method::PUT, target, headers.clone());
            call.headers.insert("content-length", HeaderValue::from(bytes.len()));
            updates.add_to(&mut call.headers, replica);
            call.with_body(Body::whole(bytes.clone()).with_digest(digest.clone()))
        });
        let replies = fan_out::write(&self.shared, &self.place.route, make_call).await;
        self.conclude(replies, &md5)
    }

    /// What features have said at the end wins over what came first.
    fn overlay(&mut self, footers: HeaderMap) {
        self.promised = promised_etag(&footers).or(self.promised.take());
        for (name, value) in footers {
            if let Some(name) = name {
                self.headers.insert(name, value);
            }
        }
    }

    /// 422, naming the write that was not made.
    fn mismatch(&self) -> Response {
        let mut response = reply::status(422);
        response
            .headers_mut()
            .insert("last-modified", text(&self.timestamp.last_modified()));
        response
    }

    fn conclude(&self, replies: Vec<Reply>, md5: &str) -> Response {
        let statuses: Vec<u16> = replies.iter().map(|r| r.status).collect();
        let Some(index) = quorum::best(&statuses, quorum::size(self.place.route.replicas())) else {
            return reply::status(503);
        };
        match statuses[index] {
            201 => {
                let mut response = reply::html(201, String::new());
                response.headers_mut().insert("etag", text(md5));
                response
                    .headers_mut()
                    .insert("last-modified", text(&self.timestamp.last_modified()));
                response
            }
            // Something newer is there: the client's write came first and has been overtaken.
            409 => reply::status(202),
            422 => self.mismatch(),
            _ => refusal_of(replies[index].clone()),
        }
    }

    async fn streamed(mut self, body: Body) -> Response {
        let footers = self.footers.take();
        let end = End {
            digest: Digest::default(),
            footer: footers.is_some().then(Footer::default),
        };
        let (replicas, early) = self.open_all(&end).await;
        // Who is sent nothing may have stored it before he was seen to wait for more.
        let stored = early.iter().filter(|reply| reply.status == 201).count();
        let quorum = quorum::size(self.place.route.replicas()).saturating_sub(stored);
        let mut fan = Fan {
            shared: &self.shared,
            replicas,
            quorum,
        };
        // One replica that has what must not be there yet speaks for all: the others may have missed it.
        let exists = early.iter().any(|reply| reply.status == 412);
        if exists || !quorum::is_possible(fan.replicas.len(), quorum) {
            fan.abort().await;
            return self.refused(early);
        }
        let most = self.shared.options.limits.max_file_size;
        let pumped = fan.pump(body, self.length, most).await;
        match pumped.and_then(|md5| self.settle(md5, footers, &end)) {
            Ok(md5) => {
                let replies = fan.finish(self.shared.clone()).await;
                self.conclude(early.into_iter().chain(replies).collect(), &md5)
            }
            Err(failure) => {
                fan.abort().await;
                failure
            }
        }
    }

    /// The body is whole: what is known only now is said to all replicas, unless the body must not stay.
    fn settle(&self, md5: String, footers: Option<Footers>, end: &End) -> Result<String, Response> {
        let mut headers = footers.map(|footers| footers()).transpose()?.unwrap_or_default();
        let promised = promised_etag(&headers).or_else(|| self.promised.clone());
        if promised.is_some_and(|promised| promised != md5) {
            return Err(self.mismatch());
        }
        end.digest.set(md5.clone());
        if let Some(footer) = &end.footer {
            // Other nodes check by it what has reached them.
            headers.insert("etag", text(&md5));
            footer.set(headers);
        }
        Ok(md5)
    }

    /// Not enough replicas would take the body: what they said, if they agree.
    fn refused(&self, early: Vec<Reply>) -> Response {
        let statuses: Vec<u16> = early.iter().map(|r| r.status).collect();
        match statuses {
            ref s if s.contains(&412) => reply::status(412),
            ref s if s.contains(&409) => reply::status(202),
            _ => reply::status(503),
        }
    }

    /// Asks all replicas to take the body; answers with those that will, and the refusals of those
    /// that never will (`412`, `409`, …).
    async fn open_all(&self, end: &End) -> (Vec<Replica>, Vec<Reply>) {
        let wanted = self
            .shared
            .options
            .request_node_count
            .for_replicas(self.place.route.replicas());
        let spares = Spares::new(self.place.route.clone(), wanted);
        let mut opening: FuturesUnordered<_> = (self.place.route.primaries.iter().enumerate())
            .map(|(replica, primary)| self.open_one(replica, primary.clone(), &spares, end))
            .collect();
        let (mut replicas, mut early) = (Vec::new(), Vec::new());
        while let Some(opened) = opening.next().await {
            match opened {
                Some(Opened::Accepts(replica)) => replicas.push(replica),
                Some(Opened::Refuses(reply)) => early.push(reply),
                None => {}
            }
        }
        (replicas, early)
    }

    async fn open_one(&self, replica: usize, primary: Node, spares: &Spares, end: &End) -> Option<Opened> {
        let (mut candidate, mut is_handoff) = (Some(primary), false);
        while let Some(node) = candidate {
            if !self.shared.suppression.is_suppressed(&node) {
                if is_handoff {
                    spares.note_use(&self.shared);
                }
                if let Some(opened) = self.try_open(replica, &node, end).await {
                    return Some(opened);
                }
            }
            candidate = spares.next();
            is_handoff = true;
        }
        None
    }

    async fn try_open(&self, replica: usize, node: &Node, end: &End) -> Option<Opened> {
        let (mut feed, body) = Body::channel(CHUNKS_AHEAD, self.length);
        let target = Target {
            device: node.device.as_str().into(),
            partition: vocabulary::Partition(self.place.route.partition),
            path: self.place.path.clone(),
        };
        let mut call = RawCall::new(http::Method::PUT, target, self.headers.clone());
        call.headers.insert("expect", HeaderValue::from_static("100-continue"));
        match self.length {
            Some(length) => call.headers.insert("content-length", HeaderValue::from(length)),
            None => call
                .headers
                .insert("transfer-encoding", HeaderValue::from_static("chunked")),
        };
        self.updates.add_to(&mut call.headers, replica);
        let call = call.with_body(end.belongs_to(body));
        let answer = self.send_in_background(node.clone(), call);
        let limit = self.shared.options.node_timeout;
        match self.shared.world.timeout(limit, feed.started()).await {
            Ok(true) => Some(Opened::Accepts(Replica {
                node: node.clone(),
                feed,
                answer,
            })),
            Ok(false) => {
                let reply = self.shared.world.timeout(limit, answer).await.ok()?.ok()??;
                (reply.status < 500).then_some(Opened::Refuses(reply))
            }
            Err(_) => {
                self.shared
                    .suppression
                    .error(node, "did not say in time whether it takes an object");
                None
            }
        }
    }

    /// The call runs by itself while its body is fed; its answer comes through the receiver.
    fn send_in_background(&self, node: Node, call: RawCall) -> oneshot::Receiver<Option<Reply>> {
        let (answer, receiver) = oneshot::channel();
        let shared = self.shared.clone();
        self.shared.world.clone().spawn(async move {
            // The head of the answer comes after the whole body: its deadline is the body's pace.
            let limit = std::time::Duration::from_secs(365 * 24 * 3600);
            let reply = match shared.ask(&node, call, limit).await {
                Some(response) => shared.whole(&node, response, shared.options.node_timeout).await,
                None => None,
            };
            // The upload may have been given up.
            let _ = answer.send(reply);
        });
        receiver
    }
}

enum Opened {
    Accepts(Replica),
    Refuses(Reply),
}
