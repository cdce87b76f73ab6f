//! Operations that are known one by one, as those of a replay are, in place of such that are drawn.
//!
//! Always holds: steps are in the order in which they are due; `operation` is one of the work's.

use std::sync::Arc;
use std::time::Duration;

/// What a work does, step by step. All its workers share it.
#[derive(Debug, Clone, PartialEq)]
pub struct OperationScript {
    /// In the order in which they are due.
    pub steps: Arc<[ScriptStep]>,
    /// Each step waits for its time; otherwise a worker takes the next one as soon as it is free.
    pub is_timed: bool,
}

/// One operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScriptStep {
    /// When it is due: microseconds after the start of the work.
    pub at: u64,
    /// Bytes that are sent, or read of a range.
    pub size: u64,
    /// Number of the container.
    pub container: u32,
    /// Number of the object; 0 for operations on containers.
    pub object: u32,
    /// Place of the operation in its work.
    pub operation: u8,
    /// The first `size` bytes are read, and no more.
    pub is_range: bool,
    /// There is no such object: that the store says so is a success.
    pub is_absent: bool,
}

impl OperationScript {
    /// From the start of the work to the last step.
    pub fn length(&self) -> Duration {
        let last = self.steps.last().filter(|_| self.is_timed);
        Duration::from_micros(last.map_or(0, |step| step.at))
    }
}
