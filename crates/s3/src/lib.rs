//! The S3 dialect in front of Swift's verbs: the same buckets and objects for clients of either.
//!
//! Two halves of Swift's filter `s3api`: [`S3Front`] stands in front of authentication, reads a request and its
//! signature; [`S3Operations`] stands right behind authentication and makes requests of Swift's verbs of it. Where
//! things live follows OpenStack's s3api: a bucket is a container, a key the name of an object in it.
//! Always holds: nothing happens before a request has been read whole and found to ask for what is served; no body
//! becomes an object that is not what its client signed; access is decided by the account's own authorisation, or by
//! S3's own lists (`s3_acl`).
//! Deliberately absent: secrets (the authenticator verifies signatures), rings, nodes, disks.
//!
//! | question | file |
//! |---|---|
//! | is a request S3's, and what does it ask for | `front.rs`, `call.rs` |
//! | uploads by HTML forms | `post_form.rs` |
//! | who has signed it | `signature/` |
//! | what may pages of other origins ask and see | `cross_origin.rs`, rules of buckets in `bucket_cors/` |
//! | is a body what was signed, and its checksums right | `payload.rs`, `checksum.rs`, `chunked.rs` |
//! | … of an upload in parts | `checksum_of_parts.rs` |
//! | temporary keys | `sts.rs` |
//! | may a key do it, does a policy allow it | `authority/`, `operations/admission.rs` |
//! | S3's own access control lists | `acl/` |
//! | what becomes of it | `operations/` |
//! | codes, statuses and documents of refusals | `error.rs` |
//! | XML read and written | `xml.rs` |
//!
//! Tests: beside the code; real clients in `tests/clients`.

mod acl;
pub mod authority;
mod bucket_cors;
mod call;
mod checksum;
mod checksum_of_parts;
mod chunked;
mod cross_origin;
mod error;
mod front;
mod operations;
pub mod parsers;
mod payload;
mod post_form;
mod signature;
mod sts;
mod xml;

pub use front::S3Front;
pub use operations::{NotificationTargetNames, S3Operations};
pub use sts::SessionWish;
