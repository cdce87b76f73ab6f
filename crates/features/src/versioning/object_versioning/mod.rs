//! Object versioning: every write of an object in a versioned container is kept, hidden, and found again.
//!
//! The data of a versioned object is written to a hidden container ([`names`]), and a static link to it
//! under the object's own name; `symlink`, further down the pipeline, follows it. `?version-id=` reaches
//! one version, `?versions` lists them all. It stands behind the two older modes of the filter
//! `versioned_writes` and is switched by its `allow_object_versioning`.
//! Always holds: data is written before the link that shows it, and a link is taken away before its data, so that
//! a process that dies in between leaves an invisible version, never a link to nothing; the hidden
//! container is written to only after the client's own request has been authorised; what existed before
//! versioning was enabled becomes a version when it is overwritten or deleted.
//! Deliberately absent: following links (`symlink`), the older modes (`versioned_writes`).
//! Formats: what OpenStack Swift 2.38.3 wrote for the same requests (`tests/interop/test_object_versioning.py`).

mod account;
mod again;
mod container;
mod data;
mod key_lock;
mod link;
mod listing;
mod locks;
mod names;
mod read;
mod removal;
mod restore;
mod write;

pub(super) use container::BOTH_MODES;
use http::{HeaderValue, Method};
pub(super) use link::LinkRemoval;
pub(super) use listing::SWITCH;
use names::{Hidden, VersionId};
use peer::message::header_names::{X_ALLOW_RESERVED_NAMES, X_LEAVE_MARKER, X_LOCK_CHANGE};
use request_pipeline::{ClientRequest, ContainerInfo, Feature, Next, Response, StoredAgain, reply, set_header};
use std::sync::Arc;
use vocabulary::names::RESERVED;
use vocabulary::{EntityPath, Limits, Policies};
use world::World;

/// In the access log, and in nothing else.
const SOURCE: &str = "OV";
/// System metadata of a versioned container: where its versions are, and whether more are made.
const CONTAINER_SYSMETA: &str = "versions-container";
const ENABLED_SYSMETA: &str = "versions-enabled";
/// Marks the link that shows the current version.
const LINK_MARK: &str = "x-object-sysmeta-versions-symlink";
/// What a deletion leaves: an empty version of this type.
const DELETE_MARKER: &str = "application/x-deleted;swift_versions_deleted=1";
const VERSION_ID: &str = "x-object-version-id";

/// Swift's `object_versioning`.
pub struct ObjectVersioning {
    allowed: bool,
    policies: Policies,
    listing_limit: usize,
    account_limit: usize,
    world: World,
    unique: write::Unique,
}

/// What a container's description says about versions.
#[derive(Clone)]
struct Versioned {
    hidden: Hidden,
    enabled: bool,
}

impl Versioned {
    fn of(account: &str, container: &str, info: &ContainerInfo) -> Option<Self> {
        let place = info.sysmeta.get(CONTAINER_SYSMETA).filter(|name| !name.is_empty())?;
        let hidden = Hidden::stored(account, container, place)?;
        let enabled = info
            .sysmeta
            .get(ENABLED_SYSMETA)
            .is_some_and(|text| request_pipeline::is_true(text));
        // Where objects can be locked nothing stops versions from being made.
        let enabled = enabled || info.bucket_lock().is_some();
        Some(Self { hidden, enabled })
    }
}

/// One request about an object of a container that has, or had, versions.
struct Asked {
    entity: Arc<EntityPath>,
    versioned: Versioned,
}

impl Asked {
    fn object(&self) -> &str {
        self.entity.object.as_deref().unwrap_or_default()
    }

    /// Where this version lies.
    fn at(&self, id: VersionId) -> EntityPath {
        self.versioned.hidden.version(self.object(), id)
    }
}

impl ObjectVersioning {
    /// `allowed` is `allow_object_versioning`.
    pub fn new(allowed: bool, policies: Policies, limits: &Limits, world: World) -> Self {
        Self {
            allowed,
            policies,
            listing_limit: limits.container_listing_limit,
            account_limit: limits.account_listing_limit,
            world,
            unique: write::Unique::default(),
        }
    }

    async fn object(&self, request: ClientRequest, entity: Arc<EntityPath>, next: Next) -> Response {
        let container = entity.container.as_deref().unwrap_or_default();
        let info = next.info().container(&entity.account, container).await;
        if info.is_of_gone_account && !matches!(request.method, Method::GET | Method::HEAD) {
            // It takes no writes, nor deletions.
            return next.run(request).await;
        }
        let versioned = Versioned::of(&entity.account, container, &info);
        let wanted = wanted_version(&request);
        let is_lock_change = request.headers.contains_key(X_LOCK_CHANGE);
        if request.method == Method::POST && !is_lock_change && !matches!(wanted, Ok(None)) {
            return reply::html(400, "POST to a specific version is not allowed".into());
        }
        let Some(versioned) = versioned else {
            return match wanted {
                Ok(None) => next.run(request).await,
                Ok(Some(VersionId::Null)) if request.method == Method::PUT => *invalid(),
                Ok(Some(VersionId::Null)) => Box::pin(read::unversioned(request, next)).await,
                // Also of a container that does not exist, or not any more.
                Ok(Some(VersionId::At(_))) | Err(_) => reply::html(
                    400,
                    "version-aware operations require that the container is versioned".into(),
                ),
            };
        };
        let wanted = match wanted {
            Ok(wanted) => wanted,
            Err(refusal) => return *refusal,
        };
        Box::pin(self.versioned(Asked { entity, versioned }, request, wanted, &info, next)).await
    }

