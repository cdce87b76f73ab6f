//! Whether a database has changed, without opening it.

use listing_engine::Location;
use std::hash::{DefaultHasher, Hash, Hasher};
use world::World;

/// Younger files may change again without their times showing it.
const TIME_GRAIN: u64 = 2;

/// What changes with every change of the database or its pending rows, and whether it is old enough
/// that it would change with the next one. Taken before the database is read.
pub(crate) fn stamp(world: &World, location: &Location) -> Option<(u64, bool)> {
    let database = world.files.info(&location.db_file()).ok()?;
    let pending = world.files.info(&location.pending_file()).ok();
    let mut hasher = DefaultHasher::new();
    let mut newest = 0;
    for info in [Some(database), pending].into_iter().flatten() {
        (info.inode, info.size, info.changed, info.modified).hash(&mut hasher);
        newest = newest.max(info.changed.0);
    }
    pending.is_some().hash(&mut hasher);
    let quiet_since = u64::try_from(newest).unwrap_or(0).saturating_add(TIME_GRAIN);
    Some((hasher.finish(), world.clock.now().seconds() > quiet_since))
}
