//! Reads: one node after the other until one has the thing.
//!
//! A 404 that carries the time of a deletion beats older copies met later; a 404 of a handoff that
//! knows of no deletion says nothing, one that does speaks for primaries that are silent. With `concurrent_gets` a
//! silent node is not waited for long before the next one is asked beside it. `X-Newest` asks all primaries, and
//! handoffs too while one of those is silent, and takes the newest.
//! Always holds: without an answer to give the reply is 503, never a made-up 404.

use crate::backend::{Question, response_of, text};
use crate::candidates::{Candidate, Candidates};
use crate::nodes::Node;
use crate::shared::Shared;
use crate::write_clock::header_timestamp;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use http::{HeaderMap, Method};
use peer::message::header_names::{X_BACKEND_TIMESTAMP, X_DATA_TIMESTAMP, X_PUT_TIMESTAMP, X_TIMESTAMP};
use peer::{Body, Call};
use request_pipeline::{Response, reply};
use vocabulary::Timestamp;
use world::BoxFuture;

/// A node that has it, and its answer, of which only the head has been read.
pub(crate) struct ReadSource {
    pub(crate) node: Node,
    pub(crate) response: Response,
}

/// Status and headers of what was found, or of why nothing was.
pub(crate) fn head_of(found: &Result<ReadSource, Response>) -> (u16, HeaderMap) {
    let response = match found {
        Ok(source) => &source.response,
        Err(refusal) => refusal,
    };
    (response.status().as_u16(), response.headers().clone())
}

/// What the nodes asked so far have said.
struct ReadReplies {
    statuses: Vec<u16>,
    refusals: Vec<Response>,
    /// Databases tell when the replica was made, which says nothing of the others'.
    tells_deletions: bool,
    /// When the object was deleted, as far as those know who do not have it.
    deleted_at: Timestamp,
    /// A handoff has taken note of a deletion in a primary's place.
    deleted_on_handoff: bool,
    /// A copy was met that is older than a deletion.
    has_stale: bool,
}

/// Finds a node that has what `question` asks for; `Err` is the answer when none has.
pub(crate) async fn find(
    shared: &Shared,
    candidates: &mut Candidates,
    question: &Question,
    newest: bool,
) -> Result<ReadSource, Response> {
    let replicas = candidates.route().replicas();
    let quorum = quorum::size(replicas);
    let mut read_replies = ReadReplies {
        statuses: Vec::new(),
        refusals: Vec::new(),
        tells_deletions: candidates.route().is_of_object(),
        deleted_at: Timestamp::ZERO,
        deleted_on_handoff: false,
        has_stale: false,
    };
    let mut best: Option<ReadSource> = None;
    let mut primaries_left = replicas;
    let mut asking = Asking::new(shared, candidates, question);
    while let Some((candidate, response)) = asking.next().await {
        let Some(response) = response else { continue };
        primaries_left -= usize::from(candidate.is_primary);
        match read_replies.count(&candidate, response) {
            Some(response) if !newest => {
                return Ok(ReadSource {
                    node: candidate.node,
                    response,
                });
            }
            Some(response) => keep_newer(
                &mut best,
                ReadSource {
                    node: candidate.node,
                    response,
                },
            ),
            None => {}
        }
        // While a primary is silent, a handoff may have what was written in its place.
        if newest && primaries_left == 0 && best.is_some() {
            break;
        }
    }
    match best {
        Some(source) if written_at(&source.response) >= read_replies.deleted_at => Ok(source),
        stale => Err(read_replies
            .knowing(stale.is_some())
            .verdict(&question.message.method(), quorum)),
    }
}

/// Candidates being asked: one after the other, or with `concurrent_gets` one more whenever those asked keep silent
/// for a while.
struct Asking<'a> {
    shared: &'a Shared,
    candidates: &'a mut Candidates,
    question: &'a Question,
    under_way: FuturesUnordered<BoxFuture<'a, (Candidate, Option<Response>)>>,
}

impl<'a> Asking<'a> {
    fn new(shared: &'a Shared, candidates: &'a mut Candidates, question: &'a Question) -> Self {
        Self {
            shared,
            candidates,
            question,
            under_way: FuturesUnordered::new(),
        }
    }

    /// The next node that answered, with its response if it was one; `None` when all have been asked.
    async fn next(&mut self) -> Option<(Candidate, Option<Response>)> {
        let Some(patience) = self.candidates.patience() else {
            let (candidate, call) = self.choose()?;
            let limit = self.shared.options.recoverable_node_timeout;
            let response = self.shared.ask(&candidate.node, call, limit).await;
            return Some((candidate, response));
        };
        if self.under_way.is_empty() {
            self.begin();
        }
        loop {
            let (shared, answered) = (self.shared, self.under_way.next());
            match shared.world.timeout(patience, answered).await {
                Ok(answer) => return answer,
                Err(_) if self.begin() => {}
                Err(_) => return self.under_way.next().await,
            }
        }
    }

