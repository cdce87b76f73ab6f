//! The options of `symlink`.

use crate::declare::options;

options! {
    /// `[filter:symlink]`.
    pub struct SymlinkSettings {
        /// Links that one read may go through; less than 1 means the default.
        symloop_max: i64 = "2",
    }
}
