//! From server configurations to storage services.
//!
//! Always holds: a service finds its devices by itself, as they come and go; nothing here touches one
//! before a request does.

use crate::failure::{CommandFailure, no_threads};
use crate::metrics::{MeasuredService, MetricsSetup, SilenceMetrics};
use durable_fs::{Drives, FsError, Health, Reserve, StorageDevice};
use features::access::sync_realms::SyncRealms;
use listing_server::{Kind, ListingServer, ListingServerOptions};
use object_engine::{EngineError, FilesConfig, FilesEngine, Notice, ObjectEngine};
use object_server::{DeviceSource, ObjectServer, ObjectServerOptions, ReplicationOptions};
use peer::{Peers, Service};
use settings::server::{ServerCommon, StorageCommon};
use settings::{AccountConf, ContainerConf, FallocateReserve, ObjectConf, ObjectServerSettings, SwiftConf};

use std::path::Path;
use std::sync::Arc;
use telemetry::Statsd;
use telemetry::metrics::{MetricsSource, Role};
use world::{Listener, World};

/// What all storage services of this process are made with.
#[derive(Clone, Copy)]
pub struct Storage<'a> {
    /// The outside.
    pub world: &'a World,
    /// What the cluster agrees on.
    pub swift: &'a SwiftConf,
    /// How the drives of this process are.
    pub drives: &'a Arc<Drives>,
}

/// A storage service, and how it learns whom it can reach.
pub struct BuiltServer {
    /// For [`Peers::register`] and for HTTP.
    pub service: Arc<dyn Service>,
    statsd: Statsd,
    /// Whose devices it asks, where it keeps count of them.
    silence: Option<Arc<dyn MetricsSource>>,
    set_peers: Box<dyn FnOnce(Arc<Peers>)>,
    /// What is to be done when this process is asked to end, or to leave to a successor.
    pub leave: Box<dyn FnOnce() + Send>,
}

impl BuiltServer {
    /// With its requests counted.
    pub fn measured(self, metrics: &MetricsSetup, role: Role) -> Self {
        let requests = metrics.requests(role, self.statsd.clone());
        if let Some(silence) = &self.silence {
            metrics.add(silence.clone());
        }
        let service = MeasuredService::new(self.service, requests, metrics.world.clock.clone());
        Self { service, ..self }
    }

    /// From now on the service informs others of what it stored.
    pub fn connect(self, peers: Arc<Peers>) -> Arc<dyn Service> {
        (self.set_peers)(peers);
        self.service
    }
}

