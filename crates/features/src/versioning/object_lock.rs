//! Object lock: what a gateway does before a version of a locked bucket, or a part of one, is changed or deleted.
//!
//! Object servers refuse by themselves what is held (`crates/object-server/src/object_lock.rs`). That is not enough
//! where one of them has missed a lock: it would take a deletion, and replication would carry the tombstone to the
//! others. So every DELETE and POST of a version, and every PUT, DELETE and POST of a part, takes the object's write
//! lock from most of its primaries, learns from them what keeps it, and is carried out only where its write lock is
//! held: a change of a lock and a deletion never pass each other, and what most of the servers have acknowledged is
//! seen. Where the version is the current one its link goes under that lock, too, once the deletion is decided. It
//! stands right behind `object_versioning`, whose requests about hidden objects come this way, and is no
//! filter of its own.
//! Always holds: what is held by this gateway's clock, or by the clock of any server that is asked, stays; where most
//! of the servers cannot be asked nothing is changed (503); a POST by any client carries on what keeps the object; what
//! is not found leaves no tombstone. OpenStack's object servers know neither write locks nor object lock: there the
//! newest of all replicas decides, and nothing decides between two requests at once.
//! Deliberately absent: S3's words (`crates/s3/src/operations/object_lock`), who may bypass what.
//! Tests: below, `tests/clients/test_boto3_object_lock.py`.

use super::object_versioning::{LinkRemoval, allow_hidden, authorise_write};
use http::{HeaderMap, HeaderValue, Method};
use peer::message::header_names::{
    X_ALLOW_RESERVED_NAMES, X_BYPASS_GOVERNANCE, X_LOCK_CHANGE, X_OBJECT_LEGAL_HOLD, X_OBJECT_RETENTION, X_WRITE_LOCK,
};
use request_pipeline::{
    BypassesGovernance, ClientRequest, Feature, LockRefusal, Next, Response, WriteLock, object_lock_in, reply,
    set_object_lock,
};
use std::sync::Arc;
use std::time::Duration;
use vocabulary::names::RESERVED;
use vocabulary::object_lock::{ObjectLock, bucket_of};
use vocabulary::{EntityPath, Timestamp};
use world::World;

/// In the access log.
const SOURCE: &str = "OL";
/// How long a write lock lasts that is not taken again; a gateway that dies with it holds others up for so long.
const LEASE: Duration = Duration::from_secs(30);
/// What makes a large object of others.
const MANIFEST: &str = "x-object-manifest";
/// What a POST replaces, and a change of a lock alone is to keep.
const KEPT: [&str; 7] = [
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "expires",
    MANIFEST,
    "x-robots-tag",
];

/// See the module.
pub struct ObjectLockGuard {
    world: World,
}

/// The object, as it is before the request.
struct Before {
    headers: HeaderMap,
    lock: ObjectLock,
    write_lock: Option<WriteLock>,
}

impl ObjectLockGuard {
    /// With the clock that retention is judged by.
    pub fn new(world: World) -> Self {
        Self { world }
    }

    async fn guard(&self, mut request: ClientRequest, entity: Arc<EntityPath>, next: Next) -> Response {
        let container = entity.container.as_deref().unwrap_or_default();
        let info = next.info().container(&entity.account, container).await;
        if let Err(refusal) = authorise_write(&mut request, &info, &next).await {
            return refusal;
        }
        let before = match self.look(&request, &entity, info.policy, &next).await {
            Ok(Some(before)) => before,
            Ok(None) if request.method == Method::PUT => return next.run(request).await,
            Ok(None) => return reply::status_for(&request.method, 404),
            Err(refusal) => return refusal,
        };
        let bypasses = request.extensions.get::<BypassesGovernance>().is_some();
        let now = self.world.clock.now();
        if let Err(why) = prepare(&mut request, &before, now, bypasses) {
            return reply::plain(403, why);
        }
        if bypasses {
            let yes = HeaderValue::from_static("true");
            request.headers.insert(X_BYPASS_GOVERNANCE, yes);
        }
        match before.write_lock {
            Some(write_lock) => {
                request.headers.insert(X_WRITE_LOCK, write_lock.header());
                let work = carry_out(request, next);
                write_lock.keep_while(&self.world, LEASE, work).await
            }
            None => carry_out(request, next).await,
        }
    }

    /// Takes the write lock, and says what is there.
    async fn look(
        &self,
        request: &ClientRequest,
        entity: &EntityPath,
        policy: vocabulary::PolicyIndex,
        next: &Next,
    ) -> Result<Option<Before>, Response> {
        let is_new = request.method == Method::PUT;
        if is_new && self.head(request, entity, next).await?.is_none() {
            return Ok(None);
        }
        let mut random = [0; 16];
        self.world.random.fill(&mut random);
        let random = vocabulary::hex::encode(random);
        let write_lock = next
            .write_locks()
            .and_then(|locks| WriteLock::new(locks, entity.clone(), policy, &random, &request.trans_id));
        let known = match &write_lock {
            None => Some(ObjectLock::default()),
            Some(write_lock) => match write_lock.take(LEASE).await {
                Ok(standing) => Some(standing.lock),
                Err(LockRefusal::Unknown) => None,
                Err(LockRefusal::Held | LockRefusal::Unavailable) => {
                    return Err(reply::status_for(&request.method, 503));
                }
            },
        };
        let Some(headers) = self.head(request, entity, next).await? else {
            return Ok(None);
        };
        Ok(Some(Before {
            lock: object_lock_in(&headers).merged(known.unwrap_or_default()),
            headers,
            write_lock: write_lock.filter(|_| known.is_some()),
        }))
    }

