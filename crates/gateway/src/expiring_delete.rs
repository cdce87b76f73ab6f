//! DELETE of an object only if it expires at a given time (`X-If-Delete-At`), as the expirer asks for it.
//!
//! An object server knows its own version only: one that was away while a client extended the object's life would leave
//! a tombstone that wins over the change. So all primaries are asked first what they have, and it is the newest of that
//! which must expire at the given time.
//! Always holds: nothing is deleted unless a quorum of the primaries has said what it has.
//! Deliberately absent: the deletion itself (`object.rs`), each server's own look at the condition.

use crate::backend::{Question, context_of, target};
use crate::located::{LocatedObject, forwarded_headers};
use crate::nodes::Node;
use crate::route::Route;
use crate::shared::Shared;
use crate::write_clock::header_timestamp;
use futures_util::future::{Either, join_all, select};
use http::{HeaderMap, StatusCode};
use peer::message::ReadObject;
use peer::message::header_names::{X_BACKEND_TIMESTAMP, X_DATA_TIMESTAMP, X_DELETE_AT, X_IF_DELETE_AT};
use request_pipeline::{ClientRequest, Response, reply};
use std::pin::pin;
use std::sync::Arc;
use vocabulary::Timestamp;

/// What a node has: its status and its headers.
type NodeAnswer = (StatusCode, HeaderMap);

/// The answer to a deletion at `time` whose condition the newest version does not meet; `None` where it may go on.
pub(crate) async fn refusal(
    shared: &Arc<Shared>,
    request: &ClientRequest,
    object: &LocatedObject,
    time: Timestamp,
) -> Option<Response> {
    // What is no time is refused by the object servers.
    let wanted: Timestamp = request.header(X_IF_DELETE_AT.as_str())?.parse().ok()?;
    let answers = ask_primaries(shared, request, object).await;
    if answers.len() < quorum::size(object.route.replicas()) {
        return Some(reply::status(503));
    }
    judge(&answers, wanted, time).map(reply::status)
}

/// The status of a refusal, by what the primaries have.
fn judge(answers: &[NodeAnswer], wanted: Timestamp, time: Timestamp) -> Option<u16> {
    let there = answers.iter().filter(|(status, _)| status.is_success());
    let (_, newest) = there.max_by_key(|(_, headers)| header_timestamp(headers, &X_BACKEND_TIMESTAMP))?;
    if due(newest) == Some(wanted) {
        return None;
    }
    let written =
        header_timestamp(newest, &X_DATA_TIMESTAMP).or_else(|| header_timestamp(newest, &X_BACKEND_TIMESTAMP));
    // As an object server answers.
    Some(if written >= Some(time) { 409 } else { 412 })
}

/// When a version expires.
fn due(headers: &HeaderMap) -> Option<Timestamp> {
    let seconds = headers.get(X_DELETE_AT)?.to_str().ok()?.parse().ok()?;
    Some(Timestamp::from_seconds(seconds))
}

/// What those of them have that answer.
async fn ask_primaries(shared: &Shared, request: &ClientRequest, object: &LocatedObject) -> Vec<NodeAnswer> {
    let context = context_of(request, &mut forwarded_headers(request));
    let read = ReadObject {
        head_only: true,
        policy: object.policy.into(),
        opens_expired: true,
        ..ReadObject::new(target(object.path.clone()))
    };
    let question = Question::new(context, read);
    let route = &object.route;
    let asked = route.primaries.iter().map(|node| ask(shared, route, &question, node));
    join_all(asked).await.into_iter().flatten().collect()
}

/// `None` of one that fails, or is silent.
async fn ask(shared: &Shared, route: &Route, question: &Question, node: &Node) -> Option<NodeAnswer> {
    let call = || question.call(route, node);
    if shared.is_left_alone(node, call) || shared.is_silent(node, call) {
        return None;
    }
    let asking = Box::pin(shared.ask(node, call(), shared.options.node_timeout));
    let response = match select(asking, pin!(shared.silence.becomes_silent(node))).await {
        Either::Left((response, _)) => response?,
        Either::Right(_) => return None,
    };
    let (head, _) = response.into_parts();
    (!head.status.is_server_error()).then_some((head.status, head.headers))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderName;

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
            assert_eq!(judge(&answers, at(300), at(300)), refused, "{others:?}");
            answers.rotate_right(1);
            assert_eq!(judge(&answers, at(300), at(300)), refused, "{others:?}");
        }
        assert_eq!(
            judge(&[gone(), gone()], Timestamp::from_seconds(300), Timestamp::ZERO),
            None
        );
    }
}
