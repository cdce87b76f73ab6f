//! What happened in a run, in order: a fingerprint always, words where they are wanted.

use parking_lot::Mutex;
use std::sync::Arc;

/// A record of what happened; clones write into the same.
#[derive(Clone)]
pub struct Trace(Arc<Mutex<State>>);

struct State {
    fingerprint: u64,
    lines: Option<Vec<String>>,
}

impl Trace {
    /// Keeps words only where they are wanted.
    pub fn new(in_words: bool) -> Self {
        Self(Arc::new(Mutex::new(State {
            fingerprint: 0xcbf2_9ce4_8422_2325,
            lines: in_words.then(Vec::new),
        })))
    }

    /// Something happened.
    pub fn note(&self, line: String) {
        let mut state = self.0.lock();
        for byte in line.bytes() {
            state.fingerprint = (state.fingerprint ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        if let Some(lines) = &mut state.lines {
            lines.push(line);
        }
    }

    /// Equal for equal runs.
    pub fn fingerprint(&self) -> u64 {
        self.0.lock().fingerprint
    }

    /// The words, if kept.
    pub fn take_lines(&self) -> Vec<String> {
        self.0.lock().lines.take().unwrap_or_default()
    }
}
