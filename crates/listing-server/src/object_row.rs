//! Rows of a container: PUT and DELETE from object servers, UPDATE with many at once.
//!
//! The hot path of the whole cluster: every object PUT and DELETE comes by here once per replica.
//! A row goes to the device's workers once, joins whatever batch is under way there, and the answer
//! follows the batch's one sync without holding a thread.

use crate::refusal::refusal_of;
use crate::request::ListingRequest;
use crate::state::{BODY_PATIENCE, DatabaseJob, ListingServerState};
use http::{Method, StatusCode};
use listing_engine::wire::object_row;
use listing_engine::{Error, ObjectRow, Row};
use peer::{Body, Response};
use serde_json::Value;
use std::sync::Arc;
use storage_shell::{Refusal, page};
use tokio::sync::oneshot;
use vocabulary::{PolicyIndex, Timestamp};

/// The most bytes of rows in one UPDATE.
const MAX_UPDATE: u64 = 64 << 20;

/// PUT or DELETE of one row.
pub(crate) async fn write(state: &Arc<ListingServerState>, request: Arc<ListingRequest>) -> Result<Response, Refusal> {
    let timestamp = request.timestamp()?;
    let policy = request.policy(&state.options)?.unwrap_or(PolicyIndex::LEGACY);
    let (row, status) = match request.method == Method::PUT {
        true => (put_row(&request, timestamp, policy)?, StatusCode::CREATED),
        false => {
            let name = request.object().unwrap_or_default();
            (ObjectRow::deleted(name, timestamp, policy), StatusCode::NO_CONTENT)
        }
    };
    store(state, &request, vec![Row::Object(row)], timestamp, policy).await?;
    Ok(page(status))
}

fn put_row(request: &ListingRequest, timestamp: Timestamp, policy: PolicyIndex) -> Result<ObjectRow, Refusal> {
    Ok(ObjectRow {
        name: request.object().unwrap_or_default().to_owned(),
        timestamp,
        size: request.number("x-size")?,
        content_type: request.required("x-content-type")?.to_owned(),
        etag: request.required("x-etag")?.to_owned(),
        deleted: false,
        policy,
        content_type_timestamp: request.optional_time("x-content-type-timestamp")?,
        meta_timestamp: request.optional_time("x-meta-timestamp")?,
    })
}

/// Many rows as JSON.
pub(crate) async fn update(
    state: &Arc<ListingServerState>,
    request: Arc<ListingRequest>,
    body: Body,
) -> Result<Response, Refusal> {
    let timestamp = request.timestamp()?;
    let policy = request.policy(&state.options)?.unwrap_or(PolicyIndex::LEGACY);
    let bytes = body.collect_within(&state.world, MAX_UPDATE, BODY_PATIENCE).await;
    let bytes = bytes.map_err(|error| Refusal::bad_request(error.to_string()))?;
    let listed: Vec<Value> = serde_json::from_slice(&bytes).map_err(|e| Refusal::bad_request(e.to_string()))?;
    let parsed: Option<Vec<Row>> = listed.iter().map(|item| object_row(item).map(Row::Object)).collect();
    let rows = parsed.ok_or_else(|| Refusal::bad_request("an item is no row of a container"))?;
    store(state, &request, rows, timestamp, policy).await?;
    Ok(page(StatusCode::ACCEPTED))
}

/// Returns once the rows are durable.
async fn store(
    state: &Arc<ListingServerState>,
    request: &Arc<ListingRequest>,
    rows: Vec<Row>,
    timestamp: Timestamp,
    policy: PolicyIndex,
) -> Result<(), Refusal> {
    let (done, stored) = oneshot::channel::<Result<(), Error>>();
    let job = move |job: &DatabaseJob<'_>| {
        job.check_room()?;
        let may_create = job.request.may_create_container(&job.state.options);
        let broker = match may_create {
            true => job.find_or_create(timestamp, policy)?.0,
            false => job.open()?,
        };
        // The receiver may be gone: the rows themselves are stored.
        if broker.enqueue(rows, move |result| drop(done.send(result))) {
            broker.flush();
        }
        Ok(())
    };
    state.run(request, job).await?;
    match stored.await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(refusal_of(&error, &request.device)),
        Err(_) => Err(Refusal::internal()),
    }
}
