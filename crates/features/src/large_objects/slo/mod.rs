//! Static large objects: an object that is a list of others, and is read as all of them in a row.
//!
//! `PUT …?multipart-manifest=put` stores the list after a look at every segment, GET and HEAD show the whole,
//! `DELETE …?multipart-manifest=delete` removes the list with its segments. Source: OpenStack Swift's
//! `overview_large_objects.rst`, and what it answered.
//! Always holds: what clients see of a large object is its manifest's metadata with the length and entity
//! tag of the whole; a request that is not about one costs a look at its method, query and two headers.
//!
//! | question | file |
//! |---|---|
//! | what clients send, what is stored | `input.rs`, `manifest.rs`; both come in pieces: `json_list.rs` |
//! | storing one | `upload.rs` |
//! | reading one: conditions, ranges, parts | `read.rs`; from bytes to segments: `walk.rs`, `../segments.rs` |
//! | removing one with its segments | `delete.rs`, later by the expirer: `delete_later.rs` |
//! | listings of containers | `listing.rs` |

mod delete;
mod delete_later;
mod input;
mod json_list;
mod listing;
pub mod manifest;
mod read;
mod upload;
mod walk;

pub use input::check_manifest;

use crate::large_objects::segments::Pace;
use http::header::{HeaderMap, HeaderName};
use http::{Method, StatusCode};
use manifest::{ManifestReader, NotAManifest, SegmentList};
use peer::{Body, BodyError};
use request_pipeline::{ClientRequest, Feature, MemoryRoom, MemorySeat, Next, NoRoom, Response, is_true, reply};
use serde_json::{Value, json};
use settings::SloSettings;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use vocabulary::{EntityPath, HashPrefix};
use world::{Clock, World};

/// Marks a manifest.
pub const STATIC_LARGE_OBJECT: HeaderName = HeaderName::from_static("x-static-large-object");
/// Where a manifest has the entity tag and the length of the whole.
pub(crate) const ETAG_AT: &str = "x-object-sysmeta-slo-etag";
pub(crate) const SIZE_AT: &str = "x-object-sysmeta-slo-size";
/// In the access log.
const SOURCE: &str = "SLO";

/// Swift's `slo`.
pub struct StaticLargeObjects(Arc<Shared>);

/// What its requests share.
struct Shared {
    settings: SloSettings,
    world: World,
    /// Places the tasks of the expirer.
    hash: HashPrefix,
    /// Accounts that begin so are the cluster's own.
    hidden_prefix: String,
    /// How long a client may be silent in the middle of a manifest.
    patience: Duration,
    /// For manifests that clients send.
    bodies: MemoryRoom,
    /// For stored manifests that are being read.
    manifests: MemoryRoom,
}

/// Bytes of memory that the manifests of all downloads and deletions take together, but for those of [`SMALL`]; those
/// for one client half as many.
const MOST_OF_MANIFESTS: u64 = 256 << 20;
/// Bytes that a manifest takes without being counted: more than one of a thousand segments does.
const SMALL: u64 = 256 << 10;

impl StaticLargeObjects {
    /// As configured, in a cluster with this hash prefix; `patience` is for clients that send manifests.
    pub fn new(
        settings: SloSettings,
        world: World,
        hash: HashPrefix,
        hidden_prefix: String,
        patience: Duration,
    ) -> Self {
        Self(Arc::new(Shared {
            settings,
            world,
            hash,
            hidden_prefix,
            patience,
            bodies: MemoryRoom::default(),
            manifests: MemoryRoom::of(MOST_OF_MANIFESTS),
        }))
    }

    /// Has the lists of clients share this room with other bodies that are read as a whole.
    pub fn reading_in(self, bodies: MemoryRoom) -> Self {
        match Arc::try_unwrap(self.0) {
            Ok(shared) => Self(Arc::new(Shared { bodies, ..shared })),
            Err(shared) => Self(shared),
        }
    }
}

#[async_trait::async_trait]
impl Feature for StaticLargeObjects {
    fn name(&self) -> &'static str {
        "slo"
    }

    fn wants(&self, request: &ClientRequest) -> bool {
        let reads = request.method == Method::GET || request.method == Method::HEAD;
        reads || !request.query.is_empty() || request.headers.contains_key(&STATIC_LARGE_OBJECT)
    }

    async fn handle(&self, request: ClientRequest, next: Next) -> Response {
        let Some(entity) = request.entity.clone() else {
            return next.run(request).await;
        };
        if entity.object.is_none() {
            return about_container(&entity, request, next).await;
        }
        if request.is_synced {
            // From a cluster that has checked it; it is stored as it comes.
            return next.run(request).await;
        }
        let manifest = manifest_parameter(&request);
        match &request.method {
            &Method::GET | &Method::HEAD => {
                read::handle(&self.0, request, next, manifest == ManifestParameter::Get).await
            }
            &Method::PUT if manifest == ManifestParameter::Put => {
                Box::pin(upload::handle(&self.0, request, next)).await
            }
            &Method::DELETE if manifest == ManifestParameter::Delete => Box::pin(self.delete(request, next)).await,
            &Method::PUT | &Method::POST | &Method::DELETE if request.headers.contains_key(&STATIC_LARGE_OBJECT) => {
                reply::html(400, RESERVED.into())
            }
            _ => next.run(request).await,
        }
    }

    fn info(&self) -> Vec<(&'static str, Value)> {
        let settings = &self.0.settings;
        let section = json!({
            "max_manifest_segments": settings.max_manifest_segments,
            "max_manifest_size": settings.max_manifest_size,
            "yield_frequency": settings.yield_frequency,
            "min_segment_size": 1,
            "allow_async_delete": settings.allow_async_delete,
        });
        vec![("slo", section)]
    }
}

