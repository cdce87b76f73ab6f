//! Listings as clients want them.
//!
//! | question | file |
//! |---|---|
//! | when is which form sent | `listing_formats.rs` |
//! | what `Accept` prefers | `listing_accept.rs` |
//! | rows as plain text, JSON and XML | `listing_rows.rs` |

pub mod listing_accept;
pub mod listing_formats;
pub mod listing_rows;
