//! Accounts and containers named by the host of a request.
//!
//! | question | file |
//! |---|---|
//! | the host's name begins with a container or account | `domain_remap.rs` |
//! | the host is an alias of one of the cluster's | `cname_lookup.rs`, `cname_lookup/` |

pub mod cname_lookup;
pub mod domain_remap;
