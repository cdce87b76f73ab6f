//! Entries of the queue, written and taken back through the rest of the pipeline.
//!
//! Always holds: an entry that was written is on most of its replicas, as any object whose write was acknowledged; a
//! container of the queue that is not there is made.

use futures_util::future::join_all;
use http::{HeaderValue, Method};
use notification::{QueueContainer, QueuedEvent, entry_name};
use peer::Body;
use request_pipeline::{ClientRequest, Next, Request, Response};
use vocabulary::EntityPath;

/// In the access log.
const SOURCE: &str = "BN";

/// An event for one target, and where its entry lies.
pub(super) struct PlacedEntry {
    pub(super) event: QueuedEvent,
    container: EntityPath,
    name: String,
}

/// The queue could not be written.
#[derive(Debug, thiserror::Error)]
#[error("{method} of {place} was answered with {status}")]
pub(super) struct QueueUnavailable {
    method: Method,
    place: String,
    status: u16,
}

impl PlacedEntry {
    /// In the queue that is the hidden account `queue`; `number` is the one of its rule.
    pub(super) fn new(queue: &str, target: &str, number: usize, event: QueuedEvent) -> Self {
        let container = QueueContainer::of(target, &event.account, &event.bucket, &event.key);
        Self {
            container: EntityPath::account(queue).with_container(container.name()),
            name: entry_name(event.noted(), &event.id, number),
            event,
        }
    }

    fn place(&self) -> EntityPath {
        self.container.with_object(&*self.name)
    }

    async fn put(&self, request: &Request, next: &Next) -> Response {
        let mut put = ask(request, Method::PUT, self.place());
        let text = self.event.to_text();
        put.headers.insert("content-length", HeaderValue::from(text.len()));
        put.set_header("content-type", "application/json");
        put.body = Body::whole(text);
        next.clone().run(put).await
    }

    async fn write(&self, request: &Request, next: &Next) -> Result<(), QueueUnavailable> {
        let mut answer = self.put(request, next).await;
        if answer.status() == 404 {
            let make = ask(request, Method::PUT, self.container.clone());
            let made = next.clone().run(make).await;
            if !made.status().is_success() {
                return Err(unavailable(Method::PUT, &self.container, &made));
            }
            answer = self.put(request, next).await;
        }
        match answer.status().is_success() {
            true => Ok(()),
            false => Err(unavailable(Method::PUT, &self.place(), &answer)),
        }
    }

    async fn take_back(&self, request: &Request, next: &Next) {
        let answer = next.clone().run(ask(request, Method::DELETE, self.place())).await;
        if !answer.status().is_success() && answer.status() != 404 {
            // The daemon finds that the write was not made, and drops it.
            tracing::debug!("{}", unavailable(Method::DELETE, &self.place(), &answer));
        }
    }
}

/// Writes all entries at the same time; the first failure, if there is one.
pub(super) async fn write_all(entries: &[PlacedEntry], request: &Request, next: &Next) -> Result<(), QueueUnavailable> {
    let writes = entries.iter().map(|entry| entry.write(request, next));
    join_all(writes).await.into_iter().collect()
}

/// Takes entries out of the queue whose write is known not to be made.
pub(super) async fn take_back_all(entries: &[PlacedEntry], request: &Request, next: &Next) {
    join_all(entries.iter().map(|entry| entry.take_back(request, next))).await;
}

fn ask(request: &Request, method: Method, place: EntityPath) -> ClientRequest {
    request.subrequest(method, place, SOURCE).preauthorised()
}

fn unavailable(method: Method, place: &EntityPath, answer: &Response) -> QueueUnavailable {
    QueueUnavailable {
        method,
        place: place.path(),
        status: answer.status().as_u16(),
    }
}
