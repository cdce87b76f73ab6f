//! The options of `container_sync`.

use crate::declare::options;

options! {
    /// `[filter:container_sync]`.
    pub struct ContainerSyncSettings {
        /// Let X-Container-Sync-To name any URL, not only //realm/cluster/account/container.
        allow_full_urls: bool = "true",
        /// Which //REALM/CLUSTER this cluster is, for /info.
        current: String = "",
    }
}
