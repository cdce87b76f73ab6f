//! The options of `bulk`: unpacking archives, deleting many things at once.

use crate::declare::options;
use crate::kinds::Concurrency;
use std::time::Duration;

options! {
    /// `[filter:bulk]`.
    pub struct BulkSettings {
        /// How many containers one archive may make.
        max_containers_per_extraction: usize = "10000",
        /// Failed files after which an archive is given up.
        max_failed_extractions: usize = "1000",
        /// How many things one request may delete.
        max_deletes_per_request: usize = "10000",
        /// Failed deletes after which a request is given up.
        max_failed_deletes: usize = "1000",
        /// Seconds between the spaces that keep a connection alive while a request is worked on.
        yield_frequency: Duration = "10",
        /// How often deleting a container that is not empty yet is tried again, after 1.5 to the power of the try
        /// seconds.
        delete_container_retry_count: u32 = "0",
        /// Deletes of one request at the same time, at most 1000.
        delete_concurrency: Concurrency = "2",
    }
}
