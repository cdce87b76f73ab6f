//! Authentication and authorisation: which user sends a request, and what the user may do.
//!
//! Comes in: headers, the names a request is about, ACLs as stored. Goes out: an [`Identity`] or a
//! refusal, and a [`Decision`]. TempAuth is an [`Authenticator`]; Keystone
//! ([`keystone`]) is two filters.
//! Always holds: decisions are pure functions of their arguments; keys and tokens appear in no debug
//! output and are compared in constant time; whatever an ACL says, only names with a reseller prefix
//! of ours are ever allowed.
//! Deliberately absent: HTTP beyond header maps and status codes, fetching ACLs, clocks, randomness,
//! memcached (a [`TokenCache`] is handed in).
//!
//! | question | file |
//! |---|---|
//! | what an authenticator does | `authenticator.rs` |
//! | the user of a request | `user.rs` |
//! | may they? | `decide.rs` |
//! | `X-Container-Read`, `X-Container-Write` | `container_acl.rs`, `referrer.rs` |
//! | `X-Account-Access-Control` | `account_acl.rs` |
//! | Keystone: tokens, callers, rules | `keystone/` |
//! | signatures of S3 clients | `signed_request.rs`, `derived_keys.rs` |
//! | access keys that the cluster keeps, temporary ones | `access_key.rs` |
//! | users, tokens, `/auth/v1.0` | `tempauth.rs`, `grant.rs`, `tokens.rs` |
//!
//! Tests: beside the code, and `tests/` against OpenStack's TempAuth and keystoneauth.

pub mod access_key;
pub mod account_acl;
pub mod authenticator;
pub mod container_acl;
pub mod decide;
mod derived_keys;
mod grant;
pub mod keystone;
pub mod referrer;
pub mod signed_request;
pub mod tempauth;
pub mod tokens;
pub mod user;
pub mod wildcard;

pub use access_key::{KeyHolder, KeyLimits, KeyRecord};
pub use account_acl::AccountAcl;
pub use authenticator::{AuthReply, AuthRequest, Authenticator, Unauthorized, header_text, www_authenticate};
pub use container_acl::{AclError, AclKind, ContainerAcl, clean_container_acl};
pub use decide::{AccountAclSource, Decision, Prefixes, RequestFacts};
pub use signed_request::{SignatureRefusal, SignedIdentity, SignedRequest, SigningScope, VerifiedKey};
pub use tempauth::TempAuth;
pub use tokens::TokenCache;
pub use user::Identity;
