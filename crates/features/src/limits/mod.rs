//! How much may be stored, how often may be written, and which names are refused.
//!
//! | question | file |
//! |---|---|
//! | bytes and objects of an account | `account_quotas.rs` |
//! | bytes and objects of a container | `container_quotas.rs` |
//! | requests per second | `ratelimit.rs` |
//! | names that are refused | `name_check.rs` |

pub mod account_quotas;
pub mod container_quotas;
pub mod name_check;
pub mod ratelimit;
