//! One object deleted through the gateway, and what its answer means for the task.

use super::delete_batches::container_of;
use super::learnt::ExpirerKnowledge;
use super::tasks::Task;
use super::{CLOCKS_DIFFER, ObjectExpirer, TOO_EARLY, TaskOutcome, hoped};
use crate::internal_client::{InternalRequest, is_among};
use http::{HeaderMap, Method, StatusCode};
use peer::message::header_names::{
    X_ALL_PRIMARIES_DONE, X_BACKEND_TIMESTAMP, X_CLEAN_QUEUE, X_IF_DELETE_AT, X_TIMESTAMP,
};
use vocabulary::Timestamp;

/// Why a task was not tried.
const OTHERS_FAILED: &str =
    "its policy's or container's servers have failed several times in this pass; left for the next";
/// Why a task stays although most servers have done it.
pub(super) const MAY_COME_BACK: &str =
    "deleted, but not by all of its servers; as its tombstones do not last, it is tried again in the next pass";

/// What a gateway has answered to a deletion.
struct GatewayAnswer {
    status: u16,
    /// Each primary has deleted the object, has nothing, or something newer.
    are_all_done: bool,
    /// When the newest version was written, if that is known.
    version: Option<Timestamp>,
}

impl ObjectExpirer {
    /// Asks the gateway to delete an object.
    pub(super) async fn delete(&self, task: &Task, known: &ExpirerKnowledge) -> TaskOutcome {
        let scope = known.scope(container_of(&task.target));
        if known.gateway.leaves_out(&scope) {
            known.failures.note_item(task.target.path(), OTHERS_FAILED);
            return TaskOutcome::Left;
        }
        let due = task.due.normal();
        let ask = InternalRequest::new(Method::DELETE, task.target.clone()).with(X_TIMESTAMP, &due);
        let ask = match task.is_async {
            true => ask,
            false => ask.with(X_IF_DELETE_AT, &due).with(X_CLEAN_QUEUE, "no"),
        };
        let answer = match self.once.answer(&ask).await {
            Ok((status, headers)) => GatewayAnswer::of(status, &headers),
            Err(error) => GatewayAnswer::failed(error.status),
        };
        known.gateway.note(scope, answer.status >= 500);
        match self.why_left(task, &answer) {
            None => TaskOutcome::Finished,
            Some(why) => {
                let (account, queue, name) = (&self.options.account, &task.queue, &task.name);
                known.failures.note_item(format_args!("{account} {queue} {name}"), why);
                TaskOutcome::Left
            }
        }
    }

    /// Why a task stays; `None` where its row can go.
    fn why_left(&self, task: &Task, answer: &GatewayAnswer) -> Option<String> {
        let status = answer.status;
        let age = self.world.clock.now().as_f64() - task.due.as_f64();
        let is_too_old = age >= self.options.reclaim_age.as_secs_f64();
        let lasts = answer.version.unwrap_or(task.due).min(task.due) >= self.horizon();
        if is_among(status, hoped(task)) {
            return (!lasts && !answer.are_all_done).then(|| MAY_COME_BACK.to_owned());
        }
        if matches!(status, 404 | 412) && is_too_old && answer.are_all_done {
            return None;
        }
        Some(match status {
            TOO_EARLY => CLOCKS_DIFFER.to_owned(),
            _ => format!("Unexpected response while deleting object: {status}"),
        })
    }
}

impl GatewayAnswer {
    fn of(status: StatusCode, headers: &HeaderMap) -> Self {
        let text = |name| headers.get(name)?.to_str().ok();
        Self {
            status: status.as_u16(),
            are_all_done: text(X_ALL_PRIMARIES_DONE) == Some("true"),
            version: text(X_BACKEND_TIMESTAMP).and_then(|at: &str| at.parse().ok()),
        }
    }

    fn failed(status: u16) -> Self {
        Self {
            status,
            are_all_done: false,
            version: None,
        }
    }
}
