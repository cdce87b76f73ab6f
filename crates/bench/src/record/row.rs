//! A row of a record: one operation.
//!
//! | column | is |
//! |---|---|
//! | `stage`, `work` | their names |
//! | `operation` | `read`, `write` and so on |
//! | `container`, `object` | their names; no object in operations on containers |
//! | `size` | bytes of the body, in either direction; 0 when the operation failed |
//! | `status` | `ok`; else the status of the answer (`404`), or what went wrong (`no answer in time`) |
//! | `due`, `start` | when the operation was to begin, and when it did; the same in a closed loop |
//! | `first_byte`, `end` | when the answer began (empty where there was none), and when it ended |
//! | `worker` | the number of the worker, through all drivers |
//! | `driver` | the name of the driver; empty where there is none |
//!
//! Times are seconds since 1970 with six decimals, of the controller's clock. Values with `,`, `"` or a line break
//! stand in quotes (RFC 4180).
//! Always holds: times of one driver never go back, as they are measured by its monotonic clock.

use crate::drivers::message::wall_micros;
use crate::figures::{Failure, RequestOutcome};
use std::borrow::Cow;
use std::io::Write;
use std::time::Duration;
use world::World;

/// The first line.
pub const COLUMNS: &str = "stage,work,operation,container,object,size,status,due,start,first_byte,end,worker,driver\n";
/// How many columns there are.
pub const COLUMN_COUNT: usize = 13;

/// An operation that ended.
pub struct RecordedOperation<'a> {
    /// `read`, for example.
    pub kind: &'a str,
    /// Its container.
    pub container: &'a str,
    /// Its object; empty where there is none.
    pub object: &'a str,
    /// When it was to begin, by the world's clock.
    pub due: Duration,
    /// When it began.
    pub start: Duration,
    /// How it went.
    pub outcome: RequestOutcome,
    /// Which worker did it.
    pub worker: u32,
}

/// What rows of one process have in common.
pub(super) struct RowContext {
    /// Microseconds since 1970 when the world's clock began to measure.
    epoch: i64,
    /// The end of a row.
    driver: Vec<u8>,
}

impl RowContext {
    /// Of a process whose time of day is ahead by so many microseconds.
    pub(super) fn new(world: &World, driver: &str, ahead: i64) -> Self {
        let elapsed = i64::try_from(world.clock.elapsed().as_micros()).unwrap_or(i64::MAX);
        let now = i64::try_from(wall_micros(world.clock.now())).unwrap_or(i64::MAX);
        Self {
            epoch: now.saturating_sub(elapsed).saturating_sub(ahead),
            driver: format!("{}\n", quoted(driver)).into_bytes(),
        }
    }

    /// Writes a row behind its first columns.
    pub(super) fn write(&self, one: &RecordedOperation<'_>, row: &mut Vec<u8>) {
        let status: Cow<'_, str> = match one.outcome.failure {
            None => "ok".into(),
            Some(Failure::Status(status)) => status.to_string().into(),
            Some(other) => other.to_string().into(),
        };
        // Writing to memory does not fail.
        let _ = write!(
            row,
            "{},{},{},{},{},",
            one.kind,
            quoted(one.container),
            quoted(one.object),
            one.outcome.bytes,
            quoted(&status)
        );
        self.time(one.due, row);
        self.time(one.start, row);
        match one.outcome.first_byte {
            Some(after) => self.time(one.due + after, row),
            None => row.push(b','),
        }
        self.time(one.due.saturating_add(one.outcome.latency), row);
        let _ = write!(row, "{},", one.worker);
        row.extend_from_slice(&self.driver);
    }

    fn time(&self, at: Duration, row: &mut Vec<u8>) {
        let micros = self
            .epoch
            .saturating_add(i64::try_from(at.as_micros()).unwrap_or(i64::MAX));
        let micros = micros.max(0);
        // Writing to memory does not fail.
        let _ = write!(row, "{}.{:06},", micros / 1_000_000, micros % 1_000_000);
    }
}

/// The first columns of rows of a work.
pub(super) fn start(stage: &str, work: &str) -> Vec<u8> {
    format!("{},{},", quoted(stage), quoted(work)).into_bytes()
}

/// A value as CSV has it.
fn quoted(value: &str) -> Cow<'_, str> {
    match value.contains([',', '"', '\n', '\r']) {
        false => value.into(),
        true => format!("\"{}\"", value.replace('"', "\"\"")).into(),
    }
}

/// The values of a row, without its line break; nothing when it is none.
pub(super) fn values(row: &str) -> Option<Vec<String>> {
    let (mut values, mut value, mut is_quoted) = (vec![], String::new(), false);
    let mut signs = row.chars().peekable();
    while let Some(sign) = signs.next() {
        match (sign, is_quoted) {
            ('"', false) if value.is_empty() => is_quoted = true,
            ('"', true) if signs.peek() == Some(&'"') => {
                signs.next();
                value.push('"');
            }
            ('"', true) => is_quoted = false,
            (',', false) => values.push(std::mem::take(&mut value)),
            (other, _) => value.push(other),
        }
    }
    values.push(value);
    (!is_quoted && values.len() == COLUMN_COUNT).then_some(values)
}

#[cfg(test)]
mod tests {
    use super::{COLUMNS, RecordedOperation, RowContext, start, values};
    use crate::figures::{Failure, RequestOutcome};
    use std::time::Duration;

    #[test]
    fn a_row_is_read_as_it_was_written() {
        let context = RowContext {
            epoch: 1_800_000_000_000_000,
            driver: b"d1\n".to_vec(),
        };
        let operation = RecordedOperation {
            kind: "read",
            container: "a,\"b\"\nc",
            object: "o 1",
            due: Duration::from_micros(1_000_007),
            start: Duration::from_micros(1_000_008),
            outcome: RequestOutcome {
                bytes: 64,
                latency: Duration::from_micros(2_000_000),
                first_byte: Some(Duration::from_micros(5)),
                failure: None,
            },
            worker: 3,
        };
        let mut row = start("main", "x");
        context.write(&operation, &mut row);
        let row = String::from_utf8(row).unwrap();
        let expected = "main,x,read,\"a,\"\"b\"\"\nc\",o 1,64,ok,1800000001.000007,1800000001.000008,\
                        1800000001.000012,1800000003.000007,3,d1\n";
        assert_eq!(row, expected);
        let read = values(row.strip_suffix('\n').unwrap()).unwrap();
        assert_eq!((read[3].as_str(), read[12].as_str()), ("a,\"b\"\nc", "d1"));
        assert_eq!(values(COLUMNS.trim_end()).unwrap()[6], "status");
        let failed = RecordedOperation {
            outcome: RequestOutcome {
                bytes: 0,
                first_byte: None,
                failure: Some(Failure::Status(404)),
                ..operation.outcome
            },
            ..operation
        };
        let mut row = start("main", "x");
        context.write(&failed, &mut row);
        let read = values(String::from_utf8(row).unwrap().trim_end()).unwrap();
        assert_eq!((read[6].as_str(), read[9].as_str()), ("404", ""));
        assert_eq!((values("a,b"), values("\"a,b,c,d,e,f,g,h,i,j,k,l,m")), (None, None));
    }
}
