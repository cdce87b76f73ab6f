//! For this crate's unit tests: a request, a core that answers as configured, and what is known of accounts.

use http::Method;
use request_pipeline::{
    AccountInfo, ClientRequest, ContainerInfo, Core, Feature, InfoSource, Pipeline, Request, Response,
};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use vocabulary::Timestamp;
use world::Clock;

/// A request for a path, perhaps with a query.
pub(crate) fn request(method: &str, target: &str) -> ClientRequest {
    let (raw_path, query) = target.split_once('?').unwrap_or((target, ""));
    let path = vocabulary::names::unquote(raw_path).unwrap();
    let mut request = Request::new(
        Method::from_bytes(method.as_bytes()).unwrap(),
        raw_path.into(),
        path.into(),
    );
    request.query = query.into();
    request.from = ([127, 0, 0, 1], 1234).into();
    request.trans_id = "tx1".into();
    request.began = (Duration::ZERO, Timestamp::from_seconds(1_700_000_000));
    request
}

/// `request` with these headers.
pub(crate) fn with_headers(mut request: ClientRequest, headers: &[(&'static str, &str)]) -> ClientRequest {
    for (name, value) in headers {
        request
            .headers
            .append(*name, http::HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    request
}

type Answerer = Box<dyn Fn(ClientRequest) -> Response + Send + Sync>;

/// A core that answers with a closure.
pub(crate) struct Answer {
    answer: Answerer,
    pub(crate) container: Mutex<Arc<ContainerInfo>>,
    pub(crate) account: Mutex<Arc<AccountInfo>>,
}

impl Answer {
    pub(crate) fn new(answer: impl Fn(ClientRequest) -> Response + Send + Sync + 'static) -> Self {
        Self {
            answer: Box::new(answer),
            container: Mutex::default(),
            account: Mutex::default(),
        }
    }
}

#[async_trait::async_trait]
impl Core for Answer {
    async fn handle(&self, request: ClientRequest) -> Response {
        (self.answer)(request)
    }

    fn info(&self) -> &dyn InfoSource {
        self
    }
}

#[async_trait::async_trait]
impl InfoSource for Answer {
    async fn account(&self, _account: &str) -> Arc<AccountInfo> {
        self.account.lock().unwrap().clone()
    }

    async fn container(&self, _account: &str, _container: &str) -> Arc<ContainerInfo> {
        self.container.lock().unwrap().clone()
    }
}

/// What a client gets from one feature before this core.
pub(crate) async fn ask(feature: impl Feature + 'static, request: ClientRequest, core: Answer) -> Response {
    Pipeline::new(vec![Arc::new(feature)], Arc::new(core))
        .run(request)
        .await
}

/// The response's headers as `name: value` lines, in order of names.
pub(crate) fn shown_headers(response: &Response) -> Vec<String> {
    let show = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
        format!("{name}: {}", String::from_utf8_lossy(value.as_bytes()))
    };
    let mut lines: Vec<String> = response.headers().iter().map(show).collect();
    lines.sort();
    lines
}

/// Both clocks stand as they were set; pauses and deadlines are a twentieth of what they are.
#[derive(Default)]
pub(crate) struct HandClock {
    /// Seconds since 1970.
    pub(crate) wall: parking_lot::Mutex<u64>,
    /// The clock that does not jump.
    pub(crate) elapsed: parking_lot::Mutex<Duration>,
}

impl Clock for HandClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_seconds(*self.wall.lock())
    }

    fn elapsed(&self) -> Duration {
        *self.elapsed.lock()
    }

    fn sleep(&self, duration: Duration) -> world::BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration / 20))
    }
}
