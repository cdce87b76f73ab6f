//! The write lock of a key: what makes an old version current, and what deletes old versions only, exclude each other.
//!
//! Upkeep decides by a listing that a version is an old one. `PUT ?version-id=` may make it the current one meanwhile:
//! without the lock an acknowledged one would have its data deleted a moment later.
//! Always holds: a version that is to go unless it is current is looked at under the lock, and a link to an old version
//! is put under it. Neither waits for a client's own `DELETE ?version-id=`, which may be of the current version.
//! Deliberately absent: OpenStack's gateways, which take no locks, and its object servers, which know none.

use super::{Asked, ObjectVersioning};
use request_pipeline::{ClientRequest, ContainerInfo, LockRefusal, Next, WriteLock};
use std::time::Duration;

/// How long the lock lasts that is not taken again.
pub(super) const LEASE: Duration = Duration::from_secs(30);

impl ObjectVersioning {
    /// Takes the key's lock, for [`LEASE`]; nothing where this is no gateway.
    pub(super) async fn lock_key(
        &self,
        asked: &Asked,
        request: &ClientRequest,
        info: &ContainerInfo,
        next: &Next,
    ) -> Result<Option<WriteLock>, LockRefusal> {
        let mut random = [0; 16];
        self.world.random.fill(&mut random);
        let random = vocabulary::hex::encode(random);
        let lock = next.write_locks().and_then(|locks| {
            let own = (*asked.entity).clone();
            WriteLock::new(locks, own, info.policy, &random, &request.trans_id)
        });
        if let Some(lock) = &lock {
            lock.take(LEASE).await?;
        }
        Ok(lock)
    }
}
