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
mod composite;
mod digest;
pub mod guard;
pub mod http;
pub mod http_store;
pub mod mock;
pub mod object_server;
pub mod s3;
mod step;
pub mod swift;

use crate::content::{ContentKey, Contents};
use crate::figures::{Failure, RequestOutcome};
use crate::workload::OperationKind;
use crate::workload::detail::{ByteSpan, EntityCondition};
use digest::{DigestLogin, DigestState};
use http_store::{Dialect, HttpStore};
use mock::Mock;
use std::collections::HashMap;
use std::io::Write;
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
    /// Over HTTP, at several addresses.
    Spread(Arc<[Arc<HttpStore>]>),
    /// Everything succeeds at once.
    None,
}

impl Store {
    /// What a worker asks: of several addresses one, which workers have in turn.
    pub fn for_worker(&self, worker: u32) -> Store {
        match self {
            Self::Spread(stores) => match stores.get(worker as usize % stores.len().max(1)) {
                Some(store) => Self::Http(store.clone()),
                None => Self::None,
            },
            one => one.clone(),
        }
    }
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
    /// What it has beside names and sizes.
    pub detail: RequestDetail<'a>,
}

/// What a request has beside names and sizes.
#[derive(Clone, Copy, Default)]
pub struct RequestDetail<'a> {
    /// Bytes that are read, where not all are.
    pub range: Option<ByteSpan>,
    /// Bytes of a part, where the body is uploaded in parts.
    pub part_size: Option<u64>,
    /// Name of the copy.
    pub copy: &'a str,
    /// When it is to be done.
    pub condition: Option<EntityCondition>,
    /// Of the object that was seen last.
    pub etag: Option<&'a str>,
    /// The container keeps versions.
    pub has_versions: bool,
    /// A deletion leaves no part.
    pub removes_parts: bool,
    /// The body has its checksum at its end.
    pub hash_check: bool,
    /// Of a listing, without its `?`; may be empty.
    pub query: &'a str,
    /// Whatever is in a container is deleted with it.
    pub is_emptied: bool,
    /// There is no such object, as is expected.
    pub is_absent: bool,
}

