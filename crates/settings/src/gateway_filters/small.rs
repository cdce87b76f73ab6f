//! The options of filters that have few: `crossdomain`, `etag_quoter`, `name_check`.

use crate::declare::options;

options! {
    /// `[filter:crossdomain]`.
    pub struct CrossdomainSettings {
        /// What /crossdomain.xml says, without its frame; may go over several lines.
        cross_domain_policy: String = "<allow-access-from domain=\"*\" secure=\"false\" />",
    }
}

options! {
    /// `[filter:etag-quoter]`.
    pub struct EtagQuoterSettings {
        /// Quote the ETags of objects in accounts and containers that do not say.
        enable_by_default: bool = "false",
    }
}

options! {
    /// `[filter:name_check]`.
    pub struct NameCheckSettings {
        /// Characters that no path may have.
        forbidden_chars: String = "'\"`<>",
        /// Bytes that a path may have.
        maximum_length: usize = "255",
        /// A regular expression that no path may match; empty for none.
        forbidden_regexp: String = "/\\./|/\\.\\./|/\\.$|/\\.\\.$",
    }
}
