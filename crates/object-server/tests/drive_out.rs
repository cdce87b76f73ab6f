//! A drive that goes away, hangs or fails: its requests are answered, also those that wait for it, and it comes back.

#![allow(clippy::unwrap_used, reason = "a failed expectation is what a test is for")]

mod support;

use durable_fs::health::{HUNG, MANY_ERRORS};
use durable_fs::{Health, TrialOutcome};
use futures_util::future::{Either, select};
use http::{HeaderMap, Method, StatusCode};
use object_engine::{EngineError, FilesConfig, FilesEngine, MemoryEngine, ObjectEngine};
use object_server::{DeviceSource, ObjectServer, ObjectServerOptions};
use parking_lot::RwLock;
use peer::{Body, RawCall, Response, Service, Target};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use support::Times;
use support::calls::{call, fed, get, on_files, pattern, put, read, until};
use support::hanging::HangingEngine;
use support::ours::options;
use support::unopenable::Unopenable;
use vocabulary::{EntityPath, HashPrefix, Partition, Policies, Policy};
use world::World;

struct Source {
    hang: Arc<RwLock<()>>,
    health: Arc<Health>,
}

impl DeviceSource for Source {
    fn open(&self, _name: &str) -> Result<Arc<dyn ObjectEngine>, EngineError> {
        Ok(Arc::new(HangingEngine::new(MemoryEngine::new(), self.hang.clone())))
    }

    fn health(&self, _name: &str) -> Arc<Health> {
        self.health.clone()
    }
}

struct Site {
    server: Arc<ObjectServer>,
    hang: Arc<RwLock<()>>,
    health: Arc<Health>,
    trial_hangs: AtomicBool,
}

impl Site {
    fn new() -> Self {
        let (hang, health) = (Arc::new(RwLock::new(())), Health::new("/srv/node/sda"));
        let source = Source {
            hang: hang.clone(),
            health: health.clone(),
        };
        let policies = Policies::new(vec![Policy::replication(0, "gold")], None).unwrap();
        let options = ObjectServerOptions::new(HashPrefix::new("a", "b").unwrap(), Arc::new(policies));
        let server = ObjectServer::new(World::real(), options, Arc::new(source)).unwrap();
        let trial_hangs = AtomicBool::new(false);
        Self {
            server,
            hang,
            health,
            trial_hangs,
        }
    }

    async fn head(&self) -> StatusCode {
        let target = Target {
            device: "sda".into(),
            partition: Partition(1),
            path: Arc::new(EntityPath::split("a/c/o").unwrap()),
        };
        let call = RawCall::new(Method::HEAD, target, HeaderMap::new());
        self.server.call(call.into()).await.status()
    }

    /// Seconds pass, and trials succeed unless the drive hangs.
    fn pass(&self, seconds: u32) {
        for _ in 0..seconds {
            let is_due = self.health.tick() || self.trial_hangs.swap(false, Ordering::Relaxed);
            if is_due && self.hang.try_read().is_some() {
                self.health.tried(TrialOutcome::Well);
            } else if is_due {
                self.trial_hangs.store(true, Ordering::Relaxed);
            }
        }
    }
}

const GONE: StatusCode = StatusCode::INSUFFICIENT_STORAGE;

