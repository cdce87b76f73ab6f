//! A workload that is the replay of a proxy's access log, in place of stages:
//!
//! ```toml
//! [replay]
//! log = "/var/log/swift/proxy-access.log"   # or .gz
//! speed = 2                       # twice as fast as the requests came; "max": as fast as the store answers
//! workers = 64                    # requests under way at most
//! cprefix = "bench-replay-"
//! ```
//!
//! Its stages are init, prepare, main, cleanup and dispose; what they do is read from the log later (`crate::replay`).

use super::{known, read_stage, text_of, workers};
use crate::workload::mistake::WorkloadMistake;
use crate::workload::{Endpoint, Stage};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use toml::{Table, Value};

/// Requests under way at most, unless it is said: an open loop needs more than are ever under way.
const WORKERS: i64 = 64;
/// How much slower or faster than it came a log is replayed at most: beyond these, no times differ any more.
const SPEEDS: RangeInclusive<f64> = 1e-6..=1e6;

/// What is replayed.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplaySource {
    /// The log.
    pub log: PathBuf,
    /// How much faster than they came requests are sent; nothing: as fast as the store answers.
    pub speed: Option<f64>,
}

/// Reads `[replay]`: what it names, and its stages, which have nothing to do yet.
pub(super) fn read(
    table: &Table,
    storage: &Endpoint,
    auth: &Endpoint,
) -> Result<(ReplaySource, Vec<Stage>), WorkloadMistake> {
    known(
        table,
        &["log", "speed", "workers", "cprefix", "interval", "accepted_failures"],
        "[replay]",
    )?;
    let log = text_of(table, "log")?.filter(|log| !log.is_empty());
    let source = ReplaySource {
        log: log.ok_or_else(|| WorkloadMistake::new("expected log = FILE"))?.into(),
        speed: speed(table)?,
    };
    workers(table)?;
    Ok((source, stages(table, storage, auth)?))
}

fn speed(table: &Table) -> Result<Option<f64>, WorkloadMistake> {
    let text = text_of(table, "speed")?.unwrap_or_else(|| "1".to_owned());
    if text == "max" {
        return Ok(None);
    }
    let number: Option<f64> = text.parse().ok();
    match number.filter(|speed| SPEEDS.contains(speed)) {
        Some(speed) => Ok(Some(speed)),
        None => Err(WorkloadMistake::value(
            "speed",
            &text,
            format_args!("a factor from {} to {}, or max", SPEEDS.start(), SPEEDS.end()),
        )),
    }
}

/// Stages with an example of what they will do.
fn stages(table: &Table, storage: &Endpoint, auth: &Endpoint) -> Result<Vec<Stage>, WorkloadMistake> {
    let one = |name: &str, words: &[(&str, &str)]| {
        let mut stage = Table::new();
        for word in ["workers", "cprefix", "interval", "accepted_failures"] {
            if let Some(value) = table.get(word) {
                stage.insert(word.to_owned(), value.clone());
            }
        }
        stage.entry("workers").or_insert(Value::Integer(WORKERS));
        let names = stage.entry("cprefix").or_insert("bench-replay-".into()).clone();
        if name == "main" {
            stage.remove("cprefix");
            stage.insert("total_operations".to_owned(), Value::Integer(1));
            let mut operation = Table::new();
            operation.insert("cprefix".to_owned(), names);
            for (word, value) in [("type", "read"), ("containers", "c(1)"), ("objects", "c(1)")] {
                operation.insert(word.to_owned(), value.into());
            }
            stage.insert("operations".to_owned(), Value::Array(vec![operation.into()]));
        } else {
            stage.remove("accepted_failures");
            stage.insert("type".to_owned(), name.into());
            stage.insert("containers".to_owned(), "r(1,1)".into());
        }
        stage.insert("name".to_owned(), name.into());
        for (word, value) in words {
            stage.insert((*word).to_owned(), (*value).into());
        }
        read_stage(&stage, storage, auth)
    };
    let objects = ("objects", "r(1,1)");
    Ok(vec![
        one("init", &[])?,
        one("prepare", &[objects, ("sizes", "c(0)B")])?,
        one("main", &[])?,
        one("cleanup", &[objects])?,
        one("dispose", &[])?,
    ])
}

#[cfg(test)]
mod tests {
    use crate::workload::WorkKind;
    use crate::workload::own_format::parse;

    const GOOD: &str = "
[storage]
type = 'mock'
[replay]
log = 'proxy.log'
speed = 2.5
workers = 9
";

    #[test]
    fn a_replay_has_stages() {
        let workload = parse(GOOD).unwrap();
        let works: Vec<_> = workload.stages.iter().map(|stage| &stage.works[0]).collect();
        let kinds = [
            WorkKind::Init,
            WorkKind::Prepare,
            WorkKind::Normal,
            WorkKind::Cleanup,
            WorkKind::Dispose,
        ];
        assert_eq!(works.iter().map(|work| work.kind).collect::<Vec<_>>(), kinds);
        assert!(works.iter().all(|work| work.workers == 9));
        let prefixes = works
            .iter()
            .flat_map(|work| &work.operations)
            .map(|one| &one.containers.prefix);
        assert!(prefixes.clone().all(|prefix| prefix == "bench-replay-") && prefixes.count() == 5);
        let speed = |text: &str| parse(&GOOD.replace("2.5", text)).unwrap().replay.unwrap().speed;
        assert_eq!((speed("2.5"), speed("3"), speed("'max'")), (Some(2.5), Some(3.0), None));
    }

    #[test]
    fn speeds_that_cannot_be_are_named_with_those_that_can() {
        for text in ["-1", "0", "1e-300", "1e300", "'1e999'", "'nan'", "'fast'"] {
            let refused = parse(&GOOD.replace("2.5", text)).unwrap_err().to_string();
            let shown = text.trim_matches('\'');
            let expected = format!("[replay]: speed=\"{shown}\": expected a factor from 0.000001 to 1000000, or max");
            assert_eq!(refused, expected);
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (from, to, expected) in [
            ("log = 'proxy.log'", "", "[replay]: expected log = FILE"),
            ("speed", "sped", "[replay]: sped in [replay]: expected log, speed"),
            ("= 9", "= 0", "[replay]: workers=\"0\": expected a number of workers"),
            (
                "[replay]",
                "[[stage]]\ntype = 'delay'\n[replay]",
                "[replay]: expected no [[stage]] beside it",
            ),
        ] {
            let refused = parse(&GOOD.replace(from, to)).unwrap_err().to_string();
            assert!(refused.starts_with(expected), "{refused}");
        }
    }
}
