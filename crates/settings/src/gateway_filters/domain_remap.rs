//! The options of `domain_remap`.

use crate::declare::options;

options! {
    /// `[filter:domain_remap]`.
    pub struct DomainRemapSettings {
        /// Domains whose subdomains name accounts and containers.
        storage_domain: Vec<String> = "example.com",
        /// First part of the paths that are made.
        path_root: String = "v1",
        /// Reseller prefixes in their right case; any account is taken when empty.
        reseller_prefixes: Vec<String> = "AUTH",
        /// Prefix of accounts that are named without one; such names are left alone when empty.
        default_reseller_prefix: Option<String> = "",
        /// Take path_root off paths that clients send with it.
        mangle_client_paths: bool = "false",
    }
}
