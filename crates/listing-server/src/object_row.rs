//! Rows of a container: PUT and DELETE from object servers, UPDATE with many at once.
//!
//! The hot path of the whole cluster: every object PUT and DELETE comes by here once per replica.
//! A row goes to the device's workers once, joins whatever batch is under way there, and the answer
//! follows the batch's one sync without holding a thread.

use crate::request::{ListingRequest, known_policy, optional, required, required_text};
use crate::state::{BODY_PATIENCE, DatabaseJob, ListingServerState, until_stored};
use http::StatusCode;
use listing_engine::wire::object_row;
use listing_engine::{Error, ObjectRow, Row};
use peer::message::header_names::{X_CONTENT_TYPE, X_CONTENT_TYPE_TIMESTAMP, X_ETAG, X_META_TIMESTAMP, X_SIZE};
use peer::message::{RowChange, UpdateContainer};
use peer::{Body, Response};
use serde_json::Value;
use std::sync::Arc;
use storage_shell::{MinimumRate, Refusal, page};
use tokio::sync::oneshot;
use vocabulary::{PolicyIndex, Timestamp};

/// The most bytes of rows in one UPDATE.
const MAX_UPDATE: u64 = 64 << 20;

/// PUT or DELETE of one row.
pub(crate) async fn write(
    state: &Arc<ListingServerState>,
    request: Arc<ListingRequest>,
    message: &UpdateContainer,
) -> Result<Response, Refusal> {
    let timestamp = request.timestamp()?;
    let policy = known_policy(&message.policy, &state.options)?.unwrap_or(PolicyIndex::LEGACY);
    let (row, status) = match message.change {
        RowChange::Delete => {
            let name = request.object().unwrap_or_default();
            (ObjectRow::deleted(name, timestamp, policy), StatusCode::NO_CONTENT)
        }
        RowChange::Put | RowChange::Batch => (put_row(&request, message, policy)?, StatusCode::CREATED),
    };
    store(state, &request, vec![Row::Object(row)], timestamp, policy).await?;
    Ok(page(status))
}

fn put_row(request: &ListingRequest, message: &UpdateContainer, policy: PolicyIndex) -> Result<ObjectRow, Refusal> {
    Ok(ObjectRow {
        name: request.object().unwrap_or_default().to_owned(),
        timestamp: request.timestamp()?,
        size: required(&message.size, &X_SIZE)?,
        content_type: required_text(&message.content_type, &X_CONTENT_TYPE)?.to_owned(),
        etag: required_text(&message.etag, &X_ETAG)?.to_owned(),
        deleted: false,
        policy,
        content_type_timestamp: optional(&message.content_type_timestamp, &X_CONTENT_TYPE_TIMESTAMP)?,
        meta_timestamp: optional(&message.meta_timestamp, &X_META_TIMESTAMP)?,
    })
}

/// Many rows as JSON.
pub(crate) async fn update(
    state: &Arc<ListingServerState>,
    request: Arc<ListingRequest>,
    message: &UpdateContainer,
    body: Body,
) -> Result<Response, Refusal> {
    let timestamp = request.timestamp()?;
    let policy = known_policy(&message.policy, &state.options)?.unwrap_or(PolicyIndex::LEGACY);
    let rate = MinimumRate {
        bytes: state.options.min_transfer_rate,
        window: BODY_PATIENCE,
    };
    let body = rate.watch(&state.world, body);
    let whole = state.whole_bodies.collect(&state.world, body, MAX_UPDATE).await?;
    let room = state.whole_bodies.room_for_values(&whole)?;
    let listed: Vec<Value> = serde_json::from_slice(&whole.bytes).map_err(|e| Refusal::bad_request(e.to_string()))?;
    let parsed: Option<Vec<Row>> = listed.iter().map(|item| object_row(item).map(Row::Object)).collect();
    drop((listed, whole, room));
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
    until_stored(stored, &request.target.device).await
}
