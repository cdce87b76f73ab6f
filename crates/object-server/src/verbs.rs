//! A request for one object goes to its verb, whether it came as a request or inside an SSYNC exchange.

use crate::answering::Answering;
use crate::delete::{Deletion, delete};
use crate::post::post;
use crate::put::put;
use crate::read::read;
use crate::request::ObjectRequest;
use crate::state::ObjectServerState;
use http::StatusCode;
use peer::Call;
use peer::message::Message;
use std::sync::Arc;
use storage_shell::{Lane, Refusal, run_detached};

/// Begins to answer a request for an object. POST and DELETE are under way when it returns.
pub(crate) fn on_object(state: &Arc<ObjectServerState>, call: Call, lane: Lane) -> Result<Answering<'_>, Refusal> {
    let (context, options, work) = (call.context, &state.options, state.clone());
    match call.message {
        Message::PutObject(message) => {
            let request = ObjectRequest::put(context, message, lane, options)?;
            Ok(Box::pin(put(state, request, call.body, call.interim)))
        }
        Message::PostObject(message) => {
            let request = ObjectRequest::post(context, message, lane, options)?;
            let answer = async move { post(&work, request).await };
            Ok(Box::pin(run_detached(&state.world, answer)))
        }
        Message::DeleteObject(message) => {
            let deletion = Deletion::of(ObjectRequest::delete(context, message, lane, options)?)?;
            let answer = async move { delete(&work, deletion).await };
            Ok(Box::pin(run_detached(&state.world, answer)))
        }
        Message::ReadObject(message) => read(state, ObjectRequest::read(context, message, lane, options)?),
        _ => Err(Refusal::Page(StatusCode::METHOD_NOT_ALLOWED)),
    }
}
