//! Workloads in this program's own format: a short TOML file.
//!
//! ```toml
//! name = "web-site"
//!
//! [storage]
//! type = "swift"
//! policy = "gold"
//!
//! [auth]
//! type = "tempauth"
//! auth_url = "http://127.0.0.1:8080/auth/v1.0"
//! username = "test:tester"
//! password = "testing"
//!
//! [[stage]]
//! name = "main"
//! workers = 64
//! runtime = "5m"
//! rate = 500                  # an open loop of 500 requests a second; a closed loop without it
//! arrivals = "poisson"        # or constant
//! operations = [
//!     { type = "read", ratio = 90, containers = "u(1,32)", objects = "z(1,10000)" },
//!     { type = "write", ratio = 10, containers = "u(1,32)", objects = "u(10001,20000)", sizes = "c(64)KB" },
//! ]
//! ```
//!
//! Operations have COSBench's parameters. A stage without operations is of a special type: `type = "prepare"`, with the
//! parameters in the stage itself. Each stage is one work.
//! Always holds: a word that is not known is refused by name, with those that are.

pub mod observation;
pub mod replayed;

use super::cosbench::{OPERATION_PARAMETERS, operation, special_operation};
use super::mistake::{WorkloadMistake, one_of};
use super::parameters::Parameters;
use super::{Arrivals, Division, Endpoint, OperationKind, Stage, Work, WorkEnd, WorkKind, WorkOperation, Workload};
use std::time::Duration;
use toml::{Table, Value};

/// Reads a workload.
pub fn parse(text: &str) -> Result<Workload, WorkloadMistake> {
    let table: Table = text.parse().map_err(|error: toml::de::Error| {
        let line = error
            .span()
            .map_or(0, |span| 1 + text[..span.start.min(text.len())].matches('\n').count());
        WorkloadMistake::new(error.message().to_owned()).on_line(line)
    })?;
    known(
        &table,
        &[
            "name",
            "description",
            "storage",
            "auth",
            "stage",
            "action",
            "server",
            "cold",
            "replay",
        ],
        "the file",
    )?;
    let (storage, auth) = (endpoint(&table, "storage")?, endpoint(&table, "auth")?);
    let (replay, mut stages) = match (table.get("replay"), table.get("stage")) {
        (None, Some(Value::Array(stages))) if !stages.is_empty() => (None, read_stages(stages, &storage, &auth)?),
        (None, _) => return Err(WorkloadMistake::new("expected one [[stage]] or more, or a [replay]")),
        (Some(Value::Table(replay)), None) => {
            let read = replayed::read(replay, &storage, &auth);
            let (source, stages) = read.map_err(|wrong| wrong.within("[replay]"))?;
            (Some(source), stages)
        }
        (Some(Value::Table(_)), Some(_)) => {
            return Err(WorkloadMistake::new("[replay]: expected no [[stage]] beside it"));
        }
        (Some(_), _) => return Err(WorkloadMistake::new("replay: expected a table, [replay]")),
    };
    super::detail::complete(&mut stages);
    Ok(Workload {
        name: text_of(&table, "name")?.unwrap_or_else(|| "workload".to_owned()),
        description: text_of(&table, "description")?.unwrap_or_default(),
        observation: observation::ObservationPlan::read(&table, &stages)?.for_filling(&stages)?,
        stages,
        replay,
        replayed: None,
    })
}

fn read_stages(stages: &[Value], storage: &Endpoint, auth: &Endpoint) -> Result<Vec<Stage>, WorkloadMistake> {
    let read = |(at, stage): (usize, &Value)| {
        let name = format!("[[stage]] {}", at + 1);
        let table = stage
            .as_table()
            .ok_or_else(|| WorkloadMistake::new(format!("{name}: expected a table")))?;
        read_stage(table, storage, auth).map_err(|wrong| wrong.within(name))
    };
    stages.iter().enumerate().map(read).collect()
}

fn endpoint(table: &Table, name: &str) -> Result<Endpoint, WorkloadMistake> {
    let Some(value) = table.get(name) else {
        return Ok(Endpoint::default());
    };
    let table = value
        .as_table()
        .ok_or_else(|| WorkloadMistake::new(format!("{name}: expected a table, [{name}]")))?;
    let mut endpoint = Endpoint::default();
    for (word, value) in table {
        let value = plain(word, value)?;
        match word.as_str() {
            "type" => endpoint.kind = value,
            _ => endpoint.parameters.set(word, &value),
        }
    }
    Ok(endpoint)
}

