//! DELETES: many DELETE requests to one device, as `peer::deletes` draws them.
//!
//! One job on the device leaves all tombstones together, and the rows of a container go to its servers in one request.
//! A list that only checks is answered from what is there.
//! Always holds: each request is answered as if it had come alone, and not before its tombstone is durable and its
//! rows are sent or kept; a body that comes too slowly (`min_transfer_rate`) ends; bodies take a bounded part of the
//! memory.
//! Deliberately absent: what a deletion is (`delete.rs`), how rows travel (`updates.rs`).
//! Tests: `tests/listings.rs`, `tests/slow_senders.rs`.

use crate::delete::{Deletion, check_batch, delete_batch};
use crate::replicate::PartitionAddress;
use crate::request::ObjectRequest;
use crate::state::ObjectServerState;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use peer::deletes::{CheckedDelete, MAX_DELETES, OneDelete, decode, encode_checked, encode_statuses};
use peer::message::{DeleteObject, DeleteObjects, RequestContext};
use peer::{Body, Response, Target};
use std::sync::Arc;
use storage_shell::{Lane, Refusal, empty, run_detached};

/// Answers a DELETES.
pub(crate) async fn deletes(
    state: &Arc<ObjectServerState>,
    context: RequestContext,
    message: DeleteObjects,
    body: Body,
) -> Result<Response, Refusal> {
    let DeleteObjects { target, policy, .. } = message;
    let PartitionAddress { device, .. } = PartitionAddress::of(target, &policy, &state.options)?;
    let body = state.options.minimum_rate().watch(&state.world, body);
    let body = state.whole_bodies.collect(&state.world, body, MAX_DELETES).await?;
    let room = state.whole_bodies.room_for_values(&body)?;
    let asked = decode(&body.bytes).ok_or_else(|| Refusal::bad_request("not a list of DELETE requests"))?;
    drop((body, room));
    let read = |one| {
        let message = DeleteObject {
            policy: policy.clone(),
            ..message_of(one, &device)
        };
        let request = ObjectRequest::delete(context.clone(), message, Lane::Replication, &state.options);
        request.and_then(Deletion::of)
    };
    let deletions: Vec<Result<Deletion, Refusal>> = asked.requests.into_iter().map(read).collect();
    if asked.only_checks {
        let checked = check(state, &device, deletions).await?;
        return Ok(response(encode_checked(&checked)));
    }
    let work = state.clone();
    let statuses = run_detached(&state.world, async move { carry_out(&work, &device, deletions).await });
    Ok(response(encode_statuses(&statuses.await?)))
}

/// One of the requests, as if it had come alone.
fn message_of(one: OneDelete, device: &Arc<str>) -> DeleteObject {
    let mut headers = HeaderMap::with_capacity(one.headers.len());
    for (name, value) in &one.headers {
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(value)) {
            headers.insert(name, value);
        }
    }
    let target = Target {
        device: device.clone(),
        partition: one.partition,
        path: Arc::new(one.path),
    };
    DeleteObject::decode(target, headers)
}

async fn carry_out(
    state: &Arc<ObjectServerState>,
    device: &str,
    wanted: Vec<Result<Deletion, Refusal>>,
) -> Result<Vec<u16>, Refusal> {
    let (mut statuses, numbers, deletions) = readable(wanted);
    if deletions.is_empty() {
        return Ok(statuses);
    }
    let outcomes = delete_batch(state, device, Lane::Replication, deletions).await?;
    for (number, outcome) in numbers.into_iter().zip(outcomes) {
        let status = outcome.map_or_else(|refusal| refusal.status(), |outcome| outcome.status);
        statuses[number] = status.as_u16();
    }
    Ok(statuses)
}

/// What the deletions would come to.
async fn check(
    state: &Arc<ObjectServerState>,
    device: &str,
    wanted: Vec<Result<Deletion, Refusal>>,
) -> Result<Vec<CheckedDelete>, Refusal> {
    let (statuses, numbers, deletions) = readable(wanted);
    let unread = |status| CheckedDelete {
        status,
        tombstone: None,
    };
    let mut checked: Vec<CheckedDelete> = statuses.into_iter().map(unread).collect();
    if deletions.is_empty() {
        return Ok(checked);
    }
    let outcomes = check_batch(state, device, Lane::Replication, deletions).await?;
    for (number, outcome) in numbers.into_iter().zip(outcomes) {
        checked[number] = outcome;
    }
    Ok(checked)
}

/// The statuses of the requests that cannot be read, and the others with their numbers.
fn readable(wanted: Vec<Result<Deletion, Refusal>>) -> (Vec<u16>, Vec<usize>, Vec<Deletion>) {
    let mut statuses = vec![0; wanted.len()];
    let (mut numbers, mut deletions) = (vec![], vec![]);
    for (number, deletion) in wanted.into_iter().enumerate() {
        match deletion {
            Ok(deletion) => {
                deletions.push(deletion);
                numbers.push(number);
            }
            Err(refusal) => statuses[number] = refusal.status().as_u16(),
        }
    }
    (statuses, numbers, deletions)
}

fn response(answer: Vec<u8>) -> Response {
    let body = Body::whole(answer);
    let length = body.length().unwrap_or_default();
    let mut response = empty(StatusCode::OK).map(|_| body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
