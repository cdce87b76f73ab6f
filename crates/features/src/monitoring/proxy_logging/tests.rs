//! What the line of a request says of how it went.

use super::*;
use crate::testing::{Answer, ask, request};
use bytes::Bytes;
use futures_util::stream;
use peer::{Body, BodyError};
use request_pipeline::Pipeline;
use std::fmt::Write;
use std::sync::{LazyLock, Mutex};
use tracing::field::{Field, Visit};
use tracing::subscriber::{DefaultGuard, set_default};

/// Collects lines about requests.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            write!(self.0, "{value:?}").unwrap();
        }
    }
}

impl tracing::Subscriber for Log {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target() == "requests"
    }
    fn new_span(&self, _span: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _span: &tracing::span::Id, _values: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _span: &tracing::span::Id, _follows: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        let mut message = Message(String::new());
        event.record(&mut message);
        self.0.lock().unwrap().push(message.0);
    }
    fn enter(&self, _span: &tracing::span::Id) {}
    fn exit(&self, _span: &tracing::span::Id) {}
}

impl Log {
    fn listen() -> (Self, DefaultGuard) {
        // Where there is only one subscriber, tracing asks that of the thread which first comes to a line of the log:
        // a test without one would switch the line off for all.
        static SECOND: LazyLock<tracing::Dispatch> = LazyLock::new(|| tracing::Dispatch::new(Log::default()));
        LazyLock::force(&SECOND);
        let log = Self::default();
        (log.clone(), set_default(log))
    }

    /// Status, bytes received, bytes sent of each line so far.
    fn lines(&self) -> Vec<String> {
        let lines = self.0.lock().unwrap();
        let short = |line: &String| {
            let fields: Vec<&str> = line.split(' ').collect();
            format!("{} {} {}", fields[6], fields[10], fields[11])
        };
        lines.iter().map(short).collect()
    }
}

fn logging() -> ProxyLogging {
    ProxyLogging::new(
        &ProxyLoggingSettings::default(),
        Statsd::default(),
        vec!["v1".into()],
        &World::real(),
    )
    .unwrap()
}

fn streamed(length: &'static str, chunks: Vec<Result<Bytes, BodyError>>) -> Response {
    let mut response = Response::new(Body::stream(stream::iter(chunks), None));
    let length = http::HeaderValue::from_static(length);
    response.headers_mut().insert("content-length", length);
    response
}

#[tokio::test]
async fn what_is_in_memory_is_logged_at_once() {
    let (log, _guard) = Log::listen();
    let response = ask(
        logging(),
        request("GET", "/x"),
        Answer::new(|_| reply::plain(404, "hello")),
    )
    .await;
    assert!(response.body().as_whole().is_some());
    ask(
        logging(),
        request("HEAD", "/x"),
        Answer::new(|_| reply::plain(200, "hello")),
    )
    .await;
    ask(
        logging(),
        request("DELETE", "/x"),
        Answer::new(|_| reply::html(204, String::new())),
    )
    .await;
    assert_eq!(log.lines(), ["404 - 5", "200 - -", "204 - -"]);
}

#[tokio::test]
async fn streams_are_logged_as_they_end() {
    let (log, _guard) = Log::listen();
    let two = || {
        Answer::new(|_| {
            streamed(
                "6",
                vec![Ok(Bytes::from_static(b"abc")), Ok(Bytes::from_static(b"def"))],
            )
        })
    };
    let response = ask(logging(), request("GET", "/x"), two()).await;
    assert!(log.lines().is_empty(), "not over yet");
    assert_eq!(response.into_body().collect(9).await.unwrap(), "abcdef");
    let mut response = ask(logging(), request("GET", "/x"), two()).await;
    assert!(response.body_mut().next().await.is_some());
    drop(response);
    let broken = Answer::new(|_| streamed("6", vec![Ok(Bytes::from_static(b"abc")), Err(BodyError::TimedOut)]));
    let response = ask(logging(), request("GET", "/x"), broken).await;
    assert!(response.into_body().collect(9).await.is_err());
    assert_eq!(log.lines(), ["200 - 6", "499 - 3", "500 - 3"]);
}

struct Reads;

#[async_trait::async_trait]
impl request_pipeline::Core for Reads {
    async fn handle(&self, mut request: ClientRequest) -> Response {
        if *request.path == *"/hang" {
            std::future::pending::<()>().await;
        }
        request.body.next().await;
        reply::plain(201, "")
    }
    fn info(&self) -> &dyn request_pipeline::InfoSource {
        unreachable!("nobody asks")
    }
}

#[tokio::test]
async fn uploads_are_counted_and_the_outer_of_two_writes() {
    let (log, _guard) = Log::listen();
    let pipeline = Pipeline::new(vec![Arc::new(logging()), Arc::new(logging())], Arc::new(Reads));
    let mut asked = request("PUT", "/x");
    asked.body = Body::stream(
        stream::iter([Ok(Bytes::from_static(b"ab")), Ok(Bytes::from_static(b"cde"))]),
        Some(5),
    );
    pipeline.run(asked).await;
    let asked = pipeline.run(request("GET", "/hang"));
    let given_up = tokio::time::timeout(Duration::from_millis(1), asked).await;
    assert!(given_up.is_err());
    assert_eq!(log.lines(), ["201 2 -", "499 - -"]);
}

#[tokio::test]
async fn nobody_listening_costs_nothing() {
    let asked = request("GET", "/x");
    let notes = asked.notes.clone();
    ask(logging(), asked, Answer::new(|_| reply::plain(200, ""))).await;
    assert!(notes.claim_line(), "not even claimed");
}
