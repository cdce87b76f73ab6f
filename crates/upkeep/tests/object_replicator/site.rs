//! Four devices, three replicas, and an object server in this process that misbehaves on demand.

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use object_engine::{EngineError, FilesConfig, FilesEngine, ObjectEngine};
use object_server::{DeviceSource, ObjectServer, ObjectServerOptions};
use parking_lot::Mutex;
use peer::message::{DeleteObject, Message, PostObject, PutObject, RequestContext};
use peer::{Address, Body, Call, Peers, Response, Service, Target};
use placement::{Device, Ring, RingBuilder};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use upkeep::{Disks, LocalServer, ObjectReplicator, ObjectReplicatorOptions, ObjectRingClient, SyncMethod};
use vocabulary::{EntityPath, HashPrefix, Partition, Policies, PolicyIndex, Timestamp};
use world::World;

const ADDRESS: (&str, u16) = ("127.0.0.1", 6200);
const DEVICES: u32 = 4;
/// Long enough for the slowest machine, short enough for a test.
pub const PATIENCE: Duration = Duration::from_secs(5);

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
pub enum Mischief {
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
pub const DRIP: Duration = Duration::from_millis(100);

pub struct Door {
    server: Arc<ObjectServer>,
    pub mischief: Mutex<HashMap<String, Mischief>>,
    pub exchanges: AtomicUsize,
}

#[async_trait::async_trait]
impl Service for Door {
    async fn call(&self, call: Call) -> Response {
        let device = match call.message.address() {
            Address::Partition(target) => target.device.to_string(),
            Address::Entity(target) => target.device.to_string(),
            Address::Plain(_) => String::new(),
        };
        let verb = call.message.method();
        let is_exchange = verb.as_str() == "SSYNC";
        self.exchanges.fetch_add(usize::from(is_exchange), Ordering::Relaxed);
        let mischief = self.mischief.lock().get(&device).copied();
        let says = |text: Bytes| Response::new(Body::whole(text));
        match mischief {
            Some(Mischief::Refuses(status)) => {
                let mut response = Response::new(Body::empty());
                *response.status_mut() = StatusCode::from_u16(status).unwrap();
                response
            }
            Some(Mischief::Rubbish(to)) if verb.as_str() == to => says(Bytes::from_static(b"\x80rubbish\r\n")),
            Some(Mischief::Silent) => std::future::pending().await,
            Some(Mischief::Greedy) if is_exchange => {
                let wish = format!(":MISSING_CHECK: START\r\n{} dm\r\n", "0".repeat(32));
                says(wish.repeat(3).into())
            }
            Some(Mischief::Endless(line)) if is_exchange => {
                let lines = std::iter::repeat_with(move || Ok(Bytes::from_static(line.as_bytes())));
                Response::new(Body::stream(futures_util::stream::iter(lines), None))
            }
            Some(Mischief::Trickles(line)) if is_exchange => {
                let drip = move |()| async move {
                    tokio::time::sleep(DRIP).await;
                    Some((Ok(Bytes::from_static(line.as_bytes())), ()))
                };
                Response::new(Body::stream(Box::pin(futures_util::stream::unfold((), drip)), None))
            }
            _ => self.server.call(call).await,
        }
    }
}

pub struct Site {
    pub dir: tempfile::TempDir,
    pub door: Arc<Door>,
    builder: RingBuilder,
    ring: Arc<Ring>,
    pub hash: HashPrefix,
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
    pub fn new() -> Self {
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
            builder,
            hash,
            base: World::real().clock.now(),
        }
    }

    /// Changes the ring, for replicators that are made from now on.
    pub fn change_ring(&mut self, change: impl FnOnce(&mut RingBuilder)) {
        change(&mut self.builder);
        self.ring = Arc::new(Ring::new(self.builder.to_ring().unwrap()));
    }

    pub fn replicator(&self, change: impl FnOnce(&mut ObjectReplicatorOptions)) -> ObjectReplicator {
        self.replicator_on(Disks::new(World::real(), self.dir.path(), false), change)
    }

    /// A replicator that works on these devices.
    pub fn replicator_on(&self, disks: Disks, change: impl FnOnce(&mut ObjectReplicatorOptions)) -> ObjectReplicator {
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
        ObjectReplicator::new(disks, ring_client, own, options)
    }

    fn path(name: &str) -> EntityPath {
        EntityPath::account("a").with_container("c").with_object(name)
    }

    pub fn partition(&self, name: &str) -> Partition {
        self.ring.partition_of(&self.hash.object("a", "c", name).0)
    }

    /// Primaries first, then those who stand in.
    pub fn nodes(&self, name: &str) -> Vec<String> {
        let partition = self.partition(name);
        let primaries = self.ring.primaries(partition);
        let all = primaries.into_iter().chain(self.ring.handoffs(partition));
        all.map(|node| node.device.clone()).collect()
    }

    /// Seconds before now, counted from the beginning.
    pub fn at(&self, second: u64) -> Timestamp {
        Timestamp::from_seconds(self.base.seconds() - 1000 + second)
    }

    async fn send(&self, device: &str, name: &str, body: &[u8], message: impl FnOnce(Target) -> Message) {
        let target = Target {
            device: device.into(),
            partition: self.partition(name),
            path: Arc::new(Self::path(name)),
        };
        let call = Call::new(RequestContext::default(), message(target)).with_body(Body::whole(body.to_vec()));
        let status = self.door.server.call(call).await.status();
        assert!(status.is_success() || status == 404, "{status}");
    }

    pub async fn put(&self, device: &str, name: &str, second: u64, body: &[u8]) {
        let put = |target| PutObject {
            timestamp: self.at(second).into(),
            headers: headers(&[("content-type", "t/x"), ("x-object-meta-a", "\u{fc}")]),
            ..PutObject::new(target)
        };
        self.send(device, name, body, |target| put(target).into()).await;
    }

    pub async fn post(&self, device: &str, name: &str, second: u64, more: &[(&'static str, &str)]) {
        let post = |target| PostObject {
            timestamp: self.at(second).into(),
            headers: headers(more),
            ..PostObject::new(target)
        };
        self.send(device, name, b"", |target| post(target).into()).await;
    }

    pub async fn delete(&self, device: &str, name: &str, second: u64) {
        let delete = |target| DeleteObject {
            timestamp: self.at(second).into(),
            ..DeleteObject::new(target)
        };
        self.send(device, name, b"", |target| delete(target).into()).await;
    }

    /// `<hash>/<file>` → content and metadata, of the objects on a device.
    pub fn content(&self, device: &str) -> BTreeMap<String, (Vec<u8>, Vec<u8>)> {
        let mut found = BTreeMap::new();
        collect(&self.dir.path().join(device).join("objects"), &mut found);
        found
    }

    pub fn misbehave(&self, device: &str, mischief: Mischief) {
        self.door.mischief.lock().insert(device.into(), mischief);
    }

    /// Every object is on its primaries with the same files, and nowhere else.
    pub fn assert_whole(&self, names: &[String]) {
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

fn headers(pairs: &[(&'static str, &str)]) -> Arc<HeaderMap> {
    let value = |value: &str| HeaderValue::from_bytes(value.as_bytes()).unwrap();
    let headers = pairs
        .iter()
        .map(|(name, text)| (HeaderName::from_static(name), value(text)));
    Arc::new(headers.collect())
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

pub fn names(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("object {number}")).collect()
}
