//! How far long work has come: a line that takes the place of the one before, after two seconds and then every five,
//! as OpenStack's tools tell it; nothing where no terminal shows it.

use super::{ANEW, shortly};
use crate::console::Console;
use std::io;
use std::time::Duration;

const FIRST: Duration = Duration::from_secs(2);
const NEXT: Duration = Duration::from_secs(5);

/// Work of many equal steps. All times are of one clock that only goes forward.
pub(super) struct Progress<'a> {
    doing: &'a str,
    steps: usize,
    done: usize,
    began: Duration,
    next: Duration,
}

impl<'a> Progress<'a> {
    /// `doing` is what the line begins with, such as `Creating objects`.
    pub(super) fn new(doing: &'a str, steps: usize, now: Duration) -> Self {
        Self {
            doing,
            steps,
            done: 0,
            began: now,
            next: now + FIRST,
        }
    }

    /// One more step is done; says so when it is time to.
    pub(super) fn step(&mut self, retries: u64, now: Duration, console: &mut Console<'_>) -> io::Result<()> {
        self.done += 1;
        if now < self.next || !console.shows_progress {
            return Ok(());
        }
        self.next = now + NEXT;
        let each = now.saturating_sub(self.began).as_secs_f64() / self.done as f64;
        let left = shortly(each * self.steps.saturating_sub(self.done) as f64);
        let Self { doing, steps, done, .. } = self;
        write!(
            console.out,
            "{ANEW}{doing}: {done} of {steps}, {left} left, {retries} retries"
        )?;
        console.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_written_after_two_seconds_and_every_five() {
        let (mut out, mut err) = (vec![], vec![]);
        let mut console = Console {
            out: &mut out,
            err: &mut err,
            shows_progress: true,
        };
        let began = Duration::from_secs(100);
        let mut progress = Progress::new("Creating objects", 400, began);
        for second in 1..=8 {
            let now = began + Duration::from_secs(second);
            progress.step(second / 4, now, &mut console).unwrap();
        }
        let written = "\r\x1b[KCreating objects: 2 of 400, 7m left, 0 retries\r\x1b[KCreating objects: 7 of 400, 7m left, 1 retries";
        console.shows_progress = false;
        progress
            .step(0, began + Duration::from_secs(100), &mut console)
            .unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), written);
        assert!(err.is_empty());
    }
}
