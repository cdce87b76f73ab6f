//! The options of `list_endpoints`.

use crate::declare::options;

options! {
    /// `[filter:list-endpoints]`.
    pub struct ListEndpointsSettings {
        /// What the paths it answers begin with.
        list_endpoints_path: String = "/endpoints/",
    }
}
