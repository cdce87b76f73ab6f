//! Many operations in one request: deleting a list of things, unpacking an archive.
//!
//! `POST` or `DELETE` with `?bulk-delete`, `PUT` with `?extract-archive=tar`, `tar.gz` or `tar.bz2`. Stands in front of
//! authentication: each operation is a request of its own, authorised and logged by itself.
//! Always holds: the answer is 200 and begins with spaces when it takes long; what became of the operations stands in
//! its body.
//! Source: OpenStack Swift's documentation and answers.
//!
//! | question | file |
//! |---|---|
//! | deleting many things, a few at a time | `delete.rs`; the list of them `list.rs`, its memory `list_room.rs` |
//! | an answer that begins before it is known | `heartbeat.rs` |
//! | the report that such a request ends with | `report.rs` |
//! | an archive becomes objects | `extract.rs` |
//! | what is in an archive | `decode.rs`, `tar.rs`, `header.rs` |
//!
//! Large objects use the first three.

pub mod decode;
pub mod delete;
pub mod extract;
pub mod header;
pub mod heartbeat;
pub mod list;
pub mod list_room;
pub mod report;
pub mod tar;
#[cfg(test)]
mod tests;

use crate::bulk::report::Report;
use crate::listings::listing_accept::{Form, choose};
use decode::Compression;
use delete::{BulkTally, Deleter};
use extract::{ExtractLimits, extract};
use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Method};
use list::BadList;
use list_room::{ListRoom, ListSeat};
use peer::Body;
use request_pipeline::{ClientRequest, Feature, Next, NoRoom, Response, reply};
use serde_json::{Value, json};
use settings::gateway_filters::BulkSettings;
use std::future::Future;
use std::sync::Arc;
use world::Clock;

/// Swift's `bulk`.
pub struct Bulk {
    settings: BulkSettings,
    max_file_size: u64,
    clock: Arc<dyn Clock>,
    lists: ListRoom,
}

/// What deletes lists, in the access log.
const SOURCE: &str = "BD";
/// The same in `User-Agent`.
const AGENT: &str = "BulkDelete";

impl Bulk {
    /// As configured; no file of an archive may be larger than `max_file_size`.
    pub fn new(settings: BulkSettings, max_file_size: u64, clock: Arc<dyn Clock>) -> Self {
        Self {
            settings,
            max_file_size,
            clock,
            lists: ListRoom::default(),
        }
    }

    /// Has lists take this room.
    #[cfg(test)]
    fn reading_in(self, lists: ListRoom) -> Self {
        Self { lists, ..self }
    }

    async fn respond(
        &self,
        form: Option<Form>,
        root: &'static str,
        work: impl Future<Output = Report> + Send + 'static,
    ) -> Response {
        let shown = form.unwrap_or(Form::Plain);
        let text = async move { work.await.print(shown, root) };
        let mut response = heartbeat::respond(shown, self.settings.yield_frequency, self.clock.clone(), text).await;
        if form.is_none() {
            let html = HeaderValue::from_static("text/html; charset=UTF-8");
            response.headers_mut().insert(CONTENT_TYPE, html);
        }
        response
    }

    async fn extract(&self, request: ClientRequest, next: Next, format: &str) -> Response {
        let Some(compression) = Compression::of_format(format) else {
            return reply::html(400, "Unsupported archive format".into());
        };
        let limits = ExtractLimits {
            containers: self.settings.max_containers_per_extraction,
            failures: self.settings.max_failed_extractions,
            file_size: self.max_file_size,
        };
        match form_for(&request.headers) {
            None => self.respond(None, "extract", async { extract::refusal(406, "") }).await,
            form => {
                self.respond(form, "extract", extract(request, next, compression, limits))
                    .await
            }
        }
    }

    async fn delete(&self, request: ClientRequest, next: Next) -> Response {
        let deleter = Deleter {
            source: SOURCE,
            agent: AGENT,
            concurrency: self.settings.delete_concurrency.0,
            max_failures: self.settings.max_failed_deletes,
            container_retries: self.settings.delete_container_retry_count,
            clock: self.clock.clone(),
        };
        let most = self.settings.max_deletes_per_request;
        let Some(form) = form_for(&request.headers) else {
            return self.respond(None, "delete", async { delete::refusal(406, "") }).await;
        };
        let account = request.entity.as_ref().map_or("", |entity| entity.account.as_str());
        match self.lists.enter(&request, account, &next).await {
            Ok(seat) => {
                self.respond(Some(form), "delete", delete_list(request, next, deleter, (most, seat)))
                    .await
            }
            Err(full) => full.answer(),
        }
    }
}

#[async_trait::async_trait]
impl Feature for Bulk {
    fn name(&self) -> &'static str {
        "bulk"
    }

    fn info(&self) -> Vec<(&'static str, Value)> {
        let settings = &self.settings;
        let upload = json!({
            "max_containers_per_extraction": settings.max_containers_per_extraction,
            "max_failed_extractions": settings.max_failed_extractions,
        });
        let delete = json!({
            "max_deletes_per_request": settings.max_deletes_per_request,
            "max_failed_deletes": settings.max_failed_deletes,
        });
        vec![("bulk_upload", upload), ("bulk_delete", delete)]
    }

    fn wants(&self, request: &ClientRequest) -> bool {
        !request.query.is_empty()
    }

    async fn handle(&self, request: ClientRequest, next: Next) -> Response {
        if request.query.is_empty() {
            return next.run(request).await;
        }
        let parameter = match request.method {
            Method::PUT => "extract-archive",
            Method::POST | Method::DELETE => "bulk-delete",
            _ => return next.run(request).await,
        };
        match request.param(parameter) {
            None => next.run(request).await,
            Some(format) if request.method == Method::PUT => {
                self.extract(request, next, format.as_deref().unwrap_or_default()).await
            }
            Some(_) => self.delete(request, next).await,
        }
    }
}

/// The form of a report that the client likes best; `None` when it likes none.
fn form_for(headers: &HeaderMap) -> Option<Form> {
    match headers.get(ACCEPT).filter(|accept| !accept.is_empty()) {
        None => Some(Form::Plain),
        Some(accept) => choose(accept.as_bytes()).ok().flatten(),
    }
}

/// Deletes what the request's body lists: so many names, in this seat.
async fn delete_list(
    mut request: ClientRequest,
    next: Next,
    deleter: Deleter,
    (most, mut seat): (usize, ListSeat),
) -> Report {
    let Some(entity) = request.entity.clone() else {
        return delete::refusal(404, "");
    };
    let content_type = request.header("content-type").unwrap_or_default();
    if !content_type.is_empty() && !content_type.starts_with("text/plain") {
        return delete::refusal(406, "");
    }
    if !extract::has_length(&request.headers) {
        return delete::refusal(411, "");
    }
    let body = std::mem::replace(&mut request.body, Body::empty());
    let targets = match list::read(body, most, &mut seat).await {
        Ok(targets) => targets,
        Err(BadList::TooMany) => {
            return delete::refusal(413, &format!("Maximum Bulk Deletes: {most} per request"));
        }
        Err(BadList::TooLong) => return delete::refusal(400, "Invalid File Name"),
        Err(BadList::Left(_)) => return delete::refusal(499, ""),
        Err(BadList::NoRoom(_)) => return delete::refusal(503, NoRoom::TEXT),
    };
    let tally: BulkTally = deleter.delete(&request, &next, &entity.account, targets).await;
    tally.report()
}
