//! DELETE of an object only if it expires at a given time (`X-If-Delete-At`), as the expirer asks for it.
//!
//! An object server knows its own version only: one that was away while a client extended the object's life would leave
//! a tombstone that wins over the change. So all primaries are asked first what they have, and it is the newest of that
//! which must expire at the given time.
//! Always holds: nothing is deleted unless a quorum of the primaries has said what it has, nor what an object
//! lock holds by what any of them says.
//! Deliberately absent: the deletion itself (`object.rs`), each server's own look at the condition.

use crate::backend::{Question, Reply, context_of, target};
use crate::located::{LocatedObject, forwarded_headers};
use crate::nodes::Node;
use crate::route::Route;
use crate::shared::Shared;
use crate::write_clock::header_timestamp;
use futures_util::future::{Either, join_all, select};
use http::{HeaderMap, HeaderValue, StatusCode};
use peer::message::ReadObject;
use peer::message::header_names::{
    X_ALL_PRIMARIES_DONE, X_BACKEND_TIMESTAMP, X_DATA_TIMESTAMP, X_DELETE_AT, X_IF_DELETE_AT,
};
use request_pipeline::{ClientRequest, Response, object_lock_in, reply};
use std::pin::pin;
use vocabulary::Timestamp;

/// What a node has: its status and its headers.
type NodeAnswer = (StatusCode, HeaderMap);

/// What is to be deleted.
#[derive(Default)]
pub(crate) struct FoundVersions {
    /// When the newest was written, if that is known.
    newest: Option<Timestamp>,
}

/// What the primaries have, where a deletion is on a condition; a refusal where that does not hold for the newest.
pub(crate) async fn look(
    shared: &Shared,
    request: &ClientRequest,
    object: &LocatedObject,
) -> Result<FoundVersions, Response> {
    // What is no time is refused by the object servers.
    let Some(wanted) = request.header(X_IF_DELETE_AT.as_str()).and_then(|at| at.parse().ok()) else {
        return Ok(FoundVersions::default());
    };
    let time = shared.write_time_of(request)?.timestamp;
    let (answers, replicas) = (ask_primaries(shared, request, object).await, object.route.replicas());
    if answers.len() < quorum::size(replicas) {
        return Err(reply::status(503));
    }
    match judge(&answers, wanted, (time, shared.world.clock.now())) {
        None => Ok(FoundVersions {
            newest: newest(&answers).and_then(|headers| header_timestamp(headers, &X_BACKEND_TIMESTAMP)),
        }),
        Some(status) => {
            let mut response = reply::status(status);
            note_all_done(&mut response, answers.len() == replicas);
            Err(response)
        }
    }
}

impl FoundVersions {
    /// Tells upkeep what has been deleted, and whether a server is left that may have it still.
    pub(crate) fn describe(&self, replies: &[Reply], object: &LocatedObject, response: &mut Response) {
        let is_done = |reply: &Reply| reply.is_primarys && matches!(reply.status, 200..=299 | 404 | 409);
        note_all_done(
            response,
            replies.len() == object.route.replicas() && replies.iter().all(is_done),
        );
        if let Some(value) = self.newest.and_then(|at| at.internal().parse().ok()) {
            response.headers_mut().insert(X_BACKEND_TIMESTAMP, value);
        }
    }
}

fn note_all_done(response: &mut Response, are_done: bool) {
    if are_done {
        let yes = HeaderValue::from_static("true");
        response.headers_mut().insert(X_ALL_PRIMARIES_DONE, yes);
    }
}

/// The status of a refusal at `now` of a deletion as of `time`, by what the primaries have.
fn judge(answers: &[NodeAnswer], wanted: Timestamp, (time, now): (Timestamp, Timestamp)) -> Option<u16> {
    // One that knows of an object lock is enough: the others may have missed it.
    let is_held = |(_, headers): &NodeAnswer| object_lock_in(headers).is_held(now, false);
    if answers.iter().any(is_held) {
        return Some(403);
    }
    let newest = newest(answers)?;
    if due(newest) == Some(wanted) {
        return None;
    }
    let written =
        header_timestamp(newest, &X_DATA_TIMESTAMP).or_else(|| header_timestamp(newest, &X_BACKEND_TIMESTAMP));
    // As an object server answers.
    Some(if written >= Some(time) { 409 } else { 412 })
}

/// The newest version that is there.
fn newest(answers: &[NodeAnswer]) -> Option<&HeaderMap> {
    let there = answers.iter().filter(|(status, _)| status.is_success());
    let newest = there.max_by_key(|(_, headers)| header_timestamp(headers, &X_BACKEND_TIMESTAMP))?;
    Some(&newest.1)
}

/// When a version expires.
fn due(headers: &HeaderMap) -> Option<Timestamp> {
    let seconds = headers.get(X_DELETE_AT)?.to_str().ok()?.parse().ok()?;
    Some(Timestamp::from_seconds(seconds))
}

