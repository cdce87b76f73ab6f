//! A store, and what an operation asks of it.
//!
//! | type in a workload | is |
//! |---|---|
//! | `swift` | OpenStack Swift's API: Martlet's, OpenStack's, RGW's |
//! | `s3` | S3's API: Martlet's, AWS's, MinIO's, Garage's, RGW's |
//! | `mock` | a store in this process that takes a known time (`store/mock.rs`): to prove the tool |
//! | `none` | nothing: what the tool costs itself |
//!
//! Always holds: a request that failed is an outcome and never an error of the load.

pub mod auth;
pub mod guard;
pub mod http;
pub mod http_store;
pub mod mock;
pub mod object_server;
pub mod s3;
pub mod swift;

use crate::content::{ContentKey, Contents};
use crate::figures::{Failure, RequestOutcome};
use crate::workload::OperationKind;
use http_store::{Dialect, HttpStore};
use mock::Mock;
use std::sync::Arc;
use std::time::Duration;
use world::World;

/// A store that is open.
#[derive(Clone)]
pub enum Store {
    /// Over HTTP.
    Http(Arc<HttpStore>),
    /// In this process.
    Mock(Arc<Mock>),
    /// Everything succeeds at once.
    None,
}

/// What is asked.
#[derive(Clone, Copy)]
pub struct StoreRequest<'a> {
    /// What is done.
    pub kind: OperationKind,
    /// To which container.
    pub container: &'a str,
    /// To which object; empty for operations on containers.
    pub object: &'a str,
    /// Length of the body that is sent.
    pub size: u64,
    /// Content of the body that is sent, or that has to come.
    pub body: ContentKey,
    /// Sent in chunks.
    pub chunked: bool,
    /// What comes is compared with `body`.
    pub verifies: bool,
    /// A file's content, instead of `body`.
    pub file: Option<&'a [u8]>,
}

/// One worker's way to a store.
pub struct StoreSession {
    store: Store,
    world: World,
    contents: Arc<Contents>,
    connection: Option<http::StoreConnection>,
    /// Bytes that a connection reads and writes at a time.
    buffer: usize,
    head: Vec<u8>,
}

/// Bytes of bodies, and when the first byte of the answer came.
type Answered = (u64, Option<Duration>);

impl StoreSession {
    /// One that has no connection yet.
    pub fn new(store: Store, world: World, contents: Arc<Contents>, buffer: usize) -> Self {
        Self {
            store,
            world,
            contents,
            connection: None,
            buffer,
            head: Vec::new(),
        }
    }

    /// Asks; `due` is when the request should have begun, by the world's clock.
    pub async fn ask(&mut self, request: &StoreRequest<'_>, due: Duration) -> RequestOutcome {
        let answered = match &self.store {
            Store::None => Ok((0, None)),
            Store::Mock(mock) => mock.clone().answer(&self.world, request).await,
            Store::Http(store) => {
                let store = store.clone();
                self.over_http(&store, request).await
            }
        };
        let latency = self.world.clock.elapsed().saturating_sub(due);
        let (bytes, first_byte, failure) = match answered {
            Ok((bytes, first_byte)) => (bytes, first_byte, None),
            Err(failure) => (0, None, Some(failure)),
        };
        RequestOutcome {
            bytes,
            latency,
            first_byte: first_byte.map(|at| at.saturating_sub(due)),
            failure,
        }
    }

    /// A bucket of S3 gets its marker once it was made, and loses it before it is deleted.
    async fn over_http(&mut self, store: &HttpStore, request: &StoreRequest<'_>) -> Result<Answered, Failure> {
        let marks = |kind: OperationKind| StoreRequest {
            kind,
            object: s3::MARKER,
            size: 0,
            ..*request
        };
        match (&store.dialect, request.kind) {
            (Dialect::S3(_), OperationKind::MakeContainer) => {
                self.exchange(store, request).await?;
                self.exchange(store, &marks(OperationKind::Write)).await
            }
            (Dialect::S3(_), OperationKind::DeleteContainer) => {
                self.exchange(store, &marks(OperationKind::Delete)).await?;
                self.exchange(store, request).await
            }
            _ => self.exchange(store, request).await,
        }
    }

    /// One request and its answer.
    async fn exchange(&mut self, store: &HttpStore, request: &StoreRequest<'_>) -> Result<Answered, Failure> {
        store.head(request, self.world.clock.now(), &mut self.head);
        let work = async {
            // A store may have closed a connection that was idle: the request goes again over a new one then.
            if let Some(connection) = self.connection.take() {
                match exchange(&self.world, connection, request, &self.head, &self.contents).await {
                    Ok(done) => return Ok(done),
                    Err(Failure::Broken) => {}
                    Err(other) => return Err(other),
                }
            }
            let opened = http::StoreConnection::open(&self.world, &store.url, store.tls.as_ref(), self.buffer).await?;
            exchange(&self.world, opened, request, &self.head, &self.contents).await
        };
        let done = self.world.timeout(store.patience, work).await;
        let (answer, connection) = done.map_err(|_| Failure::Timeout)??;
        self.connection = connection;
        match store.judge(request, answer.status) {
            Some(failure) => Err(failure),
            None if answer.is_wrong => Err(Failure::WrongBody),
            None if request.kind.sends_body() => Ok((request.size, Some(answer.first_byte))),
            None => Ok((answer.bytes, Some(answer.first_byte))),
        }
    }
}

async fn exchange(
    world: &World,
    mut connection: http::StoreConnection,
    request: &StoreRequest<'_>,
    head: &[u8],
    contents: &Contents,
) -> Result<(http::StoreAnswer, Option<http::StoreConnection>), Failure> {
    let source = match request.file {
        Some(bytes) => http::BodySource::Given(bytes),
        None => http::BodySource::Made(request.body, contents),
    };
    let outgoing = http::Outgoing {
        is_head: request.kind == OperationKind::Head,
        head,
        body: request.kind.sends_body().then_some(http::SentBody {
            length: request.size,
            chunked: request.chunked,
            source,
        }),
        expects: request.verifies.then_some((request.body, contents)),
    };
    let answer = connection.exchange(world, &outgoing).await?;
    Ok((answer, answer.is_kept.then_some(connection)))
}
