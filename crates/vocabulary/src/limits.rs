//! How long and how many: `[swift-constraints]` of `swift.conf`, with Swift's defaults.
//!
//! Always holds: the field names are the option names and the keys under `swift` in `/info`.

use crate::names::{EntityPath, NameError};

/// One field per option of `[swift-constraints]`. Names are counted in characters, all else in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the documented option names")]
pub struct Limits {
    pub max_file_size: u64,
    pub max_meta_name_length: usize,
    pub max_meta_value_length: usize,
    pub max_meta_count: usize,
    pub max_meta_overall_size: usize,
    pub max_header_size: usize,
    pub max_request_line: usize,
    pub extra_header_count: usize,
    pub max_object_name_length: usize,
    pub container_listing_limit: usize,
    pub account_listing_limit: usize,
    pub max_account_name_length: usize,
    pub max_container_name_length: usize,
    pub valid_api_versions: Vec<String>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_file_size: 5_368_709_122,
            max_meta_name_length: 128,
            max_meta_value_length: 256,
            max_meta_count: 90,
            max_meta_overall_size: 4096,
            max_header_size: 8192,
            max_request_line: 8192,
            extra_header_count: 0,
            max_object_name_length: 1024,
            container_listing_limit: 10_000,
            account_listing_limit: 10_000,
            max_account_name_length: 256,
            max_container_name_length: 256,
            valid_api_versions: vec!["v1".into(), "v1.0".into()],
        }
    }
}

/// Which name is too long, and how long it is allowed to be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// Not a name at all.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Longer than its limit.
    #[error("{what} name length of {length} longer than {limit}")]
    TooLong {
        /// `Account`, `Container` or `Object`.
        what: &'static str,
        /// Characters it has.
        length: usize,
        /// Characters it may have.
        limit: usize,
    },
}

impl Limits {
    /// Whether every name of the path is short enough.
    pub fn check_names(&self, path: &EntityPath) -> Result<(), LimitError> {
        let rows = [
            ("Account", Some(&path.account), self.max_account_name_length),
            ("Container", path.container.as_ref(), self.max_container_name_length),
            ("Object", path.object.as_ref(), self.max_object_name_length),
        ];
        for (what, name, limit) in rows {
            let length = name.map_or(0, |name| name.chars().count());
            if length > limit {
                return Err(LimitError::TooLong { what, length, limit });
            }
        }
        Ok(())
    }

    /// How many headers a request may have. OpenStack counts all metadata and 36 others, allows for 1.6 times
    /// as many, and counts the empty line, too.
    pub fn max_header_count(&self) -> usize {
        (self.max_meta_count + 36 + self.extra_header_count) * 16 / 10 - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_byte_over_is_refused() {
        let limits = Limits::default();
        let path = |n| EntityPath::split(&format!("a/c/{}", "x".repeat(n))).unwrap();
        assert!(limits.check_names(&path(1024)).is_ok());
        assert!(matches!(
            limits.check_names(&path(1025)),
            Err(LimitError::TooLong { what: "Object", .. })
        ));
    }
}
