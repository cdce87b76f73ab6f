//! Deletions of versions beside other requests, in each order of their steps.

use super::*;
use crate::testing::{request, with_headers};
use crate::versioning::{ObjectLockGuard, ObjectVersioning};
use http::StatusCode;
use peer::message::header_names::{X_LEAVE_MARKER, X_UNLESS_CURRENT, X_WRITE_LOCK};
use request_pipeline::{
    AccountInfo, ContainerInfo, Core, FillsVacancy, InfoSource, LockName, LockRefusal, ObjectStanding, Pipeline,
    WriteLocks, object_lock_in, set_header, set_object_lock,
};
use std::collections::BTreeMap;
use std::time::Duration;
use vocabulary::object_lock::ObjectLock;
use world::World;

const OWN: &str = "/v1/a/c/o";
const VERSION: &str = "1700000000.00000";

type Hook = Box<dyn Fn(&Store, &ClientRequest) + Send + Sync>;

/// Objects as their servers keep them, and what comes between two requests.
struct Store {
    objects: Mutex<BTreeMap<String, (Timestamp, Option<HeaderMap>)>>,
    sent: Mutex<Vec<String>>,
    before: Hook,
    /// Write locks: what they are of, and who holds them.
    locks: Mutex<BTreeMap<String, http::HeaderValue>>,
    knows_locks: bool,
    /// Whether a legal hold of the version is set just before its write lock is taken.
    is_held_first: bool,
    is_suspended: bool,
}

struct Shared(Arc<Store>);

#[async_trait::async_trait]
impl WriteLocks for Shared {
    async fn take(&self, name: &LockName, _lease: Duration) -> Result<ObjectStanding, LockRefusal> {
        if !self.0.knows_locks {
            return Err(LockRefusal::Unknown);
        }
        if self.0.is_held_first {
            self.0.hold(&path_of(VERSION));
        }
        let mut held = self.0.locks.lock();
        let holder = held.entry(name.entity.path()).or_insert_with(|| name.value.clone());
        match *holder == name.value {
            true => Ok(ObjectStanding::default()),
            false => Err(LockRefusal::Held),
        }
    }
    fn give_back(&self, name: LockName) {
        self.0.locks.lock().retain(|_, holder| *holder != name.value);
    }
}

impl Store {
    fn put(&self, path: &str, at: Timestamp, headers: Option<HeaderMap>) -> u16 {
        let mut objects = self.objects.lock();
        let (known, standing) = objects.entry(path.to_owned()).or_default();
        if at <= *known {
            return 409;
        }
        let found = standing.is_some() || headers.is_some();
        (*known, *standing) = (at, headers);
        if found { 201 } else { 404 }
    }

    /// The version that the key shows.
    fn shown(&self) -> Option<String> {
        let link = self.objects.lock().get(OWN)?.1.clone()?;
        let target = link
            .get("x-object-sysmeta-symlink-target")?
            .to_str()
            .unwrap()
            .to_owned();
        Some(target)
    }

    fn hold(&self, path: &str) {
        if let Some((at, Some(headers))) = self.objects.lock().get_mut(path) {
            set_object_lock(headers, &ObjectLock::of_hold(true, *at));
        }
    }
}

#[async_trait::async_trait]
impl Core for Shared {
    async fn handle(&self, request: ClientRequest) -> Response {
        let store = &self.0;
        (store.before)(store, &request);
        let path = request.path.to_string();
        store.sent.lock().push(format!("{} {path}", request.method));
        let at = request.header("x-timestamp").and_then(|text| text.parse().ok());
        let at = at.unwrap_or_else(|| World::real().clock.now());
        let found = store.objects.lock().get(&path).cloned().unwrap_or_default();
        match (request.method.as_str(), found) {
            ("HEAD" | "GET", (at, Some(headers))) => {
                let mut response = reply::status(200);
                response.headers_mut().extend(headers);
                set_header(response.headers_mut(), "x-backend-timestamp", &at.internal());
                response
            }
            ("HEAD", (at, None)) if at > Timestamp::ZERO => {
                let mut response = reply::status(404);
                set_header(response.headers_mut(), "x-backend-timestamp", &at.internal());
                response
            }
            ("DELETE", (_, Some(headers))) if object_lock_in(&headers).is_held(at, false) => reply::status(403),
            ("DELETE", _) => reply::status(store.put(&path, at, None)),
            ("PUT", _) => reply::status(store.put(&path, at, Some(request.headers.clone()))),
            _ => reply::status(404),
        }
    }

    fn info(&self) -> &dyn InfoSource {
        &*self.0
    }

    fn write_locks(&self) -> Option<Arc<dyn WriteLocks>> {
        Some(Arc::new(Self(self.0.clone())))
    }
}

