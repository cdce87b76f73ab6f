//! PUT: accept, receive and write, commit, send the listing rows.
//!
//! Three ways for the bytes, one set of rules: a small body is received first and costs one hop to the
//! device's workers; a long one streams in batches, the next received while the one before is written;
//! one wrapped in MIME says in its footer what became known on the way (a sender in this process says it with
//! the body itself).
//! Always holds: what decides without the body (timestamps, conditions, space) is asked before a long
//! body, or one the sender holds back, is touched.

use crate::put_plan::PutPlan;
use crate::request::{ObjectRequest, PutHead, text};
use crate::state::ObjectServerState;
use crate::upload::{Upload, WholeUpload, write_whole};
use crate::wrapped::MimeWrapping;
use bytes::Bytes;
use http::StatusCode;
use peer::message::{PutObject, RequestContext};
use peer::{Body, Interim, Response};
use std::sync::Arc;
use storage_shell::{Lane, Refusal};

/// A body this small is received before the device is asked anything.
pub(crate) const SMALL: u64 = 64 * 1024;

/// Answers a PUT.
pub(crate) async fn put(
    state: &Arc<ObjectServerState>,
    (mut request, head): (ObjectRequest, PutHead),
    body: Body,
    interim: Option<Interim>,
) -> Result<Response, Refusal> {
    request.timestamp()?;
    let length = promised_length(&head, &body, interim.is_some())?;
    let plan = PutPlan::of(&mut request, &head, length, state)?;
    let wrapping = MimeWrapping::of(&head)?;
    let is_held_back = head.expect.is_some();
    let is_small = body.as_whole().is_some() || (length.is_some_and(|length| length <= SMALL) && !is_held_back);
    let state = state.clone();
    let upload = Upload { state, request, plan };
    match wrapping {
        Some(wrapping) => Box::pin(upload.wrapped(body, length, wrapping, interim)).await,
        None if is_small => upload.at_once(body, length).await,
        None => Box::pin(upload.streamed(body, length)).await,
    }
}

/// Writes small objects of one partition that another node's upkeep brings, each with its body; the status of each, in
/// their order.
pub(crate) async fn put_batch(
    state: &Arc<ObjectServerState>,
    device: &str,
    puts: Vec<(PutObject, Bytes)>,
) -> Vec<StatusCode> {
    let mut statuses = vec![StatusCode::CREATED; puts.len()];
    let (mut numbers, mut uploads) = (vec![], vec![]);
    for (number, (message, body)) in puts.into_iter().enumerate() {
        match replicated(state, message, body) {
            Ok(upload) => {
                numbers.push(number);
                uploads.push(upload);
            }
            Err(refusal) => statuses[number] = refusal.status(),
        }
    }
    if numbers.is_empty() {
        return statuses;
    }
    match write_whole(state, device, Lane::Replication, uploads).await {
        Ok(etags) => {
            for (number, etag) in numbers.into_iter().zip(etags) {
                statuses[number] = etag.map_or_else(|refusal| refusal.status(), |_| StatusCode::CREATED);
            }
        }
        Err(refusal) => numbers
            .into_iter()
            .for_each(|number| statuses[number] = refusal.status()),
    }
    statuses
}

fn replicated(state: &Arc<ObjectServerState>, message: PutObject, body: Bytes) -> Result<WholeUpload, Refusal> {
    let context = RequestContext::default();
    let (mut request, head) = ObjectRequest::put(context, message, Lane::Replication, &state.options)?;
    let plan = PutPlan::of(&mut request, &head, Some(body.len() as u64), state)?;
    let state = state.clone();
    Ok(WholeUpload {
        upload: Upload { state, request, plan },
        body,
        md5: None,
    })
}

/// What the sender says about the body's length; `None` for chunked bodies.
fn promised_length(head: &PutHead, body: &Body, came_by_wire: bool) -> Result<Option<u64>, Refusal> {
    match head.transfer_encoding.as_ref().and_then(text) {
        Some(encoding) if encoding.eq_ignore_ascii_case("chunked") => return Ok(None),
        Some(_) => return Err(Refusal::bad_request("Invalid Transfer-Encoding header value")),
        None => {}
    }
    match &head.content_length {
        Some(value) => {
            let length = value.to_str().ok().and_then(|text| text.parse().ok());
            length
                .map(Some)
                .ok_or_else(|| Refusal::bad_request("Invalid Content-Length header value"))
        }
        None if came_by_wire => Err(Refusal::Text(
            StatusCode::LENGTH_REQUIRED,
            "Missing Content-Length header.".into(),
        )),
        None => Ok(body.length()),
    }
}