impl RequestDetail<'_> {
    /// Headers about range and condition, which S3 does not ask to be signed.
    fn write_headers(&self, head: &mut Vec<u8>) {
        // Writing to memory does not fail.
        if let Some(span) = self.range {
            let _ = write!(head, "Range: bytes={}-{}\r\n", span.first, span.last);
        }
        let _ = match (self.condition, self.etag) {
            (Some(EntityCondition::Absent), _) => write!(head, "If-None-Match: *\r\n"),
            (Some(EntityCondition::Changed), Some(etag)) => write!(head, "If-None-Match: \"{etag}\"\r\n"),
            (Some(EntityCondition::Unchanged), Some(etag)) => write!(head, "If-Match: \"{etag}\"\r\n"),
            _ => Ok(()),
        };
    }

    /// Whether a status says that a condition did not hold, or that there is no such object, as it may.
    fn allows(&self, status: u16) -> bool {
        if self.is_absent && status == 404 {
            return true;
        }
        match self.condition {
            Some(EntityCondition::Absent | EntityCondition::Unchanged) => status == 412,
            Some(EntityCondition::Changed) => status == 304,
            None => false,
        }
    }

    /// Whether a status is that of the range, or of the whole object, as was asked.
    fn fits(&self, status: u16) -> bool {
        self.range.is_none() || status == 206
    }
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
    /// Head and body of an answer, where they are wanted.
    kept: Option<Vec<u8>>,
    /// Entity tags of objects, for requests on conditions.
    seen: HashMap<String, String>,
    digest: DigestState,
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
            kept: None,
            seen: HashMap::new(),
            digest: DigestState::default(),
        }
    }

    /// Asks; `due` is when the request should have begun, by the world's clock.
    pub async fn ask(&mut self, request: &StoreRequest<'_>, due: Duration) -> RequestOutcome {
        let answered = match &self.store {
            // A worker has one address.
            Store::None | Store::Spread(_) => Ok((0, None)),
            Store::Mock(mock) => {
                let mock = mock.clone();
                mock.serve(&self.world, request).await
            }
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
        match (&store.dialect, request.kind) {
            (Dialect::DirectObjectServer(_), _) => self.exchange(store, request).await,
            _ if composite::takes_several(request) => self.in_steps(store, request).await,
            (Dialect::S3(_), OperationKind::MakeContainer) => self.bucket_with_marker(store, request).await,
            (Dialect::S3(_), OperationKind::DeleteContainer) => {
                self.exchange(store, &marker(OperationKind::Delete, request)).await?;
                self.exchange(store, request).await
            }
            _ => self.exchange(store, request).await,
        }
    }

    async fn bucket_with_marker(&mut self, store: &HttpStore, request: &StoreRequest<'_>) -> Result<Answered, Failure> {
        self.exchange(store, request).await?;
        self.exchange(store, &marker(OperationKind::Write, request)).await
    }

    /// One request and its answer.
    async fn exchange(&mut self, store: &HttpStore, request: &StoreRequest<'_>) -> Result<Answered, Failure> {
        let (mut head, contents) = (std::mem::take(&mut self.head), self.contents.clone());
        store.head(request, self.world.clock.now(), &mut head);
        let source = match request.file {
            Some(bytes) => http::BodySource::Given(bytes),
            None if request.detail.hash_check => http::BodySource::Hashed(request.body, &contents),
            None => http::BodySource::Made(request.body, &contents),
        };
        let from = request.detail.range.map_or(0, |span| span.first);
        let outgoing = http::Outgoing {
            is_head: request.kind == OperationKind::Head,
            head: &head,
            body: request.kind.sends_body().then_some(http::SentBody {
                length: request.size,
                offset: 0,
                chunked: request.chunked,
                source,
            }),
            expects: request.verifies.then_some(match request.detail.hash_check {
                true => http::ExpectedBody::Hashed,
                false => http::ExpectedBody::Made(request.body, from, &contents),
            }),
        };
        let answered = self.send(store, &outgoing).await;
        self.head = head;
        let answer = answered?;
        match store.judge(request, answer.status) {
            Some(failure) => Err(failure),
            None if answer.is_wrong => Err(Failure::WrongBody),
            // What was not done because of its condition, or was gone already.
            None if answer.status >= 300 => Ok((0, Some(answer.first_byte))),
            None if request.kind.sends_body() => Ok((request.size, Some(answer.first_byte))),
            None => Ok((answer.bytes, Some(answer.first_byte))),
        }
    }

    /// Sends what is ready to be sent, with proof of the password where the store asks for that.
    async fn send(&mut self, store: &HttpStore, outgoing: &http::Outgoing<'_>) -> Result<http::StoreAnswer, Failure> {
        let Some(login) = store.digest_login() else {
            return self.send_once(store, outgoing).await.map(|(answer, _)| answer);
        };
        let (answer, refusal) = self.send_proven(store, login, outgoing).await?;
        // Once: a user who is refused with fresh proof has the wrong password, though each refusal has another nonce.
        if answer.status != 401 || !self.digest.is_asked(&self.world, login, &refusal) {
            return Ok(answer);
        }
        self.send_proven(store, login, outgoing).await.map(|(answer, _)| answer)
    }

    /// Sends with proof, as far as it was asked for.
    async fn send_proven(
        &mut self,
        store: &HttpStore,
        login: &DigestLogin,
        outgoing: &http::Outgoing<'_>,
    ) -> Result<(http::StoreAnswer, Vec<u8>), Failure> {
        let head = self.digest.proven(login, outgoing.head);
        let proven = http::Outgoing {
            head: head.as_deref().unwrap_or(outgoing.head),
            ..*outgoing
        };
        self.send_once(store, &proven).await
    }

    /// Sends in the time that the store has; with the answer comes its head where that refuses an unknown user.
    async fn send_once(
        &mut self,
        store: &HttpStore,
        outgoing: &http::Outgoing<'_>,
    ) -> Result<(http::StoreAnswer, Vec<u8>), Failure> {
        let (world, kept) = (&self.world, &mut self.kept);
        let (used, buffer) = (self.connection.take(), self.buffer);
        let work = async {
            // A store may have closed a connection that was idle: the request goes again over a new one then.
            if let Some(mut connection) = used {
                match connection.exchange_keeping(world, outgoing, kept.as_mut()).await {
                    Ok(answer) => return Ok((answer, connection)),
                    Err(Failure::Broken) => {}
                    Err(other) => return Err(other),
                }
            }
            let mut opened = http::StoreConnection::open(world, &store.url, store.tls.as_ref(), buffer).await?;
            let answer = opened.exchange_keeping(world, outgoing, kept.as_mut()).await?;
            Ok((answer, opened))
        };
        let done = world.timeout(store.patience, work).await;
        let (answer, mut connection) = done.map_err(|_| Failure::Timeout)??;
        let refusal = connection.take_refusal();
        self.connection = answer.is_kept.then_some(connection);
        Ok((answer, refusal))
    }
}

/// The request about the object that marks a bucket of S3.
fn marker<'a>(kind: OperationKind, request: &StoreRequest<'a>) -> StoreRequest<'a> {
    StoreRequest {
        kind,
        object: s3::MARKER,
        size: 0,
        detail: RequestDetail::default(),
        ..*request
    }
}
