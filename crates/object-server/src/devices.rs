//! The devices of this node, as the object server opens them: each to an engine.
//!
//! The pool, its workers and its lanes are `storage_shell`'s.

use durable_fs::Health;
use object_engine::{EngineError, ListingIntents, ObjectEngine};
use std::ops::Deref;
use std::sync::Arc;
use storage_shell::{DeviceEngine, DeviceOpener, DevicePool, PooledDevice};
use vocabulary::Fault;

/// Opens devices by the names they have in the rings.
pub trait DeviceSource: Send + Sync {
    /// Opens the device; an error when it is missing, not mounted or unusable. May block.
    fn open(&self, name: &str) -> Result<Arc<dyn ObjectEngine>, EngineError>;

    /// The health of the drive, shared with everything else that judges it.
    fn health(&self, name: &str) -> Arc<Health> {
        Health::new(name)
    }
}

/// A device of the pool.
pub(crate) type ObjectDevice = PooledDevice<DeviceObjects>;
/// The devices of this node.
pub(crate) type ObjectDevices = DevicePool<SourceOpener>;

/// The objects of one device. The file of its intent log is put away when no change was made for a moment.
pub(crate) struct DeviceObjects(Arc<dyn ObjectEngine>);

impl Deref for DeviceObjects {
    type Target = dyn ObjectEngine;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl DeviceEngine for DeviceObjects {
    fn has_leftovers(&self) -> bool {
        self.listing_intents().is_some_and(ListingIntents::is_open)
    }

    fn clear_leftovers(&self) {
        if let Some(under_way) = self.listing_intents() {
            under_way.close_idle();
        }
    }
}

/// Opens devices for the pool.
pub(crate) struct SourceOpener(pub(crate) Arc<dyn DeviceSource>);

impl DeviceOpener for SourceOpener {
    type Engine = DeviceObjects;

    fn open(&self, name: &str) -> Result<DeviceObjects, Fault> {
        let opened = self.0.open(name).and_then(|engine| engine.check().map(|()| engine));
        let engine = opened?;
        tracing::info!("device {name} serves");
        Ok(DeviceObjects(engine))
    }

    fn health(&self, name: &str) -> Arc<Health> {
        self.0.health(name)
    }
}
