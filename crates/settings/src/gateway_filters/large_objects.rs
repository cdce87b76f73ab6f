//! The options of large objects: `slo` and `dlo`.

use crate::declare::options;
use crate::kinds::AtLeastOne;
use std::time::Duration;

options! {
    /// `[filter:slo]`.
    pub struct SloSettings {
        /// Objects that a manifest may name.
        max_manifest_segments: usize = "1000",
        /// Bytes that a manifest may have as clients send it, data segments included.
        max_manifest_size: u64 = "8388608",
        /// Only segments of fewer bytes are rate-limited.
        rate_limit_under_size: u64 = "1048576",
        /// Small segments of a download that are not rate-limited.
        rate_limit_after_segment: u64 = "10",
        /// Small segments per second after those; 0 does not limit.
        rate_limit_segments_per_sec: f64 = "1",
        /// Seconds after which a download asks for no further segment.
        max_get_time: Duration = "86400",
        /// Segments that are looked at at a time when a manifest is stored.
        concurrency: AtLeastOne = "2",
        /// Segments that are deleted at a time; concurrency when empty.
        delete_concurrency: Option<AtLeastOne> = "",
        /// Seconds between the spaces that keep a connection alive.
        yield_frequency: u64 = "10",
        /// Leave the deletion of segments to the expirer when a client asks for it.
        allow_async_delete: bool = "true",
        /// Account of the expirer's queue, behind auto_create_account_prefix.
        expiring_objects_account_name: String = "expiring_objects",
        /// Seconds that a container of that queue spans.
        expiring_objects_container_divisor: u64 = "86400",
    }
}

options! {
    /// `[filter:dlo]`.
    pub struct DloSettings {
        /// Segments of a download that are not rate-limited.
        rate_limit_after_segment: u64 = "10",
        /// Segments per second after those; 0 does not limit.
        rate_limit_segments_per_sec: f64 = "1",
        /// Seconds after which a download asks for no further segment.
        max_get_time: Duration = "86400",
    }
}
