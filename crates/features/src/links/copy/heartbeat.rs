//! A copy whose client wants to see signs of life: `?heartbeat=on`.
//!
//! 202 and a space go out at once, further spaces while the copy takes its time, then what became of it.
//! Always holds: a client that leaves ends the copy.

use super::carried::CopySummary;
use crate::bulk::report::Report;
use crate::listings::listing_accept::{Form, choose_among};
use bytes::Bytes;
use futures_util::future::{BoxFuture, Either, select};
use futures_util::stream;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use peer::Body;
use request_pipeline::{Response, reply};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use world::Clock;

/// Bytes of the PUT's answer that are repeated.
const MAX_PAGE: u64 = 64 * 1024;

struct Beating {
    put: BoxFuture<'static, Response>,
    clock: Arc<dyn Clock>,
    every: Duration,
    form: Form,
    summary: CopySummary,
}

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
    let beating = Beating {
        put: Box::pin(put),
        clock,
        every,
        form,
        summary,
    };
    let chunks = stream::unfold((Some(beating), true), |(beating, is_first)| async move {
        let beating = beating?;
        if is_first {
            return Some((Ok(Bytes::from_static(b" ")), (Some(beating), false)));
        }
        let (chunk, rest) = beating.next().await;
        Some((Ok(chunk), (rest, false)))
    });
    let mut response = Response::new(Body::stream(chunks, None));
    *response.status_mut() = http::StatusCode::ACCEPTED;
    let content_type = HeaderValue::from_static(form.media_type());
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

impl Beating {
    async fn next(mut self) -> (Bytes, Option<Beating>) {
        let pause = self.clock.sleep(self.every);
        match select(&mut self.put, pause).await {
            Either::Right(_) => (Bytes::from_static(b" "), Some(self)),
            Either::Left((answer, _)) => (report(answer, self.summary, self.form).await, None),
        }
    }
}

async fn report(answer: Response, summary: CopySummary, form: Form) -> Bytes {
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
    Bytes::from(report.print(form, ""))
}

fn add(report: &mut Report, headers: &HeaderMap) {
    for (name, value) in headers {
        if !vocabulary::metadata::is_internal(name.as_str()) {
            report.set(title(name.as_str()), String::from_utf8_lossy(value.as_bytes()).as_ref());
        }
    }
}

/// `x-copied-from` → `X-Copied-From`.
fn title(name: &str) -> String {
    let words = name.split('-').map(|word| {
        let (first, rest) = word.split_at(word.chars().next().map_or(0, char::len_utf8));
        format!("{}{rest}", first.to_uppercase())
    });
    words.collect::<Vec<_>>().join("-")
}