impl StaticLargeObjects {
    async fn delete(&self, request: ClientRequest, next: Next) -> Response {
        let later = matches!(request.param("async"), Some(Ok(value)) if is_true(&value));
        match later && self.0.settings.allow_async_delete {
            true => delete_later::handle(&self.0, request, next).await,
            false => delete::handle(&self.0, request, next).await,
        }
    }
}

const RESERVED: &str = "X-Static-Large-Object is a reserved header. \
                        To create a static large object add query param multipart-manifest=put.";

async fn about_container(entity: &EntityPath, request: ClientRequest, next: Next) -> Response {
    let is_listing = entity.container.is_some() && request.method == Method::GET;
    let response = next.run(request).await;
    match is_listing && response.status() == StatusCode::OK {
        true => listing::show(response),
        false => response,
    }
}

/// `multipart-manifest=…`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ManifestParameter {
    Nothing,
    Get,
    Put,
    Delete,
}

fn manifest_parameter(request: &ClientRequest) -> ManifestParameter {
    if request.query.is_empty() {
        return ManifestParameter::Nothing;
    }
    match request.param("multipart-manifest") {
        Some(Ok(value)) => match value.as_str() {
            "get" => ManifestParameter::Get,
            "put" => ManifestParameter::Put,
            "delete" => ManifestParameter::Delete,
            _ => ManifestParameter::Nothing,
        },
        _ => ManifestParameter::Nothing,
    }
}

/// Whether these are the headers of a manifest.
pub(crate) fn is_large(headers: &HeaderMap) -> bool {
    let marked = headers.get(&STATIC_LARGE_OBJECT);
    marked.and_then(|value| value.to_str().ok()).is_some_and(is_true)
}

/// More than any manifest has: data of several times the default limit, and thousands of segments.
const MAX_STORED: u64 = 256 * 1024 * 1024;

/// Bytes of JSON that are read without letting others go on.
const STEP: usize = 64 << 10;

/// Hands `bytes` to `take` in steps, between which others go on.
async fn in_steps<E>(bytes: &[u8], mut take: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
    for step in bytes.chunks(STEP) {
        take(step)?;
        tokio::task::yield_now().await;
    }
    Ok(())
}

/// Why a stored manifest cannot be read.
enum Unread {
    /// It has not come.
    Broken(BodyError),
    /// It is none.
    NotAManifest,
    /// There is no memory for it now.
    NoRoom(NoRoom),
}

impl From<NotAManifest> for Unread {
    fn from(_: NotAManifest) -> Self {
        Self::NotAManifest
    }
}

/// A manifest in memory, with its part of the room there is.
struct HeldManifest {
    manifest: SegmentList,
    _seat: MemorySeat,
}

/// The bytes of a stored manifest as they come.
async fn each_step<E: Into<Unread>>(
    mut body: Body,
    mut take: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), Unread> {
    let mut left = MAX_STORED;
    while let Some(chunk) = body.next().await {
        let chunk = chunk.map_err(Unread::Broken)?;
        left = left
            .checked_sub(chunk.len() as u64)
            .ok_or(Unread::Broken(BodyError::TooLarge(MAX_STORED)))?;
        in_steps(&chunk, &mut take).await.map_err(Into::into)?;
    }
    Ok(())
}

impl Shared {
    /// Reads a stored manifest for a client at this address.
    async fn read(&self, from: IpAddr, body: Body) -> Result<Arc<HeldManifest>, Unread> {
        let (mut reader, mut seat) = (ManifestReader::default(), self.manifests.enter_from(from));
        each_step(body, |json| {
            reader.push(json)?;
            let counted = reader.weight().saturating_sub(SMALL);
            seat.grow_to(counted).map_err(Unread::NoRoom)
        })
        .await?;
        let manifest = reader.finish()?;
        Ok(Arc::new(HeldManifest { manifest, _seat: seat }))
    }
}

/// Slows down downloads of many small segments, and of many manifests with few bytes of each.
struct Pacing {
    pace: Pace,
    under: u64,
    manifests: Pace,
    /// Bytes since the last manifest was fetched, and how many pay for the next.
    passed: u64,
    price: u64,
}

impl Pacing {
    fn new(settings: &SloSettings) -> Self {
        let pace = || Pace::new(settings.rate_limit_after_segment, settings.rate_limit_segments_per_sec);
        Self {
            pace: pace(),
            under: settings.rate_limit_under_size,
            manifests: pace(),
            passed: 0,
            price: settings.rate_limit_under_size,
        }
    }

    /// Before a manifest within the large object is fetched.
    async fn wait_for_manifest(&mut self, clock: &dyn Clock) {
        if self.passed < self.price {
            self.manifests.wait(clock).await;
        }
        self.passed = 0;
    }

    /// Fetching the next one is worth as many bytes as this one had.
    fn fetched(&mut self, bytes: u64) {
        self.price = bytes.max(self.under);
    }

    /// So many bytes of the large object go to the client.
    fn pass(&mut self, bytes: u64) {
        self.passed = self.passed.saturating_add(bytes);
    }

    async fn wait(&mut self, length: u64, clock: &dyn Clock) {
        if length < self.under {
            self.pace.wait(clock).await;
        }
    }
}

impl Shared {
    fn beat(&self) -> Duration {
        Duration::from_secs(self.settings.yield_frequency)
    }
}

#[cfg(test)]
mod tests;
