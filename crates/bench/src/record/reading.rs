//! `martlet bench records`: what a record holds, as a table or as CSV.
//!
//! Always holds: memory has a bound, whatever the file holds; a file that ends in its middle, as that of a run that was
//! killed may, is read as far as it goes, and reported.

use super::row::{COLUMNS, values};
use crate::arguments::RecordsArguments;
use crate::figures::Latencies;
use flate2::read::MultiGzDecoder;
use operator_tools::{Console, ToolStatus};
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read};
use std::time::Duration;
use vocabulary::Fault;
use world::World;
use world::files::{File, Purpose};

/// Rows that are longer are none.
const LONGEST_ROW: usize = 1 << 20;
/// Lines of the table.
const MOST_GROUPS: usize = 10_000;
/// Rows between two looks at whether the user has had enough.
const AT_A_TIME: u64 = 4096;

/// Reads a record, and shows it as the command line says.
pub async fn run(
    arguments: &RecordsArguments,
    world: &World,
    console: &mut Console<'_>,
    interrupted: impl Future<Output = ()>,
) -> io::Result<ToolStatus> {
    let failed = |why: &dyn std::fmt::Display| format!("{}: {why}", arguments.file.display());
    let mut rows = match RecordRows::open(world, arguments) {
        Ok(rows) => rows,
        Err(fault) => return console.complain(failed(&fault)).map(|()| ToolStatus::FAILURE),
    };
    let mut table = RecordTable::default();
    let mut interrupted = std::pin::pin!(interrupted);
    if arguments.csv {
        write!(console.out, "{COLUMNS}")?;
    }
    let mut status = ToolStatus::SUCCESS;
    loop {
        let fault = match rows.next() {
            Ok(None) => break,
            Ok(Some((row, values))) if is_wanted(arguments, &values) => {
                if arguments.csv {
                    writeln!(console.out, "{row}")?;
                    None
                } else {
                    table.count(&values).err()
                }
            }
            Ok(Some(_)) => None,
            Err(fault) => Some(fault),
        };
        if let Some(fault) = fault {
            console.complain(failed(&fault))?;
            status = ToolStatus::FAILURE;
            break;
        }
        if rows.read % AT_A_TIME == 0 {
            tokio::select! {
                biased;
                () = &mut interrupted => return Ok(ToolStatus::FAILURE),
                () = tokio::task::yield_now() => {}
            }
        }
    }
    if !arguments.csv {
        table.show(console)?;
    }
    Ok(status)
}

fn is_wanted(arguments: &RecordsArguments, values: &[String]) -> bool {
    let is_one = |wanted: &Option<String>, value: &String| wanted.as_ref().is_none_or(|wanted| wanted == value);
    is_one(&arguments.stage, &values[0])
        && is_one(&arguments.operation, &values[2])
        && (!arguments.failed || values[6] != "ok")
}

/// A file as a stream.
pub struct FileBytes {
    file: Box<dyn File>,
    offset: u64,
}

impl FileBytes {
    /// From its beginning.
    pub fn new(file: Box<dyn File>) -> Self {
        Self { file, offset: 0 }
    }

    /// From a byte of it on.
    pub fn starting_at(file: Box<dyn File>, offset: u64) -> Self {
        Self { file, offset }
    }
}

impl Read for FileBytes {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.offset)?;
        self.offset += read as u64;
        Ok(read)
    }
}

/// Rows of a record, one after the other.
struct RecordRows {
    from: BufReader<MultiGzDecoder<BufReader<FileBytes>>>,
    /// Rows that were read.
    read: u64,
}

impl RecordRows {
    fn open(world: &World, arguments: &RecordsArguments) -> Result<Self, Fault> {
        let file = world.files.open(&arguments.file, Purpose::Read);
        let file = file.map_err(|error| Fault::caller(error.to_string()))?;
        let mut rows = Self {
            from: BufReader::new(MultiGzDecoder::new(BufReader::new(FileBytes::new(file)))),
            read: 0,
        };
        match rows.row() {
            Ok(Some(first)) if first == COLUMNS.trim_end() => Ok(rows),
            Ok(_) => Err(Fault::caller(
                "expected a file of `run --record`: its columns are others",
            )),
            Err(error) => Err(Fault::caller(format!("expected a file of `run --record`: {error}"))),
        }
    }

    /// The next row and its values; nothing at the end.
    fn next(&mut self) -> Result<Option<(String, Vec<String>)>, Fault> {
        let row = self
            .row()
            .map_err(|error| Fault::caller(format!("after {} operations it cannot be read on: {error}", self.read)))?;
        let Some(row) = row else { return Ok(None) };
        self.read += 1;
        let values = values(&row);
        let values = values.ok_or_else(|| Fault::caller(format!("row {} is none", self.read)))?;
        Ok(Some((row, values)))
    }

