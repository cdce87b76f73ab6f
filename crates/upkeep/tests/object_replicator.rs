//! Four devices, three replicas, and an object server in this process that can be told to misbehave.

#![allow(clippy::unwrap_used, reason = "a failed expectation is what a test is for")]

mod common;

use arc_swap::ArcSwap;
use bytes::Bytes;
use common::pass;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use object_engine::{EngineError, FilesConfig, FilesEngine, ObjectEngine};
use object_server::{DeviceSource, ObjectServer, ObjectServerOptions};
use parking_lot::Mutex;
use peer::{Address, Body, Call, Peers, RawCall, Response, Service, Target};
use placement::{Device, Ring, RingBuilder};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use upkeep::{Disks, LocalServer, ObjectReplicator, ObjectReplicatorOptions, ObjectRingClient, SyncMethod};
use vocabulary::{EntityPath, HashPrefix, Partition, Policies, PolicyIndex, Timestamp};
use world::World;

const ADDRESS: (&str, u16) = ("127.0.0.1", 6200);
const DEVICES: u32 = 4;
/// Long enough for the slowest machine, short enough for a test.
const PATIENCE: Duration = Duration::from_secs(5);

struct Files(PathBuf);

impl DeviceSource for Files {
    fn open(&self, name: &str) -> Result<Arc<dyn ObjectEngine>, EngineError> {
        let config = FilesConfig {
            mount_check: false,
            ..FilesConfig::new(name, self.0.join(name))
        };
        Ok(Arc::new(FilesEngine::start(config, World::real())))
    }
}

