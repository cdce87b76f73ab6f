//! Keystone: what a validated token says, and what OpenStack's `keystoneauth` makes of it.
//!
//! Two filters share the work, as in OpenStack. `authtoken` has a token validated ([`Token`]) and writes down who it
//! is for in request headers; `keystoneauth` reads those ([`Caller`]) and decides ([`KeystoneRules`]).
//! Always holds: pure; headers of a client that look like the written-down ones are named by [`is_identity_header`]
//! so that they can be taken off; roles are compared without regard to case.
//! Deliberately absent: asking Keystone, caching, clocks (the `authtoken` feature does that).
//!
//! | question | file |
//! |---|---|
//! | what a token says, as JSON and as headers | `token.rs` |
//! | who asks, from those headers | `caller.rs` |
//! | may they? | `rules.rs` |
//! | whose domain an account is in | `domain.rs` |
//!
//! Tests: beside the code, and `tests/openstack_keystone.rs` against the real filter.

mod caller;
mod domain;
mod rules;
mod token;

pub use caller::Caller;
pub use domain::{AccountDomain, STORED_HEADER as DOMAIN_STORED_HEADER, UNKNOWN as UNKNOWN_DOMAIN};
pub use rules::{DomainSource, KeystoneRules, KeystoneVerdict};
pub use token::{Token, TokenError, Whose, is_identity_header};
