//! The shell of a storage server: what the object server and the listing server share.
//!
//! Comes in: jobs for a device by its name, errors, finished requests. Goes out: the jobs' results from the device's
//! own workers, OpenStack's pages, lines in the access log.
//! Always holds: nothing that may wait for a drive runs on an async thread; a device that is slow, hung or gone costs
//! only its own requests; an error becomes a status with the text and the content type that OpenStack's servers send.
//! Deliberately absent: verbs, engines, what a request says.
//!
//! | question | file |
//! |---|---|
//! | a device is opened, works, fails and comes back | `devices.rs` |
//! | which status and page an error becomes | `refusal.rs` |
//! | how replies and their headers are made | `reply.rs` |
//! | how slowly a body may come | `transfer.rs` |
//! | how much memory bodies may take that are read as a whole | `whole_bodies.rs` |
//! | the line of a request in the access log | `access_log.rs` |
//!
//! Tests: beside the code; `tests/as_openstack.rs` of both servers compares the pages with OpenStack's.

mod access_log;
mod devices;
mod refusal;
mod reply;
mod transfer;
mod whole_bodies;

pub use access_log::{AccessEntry, AccessLog};
pub use devices::{
    DeviceEngine, DeviceFault, DeviceOpener, DevicePool, Lane, PoolOptions, PooledDevice, REPLICATION_THREADS, Turn,
};
pub use refusal::Refusal;
pub use reply::{empty, header_value, page, put, put_named, put_number, put_time, whole, without_body};
pub use transfer::MinimumRate;
pub use whole_bodies::{ValueRoom, WholeBodies, WholeBody};

use world::World;

/// Runs `work` as a task of its own, which begins now and ends also when the caller is dropped meanwhile. 500 when the
/// work panicked. What is returned does not hold the work, which may be large.
pub fn run_detached<T: Send + 'static, W: Future<Output = Result<T, Refusal>> + Send + 'static>(
    world: &World,
    work: W,
) -> impl Future<Output = Result<T, Refusal>> + Send + use<T, W> {
    let done = world.run_detached(work);
    async move {
        done.await
            .unwrap_or(Err(Refusal::Page(http::StatusCode::INTERNAL_SERVER_ERROR)))
    }
}