/// Words of a stage beside parameters of operations.
const WORDS: &[&str] = &[
    "name",
    "type",
    "workers",
    "interval",
    "division",
    "runtime",
    "rampup",
    "rampdown",
    "total_operations",
    "total_bytes",
    "accepted_failures",
    "rate",
    "arrivals",
    "delay",
    "operations",
    "full",
];

fn read_stage(table: &Table, storage: &Endpoint, auth: &Endpoint) -> Result<Stage, WorkloadMistake> {
    known(table, &[WORDS, OPERATION_PARAMETERS].concat(), "a stage")?;
    let operations = match table.get("operations") {
        None => None,
        Some(Value::Array(operations)) => Some(operations),
        Some(_) => return Err(WorkloadMistake::new("operations: expected a list of tables")),
    };
    let named = |name: &str| text_of(table, name);
    let kind = match named("type")? {
        None => WorkKind::Normal,
        Some(word) => one(&word, "type", &WorkKind::ALL)?,
    };
    let division = stage_division(table, kind)?;
    let operations = match (kind, operations) {
        (WorkKind::Normal, Some(operations)) => read_operations(operations, division)?,
        (WorkKind::Normal, None) => return Err(WorkloadMistake::new("expected operations, or a special type")),
        (_, Some(_)) => {
            return Err(WorkloadMistake::new(
                "operations: expected none in a stage of a special type",
            ));
        }
        (WorkKind::Delay, None) => vec![],
        (special, None) => vec![special_operation(special, &parameters(table, WORDS)?, division)?],
    };
    let seconds = |name: &str| seconds(table, name);
    let workers = workers(table)?;
    let name = named("name")?.unwrap_or_else(|| kind.name().to_owned());
    let accepted = whole(table, "accepted_failures")?.and_then(|count| u32::try_from(count).ok());
    Ok(Stage {
        closure_delay: seconds("delay")?,
        full: full(table, kind)?,
        works: vec![Work {
            name: name.clone(),
            kind,
            workers,
            interval: match seconds("interval")? {
                Duration::ZERO => Duration::from_secs(1),
                some => some,
            },
            division,
            end: end(table, kind)?,
            ramp_up: seconds("rampup")?,
            ramp_down: seconds("rampdown")?,
            accepted_failures: accepted.unwrap_or(if kind == WorkKind::Normal { 10_000 } else { 0 }),
            driver: None,
            arrivals: arrivals(table)?,
            operations,
            script: None,
            auth: auth.clone(),
            storage: storage.clone(),
        }],
        name,
    })
}

/// How full devices are to be at the end of a stage, as a share.
fn full(table: &Table, kind: WorkKind) -> Result<Option<f64>, WorkloadMistake> {
    let Some(text) = text_of(table, "full")? else {
        return Ok(None);
    };
    let per_cent = text.strip_suffix('%').and_then(|number| number.trim().parse().ok());
    match per_cent.filter(|per_cent| (0.1..=99.0).contains(per_cent)) {
        Some(_) if kind != WorkKind::Prepare => {
            Err(WorkloadMistake::new("full: expected type = \"prepare\" beside it"))
        }
        Some(per_cent) => Ok(Some(per_cent / 100.0)),
        None => Err(WorkloadMistake::value("full", &text, "a share like 60%, up to 99%")),
    }
}

fn stage_division(table: &Table, kind: WorkKind) -> Result<Division, WorkloadMistake> {
    match (text_of(table, "division")?, kind) {
        (Some(word), _) => one(&word, "division", &Division::ALL),
        (None, WorkKind::Init | WorkKind::Dispose) => Ok(Division::Container),
        (None, WorkKind::Prepare | WorkKind::Cleanup) => Ok(Division::Object),
        (None, _) => Ok(Division::None),
    }
}

fn seconds(table: &Table, name: &str) -> Result<Duration, WorkloadMistake> {
    text_of(table, name)?.map_or(Ok(Duration::ZERO), |text| duration(name, &text))
}

fn workers(table: &Table) -> Result<u32, WorkloadMistake> {
    let workers = whole(table, "workers")?.unwrap_or(1);
    let fitting = u32::try_from(workers).ok().filter(|workers| *workers > 0);
    fitting.ok_or_else(|| WorkloadMistake::value("workers", &workers.to_string(), "a number of workers from 1 on"))
}

