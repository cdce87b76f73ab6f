//! Lines on their way to standard error, which a thread of its own writes.
//!
//! Comes in: whole lines, from any thread. Goes out: the same, in their order.
//! Always holds: nothing that logs waits for who reads the log. Of lines that are not taken [`MOST_WAITING`] bytes wait
//! in memory, and further ones are lost; an output that fails (a full disk, a reader that has gone) costs the lines
//! that were on their way, and nothing else. Lost lines are counted, and once lines are taken again one says how many.
//! A process that ends by itself waits for its lines ([`flush`]); one that is killed loses those of the last moment.

use parking_lot::{Condvar, Mutex};
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Bytes of lines that wait to be written.
const MOST_WAITING: usize = 4 << 20;

/// How long the thread rests behind each write: the lines that come meanwhile wake nothing, and are written together.
const BREATH: Duration = Duration::from_millis(2);

/// Lines that this process has lost.
static LOST: AtomicU64 = AtomicU64::new(0);

static STANDARD_ERROR: OnceLock<LogOutput> = OnceLock::new();

/// See the module's header.
#[derive(Default)]
pub(crate) struct LogOutput {
    waiting: Mutex<WaitingLines>,
    /// Notified when lines have come.
    came: Condvar,
    /// Notified when all have been written, or lost.
    over: Condvar,
}

#[derive(Default)]
struct WaitingLines {
    bytes: Vec<u8>,
    is_writing: bool,
}

/// How many lines of the log this process has lost.
pub fn lost_lines() -> u64 {
    LOST.load(Relaxed)
}

/// Waits until what was logged is written, but no longer than this: to be called before the process ends or becomes
/// another program.
pub fn flush(patience: Duration) {
    if let Some(output) = STANDARD_ERROR.get() {
        output.flush(patience);
    }
}

/// Standard error, and the thread that writes there. Where no thread can be had, lines are lost.
pub(crate) fn standard_error() -> &'static LogOutput {
    let mut is_first = false;
    let output = STANDARD_ERROR.get_or_init(|| {
        is_first = true;
        LogOutput::default()
    });
    if is_first {
        let writer = std::thread::Builder::new().name("log".into());
        // There is nowhere to say that it failed.
        let _ = writer.spawn(|| {
            output.write_for_good(|bytes| Ok(rustix::io::write(io::stderr(), bytes)?));
        });
    }
    output
}

impl LogOutput {
    fn push(&self, line: &[u8]) {
        let mut waiting = self.waiting.lock();
        if waiting.bytes.len() + line.len() > MOST_WAITING {
            LOST.fetch_add(1, Relaxed);
            return;
        }
        waiting.bytes.extend_from_slice(line);
        if !waiting.is_writing {
            self.came.notify_one();
        }
    }

    /// Writes what comes, forever.
    fn write_for_good(&self, mut write: impl FnMut(&[u8]) -> io::Result<usize>) {
        let (mut bytes, mut reported) = (Vec::new(), lost_lines());
        loop {
            std::thread::sleep(BREATH);
            self.take(&mut bytes);
            let lost = lines_in(&bytes[write_all(&bytes, &mut write)..]);
            LOST.fetch_add(lost, Relaxed);
            let lost_by_now = lost_lines();
            if lost == 0 && lost_by_now > reported {
                let lost = lost_by_now - reported;
                reported = lost_by_now;
                tracing::warn!("{lost} line(s) of the log were lost: it could not be written, or not soon enough");
            }
        }
    }

    /// Waits for lines, and exchanges them for `written`.
    fn take(&self, written: &mut Vec<u8>) {
        written.clear();
        let mut waiting = self.waiting.lock();
        waiting.is_writing = false;
        while waiting.bytes.is_empty() {
            self.over.notify_all();
            self.came.wait(&mut waiting);
        }
        waiting.is_writing = true;
        std::mem::swap(&mut waiting.bytes, written);
    }

    fn flush(&self, patience: Duration) {
        let end = Instant::now() + patience;
        let mut waiting = self.waiting.lock();
        while waiting.is_writing || !waiting.bytes.is_empty() {
            if self.over.wait_until(&mut waiting, end).timed_out() {
                return;
            }
        }
    }
}

impl io::Write for &LogOutput {
    /// A whole line, as tracing's formatter writes them.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// How many bytes were written before the output failed.
fn write_all(bytes: &[u8], write: &mut impl FnMut(&[u8]) -> io::Result<usize>) -> usize {
    let mut written = 0;
    while written < bytes.len() {
        match write(&bytes[written..]) {
            Ok(0) => break,
            Ok(count) => written += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    written
}

fn lines_in(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::sync::Arc;
    use std::sync::mpsc::channel;

    #[test]
    fn lines_come_in_order_and_none_waits_for_the_reader() {
        let output: &'static LogOutput = Box::leak(Box::default());
        let written = Arc::new(Mutex::new(Vec::new()));
        let (go_on, may_go_on) = channel::<io::Result<()>>();
        let kept = written.clone();
        std::thread::spawn(move || {
            output.write_for_good(|bytes| {
                may_go_on.recv().unwrap_or(Ok(()))?;
                kept.lock().extend_from_slice(bytes);
                Ok(bytes.len())
            });
        });
        let line = |number: usize| format!("{number:09}\n").into_bytes();
        (&*output).write_all(&line(0)).unwrap();
        while !output.waiting.lock().is_writing {
            std::thread::yield_now();
        }
        // What the writer does not take waits, until there is no room.
        let most = MOST_WAITING / 10;
        let before = lost_lines();
        for number in 1..=most + 7 {
            (&*output).write_all(&line(number)).unwrap();
        }
        assert_eq!(lost_lines() - before, 7);
        output.flush(Duration::from_millis(1));
        assert!(written.lock().is_empty());
        // The first line fails, and is lost; the others follow.
        go_on.send(Err(io::ErrorKind::StorageFull.into())).unwrap();
        drop(go_on);
        output.flush(Duration::from_secs(60));
        let expected: Vec<u8> = (1..=most).flat_map(line).collect();
        assert!(*written.lock() == expected);
        assert_eq!(lost_lines() - before, 8);
    }

    #[test]
    fn what_an_output_takes_in_pieces_is_written_once() {
        let mut taken = Vec::new();
        let mut calls = 0;
        let count = write_all(b"abcdef\n", &mut |bytes| {
            calls += 1;
            match calls {
                2 => Err(io::ErrorKind::Interrupted.into()),
                5 => Err(io::ErrorKind::BrokenPipe.into()),
                _ => {
                    taken.extend_from_slice(&bytes[..2]);
                    Ok(2)
                }
            }
        });
        assert_eq!((count, taken.as_slice()), (6, &b"abcdef"[..]));
        assert_eq!(lines_in(b"a\nb\nc"), 2);
    }
}
