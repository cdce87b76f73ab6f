//! A request for one object goes to its verb, whether it came as a request or inside an SSYNC exchange.

use crate::delete::delete;
use crate::post::post;
use crate::put::put;
use crate::read::read;
use crate::request::ObjectRequest;
use crate::state::ObjectServerState;
use peer::{RawCall, Response};
use std::sync::Arc;
use storage_shell::{Lane, Refusal, run_detached};

/// Answers a request for an object.
pub(crate) async fn on_object(state: &Arc<ObjectServerState>, call: RawCall, lane: Lane) -> Result<Response, Refusal> {
    let RawCall {
        method,
        address,
        headers,
        body,
        interim,
        ..
    } = call;
    let request = ObjectRequest::new(method, address, headers, lane, &state.options)?;
    let work = state.clone();
    match request.method.as_str() {
        "PUT" => put(state, request, body, interim).await,
        "POST" => run_detached(&state.world, async move { post(&work, request).await }).await,
        "DELETE" => run_detached(&state.world, async move { delete(&work, request).await }).await,
        _ => read(state, request).await,
    }
}
