//! Replay of a proxy's access log: its requests, as they came or faster, on containers of this program's own.
//!
//! Comes in: a workload with a `[replay]` (`workload/own_format/replayed.rs`) and the log that it names. Goes out: the
//! same workload with stages that make what the log reads, send its requests, and delete what there is then. A driver
//! gets what the log says from its controller (`drivers/replay_pieces.rs`) and reads no log.
//! Always holds: names of the log are numbers here: what it was about is neither read nor written, and no name of it is
//! in a report; a request is sent only if the log tells which objects were there; those that are left out are counted
//! by their reasons; memory grows with the requests of the log, of which there are at most [`MOST_REQUESTS`].
//!
//! | question | file |
//! |---|---|
//! | what a line says | `replay/line.rs` |
//! | which objects were there when | `replay/history.rs` |
//! | what the stages do | this one |

mod history;
pub mod line;

use crate::record::reading::FileBytes;
use crate::workload::detail::OperationDetail;
use crate::workload::own_format::replayed::ReplaySource;
use crate::workload::replayed_log::{MOST_REQUESTS, ReplayedLog};
use crate::workload::script::{OperationScript, ScriptStep};
use crate::workload::selector::{Selector, Span};
use crate::workload::size::Sizes;
use crate::workload::{NumberedNames, OperationKind, Work, WorkEnd, WorkKind, WorkOperation, Workload, detail};
use flate2::read::MultiGzDecoder;
use history::LogHistory;
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use vocabulary::Fault;
use world::World;
use world::files::Purpose;

/// Lines that are longer are none of an access log.
const LONGEST_LINE: u64 = 1 << 20;
/// What a gzip file begins with (RFC 1952, 2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// Objects that are longer are made in parts, as no store takes more than 5 GiB at once.
const LONGEST_WHOLE: u64 = 5 << 30;
const PART: u64 = 1 << 30;

/// Gives the stages of a replay what the log says; other workloads stay as they are.
pub fn expand(world: &World, mut workload: Workload) -> Result<Workload, Fault> {
    let Some(source) = workload.replay.clone() else {
        return Ok(workload);
    };
    let failed = |why: &dyn std::fmt::Display| Fault::caller(format!("{}: {why}", source.log.display()));
    let mut history = LogHistory::default();
    let taken = read_lines(world, &source.log, u64::MAX, |line| {
        history.take(line);
        match history.count() > MOST_REQUESTS {
            true => Err(io::Error::other(format!(
                "expected at most {MOST_REQUESTS} requests: replay a part of it"
            ))),
            false => Ok(()),
        }
    });
    taken.map_err(|error| failed(&error))?;
    let (mut replayed, left_out) = history.finish();
    let left_out = left_out_text(&left_out);
    if replayed.requests.is_empty() {
        return Err(failed(&format_args!("nothing in it can be replayed{left_out}")));
    }
    workload.description = description(&source, &replayed) + &left_out;
    if let Some(speed) = source.speed.filter(|speed| *speed != 1.0) {
        let faster = |step: &ScriptStep| ScriptStep {
            at: (step.at as f64 / speed) as u64,
            ..*step
        };
        replayed.requests = replayed.requests.iter().map(faster).collect();
    }
    apply(&mut workload, replayed);
    Ok(workload)
}

/// Gives the stages of a replay what its log says.
pub fn apply(workload: &mut Workload, replayed: ReplayedLog) {
    let is_timed = workload.replay.as_ref().is_some_and(|source| source.speed.is_some());
    for work in workload.stages.iter_mut().flat_map(|stage| &mut stage.works) {
        complete(work, is_timed, &replayed);
    }
    detail::complete(&mut workload.stages);
    workload.replayed = Some(replayed);
}

/// Hands over each line of a log, which may be compressed with gzip, until `take` fails: of one that is not compressed
/// the last `most` bytes, whose first line may be a part of one. Lines longer than a megabyte come in parts; bytes that
/// are no UTF-8 are replaced.
///
/// # Errors
/// The file cannot be read, or `take` has failed.
pub fn read_lines(
    world: &World,
    log: &Path,
    most: u64,
    mut take: impl FnMut(&str) -> io::Result<()>,
) -> io::Result<()> {
    let file = world.files.open(log, Purpose::Read)?;
    let mut start = [0; 2];
    let is_gzip = file.read_at(&mut start, 0)? == 2 && start == GZIP;
    let mut lines: Box<dyn BufRead> = match is_gzip {
        true => Box::new(BufReader::new(MultiGzDecoder::new(BufReader::new(FileBytes::new(
            file,
        ))))),
        false => {
            let offset = file.info()?.size.saturating_sub(most);
            Box::new(BufReader::new(FileBytes::starting_at(file, offset)))
        }
    };
    let mut line = vec![];
    loop {
        line.clear();
        if (&mut lines).take(LONGEST_LINE).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        take(&String::from_utf8_lossy(&line))?;
    }
}

