//! Access control: authentication, signed addresses, headers that only the cluster may send.
//!
//! | question | file |
//! |---|---|
//! | TempAuth | `tempauth.rs` |
//! | Keystone | `authtoken/`, `keystoneauth.rs`; signatures of S3 `s3token.rs` |
//! | access keys of S3 that the cluster keeps | `access_keys/` |
//! | what both authenticators share | `auth_shared.rs` |
//! | whether a client may see what a feature found by itself | `authorised.rs` |
//! | signed addresses and forms | `tempurl/`, `formpost/`, `signatures.rs` |
//! | headers that clients may not send or see | `gatekeeper.rs` |
//! | accounts that cannot be changed | `read_only.rs` |
//! | objects that other clusters sync here | `container_sync.rs`, `sync_realms.rs` |

pub mod access_keys;
mod auth_shared;
pub mod authorised;
pub mod authtoken;
pub mod container_sync;
pub mod formpost;
pub mod gatekeeper;
pub mod keystoneauth;
pub mod read_only;
pub mod s3token;
pub mod signatures;
pub mod sync_realms;
pub mod tempauth;
pub mod tempurl;