    async fn versioned(
        &self,
        asked: Asked,
        request: ClientRequest,
        wanted: Option<VersionId>,
        info: &ContainerInfo,
        next: Next,
    ) -> Response {
        match (request.method.clone(), wanted) {
            (Method::POST, Some(id @ VersionId::At(_))) => locks::post_version(&asked, request, id, info, next).await,
            (Method::POST, _) => write::post(&asked, request, info, next).await,
            (Method::OPTIONS, None) => read::options(request, next).await,
            (Method::GET | Method::HEAD, wanted) => read::get_or_head(&asked, request, wanted, next).await,
            // What lies in its own place has no version, also when it is stored there again.
            (Method::PUT, None) if request.extensions.get::<StoredAgain>().is_some() => next.run(request).await,
            (Method::PUT, None) if asked.versioned.enabled => self.put(&asked, request, info, next).await,
            (Method::PUT, Some(id)) if let Some(again) = request.extensions.get::<StoredAgain>().copied() => {
                self.again(&asked, request, (id, again), info, next).await
            }
            (Method::PUT, Some(id)) => self.restore(&asked, request, id, info, next).await,
            (Method::DELETE, None) if asked.versioned.enabled || request.headers.contains_key(X_LEAVE_MARKER) => {
                self.delete(&asked, request, info, next).await
            }
            (Method::DELETE, Some(VersionId::At(_))) => {
                self.delete_version(&asked, request, wanted_id(wanted), info, next)
                    .await
            }
            _ => next.run(request).await,
        }
    }
}

/// The version a request names, when it is one of a moment.
fn wanted_id(wanted: Option<VersionId>) -> VersionId {
    wanted.unwrap_or(VersionId::Null)
}

/// `?version-id=`; an empty one asks for nothing.
fn wanted_version(request: &ClientRequest) -> Result<Option<VersionId>, Box<Response>> {
    if request.query.is_empty() {
        return Ok(None);
    }
    match request.param("version-id") {
        None => Ok(None),
        Some(Ok(text)) if text.is_empty() => Ok(None),
        Some(text) => {
            let id = text.ok().and_then(|text| text.parse().ok());
            id.map(Some).ok_or_else(invalid)
        }
    }
}

fn invalid() -> Box<Response> {
    Box::new(reply::html(400, "Invalid version parameter".into()))
}

#[async_trait::async_trait]
impl Feature for ObjectVersioning {
    fn name(&self) -> &'static str {
        "object_versioning"
    }

    fn info(&self) -> Vec<(&'static str, serde_json::Value)> {
        match self.allowed {
            true => vec![("object_versioning", serde_json::json!({}))],
            false => Vec::new(),
        }
    }

    fn wants(&self, request: &ClientRequest) -> bool {
        self.allowed && request.entity.is_some()
    }

    async fn handle(&self, request: ClientRequest, next: Next) -> Response {
        let entity = request.entity.clone().filter(|_| self.allowed);
        match entity {
            // What belongs to Swift itself has no versions; the core decides whether it may be asked for.
            Some(_) if request.path.contains(RESERVED) => next.run(request).await,
            Some(entity) if entity.container.is_none() && request.method == Method::GET => {
                Box::pin(self.list_account(request, &entity, next)).await
            }
            Some(entity) if entity.container.is_none() => next.run(request).await,
            Some(entity) if entity.object.is_some() => self.object(request, entity, next).await,
            Some(entity) => Box::pin(self.container(request, entity, next)).await,
            None => next.run(request).await,
        }
    }
}

/// Lets a request reach hidden names.
pub(super) fn allow_hidden(request: &mut ClientRequest) {
    request
        .headers
        .insert(X_ALLOW_RESERVED_NAMES, HeaderValue::from_static("true"));
}

/// Adds the version's name to an answer.
fn show_version(response: &mut Response, id: VersionId) {
    set_header(response.headers_mut(), VERSION_ID, &id.to_string());
}

/// A refusal of a request that this feature made, as the client gets it: its own fault stays its own,
/// anything else is ours.
fn refused(response: &Response, request: &ClientRequest) -> Response {
    match response.status().as_u16() {
        code @ 400..=499 => reply::status_for(&request.method, code),
        _ => reply::status_for(&request.method, 503),
    }
}

/// The same of a write to the hidden container: should that be missing, it is no fault of the client.
fn not_kept(response: &Response, request: &ClientRequest) -> Response {
    match response.status().as_u16() {
        404 => reply::status_for(&request.method, 500),
        _ => refused(response, request),
    }
}

/// Whether the client may write to the container: asked before anything is written on its behalf.
pub(super) async fn authorise_write(
    request: &mut ClientRequest,
    info: &ContainerInfo,
    next: &Next,
) -> Result<(), Response> {
    if request.authorizer.is_some() {
        request.acl = info.write_acl.clone();
    }
    request.authorise(next.info()).await
}