/// What is replayed, for people.
fn description(source: &ReplaySource, replayed: &ReplayedLog) -> String {
    let seconds = replayed.requests.last().map_or(0, |last| last.at) as f64 / 1e6;
    let pace = match source.speed {
        None => "as fast as the store answers".to_owned(),
        Some(1.0) => "as they came".to_owned(),
        Some(speed) => format!("{speed} times as fast as they came"),
    };
    format!(
        "{} requests of {}, which took {seconds:.1} s, {pace}; {} objects are made before",
        replayed.requests.len(),
        source.log.display(),
        replayed.prepared.len()
    )
}

fn left_out_text(left_out: &BTreeMap<String, u64>) -> String {
    let reasons: Vec<String> = left_out.iter().map(|(why, count)| format!("{count} ({why})")).collect();
    match reasons.is_empty() {
        true => String::new(),
        false => format!("; left out: {}", reasons.join(", ")),
    }
}

/// Fills in the operations of a stage.
fn complete(work: &mut Work, is_timed: bool, replayed: &ReplayedLog) {
    // What the stage has for an example.
    let Some(example) = work.operations.first().cloned() else {
        return;
    };
    let named = |kind: OperationKind, on_objects: bool| operation_like(&example, replayed, kind, on_objects);
    let mut script = |operations: Vec<WorkOperation>, steps: Arc<[ScriptStep]>, is_timed: bool| {
        work.end = WorkEnd::Enumerated;
        work.script = Some(OperationScript { steps, is_timed });
        work.operations = shared_ratios(operations, work.script.as_ref());
    };
    match work.kind {
        WorkKind::Init | WorkKind::Dispose => work.operations = vec![named(example.kind, false)],
        WorkKind::Prepare => {
            let whole = named(OperationKind::Write, true);
            let in_parts = WorkOperation {
                id: "op2".to_owned(),
                detail: OperationDetail {
                    part_size: Some(PART),
                    ..OperationDetail::default()
                },
                ..whole.clone()
            };
            let has_parts = replayed.prepared.iter().any(|step| step.size > LONGEST_WHOLE);
            let step = |step: &ScriptStep| ScriptStep {
                operation: u8::from(step.size > LONGEST_WHOLE),
                ..*step
            };
            let operations = if has_parts { vec![whole, in_parts] } else { vec![whole] };
            script(operations, replayed.prepared.iter().map(step).collect(), false);
        }
        WorkKind::Cleanup => script(
            vec![named(OperationKind::Delete, true)],
            replayed.deleted.clone(),
            false,
        ),
        WorkKind::Normal => {
            let operations = replayed.operations.iter().map(|one| WorkOperation {
                id: one.id().to_owned(),
                ..named(one.kind(), one.is_on_objects())
            });
            script(operations.collect(), replayed.requests.clone(), is_timed);
        }
        WorkKind::Delay => {}
    }
}

/// An operation on all containers of a replay, or on all objects.
fn operation_like(
    example: &WorkOperation,
    replayed: &ReplayedLog,
    kind: OperationKind,
    on_objects: bool,
) -> WorkOperation {
    let numbers = |count: u32| {
        Selector::Range(Span {
            first: 1,
            last: u64::from(count.max(1)),
        })
    };
    WorkOperation {
        kind,
        containers: NumberedNames {
            numbers: numbers(replayed.containers),
            ..example.containers.clone()
        },
        objects: on_objects.then(|| NumberedNames {
            prefix: "myobjects".to_owned(),
            numbers: numbers(replayed.objects),
            suffix: String::new(),
        }),
        sizes: None,
        ..example.clone()
    }
}

/// Operations with their parts of a hundred, and the mean of what they send.
fn shared_ratios(mut operations: Vec<WorkOperation>, script: Option<&OperationScript>) -> Vec<WorkOperation> {
    let steps = script.map_or(&[] as &[ScriptStep], |script| &script.steps);
    let mut counted = vec![(0_u64, 0_u64); operations.len()];
    for step in steps {
        if let Some((count, bytes)) = counted.get_mut(usize::from(step.operation)) {
            *count += 1;
            *bytes = bytes.saturating_add(step.size);
        }
    }
    let all = (steps.len() as u64).max(1);
    let mut rest = 100;
    for (operation, (count, bytes)) in operations.iter_mut().zip(&counted) {
        operation.ratio = u32::try_from(count * 100 / all).unwrap_or(100);
        rest -= operation.ratio.min(rest);
        if operation.kind == OperationKind::Write {
            operation.sizes = Some(Sizes::constant(bytes / (*count).max(1)));
        }
    }
    let most = (0..operations.len()).max_by_key(|at| counted[*at].0);
    if let Some(most) = most.and_then(|at| operations.get_mut(at)) {
        most.ratio += rest;
    }
    operations
}

#[cfg(test)]
#[path = "replay/tests.rs"]
mod tests;
