//! Reads: one node after the other until one has the thing.
//!
//! A 404 that carries the time of a deletion beats older copies met later; a 404 of a handoff that
//! knows of no deletion says nothing, one that does speaks for primaries that do not answer. `X-Newest` asks all
//! primaries, and handoffs too while one of those has not answered, and takes the newest.
//! In which order, and when one is asked beside another: `read_attempts.rs`. A silent node (`silence.rs`) is asked, or
//! waited for, only if the others leave the result open. With `X-Newest` it counts as a suppressed one: handoffs are
//! asked in its place, and the newest of what answered is taken.
//! Always holds: without an answer to give the reply is 503, never a made-up 404.

use crate::backend::{Question, header, response_of, text};
use crate::candidates::{Candidate, Candidates};
use crate::nodes::Node;
use crate::read_attempts::ReadAttempts;
use crate::shared::Shared;
use crate::write_clock::header_timestamp;
use http::{HeaderMap, HeaderValue, Method};
use peer::message::header_names::{
    X_BACKEND_DELETE_TIMESTAMP, X_BACKEND_PUT_TIMESTAMP, X_BACKEND_TIMESTAMP, X_DATA_TIMESTAMP, X_MOST_ROWS,
    X_MOST_ROWS_CERTAIN, X_NAMED_VERSIONS, X_PUT_TIMESTAMP, X_TIMESTAMP, X_VERSIONS_CONTAINER,
};
use request_pipeline::{Response, reply};
use vocabulary::Timestamp;

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
    let mut informed = InformedReplicas::default();
    let mut attempts = ReadAttempts::new(shared, candidates, question);
    loop {
        // Then no silent node is waited for.
        let is_enough = best.is_some() || quorum::is_reached(&read_replies.statuses, quorum);
        let Some((candidate, response)) = attempts.next(is_enough).await else {
            break;
        };
        let Some(response) = response else { continue };
        primaries_left -= usize::from(candidate.is_primary);
        if newest {
            informed.note(candidate.is_primary, &response);
        }
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
        Some(mut source) if written_at(&source.response) >= read_replies.deleted_at => {
            informed.describe(&mut source.response, quorum);
            Ok(source)
        }
        stale => Err(read_replies
            .knowing(stale.is_some())
            .verdict(&question.message.method(), quorum)),
    }
}

/// Databases of handoffs that were made so many seconds later than the primaries' were not made with them.
const MADE_TOGETHER: f64 = 2.0;

/// Those who know what there is of a container: primaries that could look, and handoffs that have had it for as long as
/// these. One that was made since, while others are away, knows nothing of what those have.
#[derive(Default)]
struct InformedReplicas {
    answered: usize,
    primaries: usize,
    /// When the first of the primaries' databases was made.
    made: Option<Timestamp>,
    /// When the handoffs' were.
    handoffs: Vec<Timestamp>,
}

impl InformedReplicas {
    fn note(&mut self, is_primary: bool, response: &Response) {
        let (is_there, status) = (response.status().is_success(), response.status().as_u16());
        let made = header_timestamp(response.headers(), &X_TIMESTAMP).filter(|_| is_there);
        self.answered += usize::from(is_primary || is_there);
        if is_primary {
            self.primaries += usize::from(is_there || status == 404);
            self.made = self.made.into_iter().chain(made).min();
        } else {
            self.handoffs.extend(made);
        }
    }

    /// Says of a container how much the count of its rows is worth.
    fn describe(&self, response: &mut Response, quorum: usize) {
        let headers = response.headers_mut();
        if self.answered < quorum {
            headers.remove(X_MOST_ROWS);
        } else if self.count() >= quorum && headers.contains_key(X_MOST_ROWS) {
            headers.insert(X_MOST_ROWS_CERTAIN, HeaderValue::from_static("true"));
        }
    }