impl Storage<'_> {
    /// All three services, reached by function calls under the addresses their configurations name.
    pub fn all_near(
        self,
        object: &ObjectConf,
        container: &ContainerConf,
        account: &AccountConf,
        metrics: &MetricsSetup,
    ) -> Result<Arc<Peers>, CommandFailure> {
        let mut peers = Peers::new(self.world.clone());
        let services = [
            (&object.common, self.object_server(object)?, Role::Object),
            (&container.common, self.container_server(container)?, Role::Container),
            (&account.common, self.account_server(account)?, Role::Account),
        ]
        .map(|(common, made, role)| (common, made.measured(metrics, role)));
        for (common, made) in &services {
            peers.register(&common.bind_ip, common.bind_port, made.service.clone());
        }
        let peers = Arc::new(peers);
        for (_, made) in services {
            made.connect(peers.clone());
        }
        Ok(peers)
    }

    /// The object server that `conf` describes.
    pub fn object_server(self, conf: &ObjectConf) -> Result<BuiltServer, CommandFailure> {
        let settings = &conf.settings;
        let statsd = Statsd::open(&conf.statsd, Role::Object.word(), self.world);
        let options = ObjectServerOptions {
            statsd: statsd.clone(),
            limits: self.swift.limits.clone(),
            conn_timeout: settings.conn_timeout,
            node_timeout: settings.node_timeout,
            container_update_timeout: settings.container_update_timeout,
            silence_timeout: settings.silence_timeout,
            client_timeout: settings.client_timeout,
            min_transfer_rate: settings.min_transfer_rate,
            max_upload_time: settings.max_upload_time,
            allowed_headers: settings
                .allowed_headers
                .0
                .iter()
                .map(|name| name.to_ascii_lowercase())
                .collect(),
            log_requests: conf.storage.log_requests,
            replication: ReplicationOptions {
                serves: conf.storage.replication_server.unwrap_or(true),
                concurrency: settings.replication_concurrency,
                concurrency_per_device: settings.replication_concurrency_per_device,
                lock_timeout: settings.replication_lock_timeout,
                failure_threshold: settings.replication_failure_threshold,
                failure_ratio: settings.replication_failure_ratio,
                ..ReplicationOptions::default()
            },
            ..ObjectServerOptions::new(self.swift.hash.clone(), Arc::new(self.swift.policies.clone()))
        };
        let source = Devices {
            world: self.world.clone(),
            storage: conf.storage.clone(),
            settings: settings.clone(),
            drives: self.drives.clone(),
            statsd: statsd.clone(),
        };
        let server = ObjectServer::new(self.world.clone(), options, Arc::new(source)).map_err(no_threads)?;
        let (service, leaving): (Arc<dyn Service>, _) = (server.clone(), server.clone());
        let silence = SilenceMetrics {
            role: Role::Object,
            silence: server.silence(),
        };
        Ok(BuiltServer {
            service,
            statsd,
            silence: Some(Arc::new(silence)),
            set_peers: Box::new(move |peers| server.set_peers(peers)),
            leave: Box::new(move || leaving.leave()),
        })
    }

    /// The container server that `conf` describes.
    pub fn container_server(self, conf: &ContainerConf) -> Result<BuiltServer, CommandFailure> {
        let options = ListingServerOptions {
            conn_timeout: conf.settings.conn_timeout,
            node_timeout: conf.settings.node_timeout,
            silence_timeout: conf.settings.silence_timeout,
            allowed_sync_hosts: conf.settings.allowed_sync_hosts.clone(),
            sync_realms: self.sync_realms(&conf.common.swift_dir),
            min_transfer_rate: conf.settings.min_transfer_rate,
            ..self.listing_options(
                &conf.storage,
                Statsd::open(&conf.statsd, Role::Container.word(), self.world),
            )
        };
        self.listing_server(Kind::Container, options)
    }

    /// The realms that containers may be synced in: those with a key.
    fn sync_realms(&self, swift_dir: &Path) -> listing_server::AllowedSyncRealms {
        let realms = SyncRealms::new(swift_dir, self.world.clone());
        listing_server::AllowedSyncRealms::asked(move || {
            let known = realms.now();
            let with_key = known.realms.iter().filter(|(_, realm)| realm.key.is_some());
            with_key
                .map(|(name, realm)| (name.clone(), realm.clusters.keys().cloned().collect()))
                .collect()
        })
    }

    /// The account server that `conf` describes.
    pub fn account_server(self, conf: &AccountConf) -> Result<BuiltServer, CommandFailure> {
        let statsd = Statsd::open(&conf.statsd, Role::Account.word(), self.world);
        let options = ListingServerOptions {
            min_transfer_rate: conf.settings.min_transfer_rate,
            ..self.listing_options(&conf.storage, statsd)
        };
        self.listing_server(Kind::Account, options)
    }

    fn listing_options(self, storage: &StorageCommon, statsd: Statsd) -> ListingServerOptions {
        let SwiftConf { hash, policies, .. } = self.swift;
        ListingServerOptions {
            mount_check: storage.mount_check,
            drives: self.drives.clone(),
            fallocate_reserve: reserve(storage.fallocate_reserve),
            limits: self.swift.limits.clone(),
            auto_create_account_prefix: self.swift.auto_create_account_prefix.clone(),
            log_requests: storage.log_requests,
            statsd,
            replication_server: storage.replication_server,
            ..ListingServerOptions::new(storage.devices.clone(), hash.clone(), Arc::new(policies.clone()))
        }
    }

    fn listing_server(self, kind: Kind, options: ListingServerOptions) -> Result<BuiltServer, CommandFailure> {
        let statsd = options.statsd.clone();
        let server = ListingServer::new(self.world.clone(), kind, options).map_err(no_threads)?;
        let service: Arc<dyn Service> = server.clone();
        let silence = SilenceMetrics {
            role: Role::Container,
            silence: server.silence(),
        };
        Ok(BuiltServer {
            service,
            statsd,
            silence: (kind == Kind::Container).then(|| Arc::new(silence) as Arc<dyn MetricsSource>),
            set_peers: Box::new(move |peers| server.set_peers(peers)),
            leave: Box::new(|| {}),
        })
    }
}

