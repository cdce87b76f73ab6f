//! Our object server on a loopback port, its devices in memory or in a directory.

use object_engine::{EngineError, FilesConfig, FilesEngine, MemoryEngine, ObjectEngine};
use object_server::{DeviceSource, ObjectServer, ObjectServerOptions};
use parking_lot::Mutex;
use peer::http_server::{Shutdown, serve};
use peer::{Peers, ServerOptions, StorageDoor};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use vocabulary::{HashPrefix, Policies, Policy, PolicyIndex};
use world::World;

/// Devices in memory.
#[derive(Default)]
pub struct MemoryDevices(Mutex<HashMap<String, Arc<dyn ObjectEngine>>>);

impl MemoryDevices {
    pub fn with(names: &[&str]) -> Arc<Self> {
        let devices = Self::default();
        for name in names {
            devices.0.lock().insert((*name).into(), Arc::new(MemoryEngine::new()));
        }
        Arc::new(devices)
    }
}

impl DeviceSource for MemoryDevices {
    fn open(&self, name: &str) -> Result<Arc<dyn ObjectEngine>, EngineError> {
        let found = self.0.lock().get(name).cloned();
        found.ok_or_else(|| EngineError::DeviceUnavailable {
            device: name.into(),
            why: "there is none".into(),
        })
    }
}

/// Devices in a directory, with the `files` engine.
pub struct FileDevices(pub PathBuf);

impl DeviceSource for FileDevices {
    fn open(&self, name: &str) -> Result<Arc<dyn ObjectEngine>, EngineError> {
        let config = FilesConfig {
            mount_check: false,
            ..FilesConfig::new(name, self.0.join(name))
        };
        Ok(Arc::new(FilesEngine::start(config, World::real())))
    }
}

/// A server that runs until it is dropped.
pub struct Ours {
    pub port: u16,
    pub server: Arc<ObjectServer>,
    shutdown: Shutdown,
    runtime: Option<tokio::runtime::Runtime>,
}

pub fn options() -> ObjectServerOptions {
    let list = vec![Policy::replication(0, "gold"), Policy::replication(1, "silver")];
    let policies = Policies::new(list, Some(PolicyIndex(0))).unwrap();
    let prefix = HashPrefix::new("before", "after").unwrap();
    ObjectServerOptions {
        client_timeout: Duration::from_secs(2),
        ..ObjectServerOptions::new(prefix, Arc::new(policies))
    }
}

impl Ours {
    pub fn start(source: Arc<dyn DeviceSource>) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let world = World::real();
        let server = ObjectServer::new(world.clone(), options(), source).unwrap();
        server.set_peers(Arc::new(Peers::new(world.clone())));
        let shutdown = Shutdown::default();
        let port = runtime.block_on(async {
            let listener = world.network.listen("127.0.0.1", 0, 64).unwrap();
            let port = listener.address().unwrap().port();
            let door = Arc::new(StorageDoor(server.clone()));
            tokio::spawn(serve(
                world.clone(),
                listener,
                door,
                ServerOptions::default(),
                shutdown.watch(),
            ));
            port
        });
        Self {
            port,
            server,
            shutdown,
            runtime: Some(runtime),
        }
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        self.shutdown.begin();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(Duration::from_secs(2));
        }
    }
}