/// What those of them have that answer. Silent ones are asked only where the others make no quorum.
async fn ask_primaries(shared: &Shared, request: &ClientRequest, object: &LocatedObject) -> Vec<NodeAnswer> {
    let context = context_of(request, &mut forwarded_headers(request));
    let read = ReadObject {
        head_only: true,
        policy: object.policy.into(),
        opens_expired: true,
        ..ReadObject::new(target(object.path.clone()))
    };
    let (question, route) = (Question::new(context, read), &object.route);
    let asked = route.primaries.iter().map(|node| ask(shared, route, &question, node));
    let (mut answers, mut silent) = (vec![], vec![]);
    for (node, answer) in route.primaries.iter().zip(join_all(asked).await) {
        match answer {
            Asked::Answered(answer) => answers.push(answer),
            Asked::Failed => {}
            Asked::Silent => silent.push(node),
        }
    }
    if answers.len() < quorum::size(route.replicas()) {
        let asked = silent.into_iter().map(|node| answer_of(shared, route, &question, node));
        answers.extend(join_all(asked).await.into_iter().flatten());
    }
    answers
}

/// What became of a question.
enum Asked {
    Answered(NodeAnswer),
    Failed,
    /// The node was silent, or became so.
    Silent,
}

async fn ask(shared: &Shared, route: &Route, question: &Question, node: &Node) -> Asked {
    let call = || question.call(route, node);
    if shared.is_left_alone(node, call) {
        return Asked::Failed;
    }
    if shared.is_silent(node, call) {
        return Asked::Silent;
    }
    let asking = Box::pin(answer_of(shared, route, question, node));
    match select(asking, pin!(shared.silence.becomes_silent(node))).await {
        Either::Left((answer, _)) => answer.map_or(Asked::Failed, Asked::Answered),
        Either::Right(_) => Asked::Silent,
    }
}

/// `None` of a node that fails.
async fn answer_of(shared: &Shared, route: &Route, question: &Question, node: &Node) -> Option<NodeAnswer> {
    let call = question.call(route, node);
    let response = shared.ask(node, call, shared.options.node_timeout).await?;
    let (head, _) = response.into_parts();
    (!head.status.is_server_error()).then_some((head.status, head.headers))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderName;
    use request_pipeline::set_object_lock;
    use vocabulary::object_lock::ObjectLock;

    fn answer(status: u16, headers: &[(HeaderName, &str)]) -> NodeAnswer {
        let headers = headers
            .iter()
            .map(|(name, value)| (name.clone(), value.parse().unwrap()));
        (StatusCode::from_u16(status).unwrap(), headers.collect())
    }

    /// Written at a time, with a POST perhaps, and when it expires.
    fn version(written: &str, posted: &str, due: Option<&str>) -> NodeAnswer {
        let mut headers = vec![(X_DATA_TIMESTAMP, written), (X_BACKEND_TIMESTAMP, posted)];
        headers.extend(due.map(|due| (X_DELETE_AT, due)));
        answer(200, &headers)
    }

    #[test]
    fn the_newest_version_decides() {
        let gone = || answer(404, &[(X_BACKEND_TIMESTAMP, "400")]);
        let stale = || version("100", "100", Some("300"));
        for (others, refused) in [
            (vec![], None),
            (vec![stale(), gone()], None),
            // A POST has extended its life, or taken the expiry away.
            (vec![version("100", "200", Some("900"))], Some(412)),
            (vec![version("100", "200", None), gone()], Some(412)),
            // It was there before.
            (vec![version("50", "50", None)], None),
            (vec![version("50", "60", Some("900"))], None),
            // It was written since.
            (vec![version("200", "200", None)], Some(412)),
            (vec![version("301", "301", None)], Some(409)),
        ] {
            let mut answers = others.clone();
            answers.push(stale());
            let at = |seconds| Timestamp::from_seconds(seconds);
            assert_eq!(judge(&answers, at(300), (at(300), at(300))), refused, "{others:?}");
            answers.rotate_right(1);
            assert_eq!(judge(&answers, at(300), (at(300), at(300))), refused, "{others:?}");
        }
        assert_eq!(
            judge(
                &[gone(), gone()],
                Timestamp::from_seconds(300),
                (Timestamp::ZERO, Timestamp::ZERO)
            ),
            None
        );
    }

    #[test]
    fn one_server_that_knows_of_an_object_lock_is_enough() {
        let at = Timestamp::from_seconds;
        let stale = || version("100", "100", Some("300"));
        let mut held = stale();
        set_object_lock(&mut held.1, &ObjectLock::of_hold(true, at(200)));
        let judged = |answers: &[NodeAnswer]| judge(answers, at(300), (at(300), at(400)));
        assert_eq!(judged(&[stale(), stale()]), None);
        assert_eq!(judged(&[stale(), held, stale()]), Some(403));
    }
}