fn reserve(setting: FallocateReserve) -> Reserve {
    match setting {
        FallocateReserve::Bytes(bytes) => Reserve::Bytes(bytes),
        FallocateReserve::Percent(percent) => Reserve::Percent(percent),
    }
}

/// Opens devices with the `files` engine.
struct Devices {
    world: World,
    storage: StorageCommon,
    settings: ObjectServerSettings,
    drives: Arc<Drives>,
    statsd: Statsd,
}

impl DeviceSource for Devices {
    fn open(&self, name: &str) -> Result<Arc<dyn ObjectEngine>, EngineError> {
        self.look_for(name)?;
        let config = FilesConfig {
            mount_check: self.storage.mount_check,
            fallocate: !self.storage.disable_fallocate,
            reserve: reserve(self.storage.fallocate_reserve),
            sync_every: self.settings.mb_per_sync << 20,
            keep_cache_size: self.settings.keep_cache_size,
            reclaim_age: self.settings.reclaim_age,
            etag_validate_percent: self.settings.etag_validate_pct,
            quarantined: self.quarantined(),
            ..FilesConfig::new(name, self.storage.devices.join(name))
        };
        Ok(Arc::new(FilesEngine::watched(
            config,
            self.world.clone(),
            self.health(name),
        )))
    }

    fn health(&self, name: &str) -> Arc<Health> {
        self.drives.health(&self.storage.devices.join(name))
    }
}

impl Devices {
    /// Whether there is such a device, before anything is remembered of it: requests may name any.
    fn look_for(&self, name: &str) -> Result<(), EngineError> {
        let root = self.storage.devices.join(name);
        let device = StorageDevice::new(self.world.files.clone(), self.world.random.clone(), root);
        match device.check_present(self.storage.mount_check) {
            Err(absent @ (FsError::Missing(_) | FsError::NotMounted(_))) => Err(EngineError::DeviceUnavailable {
                device: name.to_owned(),
                why: absent.to_string(),
            }),
            // What else is wrong with it, its health is to hear of.
            _ => Ok(()),
        }
    }

    /// Counts what goes to quarantine, where a counter is given.
    fn quarantined(&self) -> Notice {
        let statsd = self.statsd.clone();
        match statsd.is_wanted() {
            true => Notice::to(move || statsd.increment("quarantines")),
            false => Notice::default(),
        }
    }
}

/// Whether `address` can be listened on, before anything is made for it.
pub fn probe(address: std::net::SocketAddr) -> Result<(), CommandFailure> {
    match std::net::TcpListener::bind(address) {
        Ok(_) => Ok(()),
        Err(error) => Err(CommandFailure::Listen {
            address: address.to_string(),
            error,
        }),
    }
}

/// Listens, or says why not.
pub fn listen(world: &World, common: &ServerCommon, ip: &str, port: u16) -> Result<Box<dyn Listener>, CommandFailure> {
    world
        .network
        .listen(ip, port, common.backlog)
        .map_err(|error| CommandFailure::Listen {
            address: format!("{ip}:{port}"),
            error,
        })
}
