//! Upkeep: background work that no request asks for.
//!
//! Comes in: devices, rings, peers, a pace. Goes out: requests to storage services, and devices with
//! less left to do. Every kind of upkeep is an [`UpkeepJob`] in one frame, [`Daemon`]: the frame knows when
//! and how fast, the job knows what.
//! Always holds: a job does one bounded step at a time and may be stopped between any two; nothing is
//! forgotten until every server that must have it has it; one damaged thing costs one line in the log, never
//! the pass; disks are worked on by threads of their own, one per device.
//! Deliberately absent: where the configuration is, process handling, formats on disk.
//!
//! | question | file |
//! |---|---|
//! | when, how fast, how far | `frame.rs` |
//! | which devices, and on which thread | `disks.rs` |
//! | databases that are damaged | `database_auditor.rs` |
//! | drives that fail | `drive_watch.rs` |
//! | bytes that rot | `object_auditor/` |
//! | figures for monitoring | `recon.rs` |
//! | which servers are asked, and how long they are waited for | `ring_client.rs` |
//! | requests through a gateway of upkeep's own | `internal_client.rs` |
//! | rows that no container server took at once | `object_updater/` |
//! | every primary has what the others have | `object_replicator/` |
//! | accounts and containers: all replicas equal | `database_replicator/`, `rsync.rs` |
//! | a program run to its end, in time | `program.rs` |
//! | what peers did not do, in few lines | `peer_failures.rs` |
//! | whose devices are ours | `local_server.rs` |
//! | what accounts know of their containers | `container_updater.rs` |
//! | objects whose time is over | `object_expirer/` |
//! | what deleted accounts leave behind | `account_reaper/` |
//! | objects in another policy than their container | `container_reconciler/` |
//! | what lifecycle rules of buckets make due | `container_lifecycle/` |
//! | events of buckets for webhooks | `container_notifier/` |
//! | containers that are kept equal to others elsewhere | `container_sync/` |
//!
//! Tests: `tests/`, with real files and services in this process.

mod account_reaper;
mod container_lifecycle;
mod container_notifier;
mod container_reconciler;
mod container_sync;
mod container_updater;
mod database_auditor;
mod database_replicator;
mod database_stamp;
mod disks;
mod drive_watch;
mod failure_memory;
mod faults;
mod frame;
mod internal_client;
mod local_server;
mod logged_paths;
mod object_auditor;
mod object_expirer;
mod object_replicator;
mod object_updater;
mod open_device;
mod peer_failures;
mod program;
mod recon;
mod ring_client;
mod rsync;
mod walk;
mod work_share;

pub use ::lifecycle::DayLength as LifecycleDay;
pub use account_reaper::{AccountReaper, ReaperOptions, ReaperTargets};
pub use container_lifecycle::{ContainerLifecycle, HeldKeyLock, KeyLockRefusal, KeyLocks, LifecycleOptions};
pub use container_notifier::{ContainerNotifier, NotifierOptions, Webhook, Webhooks};
pub use container_reconciler::{ContainerReconciler, MISPLACED_OBJECTS, ReconcilerOptions};
pub use container_sync::{ContainerSyncDaemon, HttpProxy, SyncOptions, SyncPeers, SyncRealm};
pub use container_updater::ContainerUpdater;
pub use database_auditor::DatabaseAuditor;
pub use database_replicator::{DatabaseReplicator, DatabaseReplicatorOptions};
pub use disks::Disks;
pub use drive_watch::DriveWatch;
pub use frame::{Daemon, DaemonStatus, PassProgress, StepPanicked, UpkeepJob, UpkeepPace, UpkeepStep};
pub use internal_client::{InternalClient, InternalRequest, ListedItem, UnexpectedStatus};
pub use local_server::LocalServer;
pub use object_auditor::{Boot, DarkData, DarkDataAction, ObjectAuditor, ObjectAuditorOptions, Scan};
pub use object_expirer::{Delays, ExpirerOptions, ObjectExpirer, ObjectServers};
pub use object_replicator::{
    ObjectReplicator, ObjectReplicatorOptions, ObjectRingClient, ObjectRsyncOptions, SyncMethod,
};
pub use object_updater::ObjectUpdater;
pub use program::end_all as end_programs;
pub use recon::{PASSES, ReconFile, ReconWriter};
pub use ring_client::RingClient;
pub use rsync::RsyncOptions;
