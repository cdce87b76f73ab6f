//! The pipeline behind a real connection: what a client sees, and what the access log says of clients
//! that go away. Loopback only.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use bytes::Bytes;
use features::monitoring::catch_errors::CatchErrors;
use features::monitoring::proxy_logging::ProxyLogging;
use http::HeaderValue;
use peer::http_server::{Shutdown, serve};
use peer::{Body, HttpService, ServerOptions};
use request_pipeline::{
    AccountInfo, ClientRequest, ContainerInfo, Core, InfoSource, Pipeline, Request, Response, reply,
};
use settings::ProxyLoggingSettings;
use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use telemetry::Statsd;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tracing::field::{Field, Visit};
use world::World;

/// `/short` lies about its length, `/endless` never stops, `/hang` never answers.
#[derive(Default)]
struct Odd {
    /// Notified of each request that hangs.
    hung: Arc<Notify>,
}

#[async_trait::async_trait]
impl Core for Odd {
    async fn handle(&self, request: ClientRequest) -> Response {
        let (feed, body) = Body::channel(1, None);
        let mut response = Response::new(body);
        match &*request.path {
            "/short" => {
                response
                    .headers_mut()
                    .insert("content-length", HeaderValue::from_static("10"));
                tokio::spawn(async move {
                    feed.send(Bytes::from_static(b"abc")).await;
                    feed.finish().await;
                });
            }
            "/endless" => {
                tokio::spawn(async move { while feed.send(Bytes::from(vec![b'x'; 1 << 16])).await {} });
            }
            "/hang" => {
                self.hung.notify_one();
                std::future::pending().await
            }
            _ => return reply::plain(200, "fine"),
        }
        response
    }

    fn info(&self) -> &dyn InfoSource {
        self
    }
}

#[async_trait::async_trait]
impl InfoSource for Odd {
    async fn account(&self, _account: &str) -> Arc<AccountInfo> {
        Arc::default()
    }
    async fn container(&self, _account: &str, _container: &str) -> Arc<ContainerInfo> {
        Arc::default()
    }
}

struct Door(Pipeline);

#[async_trait::async_trait]
impl HttpService for Door {
    async fn serve(&self, request: http::Request<Body>, from: SocketAddr) -> Response {
        let (head, body) = request.into_parts();
        let path: Arc<str> = head.uri.path().into();
        let mut request = Request::new(head.method, path.clone(), path);
        (request.headers, request.body, request.from) = (head.headers, body, from);
        request.trans_id = "tx1".into();
        self.0.run(request).await
    }
}

/// `path status` of each access line.
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
        let fields: Vec<&str> = message.0.split(' ').collect();
        self.0.lock().unwrap().push(format!("{} {}", fields[4], fields[6]));
    }
    fn enter(&self, _span: &tracing::span::Id) {}
    fn exit(&self, _span: &tracing::span::Id) {}
}

impl Log {
    async fn await_line(&self, line: &str) {
        for _ in 0..6000 {
            if self.0.lock().unwrap().iter().any(|found| found == line) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("no line {line:?} in {:?}", self.0.lock().unwrap());
    }
}

async fn ask(address: SocketAddr, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

#[tokio::test]
async fn what_clients_and_the_log_see() {
    let log = Log::default();
    tracing::subscriber::set_global_default(log.clone()).unwrap();
    let world = World::real();
    let listener = world.network.listen("127.0.0.1", 0, 16).unwrap();
    let address = listener.address().unwrap();
    let logging = ProxyLogging::new(
        &ProxyLoggingSettings::default(),
        Statsd::default(),
        vec!["v1".into()],
        &world,
    )
    .unwrap();
    let odd = Odd::default();
    let hung = odd.hung.clone();
    let pipeline = Pipeline::new(vec![Arc::new(CatchErrors), Arc::new(logging)], Arc::new(odd));
    let shutdown = Shutdown::default();
    let server = serve(
        world,
        listener,
        Arc::new(Door(pipeline)),
        ServerOptions::default(),
        shutdown.watch(),
    );
    tokio::spawn(server);

    let mut short = ask(address, "/short").await;
    let mut answer = Vec::new();
    // Closed before its ten bytes: either the end or a reset tells the client.
    let _ = short.read_to_end(&mut answer).await;
    let answer = String::from_utf8_lossy(&answer).to_lowercase();
    assert!(
        answer.contains("content-length: 10") && answer.ends_with("abc"),
        "{answer}"
    );
    log.await_line("/short 500").await;

    let mut endless = ask(address, "/endless").await;
    endless.read_exact(&mut [0; 1 << 17]).await.unwrap();
    drop(endless);
    log.await_line("/endless 499").await;

    let hanging = ask(address, "/hang").await;
    hung.notified().await;
    drop(hanging);
    log.await_line("/hang 499").await;

    let mut fine = ask(address, "/fine").await;
    let mut head = [0; 15];
    fine.read_exact(&mut head).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 200 OK");
    log.await_line("/fine 200").await;
    shutdown.begin();
}
