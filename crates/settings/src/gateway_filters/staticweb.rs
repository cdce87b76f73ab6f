//! The options of `staticweb`.

use crate::declare::options;

options! {
    /// `[filter:staticweb]`.
    pub struct StaticwebSettings {
        /// Scheme and host of redirects where they cannot be guessed: https://, //www.example.com,
        /// http://www.example.com.
        url_base: String = "",
    }
}
