//! What a workload says is to happen beside its load.
//!
//! ```toml
//! [[action]]
//! name = "node down"
//! at = "30s"                      # after the start of its stage
//! run = ["systemctl", "stop", "martlet"]
//! undo = ["systemctl", "start", "martlet"]
//! until = "60s"                   # when it is undone; at the end of the stage otherwise
//! stage = "main"                  # the first one with operations of its own otherwise
//! patience = "30s"                # how long a command may take
//!
//! [[server]]
//! name = "node1"
//! metrics = "http://127.0.0.1:6200/metrics"
//! recon = "http://127.0.0.1:6200/recon"
//! processes = "martlet"           # of this machine: those with this text in their command lines
//!
//! [cold]
//! run = ["sh", "-c", "sync; echo 3 > /proc/sys/vm/drop_caches"]
//! ```

use super::duration;
use crate::workload::mistake::{WorkloadMistake, one_of};
use crate::workload::{Stage, WorkKind};
use peer::Url;
use std::time::Duration;
use toml::{Table, Value};
use vocabulary::Fault;

/// How long a command may take unless it is said.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is to happen beside the load.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ObservationPlan {
    /// Commands at set times.
    pub actions: Vec<TimedAction>,
    /// Servers whose figures are wanted.
    pub servers: Vec<ServerSource>,
    /// The command that makes the store cold, before a stage.
    pub cold: Option<TimedAction>,
}

/// A command at a set time, and the one that undoes it.
#[derive(Debug, Clone, PartialEq)]
pub struct TimedAction {
    /// For the report.
    pub name: String,
    /// In which stage.
    pub stage: Option<String>,
    /// After the start of the stage.
    pub at: Duration,
    /// The program and its arguments.
    pub run: Vec<String>,
    /// When it is undone; at the end of the stage otherwise.
    pub until: Option<Duration>,
    /// The program that undoes it and its arguments; empty where nothing is to be undone.
    pub undo: Vec<String>,
    /// How long either may take.
    pub patience: Duration,
}

/// Where figures of a server are had.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ServerSource {
    /// For the report.
    pub name: String,
    /// Metrics in Prometheus' format.
    pub metrics: Option<String>,
    /// What recon answers, below this address.
    pub recon: Option<String>,
    /// A part of the command lines of its processes, on this machine.
    pub processes: Option<String>,
}

impl ObservationPlan {
    /// As a workload's tables say.
    pub fn read(table: &Table, stages: &[Stage]) -> Result<Self, WorkloadMistake> {
        let actions = tables(table, "action", |one| action(one, stages, true))?;
        let servers = tables(table, "server", server)?;
        let cold = match table.get("cold") {
            None => None,
            Some(Value::Table(one)) => Some(action(one, stages, false).map_err(|wrong| wrong.within("[cold]"))?),
            Some(_) => return Err(WorkloadMistake::new("cold: expected a table, [cold]")),
        };
        Ok(Self { actions, servers, cold })
    }

    /// Refuses stages that fill devices unless there is a server that knows how full they are.
    pub(super) fn for_filling(self, stages: &[Stage]) -> Result<Self, WorkloadMistake> {
        let sees_devices = self.servers.iter().any(|server| server.recon.is_some());
        match stages.iter().find(|stage| stage.full.is_some() && !sees_devices) {
            None => Ok(self),
            Some(stage) => Err(WorkloadMistake::new(format!(
                "{}: full: expected a [[server]] with recon, which knows how full devices are",
                stage.name
            ))),
        }
    }

    /// Refuses commands unless they are allowed: a workload from elsewhere is not to run programs unasked.
    pub fn allow(&self, allowed: bool) -> Result<(), Fault> {
        match self.actions.iter().chain(&self.cold).next() {
            Some(one) if !allowed => Err(Fault::caller(format!(
                "the workload runs commands on this machine ({}: {}): say --allow-actions to let it",
                one.name,
                one.run.join(" ")
            ))),
            _ => Ok(()),
        }
    }
}

/// Whether an action belongs to a stage; without a name it is the first one with operations of its own.
fn is_loaded(stage: &Stage) -> bool {
    stage.works.iter().any(|work| work.kind == WorkKind::Normal)
}

fn tables<T>(
    table: &Table,
    name: &str,
    read: impl Fn(&Table) -> Result<T, WorkloadMistake>,
) -> Result<Vec<T>, WorkloadMistake> {
    let all = match table.get(name) {
        None => return Ok(vec![]),
        Some(Value::Array(all)) => all,
        Some(_) => return Err(WorkloadMistake::new(format!("{name}: expected tables, [[{name}]]"))),
    };
    let one = |(at, value): (usize, &Value)| {
        let place = format!("[[{name}]] {}", at + 1);
        let table = value.as_table().ok_or_else(|| WorkloadMistake::new("expected a table"));
        table.and_then(&read).map_err(|wrong| wrong.within(place))
    };
    all.iter().enumerate().map(one).collect()
}

fn known(table: &Table, words: &[&str]) -> Result<(), WorkloadMistake> {
    match table.keys().find(|word| !words.contains(&word.as_str())) {
        None => Ok(()),
        Some(word) => {
            let allowed = one_of(words.iter().copied());
            Err(WorkloadMistake::new(format!("{word}: expected {allowed}")))
        }
    }
}

fn text(table: &Table, name: &str) -> Result<Option<String>, WorkloadMistake> {
    match table.get(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(WorkloadMistake::value(name, other.type_str(), "a text")),
    }
}