    /// The text of a row: lines up to one at whose end no quote is open.
    fn row(&mut self) -> io::Result<Option<String>> {
        let mut row = vec![];
        loop {
            let room = LONGEST_ROW.saturating_sub(row.len()) as u64;
            let read = (&mut self.from).take(room).read_until(b'\n', &mut row)?;
            match (read, row.last()) {
                (0, None) => return Ok(None),
                (0, _) if room == 0 => return Err(io::Error::other("a row is too long")),
                (0, _) => return Err(io::ErrorKind::UnexpectedEof.into()),
                (_, Some(b'\n')) if row.iter().filter(|byte| **byte == b'"').count() % 2 == 0 => break,
                _ => {}
            }
        }
        row.pop();
        String::from_utf8(row).map(Some).map_err(io::Error::other)
    }
}

/// Operations of a kind in a work.
#[derive(Default)]
struct RecordGroup {
    latency: Latencies,
    bytes: u64,
    failures: BTreeMap<String, u64>,
    /// Microseconds since 1970: the first start and the last end.
    from: u64,
    until: u64,
}

/// What a record holds.
#[derive(Default)]
struct RecordTable {
    groups: BTreeMap<[String; 3], RecordGroup>,
    drivers: BTreeMap<String, u64>,
}

impl RecordTable {
    fn count(&mut self, values: &[String]) -> Result<(), Fault> {
        let wrong = |which: usize| Fault::caller(format!("{:?} is no value of a record", values[which]));
        let time = |which: usize| micros(&values[which]).ok_or_else(|| wrong(which));
        let bytes: u64 = values[5].parse().map_err(|_| wrong(5))?;
        let (due, start, end) = (time(7)?, time(8)?, time(10)?);
        let key = [&values[0], &values[1], &values[2]].map(String::clone);
        let group = self.groups.entry(key).or_default();
        if group.until == 0 {
            group.from = start;
        }
        group.from = group.from.min(start);
        group.until = group.until.max(end);
        match values[6].as_str() {
            "ok" => {
                group.latency.record(Duration::from_micros(end.saturating_sub(due)));
                group.bytes = group.bytes.saturating_add(bytes);
            }
            why => *group.failures.entry(why.to_owned()).or_default() += 1,
        }
        let failures: usize = group.failures.len();
        *self.drivers.entry(values[12].clone()).or_default() += 1;
        match self.groups.len().max(self.drivers.len()).max(failures) > MOST_GROUPS {
            true => Err(Fault::caller("it has more works, drivers or failures than a run has")),
            false => Ok(()),
        }
    }

    fn show(&self, console: &mut Console<'_>) -> io::Result<()> {
        for ([stage, work, operation], group) in &self.groups {
            let lasted = group.until.saturating_sub(group.from) as f64 / 1e6;
            let (succeeded, times) = (group.latency.count(), &group.latency);
            let failed: u64 = group.failures.values().sum();
            let millis = |time: Duration| time.as_secs_f64() * 1e3;
            console.say(format_args!(
                "{stage} / {work} / {operation}: {succeeded} succeeded, {failed} failed in {lasted:.1} s, {:.1} op/s, {:.2} MB",
                succeeded as f64 / lasted.max(1e-6),
                group.bytes as f64 / 1e6,
            ))?;
            if succeeded > 0 {
                console.say(format_args!(
                    "  ms: mean {:.2}, p50 {:.2}, p99 {:.2}, p99.9 {:.2}, longest {:.2}",
                    millis(times.mean()),
                    millis(times.percentile(50.0)),
                    millis(times.percentile(99.0)),
                    millis(times.percentile(99.9)),
                    millis(times.longest())
                ))?;
            }
            for (why, count) in &group.failures {
                console.say(format_args!("  failed: {why}, {count} times"))?;
            }
        }
        for (driver, count) in self.drivers.iter().filter(|(driver, _)| !driver.is_empty()) {
            console.say(format_args!("driver {driver}: {count} operations"))?;
        }
        Ok(())
    }
}

/// Microseconds of seconds with six decimals.
fn micros(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once('.')?;
    let (seconds, fraction): (u64, u64) = (
        seconds.parse().ok()?,
        (fraction.len() == 6).then_some(fraction)?.parse().ok()?,
    );
    seconds.checked_mul(1_000_000)?.checked_add(fraction)
}
