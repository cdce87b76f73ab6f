//! The options of `read_only`.

use crate::declare::options;

options! {
    /// `[filter:read_only]`.
    pub struct ReadOnlySettings {
        /// Refuse writes to every account that does not say otherwise (X-Account-Sysmeta-Read-Only).
        read_only: bool = "false",
        /// Let DELETE through all the same.
        allow_deletes: bool = "false",
    }
}