fn command(table: &Table, name: &str) -> Result<Vec<String>, WorkloadMistake> {
    let wrong = || WorkloadMistake::new(format!("{name}: expected a list of texts: [\"PROGRAM\", \"ARGUMENT\"]"));
    match table.get(name) {
        None => Ok(vec![]),
        Some(Value::Array(words)) if !words.is_empty() => {
            let words = words.iter().map(|word| word.as_str().map(str::to_owned));
            words.collect::<Option<_>>().ok_or_else(wrong)
        }
        Some(_) => Err(wrong()),
    }
}

fn action(table: &Table, stages: &[Stage], is_timed: bool) -> Result<TimedAction, WorkloadMistake> {
    match is_timed {
        true => known(table, &["name", "at", "run", "undo", "until", "stage", "patience"])?,
        false => known(table, &["name", "run", "stage", "patience"])?,
    }
    let time = |name: &str| text(table, name)?.map(|text| duration(name, &text)).transpose();
    let run = command(table, "run")?;
    if run.is_empty() {
        return Err(WorkloadMistake::new(
            "run: expected a list of texts: [\"PROGRAM\", \"ARGUMENT\"]",
        ));
    }
    let stage = match text(table, "stage")? {
        Some(name) if stages.iter().all(|stage| stage.name != name) => {
            let all = one_of(stages.iter().map(|stage| stage.name.as_str()));
            return Err(WorkloadMistake::value("stage", &name, all));
        }
        Some(name) => Some(name),
        None => stages
            .iter()
            .find(|stage| is_loaded(stage))
            .map(|stage| stage.name.clone()),
    };
    let at = match (time("at")?, is_timed) {
        (None, true) => return Err(WorkloadMistake::new("at: expected a time like 30s")),
        (at, _) => at.unwrap_or_default(),
    };
    let until = time("until")?;
    if until.is_some_and(|until| until <= at) {
        return Err(WorkloadMistake::new("until: expected a time after `at`"));
    }
    let undo = command(table, "undo")?;
    if until.is_some() && undo.is_empty() {
        return Err(WorkloadMistake::new("until: expected undo beside it"));
    }
    Ok(TimedAction {
        name: text(table, "name")?.unwrap_or_else(|| run.join(" ")),
        stage,
        at,
        until,
        run,
        undo,
        patience: time("patience")?.unwrap_or(PATIENCE),
    })
}

fn server(table: &Table) -> Result<ServerSource, WorkloadMistake> {
    known(table, &["name", "metrics", "recon", "processes"])?;
    let address =
        |name: &str| -> Result<Option<String>, WorkloadMistake> {
            match text(table, name)? {
                Some(address) if Url::parse(&address).is_none_or(|url| url.is_over_tls()) => Err(
                    WorkloadMistake::value(name, &address, "an address like http://host:port/path"),
                ),
                address => Ok(address),
            }
        };
    let source = ServerSource {
        name: text(table, "name")?.unwrap_or_default(),
        metrics: address("metrics")?,
        recon: address("recon")?,
        processes: text(table, "processes")?.filter(|text| !text.is_empty()),
    };
    match &source {
        one if one.name.is_empty() => Err(WorkloadMistake::new("expected a name")),
        one if one.metrics.is_none() && one.recon.is_none() && one.processes.is_none() => {
            Err(WorkloadMistake::new("expected metrics, recon or processes"))
        }
        _ => Ok(source),
    }
}

#[cfg(test)]
mod tests {
    use crate::workload::own_format;
    use std::time::Duration;

    const GOOD: &str = "
[storage]
type = 'mock'
[[stage]]
name = 'main'
runtime = '9s'
operations = [{ type = 'read', containers = 'c(1)', objects = 'c(1)' }]
[[action]]
name = 'down'
at = '2s'
run = ['stop', 'it']
undo = ['start']
until = '4s'
[[server]]
name = 'here'
processes = 'martlet'
[cold]
run = ['drop']
";

    #[test]
    fn plans_are_read() {
        let plan = own_format::parse(GOOD).unwrap().observation;
        let action = &plan.actions[0];
        assert_eq!(
            (action.at, action.until),
            (Duration::from_secs(2), Some(Duration::from_secs(4)))
        );
        assert_eq!((action.stage.as_deref(), action.undo.len()), (Some("main"), 1));
        assert_eq!(
            (plan.servers[0].processes.as_deref(), plan.cold.is_some()),
            (Some("martlet"), true)
        );
        assert!(plan.allow(true).is_ok());
        let refused = plan.allow(false).unwrap_err().to_string();
        assert!(
            refused.contains("runs commands on this machine (down: stop it): say --allow-actions"),
            "{refused}"
        );
    }

    #[test]
    fn mistakes_are_named() {
        for (from, to, expected) in [
            ("at = '2s'", "", "[[action]] 1: at: expected a time like 30s"),
            (
                "until = '4s'",
                "until = '1s'",
                "[[action]] 1: until: expected a time after `at`",
            ),
            ("undo = ['start']", "", "[[action]] 1: until: expected undo beside it"),
            (
                "['stop', 'it']",
                "'stop'",
                "[[action]] 1: run: expected a list of texts",
            ),
            (
                "name = 'down'",
                "nam = 'down'",
                "[[action]] 1: nam: expected name, at, run",
            ),
            (
                "name = 'down'",
                "stage = 'down'",
                "[[action]] 1: stage=\"down\": expected main",
            ),
            (
                "processes = 'martlet'",
                "",
                "[[server]] 1: expected metrics, recon or processes",
            ),
            (
                "processes = 'martlet'",
                "recon = 'x'",
                "[[server]] 1: recon=\"x\": expected an address like http://",
            ),
            (
                "run = ['drop']",
                "at = '1s'",
                "[cold]: at: expected name, run, stage or patience",
            ),
        ] {
            assert!(GOOD.contains(from), "{from}");
            let refused = own_format::parse(&GOOD.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(refused.starts_with(expected), "{refused}");
        }
    }
}
