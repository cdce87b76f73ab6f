//! One fuzz target per parser of bytes that strangers, peers, drives or operators' files bring.
//!
//! Comes in: any bytes. Goes out: nothing, or a panic with what does not hold. A target asserts more than that
//! nothing panics: what was read is written and read again alike, two readers of one format agree, the size of the
//! pieces in which bytes come changes nothing, output is bounded.
//! Always holds: a target is a plain function, deterministic, without state that outlives a call; so an ordinary
//! test replays the corpus (`tests/corpus.rs`), and any engine can drive it.
//! Deliberately absent: the engine (`engine/`, a workspace of its own); the product never depends on this crate.
//!
//! | question | file |
//! |---|---|
//! | heads, ranges, conditions, names, `Accept` | `requests.rs`, heads in `heads.rs` |
//! | ACLs, tokens, signed addresses | `access.rs` |
//! | forms, MIME, archives, manifests, lists | `uploads.rs` |
//! | what S3's clients send | `s3.rs` |
//! | pickles, metadata, records on devices | `stored.rs` |
//! | rings, builders, composite files | `rings.rs` |
//! | what peers say: SSYNC, REPLICATE, DELETES, listings, memcached | `backend.rs` |
//! | requests inside an SSYNC exchange | `exchanges.rs` |
//! | databases that peers send | `databases.rs` |
//! | logs of listing updates under way | `intents.rs` |
//! | configuration | `configuration.rs` |
//! | pieces, texts, running what is asynchronous | `input.rs` |
//!
//! How to run them, and what they found: `docs/fuzzing.md`.

mod access;
mod backend;
mod configuration;
mod databases;
mod exchanges;
mod heads;
mod input;
mod intents;
mod requests;
mod rings;
mod s3;
mod stored;
mod uploads;

/// A target.
#[derive(Clone, Copy)]
pub struct FuzzTarget {
    /// Its name, that of its folder in `corpus/` too.
    pub name: &'static str,
    /// Panics when something does not hold of these bytes.
    pub run: fn(&[u8]),
}

const fn of(name: &'static str, run: fn(&[u8])) -> FuzzTarget {
    FuzzTarget { name, run }
}

/// All targets.
pub const TARGETS: &[FuzzTarget] = &[
    of("accept", requests::accept),
    of("account_acl", access::account_acl),
    of("async_pending", stored::async_pending),
    of("builder", rings::builder),
    of("bulk_list", uploads::bulk_list),
    of("composite", rings::composite),
    of("conditions", requests::conditions),
    of("configuration", configuration::configuration),
    of("container_acl", access::container_acl),
    of("database", databases::database),
    of("deletes", backend::deletes),
    of("formpost", uploads::formpost),
    of("heads", heads::heads),
    of("intent_log", intents::intent_log),
    of("keystone_token", access::keystone_token),
    of("listings", backend::listings),
    of("memcache", backend::memcache),
    of("metadata", stored::metadata),
    of("mime", uploads::mime),
    of("names", requests::names),
    of("pending_file", stored::pending_file),
    of("pickle", stored::pickle),
    of("preamble", requests::preamble),
    of("range", requests::range),
    of("replicate", backend::replicate),
    of("ring", rings::ring),
    of("s3_bucket_policy", s3::s3_bucket_policy),
    of("s3_chunks", s3::s3_chunks),
    of("s3_cors_rules", s3::s3_cors_rules),
    of("s3_form_policy", s3::s3_form_policy),
    of("s3_lifecycle_rules", s3::s3_lifecycle_rules),
    of("s3_notification_rules", s3::s3_notification_rules),
    of("s3_listing_token", s3::s3_listing_token),
    of("s3_signature", s3::s3_signature),
    of("s3_xml", s3::s3_xml),
    of("slo_manifest", uploads::slo_manifest),
    of("ssync", backend::ssync),
    of("ssync_requests", exchanges::ssync_requests),
    of("tar", uploads::tar),
    of("tempurl", access::tempurl),
];

/// The target of that name.
pub fn target(name: &str) -> Option<FuzzTarget> {
    TARGETS.iter().copied().find(|target| target.name == name)
}
