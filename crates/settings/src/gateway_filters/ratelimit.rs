//! The options of `ratelimit`; those with a size in their name are read apart.

use crate::declare::{Options, Scope, options};
use crate::report::SettingsError;

options! {
    /// `[filter:ratelimit]`, but for the limits by a container's size.
    pub struct RatelimitOptions {
        /// Steps per second that the gateways' clocks agree on; no rate should be higher.
        clock_accuracy: f64 = "1000",
        /// Longest time a request is held back, in seconds; what would need longer is refused with 498.
        max_sleep_time_seconds: f64 = "60",
        /// Sleeps longer than this are logged; 0 logs none.
        log_sleep_time_seconds: f64 = "0",
        /// Seconds that a client may have been idle and catch up on.
        rate_buffer_seconds: f64 = "5",
        /// PUT and DELETE of containers per second and account; 0 for any number.
        account_ratelimit: f64 = "0",
        /// Accounts that are not limited. X-Account-Sysmeta-Global-Write-Ratelimit: WHITELIST says the same.
        account_whitelist: Vec<String> = "",
        /// Accounts that are refused. X-Account-Sysmeta-Global-Write-Ratelimit: BLACKLIST says the same.
        account_blacklist: Vec<String> = "",
    }
}

/// Containers from `size` objects on get `rate` requests per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SizeLimit {
    /// Objects.
    pub size: u64,
    /// Requests per second.
    pub rate: f64,
}

/// `[filter:ratelimit]`.
#[derive(Debug, Clone, PartialEq)]
pub struct RatelimitSettings {
    /// The options with names of their own.
    pub options: RatelimitOptions,
    /// `container_ratelimit_SIZE`, by size.
    pub container: Vec<SizeLimit>,
    /// `container_listing_ratelimit_SIZE`, by size.
    pub listing: Vec<SizeLimit>,
}

const CONTAINER: &str = "container_ratelimit_";
const LISTING: &str = "container_listing_ratelimit_";

impl RatelimitSettings {
    /// Reads all of it.
    pub fn read(scope: &Scope) -> Result<Self, SettingsError> {
        Ok(Self {
            options: RatelimitOptions::read(scope)?,
            container: limits(scope, CONTAINER)?,
            listing: limits(scope, LISTING)?,
        })
    }

    /// Whether an option's name holds a size.
    pub fn is_free_form(name: &str) -> bool {
        let size = name.strip_prefix(CONTAINER).or_else(|| name.strip_prefix(LISTING));
        size.is_some_and(|size| size.parse::<u64>().is_ok())
    }
}

fn limits(scope: &Scope, prefix: &str) -> Result<Vec<SizeLimit>, SettingsError> {
    let mut limits = Vec::new();
    for (name, value) in scope.iter() {
        let Some(size) = name.strip_prefix(prefix).and_then(|size| size.parse().ok()) else {
            continue;
        };
        let wrong = || scope.wrong(name, "requests per second, zero or more");
        let rate: f64 = value.parse().map_err(|_| wrong())?;
        if !rate.is_finite() || rate < 0.0 {
            return Err(wrong());
        }
        limits.push(SizeLimit { size, rate });
    }
    limits.sort_by_key(|limit| limit.size);
    Ok(limits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ini::Document;
    use std::path::Path;

    #[test]
    fn sizes_stand_in_names() {
        let text = "[filter:r]\ncontainer_ratelimit_50 = 100\ncontainer_ratelimit_10 = 0.5\ncontainer_listing_ratelimit_0 = 9\n";
        let document = Document::parse(Path::new("p.conf"), text).unwrap();
        let settings = RatelimitSettings::read(&Scope::paste(&document, "filter:r").unwrap()).unwrap();
        assert_eq!(
            settings.container,
            [SizeLimit { size: 10, rate: 0.5 }, SizeLimit { size: 50, rate: 100.0 }]
        );
        assert_eq!(settings.listing, [SizeLimit { size: 0, rate: 9.0 }]);
        assert!(RatelimitSettings::is_free_form("container_ratelimit_50"));
        assert!(!RatelimitSettings::is_free_form("container_ratelimit_x"));
        let text = "[filter:r]\ncontainer_ratelimit_50 = fast\n";
        let document = Document::parse(Path::new("p.conf"), text).unwrap();
        assert!(RatelimitSettings::read(&Scope::paste(&document, "filter:r").unwrap()).is_err());
    }
}
