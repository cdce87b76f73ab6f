//! Answers that take long: the status goes out at once, then a space now and then, then what became of it.
//!
//! No proxy between here and the client may take the silence of a long operation for a dead connection.
//! Always holds: the work goes on only while the client takes the answer, and is dropped with it.

use crate::listings::listing_accept::Form;
use bytes::Bytes;
use futures_util::future::{BoxFuture, Either, select};
use futures_util::{Stream, StreamExt, stream};
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderValue};
use peer::{Body, BodyError};
use request_pipeline::Response;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use world::Clock;

/// What XML begins with when something has to be sent before the report is known.
const XML_BEGINS: &[u8] = b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";

/// Parts spaces from the report behind them.
pub const BLANK_LINE: &str = "\r\n\r\n";

struct Beating {
    work: BoxFuture<'static, String>,
    clock: Arc<dyn Clock>,
    every: Duration,
    is_xml: bool,
    /// Stands before the report when something was sent before it.
    gap: &'static str,
    /// A space goes out before anything else.
    greets: bool,
    has_sent: bool,
}

/// 200, and in its body, once it is known, what `work` makes. A body of `form` may have spaces in front.
/// Answers once there is something to send: clients that look at the status alone, and no further, then
/// find the work done, if it was quick. What was sent before the report is parted from it by a blank line.
pub async fn respond(
    form: Form,
    every: Duration,
    clock: Arc<dyn Clock>,
    work: impl Future<Output = String> + Send + 'static,
) -> Response {
    let beating = Beating {
        work: Box::pin(work),
        clock,
        every,
        is_xml: matches!(form, Form::Xml | Form::TextXml),
        gap: BLANK_LINE,
        greets: false,
        has_sent: false,
    };
    let (first, rest) = beating.next().await;
    let first = stream::once(async { Ok(first) });
    made(form, StatusCode::OK, first.chain(chunks(rest)))
}

/// 202 and a space at once, so that the client sees that it was understood; else as [`respond`], but for `gap` between
/// what was sent before and the report.
pub fn accept(
    form: Form,
    every: Duration,
    clock: Arc<dyn Clock>,
    gap: &'static str,
    work: impl Future<Output = String> + Send + 'static,
) -> Response {
    let beating = Beating {
        work: Box::pin(work),
        clock,
        every,
        is_xml: false,
        gap,
        greets: true,
        has_sent: false,
    };
    made(form, StatusCode::ACCEPTED, chunks(Some(beating)))
}

fn chunks(beating: Option<Beating>) -> impl Stream<Item = Result<Bytes, BodyError>> + Send + 'static {
    stream::unfold(beating, |beating| async {
        let (chunk, rest) = beating?.next().await;
        Some((Ok(chunk), rest))
    })
}

fn made(
    form: Form,
    status: StatusCode,
    chunks: impl Stream<Item = Result<Bytes, BodyError>> + Send + 'static,
) -> Response {
    let mut response = Response::new(Body::stream(chunks, None));
    let content_type = HeaderValue::from_static(form.media_type());
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    *response.status_mut() = status;
    response
}

impl Beating {
    /// The next bytes; without what could make more when they are the last.
    async fn next(mut self) -> (Bytes, Option<Beating>) {
        if std::mem::take(&mut self.greets) {
            self.has_sent = true;
            return (Bytes::from_static(b" "), Some(self));
        }
        let pause = self.clock.sleep(self.every);
        match select(&mut self.work, pause).await {
            Either::Left((report, _)) => {
                let gap = if self.has_sent { self.gap } else { "" };
                (Bytes::from(format!("{gap}{report}")), None)
            }
            Either::Right(_) => {
                let first_of_xml = self.is_xml && !self.has_sent;
                self.has_sent = true;
                let beat = if first_of_xml { XML_BEGINS } else { b" " };
                (Bytes::from_static(beat), Some(self))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::ready;
    use world::clock::RealClock;

    async fn text_of(form: Form, work: impl Future<Output = String> + Send + 'static) -> String {
        let response = respond(form, Duration::from_millis(5), Arc::new(RealClock::new()), work).await;
        let body = response.into_body().collect(10_000).await.unwrap();
        String::from_utf8_lossy(&body).into_owned()
    }

    async fn slow() -> String {
        tokio::time::sleep(Duration::from_millis(500)).await;
        "done".into()
    }

    #[tokio::test]
    async fn what_is_quick_comes_alone() {
        assert_eq!(text_of(Form::Xml, ready("<a/>".to_owned())).await, "<a/>");
    }

    #[tokio::test]
    async fn what_is_accepted_begins_at_once() {
        let clock = Arc::new(RealClock::new());
        let response = accept(
            Form::Xml,
            Duration::from_secs(9),
            clock,
            BLANK_LINE,
            ready("<a/>".to_owned()),
        );
        assert_eq!(response.status(), 202);
        assert_eq!(response.into_body().collect(100).await.unwrap(), " \r\n\r\n<a/>");
    }

    #[tokio::test]
    async fn what_is_slow_comes_behind_spaces() {
        let text = text_of(Form::Json, slow()).await;
        let beats = text.strip_suffix("\r\n\r\ndone").unwrap();
        assert!(beats.len() > 2 && beats.trim().is_empty(), "{text:?}");
        let text = text_of(Form::TextXml, slow()).await;
        assert!(text.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n ") && text.ends_with("done"));
    }
}
