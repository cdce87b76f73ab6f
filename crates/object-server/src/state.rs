//! [`ObjectServerState`]: what all verbs use.

use crate::devices::ObjectDevices;
use crate::exchange_slots::ExchangeSlots;
use crate::options::ObjectServerOptions;
use crate::updates::ListingUpdates;
use crate::write_locks::ObjectWriteLocks;
use storage_shell::WholeBodies;
use world::World;

/// What all verbs use.
pub(crate) struct ObjectServerState {
    pub(crate) world: World,
    pub(crate) options: ObjectServerOptions,
    pub(crate) devices: ObjectDevices,
    pub(crate) updates: ListingUpdates,
    pub(crate) exchange_slots: ExchangeSlots,
    /// Of upkeep.
    pub(crate) whole_bodies: WholeBodies,
    pub(crate) write_locks: ObjectWriteLocks,
}
