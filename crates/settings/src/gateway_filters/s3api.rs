//! The options of `s3api`, the S3 dialect, and of `s3token`, by which Keystone verifies its signatures.

use crate::declare::options;
use crate::gateway_filters::AuthTokenSettings;
use crate::kinds::{Concurrency, Secret};
use std::path::PathBuf;
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
        /// Keep S3's own ACLs, apart from Swift's, and let them decide what clients of S3 may do.
        s3_acl: bool = "false",
        /// Serve access keys that the cluster itself keeps for its accounts (`martlet keys`).
        access_keys: bool = "false",
        /// Seconds that a gateway believes what it has read of such a key: so long a change may take to be known.
        access_key_cache_duration: Duration = "10",
        /// Such keys of one account.
        access_keys_per_account: usize = "100",
        /// With s3_acl: what Swift's clients have made, and so has no owner, is open to all users rather than none.
        allow_no_owner: bool = "false",
        /// With s3_acl: list only the buckets that the user owns, which asks about each.
        check_bucket_owner: bool = "false",
        /// Origins, separated by commas, whose pages may send requests of S3 (`*`: all), besides those that CORS rules
        /// of buckets name; browsers ask before they do.
        cors_preflight_allow_origin: Vec<String> = "",
        /// Take keys of clients (SSE-C) only over TLS, from a proxy whose X-Forwarded-Proto says https, or from this
        /// machine itself.
        customer_keys_require_tls: bool = "true",
        /// Answer 429 rather than 503 to clients that send too many requests.
        ratelimit_as_client_error: bool = "false",
    }
}

options! {
    /// `[filter:s3token]`.
    pub struct S3TokenSettings {
        /// In front of a project's id: the name of its account.
        reseller_prefix: String = "AUTH_",
        /// Leave signatures that Keystone does not confirm to a filter behind.
        delay_auth_decision: bool = "false",
        /// Keystone, /v3 included.
        auth_uri: String = "",
        /// Seconds to wait for Keystone.
        http_timeout: Duration = "10",
        /// Seconds that secrets are kept, so that Keystone is asked less often; signed chunks of bodies need it.
        secret_cache_duration: Duration = "60",
        /// Keystone, where the gateway itself logs in; empty for a Keystone that lets everybody ask about signatures.
        auth_url: String = "",
        /// The gateway's own user, who may ask about signatures and see credentials.
        username: String = "",
        /// Its password.
        password: Secret = "",
        /// The domain of username.
        user_domain_id: String = "",
        /// The project in which the gateway's user has its role.
        project_name: String = "",
        /// The domain of project_name.
        project_domain_id: String = "",
        /// Do not verify Keystone's certificate.
        insecure: bool = "false",
        /// PEM file of the certificate shown to Keystone.
        certfile: Option<PathBuf> = "",
        /// PEM file of the key of certfile; certfile itself when empty.
        keyfile: Option<PathBuf> = "",
    }
}

impl S3TokenSettings {
    /// How the gateway reaches Keystone and logs in, in the words of authtoken.
    pub fn login(&self) -> AuthTokenSettings {
        let auth_url = match self.auth_url.as_str() {
            "" => self.auth_uri.clone(),
            url => url.to_owned(),
        };
        AuthTokenSettings {
            auth_url,
            username: self.username.clone(),
            password: self.password.clone(),
            user_domain_id: self.user_domain_id.clone(),
            project_name: self.project_name.clone(),
            project_domain_id: self.project_domain_id.clone(),
            insecure: self.insecure,
            certfile: self.certfile.clone(),
            keyfile: self.keyfile.clone(),
            http_connect_timeout: Some(self.http_timeout),
            ..AuthTokenSettings::default()
        }
    }
}
