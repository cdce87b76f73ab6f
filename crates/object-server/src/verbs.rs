//! A request for one object goes to its verb, whether it came as a request or inside an SSYNC exchange.

use crate::delete::{Deletion, delete};
use crate::post::post;
use crate::put::put;
use crate::read::read;
use crate::request::ObjectRequest;
use crate::state::ObjectServerState;
use http::StatusCode;
use peer::message::Message;
use peer::{Call, Response};
use std::sync::Arc;
use storage_shell::{Lane, Refusal, run_detached};

/// Answers a request for an object.
pub(crate) async fn on_object(state: &Arc<ObjectServerState>, call: Call, lane: Lane) -> Result<Response, Refusal> {
    let (context, options, work) = (call.context, &state.options, state.clone());
    match call.message {
        Message::PutObject(message) => {
            let request = ObjectRequest::put(context, message, lane, options)?;
            put(state, request, call.body, call.interim).await
        }
        Message::PostObject(message) => {
            let request = ObjectRequest::post(context, message, lane, options)?;
            run_detached(&state.world, async move { post(&work, request).await }).await
        }
        Message::DeleteObject(message) => {
            let deletion = Deletion::of(ObjectRequest::delete(context, message, lane, options)?)?;
            run_detached(&state.world, async move { delete(&work, deletion).await }).await
        }
        Message::ReadObject(message) => read(state, ObjectRequest::read(context, message, lane, options)?).await,
        _ => Err(Refusal::Page(StatusCode::METHOD_NOT_ALLOWED)),
    }
}