    /// The headers of the newest of all replicas; nothing where there is none.
    async fn head(
        &self,
        request: &ClientRequest,
        entity: &EntityPath,
        next: &Next,
    ) -> Result<Option<HeaderMap>, Response> {
        let mut head = request.subrequest(Method::HEAD, entity.clone(), SOURCE).preauthorised();
        head.query = "symlink=get".into();
        head.set_header("x-newest", "true");
        allow_hidden(&mut head);
        let found = next.clone().run(head).await;
        match found.status().as_u16() {
            200..=299 => Ok(Some(found.headers().clone())),
            404 => Ok(None),
            _ => Err(reply::status_for(&request.method, 503)),
        }
    }
}

/// The change, before which the link to a version that goes is taken away.
async fn carry_out(request: ClientRequest, next: Next) -> Response {
    if let Some(link) = request.extensions.get::<Arc<LinkRemoval>>().cloned()
        && let Err(refusal) = link.take_away(&request, &next).await
    {
        return refusal;
    }
    next.run(request).await
}

/// Refuses what is held; makes a POST say what keeps the object from then on.
fn prepare(request: &mut ClientRequest, before: &Before, now: Timestamp, bypasses: bool) -> Result<(), &'static str> {
    if request.method != Method::POST {
        return match before.lock.is_held(now, bypasses) {
            true => Err("the object is held by its retention or legal hold"),
            false => Ok(()),
        };
    }
    let manifest = request.headers.get(MANIFEST);
    if before.lock.is_held(now, false)
        && manifest.is_some_and(|manifest| before.headers.get(MANIFEST) != Some(manifest))
    {
        return Err("the object is held by its retention or legal hold: it cannot become one of other objects");
    }
    let asked = match request.headers.remove(X_LOCK_CHANGE) {
        // It comes after what is there, as the write lock has it, whatever clocks say.
        Some(_) => object_lock_in(&request.headers).after(&before.lock),
        None => ObjectLock::default(),
    };
    let merged = before.lock.merged(asked);
    if !before.lock.may_become(&merged, now, bypasses) || weakens(&before.lock, &asked, now, bypasses) {
        return Err("the object's retention cannot be weakened");
    }
    if asked != ObjectLock::default() {
        keep(&mut request.headers, &before.headers, &merged);
    }
    set_object_lock(&mut request.headers, &merged);
    Ok(())
}

/// Whether what is asked for is refused though merging would leave the stronger of both.
fn weakens(before: &ObjectLock, asked: &ObjectLock, now: Timestamp, bypasses: bool) -> bool {
    !before.may_become(asked, now, bypasses)
}

/// What a change of a lock is to leave as it is.
fn keep(post: &mut HeaderMap, before: &HeaderMap, lock: &ObjectLock) {
    for (name, value) in before {
        let word = name.as_str();
        let is_kept = word.starts_with("x-object-meta-")
            || word.starts_with("x-object-transient-sysmeta-s3api-")
            || KEPT.contains(&word)
            || word == "x-delete-at" && !outlasts(lock, value);
        if is_kept && *name != X_OBJECT_RETENTION && *name != X_OBJECT_LEGAL_HOLD {
            post.insert(name.clone(), value.clone());
        }
    }
}

/// Whether the object is held beyond its expiry, which ends with that.
fn outlasts(lock: &ObjectLock, delete_at: &HeaderValue) -> bool {
    let at = delete_at.to_str().ok().and_then(|text| text.parse().ok());
    lock.is_held(Timestamp::from_seconds(at.unwrap_or_default()), false)
}

#[async_trait::async_trait]
impl Feature for ObjectLockGuard {
    fn name(&self) -> &'static str {
        "object_lock"
    }

    fn wants(&self, request: &ClientRequest) -> bool {
        let changes = matches!(request.method, Method::PUT | Method::POST | Method::DELETE);
        let Some(entity) = request.entity.as_deref().filter(|_| changes) else {
            return false;
        };
        let container = entity.container.as_deref().unwrap_or_default();
        entity.object.is_some() && bucket_of(container) != container
    }

    async fn handle(&self, request: ClientRequest, next: Next) -> Response {
        let Some(entity) = request.entity.clone() else {
            return next.run(request).await;
        };
        let container = entity.container.as_deref().unwrap_or_default();
        let bucket = bucket_of(container);
        // What clients cannot name is refused as such, by the core.
        if container.starts_with(RESERVED) && !request.headers.contains_key(X_ALLOW_RESERVED_NAMES) {
            return next.run(request).await;
        }
        let info = next.info().container(&entity.account, bucket).await;
        // Whether it has a lock is not known.
        if matches!(info.status, 0 | 500..) {
            return reply::status_for(&request.method, 503);
        }
        let is_locked = info.bucket_lock().is_some();
        // The name of a version is that of no other; what is there, its object server knows.
        let is_new_version = request.method == Method::PUT && container.strip_suffix("+segments") != Some(bucket);
        match is_locked && !is_new_version {
            true => Box::pin(self.guard(request, entity, next)).await,
            false => next.run(request).await,
        }
    }
}

#[cfg(test)]
#[path = "object_lock_tests.rs"]
mod tests;
