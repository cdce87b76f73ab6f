//! DELETES: many DELETE requests to one device, as `peer::deletes` draws them.
//!
//! One job on the device leaves all tombstones together, and the rows of a container go to its servers in one request.
//! Always holds: each request is answered as if it had come alone, and not before its tombstone is durable and its
//! rows are told or kept.
//! Deliberately absent: what a deletion is (`delete.rs`), how rows travel (`updates.rs`).
//! Tests: `tests/verbs.rs`.

use crate::delete::{Deletion, Done};
use crate::devices::Lane;
use crate::refusal::{Refusal, empty};
use crate::replicate::Place;
use crate::request::{Request, X_POLICY_INDEX};
use crate::service::Shared;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use object_engine::EngineError;
use peer::deletes::{MAX_DELETES, OneDelete, decode, encode_statuses};
use peer::{Address, Body, RawCall, Response, Target};
use std::sync::Arc;

/// Answers a DELETES.
pub(crate) async fn deletes(shared: &Arc<Shared>, call: RawCall) -> Result<Response, Refusal> {
    let Place { device, .. } = Place::of(call.address, &call.headers, &shared.options)?;
    let patience = shared.options.client_timeout;
    let body = call.body.collect_within(&shared.world, MAX_DELETES, patience).await;
    let body = body.map_err(|error| Refusal::bad_request(error.to_string()))?;
    let asked = decode(&body).ok_or_else(|| Refusal::bad_request("not a list of DELETE requests"))?;
    let requests = asked.into_iter().map(|one| read(one, &device, &call.headers, shared));
    let requests: Vec<Result<Request, Refusal>> = requests.collect();
    let (work, shared) = (shared.clone(), shared.clone());
    let statuses = shared.to_its_end(async move { carry_out(&work, &device, requests).await });
    Ok(told(&statuses.await??))
}

/// One of the requests, as if it had come alone.
fn read(one: OneDelete, device: &str, call: &HeaderMap, shared: &Shared) -> Result<Request, Refusal> {
    let mut headers = HeaderMap::with_capacity(one.headers.len() + 3);
    for (name, value) in &one.headers {
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(value)) {
            headers.insert(name, value);
        }
    }
    for name in ["host", "x-trans-id", X_POLICY_INDEX] {
        if let Some(value) = call.get(name) {
            headers.insert(HeaderName::from_static(name), value.clone());
        }
    }
    let target = Target {
        device: device.into(),
        partition: vocabulary::Partition(one.partition),
        path: Arc::new(one.path),
    };
    Request::new(
        Method::DELETE,
        Address::Entity(target),
        headers,
        Lane::Replication,
        &shared.options,
    )
}

async fn carry_out(
    shared: &Arc<Shared>,
    device: &str,
    requests: Vec<Result<Request, Refusal>>,
) -> Result<Vec<u16>, Refusal> {
    let mut statuses = vec![0; requests.len()];
    let (mut places, mut deletions) = (vec![], vec![]);
    for (place, request) in requests.into_iter().enumerate() {
        let read = request.and_then(|request| Deletion::of(&request).map(|deletion| (request, deletion)));
        match read {
            Ok((request, deletion)) => {
                deletions.push((deletion, Arc::new(request)));
                places.push(place);
            }
            Err(refusal) => statuses[place] = status_of(refusal),
        }
    }
    if deletions.is_empty() {
        return Ok(statuses);
    }
    let work = shared.clone();
    let job = move |engine: &dyn object_engine::ObjectEngine| {
        Ok::<_, EngineError>(Deletion::carry_out_all(engine, &deletions, &work))
    };
    let ran = shared.devices.run(device, Lane::Replication, job).await;
    let ((outcomes, noted), at) = ran.map_err(|trouble| Refusal::from_trouble(trouble, device))?;
    for (place, outcome) in places.into_iter().zip(outcomes) {
        let done: Result<Done, Refusal> = match outcome {
            Ok(done) => done,
            Err(error) => Err(Refusal::from_engine(&error, device)),
        };
        statuses[place] = match done {
            Ok(done) => done.status.as_u16(),
            Err(refusal) => status_of(refusal),
        };
    }
    shared.updates.tell_together(noted, &at).await;
    Ok(statuses)
}

fn status_of(refusal: Refusal) -> u16 {
    refusal.into_response().status().as_u16()
}

fn told(statuses: &[u16]) -> Response {
    let body = Body::whole(encode_statuses(statuses));
    let length = body.length().unwrap_or_default();
    let mut response = empty(StatusCode::OK).map(|_| body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