/// What a device does instead of answering.
#[derive(Clone, Copy, PartialEq)]
enum Mischief {
    Refuses(u16),
    /// To these verbs, and to no others, something that makes no sense.
    Rubbish(&'static str),
    Silent,
    /// Wishes for what was not offered.
    Greedy,
    /// Says this to SSYNC, without end.
    Endless(&'static str),
    /// The same, once in a while.
    Trickles(&'static str),
}

/// So often.
const DRIP: Duration = Duration::from_millis(100);

struct Door {
    server: Arc<ObjectServer>,
    mischief: Mutex<HashMap<String, Mischief>>,
    exchanges: AtomicUsize,
}

#[async_trait::async_trait]
impl Service for Door {
    async fn call(&self, call: Call) -> Response {
        let call = call.into_raw();
        let device = match &call.address {
            Address::Partition(target) => target.device.to_string(),
            Address::Entity(target) => target.device.to_string(),
            Address::Plain(_) => String::new(),
        };
        self.exchanges
            .fetch_add(usize::from(call.method.as_str() == "SSYNC"), Ordering::Relaxed);
        let mischief = self.mischief.lock().get(&device).copied();
        let says = |text: Bytes| Response::new(Body::whole(text));
        match mischief {
            Some(Mischief::Refuses(status)) => {
                let mut response = Response::new(Body::empty());
                *response.status_mut() = StatusCode::from_u16(status).unwrap();
                response
            }
            Some(Mischief::Rubbish(verb)) if call.method.as_str() == verb => {
                says(Bytes::from_static(b"\x80rubbish\r\n"))
            }
            Some(Mischief::Silent) => std::future::pending().await,
            Some(Mischief::Greedy) if call.method.as_str() == "SSYNC" => {
                let wish = format!(":MISSING_CHECK: START\r\n{} dm\r\n", "0".repeat(32));
                says(wish.repeat(3).into())
            }
            Some(Mischief::Endless(line)) if call.method.as_str() == "SSYNC" => {
                let lines = std::iter::repeat_with(move || Ok(Bytes::from_static(line.as_bytes())));
                Response::new(Body::stream(futures_util::stream::iter(lines), None))
            }
            Some(Mischief::Trickles(line)) if call.method.as_str() == "SSYNC" => {
                let drip = move |()| async move {
                    tokio::time::sleep(DRIP).await;
                    Some((Ok(Bytes::from_static(line.as_bytes())), ()))
                };
                Response::new(Body::stream(Box::pin(futures_util::stream::unfold((), drip)), None))
            }
            _ => self.server.call(call.into()).await,
        }
    }
}

struct Site {
    dir: tempfile::TempDir,
    door: Arc<Door>,
    ring: Arc<Ring>,
    hash: HashPrefix,
    base: Timestamp,
}

fn device(id: u32) -> Device {
    Device {
        region: 1,
        zone: id,
        weight: 1.0,
        ip: ADDRESS.0.into(),
        port: ADDRESS.1,
        replication_ip: ADDRESS.0.into(),
        replication_port: ADDRESS.1,
        device: format!("sd{id}"),
        ..Device::default()
    }
}

impl Site {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut builder = RingBuilder::new(4, 3.0, 1).unwrap();
        for id in 0..DEVICES {
            builder.add(device(id)).unwrap();
            std::fs::create_dir(dir.path().join(format!("sd{id}"))).unwrap();
        }
        builder.rebalance(1, 0).unwrap();
        let hash = HashPrefix::new("a", "b").unwrap();
        let options = ObjectServerOptions::new(hash.clone(), Arc::new(Policies::default()));
        let source = Arc::new(Files(dir.path().to_owned()));
        let server = ObjectServer::new(World::real(), options, source).unwrap();
        let door = Door {
            server,
            mischief: Mutex::default(),
            exchanges: AtomicUsize::default(),
        };
        Self {
            dir,
            door: Arc::new(door),
            ring: Arc::new(Ring::new(builder.to_ring().unwrap())),
            hash,
            base: World::real().clock.now(),
        }
    }

    fn replicator(&self, change: impl FnOnce(&mut ObjectReplicatorOptions)) -> ObjectReplicator {
        let mut peers = Peers::new(World::real());
        peers.register(ADDRESS.0, ADDRESS.1, self.door.clone());
        let ring = Arc::new(ArcSwap::new(self.ring.clone()));
        let ring_client = ObjectRingClient {
            rings: BTreeMap::from([(PolicyIndex::LEGACY, ring)]),
            hash: self.hash.clone(),
            peers: Arc::new(peers),
        };
        let own = LocalServer {
            addresses: vec![ADDRESS.0.parse().unwrap()],
            port: ADDRESS.1,
        };
        let mut options = ObjectReplicatorOptions {
            method: SyncMethod::Ssync,
            concurrency: 4,
            workers: 0,
            conn_timeout: PATIENCE,
            node_timeout: PATIENCE,
            http_timeout: PATIENCE,
            reclaim_age: Duration::from_secs(604_800),
            handoffs_first: true,
            handoff_delete: None,
            partitions: vec![],
            policies: vec![],
        };
        change(&mut options);
        let disks = Disks::new(World::real(), self.dir.path(), false);
        ObjectReplicator::new(disks, ring_client, own, options)
    }

    fn path(name: &str) -> EntityPath {
        EntityPath::account("a").with_container("c").with_object(name)
    }

    fn partition(&self, name: &str) -> Partition {
        self.ring.partition_of(&self.hash.object("a", "c", name).0)
    }

    /// Primaries first, then those who stand in.
    fn nodes(&self, name: &str) -> Vec<String> {
        let partition = self.partition(name);
        let primaries = self.ring.primaries(partition);
        let all = primaries.into_iter().chain(self.ring.handoffs(partition));
        all.map(|node| node.device.clone()).collect()
    }

    /// Seconds before now, counted from the beginning.
    fn at(&self, second: u64) -> Timestamp {
        Timestamp::from_seconds(self.base.seconds() - 1000 + second)
    }

    async fn ask(
        &self,
        method: Method,
        device: &str,
        name: &str,
        second: u64,
        more: &[(&'static str, &str)],
        body: &[u8],
    ) {
        let mut headers = HeaderMap::new();
        headers.insert(
            "x-timestamp",
            HeaderValue::from_str(&self.at(second).internal()).unwrap(),
        );
        for (name, value) in more {
            headers.insert(*name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        let target = Target {
            device: device.into(),
            partition: Partition(self.partition(name).0),
            path: Arc::new(Self::path(name)),
        };
        let call = RawCall::new(method, target, headers).with_body(Body::whole(body.to_vec()));
        let status = self.door.server.call(call.into()).await.status();
        assert!(status.is_success() || status == 404, "{status}");
    }

    async fn put(&self, device: &str, name: &str, second: u64, body: &[u8]) {
        let more = [("content-type", "t/x"), ("x-object-meta-a", "\u{fc}")];
        self.ask(Method::PUT, device, name, second, &more, body).await;
    }

    async fn delete(&self, device: &str, name: &str, second: u64) {
        self.ask(Method::DELETE, device, name, second, &[], b"").await;
    }

    /// `<hash>/<file>` → content and metadata, of the objects on a device.
    fn content(&self, device: &str) -> BTreeMap<String, (Vec<u8>, Vec<u8>)> {
        let mut found = BTreeMap::new();
        collect(&self.dir.path().join(device).join("objects"), &mut found);
        found
    }

    fn misbehave(&self, device: &str, mischief: Mischief) {
        self.door.mischief.lock().insert(device.into(), mischief);
    }

    /// Every object is on its primaries with the same files, and nowhere else.
    fn assert_whole(&self, names: &[String]) {
        for name in names {
            let hash = self.hash.object("a", "c", name).hex();
            let nodes = self.nodes(name);
            let of = |device: &String| {
                let mut content = self.content(device);
                content.retain(|path, _| path.starts_with(&hash));
                content
            };
            let first = of(&nodes[0]);
            assert!(!first.is_empty(), "{name}");
            for node in &nodes[1..3] {
                assert_eq!(of(node), first, "{name} on {node}");
            }
            assert!(of(&nodes[3]).is_empty(), "{name} is still on {}", nodes[3]);
        }
    }
}

fn collect(place: &Path, found: &mut BTreeMap<String, (Vec<u8>, Vec<u8>)>) {
    let Ok(entries) = std::fs::read_dir(place) else {
        return;
    };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, found);
            continue;
        }
        let names: Vec<_> = path.iter().rev().take(2).map(|name| name.to_string_lossy()).collect();
        if names[1].len() == 32 {
            let mut metadata = vec![0; 4096];
            let file = World::real().files.open(&path, world::files::Purpose::Read).unwrap();
            let length = file.get_attribute("user.swift.metadata", &mut metadata).unwrap();
            metadata.truncate(length);
            let name = format!("{}/{}", names[1], names[0]);
            found.insert(name, (std::fs::read(&path).unwrap(), metadata));
        }
    }
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("object {number}")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_device_is_filled_again_and_then_nothing_is_left_to_do() {
    let site = Site::new();
    let names = names(20);
    for (number, name) in names.iter().enumerate() {
        let body = vec![b'x'; if number == 3 { 700_000 } else { number }];
        for node in &site.nodes(name)[..3] {
            site.put(node, name, 1, &body).await;
        }
    }
    let lost = site.dir.path().join("sd1");
    std::fs::remove_dir_all(lost.join("objects")).unwrap();
    let mut replicator = site.replicator(|_| {});
    let (done, failed) = pass(&mut replicator).await;
    assert!(done > 0 && failed == 0, "{done} {failed}");
    site.assert_whole(&names);
    for _ in 0..11 {
        assert_eq!(pass(&mut replicator).await, (0, 0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_newest_wins_tombstones_and_posts_included() {
    let site = Site::new();
    let names = names(4);
    for name in &names {
        for node in &site.nodes(name)[..3] {
            site.put(node, name, 1, b"old").await;
        }
    }
    let nodes = |name: &String| site.nodes(name);
    site.delete(&nodes(&names[0])[0], &names[0], 5).await;
    site.put(&nodes(&names[1])[1], &names[1], 6, b"new").await;
    site.delete(&nodes(&names[1])[2], &names[1], 5).await;
    let post = [("content-type", "t/y"), ("x-object-meta-b", "c")];
    site.ask(Method::POST, &nodes(&names[2])[2], &names[2], 7, &post, b"")
        .await;
    site.ask(
        Method::POST,
        &nodes(&names[2])[0],
        &names[2],
        8,
        &[("x-object-meta-d", "e")],
        b"",
    )
    .await;
    // A deletion that is known on a handoff only.
    site.delete(&nodes(&names[3])[3], &names[3], 9).await;
    let mut replicator = site.replicator(|_| {});
    for _ in 0..3 {
        assert_eq!(pass(&mut replicator).await.1, 0);
    }
    assert_eq!(pass(&mut replicator).await, (0, 0));
    site.assert_whole(&names);
    let ends = |name: &String| {
        let hash = site.hash.object("a", "c", name).hex();
        let content = site.content(&site.nodes(name)[0]);
        let mine = content.keys().filter(|path| path.starts_with(&hash)).cloned();
        mine.map(|path| path.rsplit('.').next().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(ends(&names[0]), ["ts"]);
    assert_eq!(ends(&names[1]), ["data"]);
    assert_eq!(ends(&names[2]), ["data", "meta"]);
    assert_eq!(ends(&names[3]), ["ts"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handoff_goes_only_when_all_primaries_have_it() {
    let site = Site::new();
    let name = "handed off".to_owned();
    let nodes = site.nodes(&name);
    let handoff = nodes[3].clone();
    site.put(&handoff, &name, 1, b"only here").await;
    let mut replicator = site.replicator(|options| {
        (options.node_timeout, options.http_timeout) = (Duration::from_secs(2), Duration::from_secs(2));
    });
    for mischief in [
        Mischief::Refuses(507),
        Mischief::Refuses(500),
        Mischief::Rubbish("SSYNC"),
        Mischief::Greedy,
        Mischief::Silent,
    ] {
        for device in &nodes[..3] {
            site.misbehave(device, mischief);
        }
        // Whatever two of them say, the third does not have it.
        for device in &nodes[..2] {
            site.door.mischief.lock().remove(device);
            let began = Instant::now();
            let (_, failed) = pass(&mut replicator).await;
            assert!(failed > 0);
            assert!(began.elapsed() < Duration::from_secs(40));
            assert_eq!(site.content(&handoff).len(), 1);
        }
        assert_eq!(site.content(&nodes[0]).len(), 1);
    }
    site.door.mischief.lock().clear();
    let mut replicator = site.replicator(|_| {});
    assert_eq!(pass(&mut replicator).await.1, 0);
    site.assert_whole(&[name]);
    let partition = site.partition("handed off").to_string();
    assert!(!site.dir.path().join(handoff).join("objects").join(partition).exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn with_handoffs_first_nothing_else_is_copied_before_they_are_home() {
    let site = Site::new();
    let names = names(20);
    let (away, rest) = names.split_first().unwrap();
    site.put(&site.nodes(away)[3], away, 1, b"only here").await;
    let mut names = vec![away.clone()];
    names.extend(
        rest.iter()
            .filter(|name| site.partition(name) != site.partition(away))
            .cloned(),
    );
    for name in &names[1..] {
        site.put(&site.nodes(name)[0], name, 1, b"on one").await;
    }
    let before = site.content(&site.nodes(away)[0]);
    let down = site.nodes(away)[1].clone();
    site.misbehave(&down, Mischief::Refuses(500));
    let mut replicator = site.replicator(|options| options.handoffs_first = true);
    for _ in 0..2 {
        let (done, failed) = pass(&mut replicator).await;
        assert_eq!((done, failed), (0, 1));
    }
    // The handoff alone has travelled.
    assert_eq!(site.content(&site.nodes(away)[0]).len(), before.len() + 1);
    site.door.mischief.lock().clear();
    let mut passes = 1;
    while pass(&mut replicator).await != (0, 0) {
        passes += 1;
        assert!(passes < 10, "it does not come to rest");
    }
    site.assert_whole(&names);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_in_the_place_of_a_partition_goes_to_quarantine_and_holds_up_nothing() {
    let site = Site::new();
    let nodes = site.nodes("o");
    let partition = site.partition("o").to_string();
    site.put(&nodes[0], "o", 1, b"on one").await;
    // One belongs there, the other does not.
    for device in [&nodes[1], &nodes[3]] {
        let objects = site.dir.path().join(device).join("objects");
        std::fs::create_dir_all(&objects).unwrap();
        std::fs::write(objects.join(&partition), b"foreign").unwrap();
    }
    let mut replicator = site.replicator(|options| options.handoffs_first = true);
    for _ in 0..2 {
        pass(&mut replicator).await;
    }
    site.assert_whole(&["o".into()]);
    for device in [&nodes[1], &nodes[3]] {
        let quarantine = site.dir.path().join(device).join("quarantined/objects");
        let kept = quarantine.join(format!("objects-{partition}"));
        assert_eq!(std::fs::read(kept).unwrap(), b"foreign");
    }
}

/// A POST on a handoff whose body is not there (moved away while the POST came).
async fn post_alone(site: &Site, device: &str, name: &str, second: u64) {
    site.put(device, name, 1, b"body").await;
    let post = [("content-type", "t/y"), ("x-object-meta-b", "\u{fc}")];
    site.ask(Method::POST, device, name, second, &post, b"").await;
    let hash = site.hash.object("a", "c", name).hex();
    let partition = site.partition(name).to_string();
    let directory = site.dir.path().join(device).join("objects").join(partition);
    let data = format!("{}.data", site.at(1));
    std::fs::remove_file(directory.join(&hash[29..]).join(&hash).join(data)).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_without_its_body_goes_to_the_primaries_and_its_partition_with_it() {
    let site = Site::new();
    let names = ["on all", "on one", "newer", "deleted", "posted"].map(str::to_owned);
    for name in &names {
        let nodes = site.nodes(name);
        post_alone(&site, &nodes[3], name, 5).await;
        for node in &nodes[..3] {
            match name.as_str() {
                "on one" if *node != nodes[1] => {}
                "newer" => site.put(node, name, 7, b"newer").await,
                "deleted" => site.delete(node, name, 7).await,
                _ => site.put(node, name, 1, b"body").await,
            }
            if name == "posted" {
                let post = [("x-object-meta-c", "d")];
                site.ask(Method::POST, node, name, 7, &post, b"").await;
            }
        }
    }
    let mut replicator = site.replicator(|_| {});
    // Each is left for the next pass once: only then is it known that it has arrived.
    for _ in 0..5 {
        pass(&mut replicator).await;
    }
    assert_eq!(pass(&mut replicator).await, (0, 0));
    site.assert_whole(&names);
    let files = |name: &String| {
        let hash = site.hash.object("a", "c", name).hex();
        let content = site.content(&site.nodes(name)[0]);
        let mine = content
            .keys()
            .filter_map(|path| path.strip_prefix(&hash))
            .map(str::to_owned);
        mine.collect::<Vec<_>>()
    };
    for name in &names[..2] {
        let there = files(name);
        assert_eq!(there[0], format!("/{}.data", site.at(1)), "{name}");
        assert!(
            there.len() == 2 && there[1].starts_with(&format!("/{}", site.at(5))),
            "{name}: {there:?}"
        );
    }
    assert_eq!(files(&names[2]), [format!("/{}.data", site.at(7))]);
    assert_eq!(files(&names[3]), [format!("/{}.ts", site.at(7))]);
    // Of the older POST the content type counts still.
    let of_both = format!("/{}-{:x}.meta", site.at(7), site.at(7).ticks() - site.at(5).ticks());
    assert_eq!(files(&names[4])[1], of_both);
    for name in &names {
        let left = site.dir.path().join(&site.nodes(name)[3]).join("objects");
        assert!(!left.join(site.partition(name).to_string()).exists(), "{name}");
    }
    let hash = site.hash.object("a", "c", &names[0]).hex();
    let content = site.content(&site.nodes(&names[0])[2]);
    let (_, (_, metadata)) = content.iter().rfind(|(path, _)| path.starts_with(&hash)).unwrap();
    let said = String::from_utf8_lossy(metadata);
    assert!(said.contains("X-Object-Meta-B") && said.contains("t/y") && said.contains(&site.at(5).internal()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_whose_body_nobody_has_is_kept_until_it_is_too_old() {
    let site = Site::new();
    let name = "lost".to_owned();
    let handoff = site.nodes(&name)[3].clone();
    post_alone(&site, &handoff, &name, 5).await;
    let mut replicator = site.replicator(|_| {});
    for _ in 0..3 {
        assert_eq!(pass(&mut replicator).await, (0, 1));
    }
    assert_eq!(site.content(&handoff).len(), 1);
    let mut replicator = site.replicator(|options| options.reclaim_age = Duration::from_secs(500));
    assert_eq!(pass(&mut replicator).await.1, 0);
    let left = site.dir.path().join(&handoff).join("objects");
    assert!(!left.join(site.partition(&name).to_string()).exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_something_new_offers_it_before_others_offer_what_they_have() {
    let site = Site::new();
    let names = names(12);
    for name in &names {
        for node in &site.nodes(name)[..3] {
            site.put(node, name, 1, b"old").await;
        }
    }
    let mut replicator = site.replicator(|_| {});
    assert_eq!(pass(&mut replicator).await.1, 0);
    let mut partitions: Vec<Partition> = names.iter().map(|name| site.partition(name)).collect();
    partitions.sort_unstable();
    partitions.dedup();
    for name in &names {
        site.put(&site.nodes(name)[2], name, 2, b"new").await;
    }
    let before = site.door.exchanges.load(Ordering::Relaxed);
    assert_eq!(pass(&mut replicator).await.1, 0);
    site.assert_whole(&names);
    let exchanges = site.door.exchanges.load(Ordering::Relaxed) - before;
    assert_eq!(exchanges, 2 * partitions.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn fewer_primaries_are_enough_when_the_operator_says_so() {
    let site = Site::new();
    let nodes = site.nodes("o");
    site.put(&nodes[3], "o", 1, b"only here").await;
    site.misbehave(&nodes[1], Mischief::Refuses(507));
    let mut replicator = site.replicator(|options| options.handoff_delete = Some(2));
    pass(&mut replicator).await;
    assert!(site.content(&nodes[3]).is_empty());
    assert_eq!(site.content(&nodes[0]).len(), 1);
    assert_eq!(site.content(&nodes[2]).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_that_says_rubbish_costs_nothing_else() {
    let site = Site::new();
    let names = names(6);
    for name in &names {
        site.put(&site.nodes(name)[0], name, 1, b"x").await;
    }
    site.misbehave(&site.nodes(&names[0])[1], Mischief::Rubbish("REPLICATE"));
    let mut replicator = site.replicator(|_| {});
    let (_, failed) = pass(&mut replicator).await;
    assert!(failed > 0);
    site.door.mischief.lock().clear();
    assert_eq!(pass(&mut replicator).await.1, 0);
    site.assert_whole(&names);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_that_says_a_little_now_and_then_is_left_after_a_time_out() {
    let site = Site::new();
    site.put(&site.nodes("o")[0], "o", 1, b"x").await;
    for said in ["x", "\r\n"] {
        site.misbehave(&site.nodes("o")[1], Mischief::Trickles(said));
        let mut replicator = site.replicator(|options| options.http_timeout = DRIP * 5);
        let (_, failed) = tokio::time::timeout(PATIENCE, pass(&mut replicator)).await.unwrap();
        assert!(failed > 0, "{said:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_that_never_ends_is_left_soon() {
    let site = Site::new();
    site.put(&site.nodes("o")[0], "o", 1, b"x").await;
    let peer = &site.nodes("o")[1];
    for said in ["\r\n", ":UPDATES: START\r\n", ":MISSING_CHECK: START\r\n\r\n", "x"] {
        site.misbehave(peer, Mischief::Endless(said));
        let mut replicator = site.replicator(|_| {});
        let (_, failed) = tokio::time::timeout(PATIENCE * 4, pass(&mut replicator)).await.unwrap();
        assert!(failed > 0, "{said:?}");
    }
    site.door.mischief.lock().clear();
    assert_eq!(pass(&mut site.replicator(|_| {})).await.1, 0);
    site.assert_whole(&["o".into()]);
}
