//! Links to the databases of synced containers: `<device>/sync_containers/<partition>/<suffix>/<hash>/<hash>.db`.
//!
//! Container-sync walks these instead of all databases of a device. A link is as OpenStack Swift makes it: it
//! leads to the database file by its whole path, and a walk of the links goes by their own places.
//! Always holds: a database whose metadata names a target and a key has a link once [`Broker::keep_sync_link`] has
//! been called after them, or else once its replicator has passed; a database that is removed takes its
//! link along. A link may outlive its database after a crash: [`Location::drop_sync_link`] is for that.
//! Deliberately absent: what syncing does (`upkeep`).

use crate::{Broker, DeviceRoot, Error, Kind, Location, walk};
use std::io;
use std::path::PathBuf;
use vocabulary::Partition;

/// Beside `containers` on a device.
const DIRECTORY: &str = "sync_containers";
const SYNC_TO: &str = "X-Container-Sync-To";
const SYNC_KEY: &str = "X-Container-Sync-Key";

impl Location {
    /// The partitions with synced containers on a device.
    pub fn synced_partitions(device: &DeviceRoot) -> io::Result<Vec<Partition>> {
        walk::partitions(device.disk(), &device.path().join(DIRECTORY), &mut vec![])
    }

    /// The places of containers that are linked as synced.
    pub fn synced_in_partition(device: &DeviceRoot, partition: Partition) -> io::Result<Vec<Location>> {
        let directory = device.path().join(DIRECTORY).join(partition.to_string());
        let hashes = walk::hashes(device.disk(), &directory, &mut vec![])?;
        let places = hashes
            .into_iter()
            .map(|hash| Location::new(device.clone(), Kind::Container, partition, hash));
        Ok(places.collect())
    }

    /// Takes the link to this place away, if there is one, and directories that are empty then.
    pub fn drop_sync_link(&self) -> Result<(), Error> {
        self.disk().unlink(&self.sync_link(), 4)
    }

    fn sync_link(&self) -> PathBuf {
        let mut link = self.device().join(DIRECTORY);
        link.push(self.partition().to_string());
        link.push(self.hash().suffix());
        link.push(self.hash_hex());
        link.push(format!("{}.db", self.hash_hex()));
        link
    }
}

impl Broker {
    /// Makes the link or takes it away, as the container's metadata says.
    pub fn keep_sync_link(&self) -> Result<(), Error> {
        let location = self.location();
        if location.kind() != Kind::Container {
            return Ok(());
        }
        let metadata = self.metadata()?;
        let (to, key) = (metadata.get(SYNC_TO), metadata.get(SYNC_KEY));
        if to.is_none() && key.is_none() {
            // Never synced, as nearly all are.
            return Ok(());
        }
        let is_set = |item: Option<&crate::MetadataItem>| item.is_some_and(|item| !item.value.is_empty());
        match is_set(to) && is_set(key) && !self.is_deleted()? {
            true => location
                .disk()
                .link(&location.sync_link(), &location.db_file(), location.root()),
            false => location.drop_sync_link(),
        }
    }
}
