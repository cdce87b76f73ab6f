//! The options of `recon`.

use crate::declare::options;
use std::path::PathBuf;

options! {
    /// `[filter:recon]`. What stands in `[DEFAULT]` for the server holds for it too.
    pub struct ReconSettings {
        /// Directory of the figures that daemons leave.
        recon_cache_path: PathBuf = "/var/cache/swift",
        /// Directory that holds the devices to tell about.
        devices: PathBuf = "/srv/node",
        /// Directory of swift.conf and the rings whose checksums are reported.
        swift_dir: PathBuf = "/etc/swift",
    }
}
