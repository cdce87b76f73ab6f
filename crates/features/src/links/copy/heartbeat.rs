//! A copy whose client wants to see signs of life: `?heartbeat=on`.
//!
//! 202 and a space go out at once, further spaces while the copy takes its time, then what became of it.
//! Always holds: a client that leaves ends the copy.

use super::carried::CopySummary;
use crate::bulk::heartbeat;
use crate::bulk::report::Report;
use crate::listings::listing_accept::{Form, choose_among};
use http::header::HeaderMap;
use peer::message::header_names::is_internal;
use request_pipeline::{Response, reply};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use vocabulary::header_name::title;
use world::Clock;

/// Bytes of the PUT's answer that are repeated.
const MAX_PAGE: u64 = 64 * 1024;

/// Answers at once; `put` runs while its answer is taken.
pub(super) fn respond(
    accept: Option<&[u8]>,
    clock: Arc<dyn Clock>,
    every: Duration,
    summary: CopySummary,
    put: impl Future<Output = Response> + Send + 'static,
) -> Response {
    let form = match choose_among(accept.unwrap_or_default(), &[Form::Plain, Form::Json]) {
        Ok(Some(Form::Json)) => Form::Json,
        _ => Form::Plain,
    };
    heartbeat::accept(
        form,
        every,
        clock,
        "",
        async move { report(put.await, summary, form).await },
    )
}

async fn report(answer: Response, summary: CopySummary, form: Form) -> String {
    let (head, body) = answer.into_parts();
    // An answer that breaks off is reported without its page.
    let page = body.collect(MAX_PAGE).await.unwrap_or_default();
    let status = reply::status_line(head.status.as_u16());
    let mut report = Report::new()
        .with("Response Status", status.as_str())
        .with("Response Body", String::from_utf8_lossy(&page).as_ref());
    add(&mut report, &summary.headers);
    add(&mut report, &head.headers);
    if !head.status.is_success() {
        report.errors.push((summary.source, status));
    }
    report.print(form, "")
}

fn add(report: &mut Report, headers: &HeaderMap) {
    for (name, value) in headers {
        if !is_internal(name.as_str()) {
            report.set(title(name.as_str()), String::from_utf8_lossy(value.as_bytes()).as_ref());
        }
    }
}
