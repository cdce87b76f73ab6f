//! The options of `s3api`: the S3 dialect.

use crate::declare::options;
use crate::kinds::Concurrency;
use std::time::Duration;

options! {
    /// `[filter:s3api]`.
    pub struct S3ApiSettings {
        /// The region: what GET ?location answers and signatures of version 4 are made for.
        location: String = "us-east-1",
        /// Host names of the cluster, separated by commas; a bucket may stand in front of them in a request's host.
        storage_domain: Vec<String> = "",
        /// Bucket names must be as DNS allows them.
        dns_compliant_bucket_names: bool = "true",
        /// Keys in one page of a listing.
        max_bucket_listing: usize = "1000",
        /// Objects in one request that deletes many.
        max_multi_delete_objects: usize = "1000",
        /// Objects of such a request that are deleted at the same time.
        multi_delete_concurrency: Concurrency = "2",
        /// The largest number of a part; max_manifest_segments of slo must allow as many.
        max_upload_part_num: u32 = "1000",
        /// Bytes that every part but the last of an upload must have at least.
        min_segment_size: u64 = "5242880",
        /// Parts in one page of a listing of them.
        max_parts_listing: u32 = "1000",
        /// Seconds that a client's clock may differ from ours.
        allowable_clock_skew: Duration = "900",
        /// Take signatures of version 2 as well.
        allow_signature_v2: bool = "true",
        /// Keep S3's own ACLs, apart from Swift's; not served yet.
        s3_acl: bool = "false",
        /// Origins, separated by commas, whose pages may send requests of S3 (`*`: all); browsers ask before they do.
        cors_preflight_allow_origin: Vec<String> = "",
        /// Answer 429 rather than 503 to clients that send too many requests.
        ratelimit_as_client_error: bool = "false",
    }
}
