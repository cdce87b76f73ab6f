//! Checksums of long bodies, on few processors at a time.
//!
//! A device has several threads, as a read may wait for the drive; a checksum waits for nothing. Without a limit many
//! receivers that begin at once would have all threads of all devices compute, and requests would wait for a processor.
//! Always holds: at most half of the processors compute checksums of pieces of [`LONG`] or more for this process; what
//! holds a turn blocks on nothing.

use md5::{Digest, Md5};
use parking_lot::{Condvar, Mutex};
use std::sync::LazyLock;

/// Shorter pieces are not worth waiting for a turn.
const LONG: usize = 16 * 1024;

static TURNS: LazyLock<HashingTurns> = LazyLock::new(|| {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    HashingTurns {
        left: Mutex::new((processors / 2).max(1)),
        returned: Condvar::new(),
    }
});

struct HashingTurns {
    left: Mutex<usize>,
    returned: Condvar,
}

impl HashingTurns {
    /// Waits for a turn. It is given back when what is answered is dropped, a panic included.
    fn take(&self) -> HashingTurn<'_> {
        let mut left = self.left.lock();
        while *left == 0 {
            self.returned.wait(&mut left);
        }
        *left -= 1;
        HashingTurn(self)
    }
}

struct HashingTurn<'a>(&'a HashingTurns);

impl Drop for HashingTurn<'_> {
    fn drop(&mut self) {
        *self.0.left.lock() += 1;
        self.0.returned.notify_one();
    }
}

/// Adds `bytes` to `md5`. Blocks until it is this thread's turn.
pub(super) fn update(md5: &mut Md5, bytes: &[u8]) {
    let _turn = (bytes.len() >= LONG).then(|| TURNS.take());
    md5.update(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn no_more_compute_at_a_time_than_there_are_turns() {
        let turns = HashingTurns {
            left: Mutex::new(2),
            returned: Condvar::new(),
        };
        let (running, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let _turn = turns.take();
                        most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        std::thread::yield_now();
                        running.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
        assert!((1..=2).contains(&most.into_inner()));
        assert_eq!(*turns.left.lock(), 2);
    }
}