#[async_trait::async_trait]
impl InfoSource for Store {
    async fn account(&self, _account: &str) -> Arc<AccountInfo> {
        Arc::default()
    }
    async fn container(&self, _account: &str, _container: &str) -> Arc<ContainerInfo> {
        let mut info = ContainerInfo {
            status: 204,
            ..ContainerInfo::default()
        };
        let mut set = |name: &str, value: &str| info.sysmeta.insert(name.into(), value.into());
        set("versions-container", "%00versions%00c");
        set("versions-enabled", if self.is_suspended { "false" } else { "true" });
        if !self.is_suspended {
            set("s3api-object-lock", "{}");
        }
        Arc::new(info)
    }
}

fn hidden(id: &str) -> EntityPath {
    super::super::names::Hidden::new("a", "c").version("o", id.parse().unwrap())
}

fn path_of(id: &str) -> String {
    format!("/v1{}", hidden(id).path())
}

fn target_of(id: &str) -> String {
    super::super::names::Hidden::new("a", "c").link_target("o", id.parse().unwrap())
}

fn link_to(id: &str) -> HeaderMap {
    let mut link = HeaderMap::new();
    set_header(&mut link, "content-type", "text/plain");
    set_header(&mut link, "x-object-sysmeta-symlink-target", &target_of(id));
    set_header(&mut link, "x-object-sysmeta-versions-symlink", "true");
    link
}

/// A version and an older one, the newer being current; what `before` does comes before each request.
fn store(knows_locks: bool, before: impl Fn(&Store, &ClientRequest) + Send + Sync + 'static) -> Arc<Store> {
    let store = Store {
        objects: Mutex::default(),
        sent: Mutex::default(),
        before: Box::new(before),
        locks: Mutex::default(),
        knows_locks,
        is_held_first: false,
        is_suspended: false,
    };
    Arc::new(filled(store))
}

fn filled(store: Store) -> Store {
    let at = |id: &str| id.parse::<Timestamp>().unwrap();
    for id in ["1600000000.00000", VERSION] {
        store.put(&path_of(id), at(id), Some(HeaderMap::new()));
    }
    store.put(OWN, at(VERSION).with_offset(1), Some(link_to(VERSION)));
    store
}

async fn run(store: &Arc<Store>, request: ClientRequest) -> Response {
    let world = World::real();
    let versioning = ObjectVersioning::new(true, Default::default(), &Default::default(), world.clone());
    let features: Vec<Arc<dyn request_pipeline::Feature>> =
        vec![Arc::new(versioning), Arc::new(ObjectLockGuard::new(world))];
    Pipeline::new(features, Arc::new(Shared(store.clone())))
        .run(request)
        .await
}

