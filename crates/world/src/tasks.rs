//! The task seam: work that goes on without a caller that waits for it.

use crate::BoxFuture;

/// Starts background work.
pub trait Tasks: Send + Sync {
    /// Runs `work` to its end, concurrently with everything else.
    fn spawn(&self, work: BoxFuture<'static, ()>);
}

/// Tasks on the current tokio runtime.
pub struct TokioTasks;

impl Tasks for TokioTasks {
    fn spawn(&self, work: BoxFuture<'static, ()>) {
        tokio::spawn(work);
    }
}