/// When a stage ends: normal ones say it.
fn end(table: &Table, kind: WorkKind) -> Result<WorkEnd, WorkloadMistake> {
    let ends = (
        seconds(table, "runtime")?,
        whole(table, "total_operations")?,
        whole(table, "total_bytes")?,
    );
    match (kind, ends) {
        (WorkKind::Normal, (runtime, None, None)) if !runtime.is_zero() => Ok(WorkEnd::After(runtime)),
        (WorkKind::Normal, (Duration::ZERO, Some(operations), None)) => Ok(WorkEnd::Operations(operations)),
        (WorkKind::Normal, (Duration::ZERO, None, Some(bytes))) => Ok(WorkEnd::Bytes(bytes)),
        (WorkKind::Normal, _) => Err(WorkloadMistake::new(
            "expected one of runtime, total_operations and total_bytes",
        )),
        _ => Ok(WorkEnd::Enumerated),
    }
}

fn arrivals(table: &Table) -> Result<Arrivals, WorkloadMistake> {
    let rate = match table.get("rate") {
        None => None,
        Some(value) => {
            let number = value
                .as_float()
                .or_else(|| value.as_integer().map(|number| number as f64));
            let rate = number.filter(|rate| *rate > 0.0 && *rate <= 1e9);
            Some(rate.ok_or_else(|| WorkloadMistake::new("rate: expected requests a second, above 0"))?)
        }
    };
    match (rate, text_of(table, "arrivals")?.as_deref()) {
        (None, None) => Ok(Arrivals::AsAnswered),
        (None, Some(_)) => Err(WorkloadMistake::new("arrivals: expected a rate beside it")),
        (Some(rate), None | Some("constant")) => Ok(Arrivals::Constant(rate)),
        (Some(rate), Some("poisson")) => Ok(Arrivals::Poisson(rate)),
        (Some(_), Some(other)) => Err(WorkloadMistake::value("arrivals", other, "constant or poisson")),
    }
}

fn read_operations(list: &[Value], division: Division) -> Result<Vec<WorkOperation>, WorkloadMistake> {
    let mut operations = vec![];
    for (at, value) in list.iter().enumerate() {
        let place = format!("operation {}", at + 1);
        let read = || {
            let table = value
                .as_table()
                .ok_or_else(|| WorkloadMistake::new("expected a table"))?;
            const WORDS: &[&str] = &["type", "ratio", "id", "division"];
            known(table, &[WORDS, OPERATION_PARAMETERS].concat(), "an operation")?;
            let kind = text_of(table, "type")?.ok_or_else(|| WorkloadMistake::new("expected a type"))?;
            let kind = one(&kind, "type", &OperationKind::NAMED)?;
            let ratio = whole(table, "ratio")?.unwrap_or(if list.len() == 1 { 100 } else { 0 });
            let ratio = u32::try_from(ratio).unwrap_or(u32::MAX);
            let division =
                text_of(table, "division")?.map_or(Ok(division), |word| one(&word, "division", &Division::ALL))?;
            let id = text_of(table, "id")?.unwrap_or_else(|| format!("op{}", at + 1));
            operation(id, kind, ratio, division, &parameters(table, WORDS)?)
        };
        operations.push(read().map_err(|wrong: WorkloadMistake| wrong.within(place))?);
    }
    let sum: u64 = operations.iter().map(|operation| u64::from(operation.ratio)).sum();
    match sum {
        100 => Ok(operations),
        sum => Err(WorkloadMistake::new(format!(
            "the ratios of the operations add up to {sum}: expected 100"
        ))),
    }
}

/// Words of a table that are parameters, and none of `others`.
fn parameters(table: &Table, others: &[&str]) -> Result<Parameters, WorkloadMistake> {
    let mut parameters = Parameters::default();
    for (word, value) in table.iter().filter(|(word, _)| !others.contains(&word.as_str())) {
        parameters.set(word, &plain(word, value)?);
    }
    Ok(parameters)
}

fn known(table: &Table, words: &[&str], place: &str) -> Result<(), WorkloadMistake> {
    match table.keys().find(|word| !words.contains(&word.as_str())) {
        None => Ok(()),
        Some(word) => {
            let allowed = one_of(words.iter().copied());
            Err(WorkloadMistake::new(format!("{word} in {place}: expected {allowed}")))
        }
    }
}

fn one<T: Copy>(word: &str, name: &str, words: &[(&str, T)]) -> Result<T, WorkloadMistake> {
    let found = words.iter().find(|(known, _)| *known == word).map(|(_, value)| *value);
    found.ok_or_else(|| WorkloadMistake::value(name, word, one_of(words.iter().map(|(known, _)| *known))))
}

fn text_of(table: &Table, name: &str) -> Result<Option<String>, WorkloadMistake> {
    table.get(name).map(|value| plain(name, value)).transpose()
}

