//! How much this process has allocated so far: one line on stdout for each line on stdin.
//!
//! Present only with the feature `count-allocations`. `tests/race/allocations.py` asks before and after a number of
//! requests and divides; the figures of a request are the only purpose.
//! Deliberately absent: who allocated, and what for (a profiler answers that).

use std::io::{BufRead, stdin};

/// Starts the thread that answers.
#[expect(clippy::print_stdout, reason = "stdout is where the measuring program reads")]
pub fn report_on_request() {
    std::thread::spawn(|| {
        for line in stdin().lock().lines() {
            if line.is_err() {
                return;
            }
            let counted = crate::ALLOCATOR.stats();
            println!(
                "allocations {} reallocations {} bytes {}",
                counted.allocations, counted.reallocations, counted.bytes_allocated
            );
        }
    });
}