fn about(method: &str, id: &str, headers: &[(&'static str, &str)]) -> ClientRequest {
    let mut asked = with_headers(request(method, &format!("{OWN}?version-id={id}")), headers);
    asked.aim_at_path(OWN);
    asked
}

fn is_unlink(request: &ClientRequest) -> bool {
    request.method == Method::DELETE && *request.path == *OWN
}

fn is_of_version(request: &ClientRequest) -> bool {
    request.method == Method::DELETE && *request.path == *path_of(VERSION)
}

/// Object servers that know no write locks: the version is locked just when the link has been taken away.
#[tokio::test]
async fn a_version_that_is_held_after_all_gets_its_link_back() {
    let held = store(false, |store, request| {
        if is_of_version(request) {
            store.hold(&path_of(VERSION));
        }
    });
    let answer = run(&held, about("DELETE", VERSION, &[])).await;
    assert_eq!(answer.status(), 403);
    assert_eq!(answer.headers()["x-object-current-version-id"], VERSION);
    assert_eq!(held.shown(), Some(target_of(VERSION)));
}

#[tokio::test]
async fn what_a_client_writes_meanwhile_is_newer_than_a_link_that_comes_back() {
    let newer = "1800000000.00000";
    let held = store(false, move |store, request| {
        if is_of_version(request) {
            store.hold(&path_of(VERSION));
            store.put(OWN, newer.parse().unwrap(), Some(link_to(newer)));
        }
    });
    assert_eq!(run(&held, about("DELETE", VERSION, &[])).await.status(), 403);
    assert_eq!(held.shown(), Some(target_of(newer)));
}

/// Another gateway sets the lock just before this one gets the version's write lock: nothing is taken away.
#[tokio::test]
async fn a_deletion_is_decided_before_the_link_goes() {
    let held = Store {
        is_held_first: true,
        ..Arc::into_inner(store(true, |_, _| {})).unwrap()
    };
    let held = Arc::new(held);
    assert_eq!(run(&held, about("DELETE", VERSION, &[])).await.status(), 403);
    let sent = held.sent.lock().clone();
    assert!(sent.iter().all(|line| line.starts_with("HEAD")), "{sent:?}");
    assert_eq!(held.shown(), Some(target_of(VERSION)));
}

/// While the link goes, nothing can set a lock of the version.
#[tokio::test]
async fn the_link_goes_under_the_write_lock_of_the_version() {
    let deleted = store(true, |store, request| {
        if is_unlink(request) {
            let held = store.locks.lock();
            assert!(held.contains_key(&hidden(VERSION).path()), "{held:?}");
        }
        if is_of_version(request) {
            assert!(request.headers.contains_key(X_WRITE_LOCK));
        }
    });
    let answer = run(&deleted, about("DELETE", VERSION, &[])).await;
    assert!(answer.status().is_success(), "{}", answer.status());
    assert_eq!(answer.headers()["x-object-current-version-id"], "null");
    assert_eq!(deleted.shown(), None);
    assert!(deleted.objects.lock()[&path_of(VERSION)].1.is_none());
}

/// Between the look and the deletion of the link another version becomes current, or the link is written anew.
#[tokio::test]
async fn only_the_link_that_was_looked_at_goes() {
    for (newer, expected) in [
        ("1800000000.00000", Some(target_of("1800000000.00000"))),
        (VERSION, None),
    ] {
        let written: Mutex<bool> = Mutex::default();
        let changed = store(false, move |store, request| {
            if is_unlink(request) && !std::mem::replace(&mut *written.lock(), true) {
                let at = World::real().clock.now();
                store.put(OWN, at, Some(link_to(newer)));
            }
        });
        let answer = run(&changed, about("DELETE", VERSION, &[])).await;
        assert!(answer.status().is_success(), "{}", answer.status());
        assert_eq!(changed.shown(), expected, "{newer}");
    }
}

#[tokio::test]
async fn a_link_to_nothing_goes_with_a_repeated_deletion() {
    let half = store(true, |_, _| {});
    half.put(&path_of(VERSION), World::real().clock.now(), None);
    assert_eq!(run(&half, about("DELETE", VERSION, &[])).await.status(), 404);
    assert_eq!(half.shown(), None);
}

/// Upkeep has found an old version in a listing; it is made current before the deletion, or in just that moment.
#[tokio::test]
async fn what_is_to_go_unless_it_is_current_stays_where_it_is() {
    let old = "1600000000.00000";
    let current = store(true, |_, _| {});
    assert_eq!(
        run(&current, about("PUT", old, &[("content-length", "0")]))
            .await
            .status(),
        201
    );
    let mut deletion = about("DELETE", old, &[]);
    deletion.headers.insert(X_UNLESS_CURRENT, "true".parse().unwrap());
    assert_eq!(run(&current, deletion).await.status(), StatusCode::CONFLICT);
    assert_eq!(current.shown(), Some(target_of(old)));
    assert!(current.objects.lock()[&path_of(old)].1.is_some());
}

#[tokio::test]
async fn an_old_version_is_not_made_current_while_it_goes() {
    let old = "1600000000.00000";
    let going = store(true, move |store, request| {
        if request.method == Method::DELETE && *request.path == *path_of(old) {
            let held = store.locks.lock();
            assert!(held.contains_key("/a/c/o"), "{held:?}");
        }
    });
    let mut deletion = about("DELETE", old, &[]);
    deletion.headers.insert(X_UNLESS_CURRENT, "true".parse().unwrap());
    let answer = run(&going, deletion).await;
    assert!(answer.status().is_success(), "{}", answer.status());
    assert!(going.locks.lock().is_empty());
    // The holder of the lock keeps a restoration out, and a link is put under it alone.
    going
        .locks
        .lock()
        .insert("/a/c/o".into(), "another/a/c/o".parse().unwrap());
    let restored = run(&going, about("PUT", VERSION, &[("content-length", "0")])).await;
    assert_eq!(restored.status(), 503);
    going.locks.lock().clear();
    let restored = run(&going, about("PUT", VERSION, &[("content-length", "0")])).await;
    assert_eq!(restored.status(), 201);
    assert!(going.objects.lock()[OWN].1.as_ref().unwrap().contains_key(X_WRITE_LOCK));
}

/// By lifecycle rules a version becomes an older one, of which a marker says since when; a client's deletion leaves
/// none.
#[tokio::test]
async fn where_versions_are_suspended_upkeep_leaves_a_marker() {
    let now = World::real().clock.now();
    for (leaves, is_version, status, has_marker) in [
        (true, true, 204, true),
        (false, true, 204, false),
        // A client has written meanwhile what is no version.
        (true, false, 409, false),
    ] {
        let suspended = Arc::new(Store {
            is_suspended: true,
            ..Arc::into_inner(store(true, |_, _| {})).unwrap()
        });
        if !is_version {
            suspended.put(OWN, now, Some(HeaderMap::new()));
        }
        let mut deletion = request("DELETE", OWN);
        deletion.aim_at_path(OWN);
        deletion.set_header("x-timestamp", &now.internal());
        if leaves {
            deletion.headers.insert(X_LEAVE_MARKER, "true".parse().unwrap());
        }
        let answer = run(&suspended, deletion).await;
        assert_eq!(answer.status().is_success(), status == 204, "{}", answer.status());
        let marker = suspended.objects.lock().get(&path_of(&now.normal())).cloned();
        assert_eq!(marker.is_some(), has_marker, "{leaves} {is_version}");
        assert_eq!(suspended.objects.lock()[OWN].1.is_some(), !is_version);
        assert!(suspended.objects.lock()[&path_of(VERSION)].1.is_some());
    }
}

/// A gateway that dies between the two steps leaves a version without its key: whole, and in the client's hands.
#[tokio::test]
async fn what_a_crash_leaves_is_finished_or_undone() {
    let half = || {
        let half = store(true, |_, _| {});
        half.put(OWN, World::real().clock.now(), None);
        half
    };
    let finished = half();
    let answer = run(&finished, about("DELETE", VERSION, &[])).await;
    assert!(answer.status().is_success(), "{}", answer.status());
    assert!(finished.objects.lock()[&path_of(VERSION)].1.is_none());
    let undone = half();
    let restored = run(&undone, about("PUT", VERSION, &[("content-length", "0")])).await;
    assert_eq!(restored.status(), 201);
    assert_eq!(undone.shown(), Some(target_of(VERSION)));
}

const OLD: &str = "1600000000.00000";

/// The version before takes the place of the current one, which has just been deleted.
async fn uncover(store: &Arc<Store>) -> StatusCode {
    let answer = run(store, about("DELETE", VERSION, &[])).await;
    assert_eq!(answer.headers()["x-object-current-version-id"], "null");
    let mut restore = about("PUT", OLD, &[("content-length", "0")]);
    restore.extensions.insert(FillsVacancy);
    run(store, restore).await.status()
}

fn is_link(request: &ClientRequest) -> bool {
    request.method == Method::PUT && *request.path == *OWN
}

#[tokio::test]
async fn what_is_uncovered_is_older_than_what_was_written_since() {
    let minute = 60 * TICKS_PER_SECOND;
    let at = Timestamp::from_ticks(World::real().clock.now().ticks() - minute).unwrap();
    let newer = at.normal();
    for comes_first in [true, false] {
        let link = link_to(&newer);
        let written = store(true, move |store, request| {
            if comes_first && is_link(request) {
                store.put(OWN, at, Some(link.clone()));
            }
        });
        let status = uncover(&written).await;
        if !comes_first {
            assert_eq!(status, 201);
            assert_eq!(written.shown(), Some(target_of(OLD)));
            written.put(OWN, at, Some(link_to(&newer)));
        }
        assert_eq!(written.shown(), Some(target_of(&newer)));
    }
}

#[tokio::test]
async fn nothing_is_uncovered_where_something_is_shown() {
    let shown = store(true, |_, _| {});
    let mut restore = about("PUT", OLD, &[("content-length", "0")]);
    restore.extensions.insert(FillsVacancy);
    assert_eq!(run(&shown, restore).await.status(), StatusCode::CONFLICT);
    assert_eq!(shown.shown(), Some(target_of(VERSION)));
}

/// The version goes just before the link to it is put, or the link is put just before the version goes.
#[tokio::test]
async fn no_link_stays_to_a_version_that_is_deleted_meanwhile() {
    let going = store(true, |store, request| {
        if is_link(request) {
            store.put(&path_of(OLD), World::real().clock.now(), None);
        }
    });
    assert_eq!(uncover(&going).await, StatusCode::NOT_FOUND);
    assert_eq!(going.shown(), None);
    for id in [OLD, VERSION] {
        let linked = store(true, move |store, request| {
            if request.method == Method::DELETE && *request.path == *path_of(id) {
                store.put(OWN, World::real().clock.now(), Some(link_to(id)));
            }
        });
        let answer = run(&linked, about("DELETE", id, &[])).await;
        assert!(answer.status().is_success(), "{}", answer.status());
        assert_eq!(answer.headers()["x-object-current-version-id"], "null");
        assert_eq!(linked.shown(), None);
    }
}