/// A value that is no list and no table, as text.
fn plain(name: &str, value: &Value) -> Result<String, WorkloadMistake> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Integer(number) => Ok(number.to_string()),
        // With an exponent where it would have a line of digits.
        Value::Float(number) if *number != 0.0 && !(1e-6..1e16).contains(&number.abs()) => Ok(format!("{number:?}")),
        Value::Float(number) => Ok(number.to_string()),
        Value::Boolean(flag) => Ok(flag.to_string()),
        other => Err(WorkloadMistake::value(
            name,
            other.type_str(),
            "a text, a number, true or false",
        )),
    }
}

fn whole(table: &Table, name: &str) -> Result<Option<u64>, WorkloadMistake> {
    let read = |text: String| {
        let number = text.replace('_', "").parse();
        number.map_err(|_| WorkloadMistake::value(name, &text, "a whole number"))
    };
    text_of(table, name)?.map(read).transpose()
}

/// `90`, `90s`, `5m`, `2h`, `250ms`.
pub fn duration(name: &str, text: &str) -> Result<Duration, WorkloadMistake> {
    let digits = text.trim().trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text.trim()[digits.len()..] {
        "" | "s" => 1.0,
        "ms" => 0.001,
        "m" => 60.0,
        "h" => 3600.0,
        _ => f64::NAN,
    };
    let seconds = digits.trim().parse().map_or(f64::NAN, |number: f64| number * unit);
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| WorkloadMistake::value(name, text, "a time like 90, 90s, 5m, 2h or 250ms"))
}

#[cfg(test)]
mod tests {
    use super::{duration, parse};
    use crate::workload::{Arrivals, OperationKind, WorkEnd, WorkKind};
    use std::time::Duration;

    const GOOD: &str = "
name = 'w'
[storage]
type = 'mock'
delay = 1
[[stage]]
type = 'prepare'
workers = 4
containers = 'r(1,2)'
objects = 'r(1,10)'
sizes = 'c(1)KB'
[[stage]]
name = 'main'
workers = 8
runtime = '2m'
rate = 500
arrivals = 'poisson'
operations = [
    { type = 'read', ratio = 90, containers = 'u(1,2)', objects = 'z(1,10)' },
    { type = 'write', ratio = 10, containers = 'u(1,2)', objects = 'u(11,20)', sizes = 'c(64)KB' },
]
";

    #[test]
    fn a_workload_is_read() {
        let workload = parse(GOOD).unwrap();
        let (prepare, main) = (&workload.stages[0].works[0], &workload.stages[1].works[0]);
        assert_eq!(
            (prepare.kind, prepare.end, prepare.operations[0].kind),
            (WorkKind::Prepare, WorkEnd::Enumerated, OperationKind::Write)
        );
        assert_eq!(
            (main.end, main.arrivals),
            (WorkEnd::After(Duration::from_secs(120)), Arrivals::Poisson(500.0))
        );
        assert_eq!(
            (main.operations[1].ratio, main.storage.parameters.get("delay")),
            (10, Some("1"))
        );
    }

    #[test]
    fn mistakes_are_named() {
        for (from, to, expected) in [
            (
                "rate = 500",
                "rate = -1",
                "[[stage]] 2: rate: expected requests a second",
            ),
            (
                "ratio = 90",
                "ratio = 80",
                "[[stage]] 2: the ratios of the operations add up to 90: expected 100",
            ),
            (
                "runtime =",
                "runtme =",
                "[[stage]] 2: runtme in a stage: expected name, type",
            ),
            (
                "'z(1,10)'",
                "'q(1,10)'",
                "[[stage]] 2: operation 1: objects=\"q(1,10)\": expected c(n)",
            ),
            (
                "'r(1,10)'",
                "'u(1,10)'",
                "[[stage]] 1: objects=\"u(1,10)\": expected r(a,b) or s(a,b)",
            ),
            ("type = 'mock'", "type = 'mock", "line 4: "),
        ] {
            let refused = parse(&GOOD.replace(from, to)).unwrap_err().to_string();
            assert!(refused.starts_with(expected), "{refused}");
        }
    }

    #[test]
    fn durations_have_units() {
        for (text, millis) in [
            ("90", 90_000),
            ("90s", 90_000),
            ("5m", 300_000),
            ("250ms", 250),
            ("1.5h", 5_400_000),
        ] {
            assert_eq!(duration("runtime", text).unwrap(), Duration::from_millis(millis));
        }
        for wrong in ["", "x", "5d", "-1s"] {
            assert!(duration("runtime", wrong).is_err(), "{wrong}");
        }
    }
}