#[tokio::test(flavor = "multi_thread")]
#[allow(
    clippy::await_holding_lock,
    reason = "as long as it is held, the drive hangs: that is what is waited out"
)]
async fn no_request_waits_for_a_hung_drive() {
    let site = Arc::new(Site::new());
    assert_eq!(site.head().await, StatusCode::NOT_FOUND);
    let hold = site.hang.clone();
    let held = hold.write();
    let waiting = tokio::spawn({
        let site = site.clone();
        async move { site.head().await }
    });
    // The job is under way when no second has passed in which one ended.
    while site.health.check().is_ok() {
        site.pass(1);
        tokio::task::yield_now().await;
    }
    assert_eq!(waiting.await.unwrap(), GONE);
    assert_eq!(site.head().await, GONE);
    site.pass(HUNG * 3);
    assert_eq!(site.head().await, GONE);
    drop(held);
    while site.health.check().is_err() {
        site.pass(1);
        tokio::task::yield_now().await;
    }
    assert_eq!(site.head().await, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_drive_with_many_errors_is_left_alone_for_a_while() {
    let site = Site::new();
    assert_eq!(site.head().await, StatusCode::NOT_FOUND);
    site.pass(1);
    for number in 0..MANY_ERRORS {
        let file = site.health.root().join(number.to_string());
        site.health.saw(&file, &std::io::Error::from_raw_os_error(5));
    }
    assert_eq!(site.head().await, GONE);
    site.pass(60);
    assert_eq!(site.head().await, StatusCode::NOT_FOUND);
    // So does one that says it is no longer there; its writes, too.
    site.health
        .saw(site.health.root(), &std::io::Error::from_raw_os_error(19));
    assert!(
        site.health
            .check_writable()
            .unwrap_err()
            .to_string()
            .contains(&Path::new("/srv/node/sda").display().to_string())
    );
    assert_eq!(site.head().await, GONE);
}

/// An engine on files that cannot always be opened.
struct UnopenableSource {
    files: Unopenable,
    health: Arc<Health>,
}

impl DeviceSource for UnopenableSource {
    fn open(&self, name: &str) -> Result<Arc<dyn ObjectEngine>, EngineError> {
        let config = FilesConfig {
            mount_check: false,
            ..FilesConfig::new(name, self.health.root())
        };
        let world = World {
            files: Arc::new(self.files.clone()),
            ..World::real()
        };
        Ok(Arc::new(FilesEngine::watched(config, world, self.health.clone())))
    }

    fn health(&self, _name: &str) -> Arc<Health> {
        self.health.clone()
    }
}

#[tokio::test]
async fn only_what_is_the_whole_drives_is_answered_with_507() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().join("sda");
    std::fs::create_dir(&root).unwrap();
    let (files, health) = (Unopenable::default(), Health::new(&root));
    let source = UnopenableSource {
        files: files.clone(),
        health: health.clone(),
    };
    let server = ObjectServer::new(World::real(), options(), Arc::new(source)).unwrap();
    let made = server.call(put(1.0, Body::whole("one")).into()).await;
    assert_eq!(made.status(), StatusCode::CREATED);
    assert!(!health.tick());
    let timestamp = ("x-timestamp", Times::new().at(2.0));
    // ENOMEM, ENFILE, EMFILE; EIO, EACCES, ELOOP; EROFS.
    for (number, status, asks_for_trial) in [
        (12, 503, false),
        (23, 503, false),
        (24, 503, false),
        (5, 500, true),
        (13, 500, true),
        (40, 500, true),
        (30, 507, true),
    ] {
        files.fail(Some(number));
        for _ in 0..MANY_ERRORS * 2 {
            let refused = server.call(get(None).into()).await;
            assert_eq!(refused.status(), status, "{number}");
            assert_eq!(refused.headers().contains_key("retry-after"), status == 503, "{number}");
        }
        let refused = server.call(put(3.0, Body::whole("two")).into()).await;
        assert_eq!(refused.status(), status, "{number}");
        let refused = server
            .call(call("POST", "sda", std::slice::from_ref(&timestamp)).into())
            .await;
        assert_eq!(refused.status(), status, "{number}");
        files.fail(None);
        assert_eq!(health.tick(), asks_for_trial, "{number}");
        if asks_for_trial {
            health.tried(TrialOutcome::Well);
        }
        let found = server.call(get(None).into()).await;
        assert_eq!(found.status(), StatusCode::OK, "{number}: {:?}", health.service());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn devices_come_and_go() {
    let place = tempfile::tempdir().unwrap();
    let server = on_files(place.path());
    let unavailable = |answer: Response| async {
        assert_eq!(answer.status(), StatusCode::INSUFFICIENT_STORAGE);
        assert!(read(answer).await.ends_with(b"Drive: sda</p></html>"));
    };
    assert_eq!(
        server.call(put(1.0, Body::whole("one")).into()).await.status(),
        StatusCode::CREATED
    );
    let (here, away) = (place.path().join("sda"), place.path().join("away"));
    std::fs::rename(&here, &away).unwrap();
    unavailable(server.call(get(None).into()).await).await;
    unavailable(server.call(put(2.0, Body::whole("two")).into()).await).await;
    unavailable(server.call(put(2.0, fed(pattern(100_000), None, None)).into()).await).await;
    let timestamp = ("x-timestamp", Times::new().at(2.0));
    unavailable(
        server
            .call(call("POST", "sda", std::slice::from_ref(&timestamp)).into())
            .await,
    )
    .await;
    unavailable(
        server
            .call(call("DELETE", "sda", std::slice::from_ref(&timestamp)).into())
            .await,
    )
    .await;
    assert!(!here.exists(), "nothing is made below a mount point");
    std::fs::rename(&away, &here).unwrap();
    assert_eq!(read(server.call(get(None).into()).await).await, "one");
    assert_eq!(
        server.call(put(3.0, Body::whole("three")).into()).await.status(),
        StatusCode::CREATED
    );
    // A new drive in its place.
    std::fs::rename(&here, &away).unwrap();
    std::fs::create_dir(&here).unwrap();
    assert_eq!(server.call(get(None).into()).await.status(), StatusCode::NOT_FOUND);
    assert_eq!(
        server.call(put(4.0, Body::whole("four")).into()).await.status(),
        StatusCode::CREATED
    );
    assert_eq!(read(server.call(get(None).into()).await).await, "four");
    // Names that are no device cost nothing and make nothing.
    let stranger = server.call(call("GET", "sdz", &[]).into()).await;
    assert_eq!(stranger.status(), StatusCode::INSUFFICIENT_STORAGE);
    assert!(!place.path().join("sdz").exists());
}

/// Hangs an engine until the sender is dropped and the thread has ended.
async fn hold(hang: &Arc<RwLock<()>>) -> (Sender<()>, JoinHandle<()>) {
    let (release, holding) = channel::<()>();
    let held = std::thread::spawn({
        let hang = hang.clone();
        move || {
            let _held = hang.write();
            let _ = holding.recv();
        }
    });
    until(|| hang.is_locked_exclusive()).await;
    (release, held)
}

/// A drive that hangs answers what was read lately, as it answered then, and its workers are not asked.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_read_lately_needs_no_worker() {
    struct One(Arc<dyn ObjectEngine>);
    impl DeviceSource for One {
        fn open(&self, _: &str) -> Result<Arc<dyn ObjectEngine>, EngineError> {
            Ok(self.0.clone())
        }
    }
    let place = tempfile::tempdir().unwrap();
    if !World::real().files.can_glance(place.path()) {
        return; // the tests run on a network file system or the like
    }
    let config = FilesConfig {
        mount_check: false,
        ..FilesConfig::new("sda", place.path())
    };
    let forgetful = FilesConfig {
        hot_objects: 0,
        ..config.clone()
    };
    let forgetful = FilesEngine::start(forgetful, World::real());
    let hang = Arc::new(RwLock::new(()));
    let engine = Arc::new(HangingEngine::new(
        FilesEngine::start(config, World::real()),
        hang.clone(),
    ));
    let server = ObjectServer::new(World::real(), options(), Arc::new(One(engine))).unwrap();
    let forgetful = ObjectServer::new(World::real(), options(), Arc::new(One(Arc::new(forgetful)))).unwrap();
    server.call(put(1.0, Body::whole("abcdefgh")).into()).await;
    tokio::time::sleep(Duration::from_millis(2_100)).await;
    let questions = || {
        let with = |name: &str, value: &str| call("GET", "sda", &[(name, value.to_owned())]);
        let etag = "\"e8dc4081b13434b45189a720b77b6818\"";
        [
            get(None),
            call("HEAD", "sda", &[]),
            get(Some("bytes=2-4")),
            get(Some("bytes=9-")),
            with("if-none-match", etag),
            with("if-match", "\"other\""),
        ]
    };
    let ask = async |server: &ObjectServer, question: RawCall| {
        let mut answer = server.call(question.into()).await;
        let headers = std::mem::take(answer.headers_mut());
        (answer.status(), headers, read(answer).await)
    };
    let mut ordinary = vec![];
    for question in questions() {
        ordinary.push(ask(&forgetful, question).await);
    }
    ask(&server, get(None)).await;
    let (release, held) = hold(&hang).await;
    for (question, expected) in questions().into_iter().zip(ordinary) {
        let answer = tokio::time::timeout(Duration::from_secs(60), ask(&server, question)).await;
        assert_eq!(answer.unwrap(), expected);
    }
    drop(release);
    held.join().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hung_drive_costs_only_its_own_requests() {
    struct OneHangs(Arc<HangingEngine<MemoryEngine>>);
    impl DeviceSource for OneHangs {
        fn open(&self, name: &str) -> Result<Arc<dyn ObjectEngine>, EngineError> {
            Ok(match name {
                "sda" => self.0.clone(),
                _ => Arc::new(MemoryEngine::new()),
            })
        }
    }
    let hang = Arc::new(RwLock::new(()));
    let hanging = Arc::new(HangingEngine::new(MemoryEngine::new(), hang.clone()));
    let options = ObjectServerOptions {
        threads_per_disk: 1,
        queue_per_disk: 1,
        ..options()
    };
    let server = ObjectServer::new(World::real(), options, Arc::new(OneHangs(hanging.clone()))).unwrap();
    let (release, held) = hold(&hang).await;
    let ask = |device: &'static str| {
        let server = server.clone();
        tokio::spawn(async move { server.call(call("GET", device, &[]).into()).await.status() })
    };
    let running = ask("sda");
    while hanging.begun.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    // There is a place for one of two to wait at.
    let (refused, queued) = match select(ask("sda"), ask("sda")).await {
        Either::Left(first) | Either::Right(first) => first,
    };
    assert_eq!(refused.unwrap(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(ask("sdb").await.unwrap(), StatusCode::NOT_FOUND);
    assert!(!running.is_finished() && !queued.is_finished());
    drop(release);
    held.join().unwrap();
    assert_eq!(running.await.unwrap(), StatusCode::NOT_FOUND);
    assert_eq!(queued.await.unwrap(), StatusCode::NOT_FOUND);
}
