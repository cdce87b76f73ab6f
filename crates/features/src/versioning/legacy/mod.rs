//! Versions of objects in a container of the user's choice: `X-Versions-Location`, `X-History-Location`.
//!
//! What a PUT overwrites is copied there first, as `LENGTH NAME/TIMESTAMP` (the length of the name in bytes, three
//! hexadecimal digits). With `X-Versions-Location` (a stack) DELETE brings the newest of them back; with
//! `X-History-Location` it leaves a marker behind a copy of what it deletes.
//!
//! | question | file |
//! |---|---|
//! | how a container says where its versions go | `container.rs` |
//! | keeping what is overwritten, bringing it back | `keep.rs` |
//! | DELETE | `delete.rs` |
//!
//! Always holds: containers that name no such place are left alone; nothing is overwritten or deleted before its
//! copy is stored; clients that may write to the versioned container may do all this, and no others.
//! Deliberately absent: what the objects are (links and manifests are kept as they are stored).

mod container;
mod delete;
mod keep;

use http::Method;
use request_pipeline::{ClientRequest, ContainerInfo, Feature, Next, Response};
use settings::VersionedWritesSettings;
use std::sync::Arc;
use vocabulary::EntityPath;
use vocabulary::names::unquote;
use world::Clock;

/// What the access log calls these requests.
const SOURCE: &str = "VW";
/// System metadata of containers.
const LOCATION: &str = "versions-location";
const MODE: &str = "versions-mode";
const HISTORY: &str = "history";
const STACK: &str = "stack";

/// The older half of Swift's `versioned_writes`.
pub struct LegacyVersions {
    allowed: bool,
    max_file_size: u64,
    clock: Arc<dyn Clock>,
}

impl LegacyVersions {
    /// As configured; `max_file_size` is the cluster's.
    pub fn new(settings: &VersionedWritesSettings, max_file_size: u64, clock: Arc<dyn Clock>) -> Self {
        Self {
            allowed: settings.allow_versioned_writes,
            max_file_size,
            clock,
        }
    }
}

/// A PUT or DELETE of an object whose older versions are kept.
struct Kept<'a> {
    owner: &'a LegacyVersions,
    entity: Arc<EntityPath>,
    container: Arc<ContainerInfo>,
    /// Where they are kept.
    versions: EntityPath,
    next: Next,
}

impl LegacyVersions {
    /// `None` where versions are not kept.
    async fn kept(&self, entity: &Arc<EntityPath>, next: &Next) -> Option<Kept<'_>> {
        let name = entity.container.as_deref()?;
        let container = next.info().container(&entity.account, name).await;
        // However it came to have both: what can be locked is kept where locks are.
        if container.bucket_lock().is_some() {
            return None;
        }
        let configured = container.sysmeta.get(LOCATION).filter(|place| !place.is_empty());
        let place = match configured {
            Some(place) => Some(place).filter(|_| self.allowed)?,
            // Set by a container server of old, which allowed it by itself.
            None => container.versions.as_ref().filter(|place| !place.is_empty())?,
        };
        let place = unquote(place).ok()?;
        let place = place.split('/').next().filter(|place| !place.is_empty())?;
        Some(Kept {
            owner: self,
            entity: entity.clone(),
            versions: EntityPath::account(&entity.account).with_container(place),
            container: container.clone(),
            next: next.clone(),
        })
    }
}

#[async_trait::async_trait]
impl Feature for LegacyVersions {
    fn name(&self) -> &'static str {
        "versioned_writes"
    }

    fn info(&self) -> Vec<(&'static str, serde_json::Value)> {
        let flags = serde_json::json!({"allowed_flags": ["x-versions-location", "x-history-location"]});
        self.allowed
            .then_some(("versioned_writes", flags))
            .into_iter()
            .collect()
    }

    fn wants(&self, request: &ClientRequest) -> bool {
        !request.reads_object()
    }

    async fn handle(&self, request: ClientRequest, next: Next) -> Response {
        let Some(entity) = request.entity.clone().filter(|entity| entity.container.is_some()) else {
            return next.run(request).await;
        };
        let is_object = entity.object.is_some();
        match request.method {
            Method::PUT | Method::DELETE if is_object => match self.kept(&entity, &next).await {
                None => next.run(request).await,
                Some(kept) if request.method == Method::PUT => Box::pin(kept.put(request)).await,
                Some(kept) => Box::pin(kept.delete(request)).await,
            },
            Method::PUT | Method::POST if !is_object => Box::pin(container::write(self.allowed, request, next)).await,
            Method::GET | Method::HEAD if !is_object => Box::pin(container::read(request, next)).await,
            _ => next.run(request).await,
        }
    }
}

#[cfg(test)]
mod tests;