    /// Asks one more; false when there is none.
    fn begin(&mut self) -> bool {
        let Some((candidate, call)) = self.choose() else {
            return false;
        };
        let (shared, limit) = (self.shared, self.shared.options.recoverable_node_timeout);
        self.under_way.push(Box::pin(async move {
            let response = shared.ask(&candidate.node, call, limit).await;
            (candidate, response)
        }));
        true
    }

    /// The next one to ask, and the call to make.
    fn choose(&mut self) -> Option<(Candidate, Call)> {
        let candidate = self.candidates.next(self.shared)?;
        let call = self.question.call(self.candidates.route(), &candidate.node);
        Some((candidate, call))
    }
}

impl ReadReplies {
    /// Hands back an answer that serves the client; remembers what the others say.
    fn count(&mut self, candidate: &Candidate, response: Response) -> Option<Response> {
        let status = response.status().as_u16();
        if matches!(status, 200..=399 | 416) {
            if written_at(&response) < self.deleted_at {
                tracing::info!(device = %candidate.node.device, "a copy older than a known deletion is passed over");
                self.has_stale = true;
                return None;
            }
            return Some(response);
        }
        // Databases that never were say the beginning of time.
        let deletion = header_timestamp(response.headers(), &X_BACKEND_TIMESTAMP)
            .filter(|at| status == 404 && *at > Timestamp::ZERO);
        if status == 404 && !candidate.is_primary && deletion.is_none() {
            return None;
        }
        self.deleted_on_handoff |= deletion.is_some() && !candidate.is_primary;
        let of_object = deletion.filter(|_| self.tells_deletions);
        self.deleted_at = self.deleted_at.max(of_object.unwrap_or_default());
        self.statuses.push(status);
        self.refusals.push(response);
        None
    }

    fn knowing(mut self, has_stale: bool) -> Self {
        self.has_stale |= has_stale;
        self
    }

    /// Where the only copies are older than a deletion, one node's word for that is enough: it is the newest.
    fn verdict(mut self, method: &Method, quorum: usize) -> Response {
        let is_deleted = self.deleted_on_handoff || self.has_stale;
        let Some(index) = quorum::best(&self.statuses, quorum) else {
            return reply::status_for(method, if is_deleted { 404 } else { 503 });
        };
        let refusal = self.refusals.swap_remove(index);
        match refusal.status().as_u16() {
            // A condition or parameter that failed, or an account being deleted, has words of its own.
            400 | 410 | 412 => refusal,
            code => {
                let mut page = reply::status_for(method, code);
                copy_account_status(&refusal, &mut page);
                if code == 404 && self.deleted_at > Timestamp::ZERO {
                    // For upkeep; clients do not see it.
                    let time = text(&self.deleted_at.internal());
                    page.headers_mut().insert(X_BACKEND_TIMESTAMP, time);
                }
                page
            }
        }
    }
}

fn copy_account_status(from: &Response, to: &mut Response) {
    if let Some(status) = from.headers().get("x-account-status") {
        to.headers_mut().insert("x-account-status", status.clone());
    }
}

fn written_at(response: &Response) -> Timestamp {
    [X_DATA_TIMESTAMP, X_BACKEND_TIMESTAMP, X_PUT_TIMESTAMP, X_TIMESTAMP]
        .iter()
        .find_map(|name| header_timestamp(response.headers(), name))
        .unwrap_or_default()
}

fn keep_newer(best: &mut Option<ReadSource>, source: ReadSource) {
    if best
        .as_ref()
        .is_none_or(|known| written_at(&known.response) < written_at(&source.response))
    {
        *best = Some(source);
    }
}

/// The answer of a node that has it, as a whole: for HEAD and listings.
pub(crate) async fn whole(shared: &Shared, source: ReadSource, limit: u64) -> Response {
    let (head, body) = source.response.into_parts();
    let collected = shared
        .world
        .timeout(shared.options.recoverable_node_timeout, body.collect(limit))
        .await;
    match collected {
        Ok(Ok(body)) => Response::from_parts(head, Body::whole(body)),
        Ok(Err(error)) => {
            shared
                .suppression
                .error(&source.node, &format!("its answer broke off: {error}"));
            reply::status(503)
        }
        Err(error) => {
            shared
                .suppression
                .error(&source.node, &format!("its answer stalled: {error}"));
            reply::status(503)
        }
    }
}

/// A reply that was agreed on, or 503 with Swift's page.
pub(crate) fn agreed(method: &Method, replies: Vec<crate::backend::Reply>, quorum: usize) -> Response {
    let statuses: Vec<u16> = replies.iter().map(|r| r.status).collect();
    match quorum::best(&statuses, quorum) {
        Some(index) => response_of(replies[index].clone()),
        None => reply::status_for(method, 503),
    }
}
