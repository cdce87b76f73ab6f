//! The options of `versioned_writes`: both kinds of versioning are switched here.

use crate::declare::options;

options! {
    /// `[filter:versioned_writes]`.
    pub struct VersionedWritesSettings {
        /// Keep overwritten objects in the container that X-Versions-Location or X-History-Location names.
        allow_versioned_writes: bool = "false",
        /// Let clients turn on versions of objects with X-Versions-Enabled.
        allow_object_versioning: bool = "false",
    }
}