    fn count(&self) -> usize {
        let Some(first) = self.made else {
            return self.primaries;
        };
        let as_old = |made: &&Timestamp| made.as_f64() <= first.as_f64() + MADE_TOGETHER;
        self.primaries + self.handoffs.iter().filter(as_old).count()
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

/// When what an answer shows was written; a database, when it came or went last, as its file was made at another time
/// by the clock of each server.
fn written_at(response: &Response) -> Timestamp {
    let of_database = [X_BACKEND_PUT_TIMESTAMP, X_BACKEND_DELETE_TIMESTAMP]
        .iter()
        .filter_map(|name| header_timestamp(response.headers(), name))
        .max();
    if let Some(at) = of_database {
        return at;
    }
    [X_DATA_TIMESTAMP, X_BACKEND_TIMESTAMP, X_PUT_TIMESTAMP, X_TIMESTAMP]
        .iter()
        .find_map(|name| header_timestamp(response.headers(), name))
        .unwrap_or_default()
}

/// What makes an answer newer than another: its data, then its metadata; of replicas of a container that came at the
/// same time, rows that others have missed.
fn standing_of(response: &Response) -> (Timestamp, Timestamp, u64) {
    let rows = rows_of(response);
    let changed = match rows {
        None => header_timestamp(response.headers(), &X_BACKEND_TIMESTAMP),
        Some(_) => None,
    };
    (
        written_at(response),
        changed.unwrap_or_default(),
        rows.unwrap_or_default(),
    )
}

/// Rows of a replica of a container.
fn rows_of(response: &Response) -> Option<u64> {
    let count = header(response.headers(), "x-container-object-count")?;
    count.parse().ok()
}

/// Of containers it says, too, how many rows the fullest replica has, and the container of versions that one names.
fn keep_newer(best: &mut Option<ReadSource>, source: ReadSource) {
    let named = source.response.headers().get(X_VERSIONS_CONTAINER);
    let named = named.filter(|named| !named.is_empty()).cloned();
    let before = best
        .as_ref()
        .and_then(|known| known.response.headers().get(X_NAMED_VERSIONS));
    let named = named.or(before.cloned());
    let most_of = |response: &Response| {
        let most = response.headers().get(X_MOST_ROWS)?;
        most.to_str().ok()?.parse::<u64>().ok()
    };
    let known = best.as_ref().and_then(|known| most_of(&known.response));
    let most = known.max(rows_of(&source.response));
    if best
        .as_ref()
        .is_none_or(|known| standing_of(&known.response) < standing_of(&source.response))
    {
        *best = Some(source);
    }
    let Some(best) = best else { return };
    if let Some(most) = most {
        best.response.headers_mut().insert(X_MOST_ROWS, most.into());
    }
    if let Some(named) = named {
        best.response.headers_mut().insert(X_NAMED_VERSIONS, named);
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

#[cfg(test)]
mod tests {
    use super::*;
    use peer::Body;

    fn container(made: &str, put: &str, rows: &str) -> Response {
        let mut response = Response::new(Body::empty());
        for (name, value) in [
            (X_BACKEND_TIMESTAMP.as_str(), made),
            (X_TIMESTAMP.as_str(), made),
            (X_BACKEND_PUT_TIMESTAMP.as_str(), put),
            (X_BACKEND_DELETE_TIMESTAMP.as_str(), "0000000000.00000"),
            ("x-container-object-count", rows),
        ] {
            let name = http::HeaderName::from_bytes(name.as_bytes()).unwrap();
            response.headers_mut().insert(name, value.parse().unwrap());
        }
        response
    }

    #[test]
    fn of_replicas_of_a_container_the_fuller_is_newer_whichever_was_made_last() {
        let (first, last) = ("0000000005.00002", "0000000005.00009");
        let put = "0000000005.00001";
        assert!(standing_of(&container(first, put, "3")) > standing_of(&container(last, put, "0")));
        assert!(standing_of(&container(first, put, "3")) < standing_of(&container(first, "0000000007.00000", "0")));
    }

    #[test]
    fn who_could_not_look_or_came_later_knows_nothing() {
        let there = |made| container(made, "0000000005.00001", "0");
        let with_status = |code: u16| {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = http::StatusCode::from_u16(code).unwrap();
            response
        };
        let count = |answers: Vec<(bool, Response)>| {
            let mut informed = InformedReplicas::default();
            answers
                .iter()
                .for_each(|(is_primary, response)| informed.note(*is_primary, response));
            informed.count()
        };
        let (made, later) = ("0000000005.00002", "0000000008.00000");
        let is_primary = true;
        assert_eq!(
            count(vec![(is_primary, there(made)), (is_primary, with_status(404))]),
            2
        );
        assert_eq!(
            count(vec![(is_primary, there(made)), (is_primary, with_status(507))]),
            1
        );
        assert_eq!(
            count(vec![
                (!is_primary, there("0000000006.00000")),
                (is_primary, there(made))
            ]),
            2
        );
        assert_eq!(count(vec![(is_primary, there(made)), (!is_primary, there(later))]), 1);
        assert_eq!(
            count(vec![(is_primary, with_status(404)), (!is_primary, there(made))]),
            1
        );
        assert_eq!(
            count(vec![(is_primary, there(made)), (!is_primary, with_status(404))]),
            1
        );
    }

    #[test]
    fn the_newest_container_tells_of_the_fullest() {
        let (older, newer) = (("0000000005.00001", "3"), ("0000000007.00000", "0"));
        for order in [[older, newer, newer], [newer, newer, older], [newer, older, newer]] {
            let mut best = None;
            for (put, rows) in order {
                let (node, mut response) = (
                    crate::nodes::tests::node(1, "sda"),
                    container("0000000005.00002", put, rows),
                );
                if put == older.0 {
                    let named = "v".parse().unwrap();
                    response.headers_mut().insert(X_VERSIONS_CONTAINER, named);
                }
                keep_newer(&mut best, ReadSource { node, response });
            }
            let best = best.unwrap().response;
            assert_eq!(best.headers()[X_BACKEND_PUT_TIMESTAMP], newer.0);
            assert_eq!(best.headers()[X_MOST_ROWS], "3");
            assert_eq!(best.headers()[X_NAMED_VERSIONS], "v");
        }
    }
}
