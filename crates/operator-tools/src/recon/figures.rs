//! Figures of daemons and of machines, summed up over hosts.
//!
//! Always holds: a figure that a host does not have counts as "no result" where OpenStack's program counts it, and is
//! passed over where that does.

use super::Checks;
use super::scout::{Host, Kind};
use super::summary::{Summary, date};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;

/// What `name` is in each answer, null where there is none.
fn column<'v>(answers: &'v [(Host, Value)], name: &'v str) -> impl Iterator<Item = &'v Value> {
    answers
        .iter()
        .map(move |(_, said)| said.get(name).unwrap_or(&Value::Null))
}

/// Those who said a number: the name of the host, and the number.
fn numbers(answers: &[(Host, Value)], name: &str) -> Vec<(String, f64)> {
    let said = answers.iter();
    said.filter_map(|(host, said)| Some((host.name(), said.get(name)?.as_f64()?)))
        .collect()
}

impl Checks<'_, '_, '_> {
    /// A check of figures that are all told alike.
    async fn simple(&mut self, check: &'static str, line: &str, question: &str, names: &[&str]) -> io::Result<()> {
        self.begin(check, line)?;
        let answers = self.answers(question).await?;
        for name in names {
            self.summarise(name, name, &Summary::of(column(&answers, name)))?;
        }
        self.teller.rule()
    }

    /// The line instead of a check that makes no sense for the kind of server.
    fn senseless(&mut self, why: &str) -> io::Result<()> {
        self.teller.line(format_args!("Error: Can't check {why}."))?;
        self.teller.rule()
    }

    pub(super) async fn async_pendings(&mut self) -> io::Result<()> {
        if self.scout.kind != Kind::Object {
            return self.senseless("asyncs on non object servers");
        }
        self.simple("async", "Checking async pendings", "async", &["async_pending"])
            .await
    }

    pub(super) async fn expirer(&mut self) -> io::Result<()> {
        if self.scout.kind != Kind::Object {
            return self.senseless("expirer on non object servers");
        }
        let names = ["object_expiration_pass", "expired_last_pass"];
        self.simple("expirer", "Checking on expirers", "expirer/object", &names)
            .await
    }

    pub(super) async fn load(&mut self) -> io::Result<()> {
        self.begin("load", "Checking load averages")?;
        let answers = self.answers("load").await?;
        for span in ["1m", "5m", "15m"] {
            let name = format!("{span}_load_avg");
            self.summarise(&name, &name, &Summary::of(column(&answers, span)))?;
        }
        self.teller.rule()
    }

    pub(super) async fn sockets(&mut self) -> io::Result<()> {
        let names = [
            "tcp_in_use",
            "tcp_mem_allocated_bytes",
            "tcp6_in_use",
            "time_wait",
            "orphan",
        ];
        self.simple("sockstat", "Checking socket usage", "sockstat", &names)
            .await
    }

    pub(super) async fn drive_audit(&mut self) -> io::Result<()> {
        let line = "Checking drive-audit errors";
        self.simple("driveaudit", line, "driveaudit", &["drive_audit_errors"])
            .await
    }

    pub(super) async fn updater(&mut self) -> io::Result<()> {
        let (question, name) = match self.scout.kind {
            Kind::Account => return self.senseless("updaters on account servers"),
            Kind::Container => ("updater/container", "container_updater_sweep"),
            Kind::Object => ("updater/object", "object_updater_sweep"),
        };
        self.begin("updater", "Checking updater times")?;
        let answers = self.answers(question).await?;
        let times = numbers(&answers, name).into_iter().map(|row| row.1).collect();
        let shown = "updater_last_sweep";
        self.summarise(shown, shown, &Summary::of_numbers(times))?;
        self.teller.rule()
    }

    pub(super) async fn reconstruction(&mut self) -> io::Result<()> {
        if self.scout.kind != Kind::Object {
            return self.senseless("reconstruction stats on non object servers");
        }
        self.begin("reconstruction", "Checking on reconstructors")?;
        self.passes("reconstruction/object", "object_reconstruction", None)
            .await
    }

    pub(super) async fn replication(&mut self) -> io::Result<()> {
        self.begin("replication", "Checking on replication")?;
        let question = format!("replication/{}", self.scout.kind.word());
        self.passes(&question, "replication", Some("replication_")).await
    }

    pub(super) async fn sharding(&mut self) -> io::Result<()> {
        if self.scout.kind != Kind::Container {
            return self.senseless("sharding on non container servers");
        }
        self.begin("sharding", "Checking on sharders")?;
        self.passes("sharding", "sharding", Some("")).await
    }

    /// How long a daemon's passes took, how they ended where `outcomes` says what to call that, and when the last ones did.
    async fn passes(&mut self, question: &str, daemon: &str, outcomes: Option<&str>) -> io::Result<()> {
        let answers = self.answers(question).await?;
        let name = &format!("{daemon}_time");
        self.summarise(name, name, &Summary::of(column(&answers, name)))?;
        if let Some(prefix) = outcomes {
            self.outcomes(&answers, &format!("{daemon}_stats"), prefix)?;
        }
        self.completions(&numbers(&answers, &format!("{daemon}_last")))?;
        self.teller.rule()
    }

    /// How often daemons tried, and how that ended.
    fn outcomes(&mut self, answers: &[(Host, Value)], stats: &str, prefix: &str) -> io::Result<()> {
        for outcome in ["failure", "success", "attempted"] {
            let said = answers.iter().filter_map(|(_, said)| said.get(stats)?.get(outcome));
            let summary = Summary::of(said);
            self.summarise(&format!("{prefix}{outcome}"), outcome, &summary)?;
        }
        Ok(())
    }

    pub(super) async fn quarantined(&mut self) -> io::Result<()> {
        self.begin("quarantined", "Checking quarantine")?;
        let answers = self.answers("quarantined").await?;
        let mut policies: BTreeMap<(usize, &str), Vec<&Value>> = BTreeMap::new();
        for (_, said) in &answers {
            for (policy, counts) in said.get("policies").and_then(Value::as_object).into_iter().flatten() {
                let count = counts.get("objects").unwrap_or(&Value::Null);
                // "10" behind "9".
                policies.entry((policy.len(), policy)).or_default().push(count);
            }
        }
        for ((_, policy), counts) in &policies {
            let name = format!("quarantined_objects_{policy}");
            self.summarise(&name, &name, &Summary::of(counts.iter().copied()))?;
        }
        for kind in ["objects", "containers", "accounts"] {
            let (name, summary) = (format!("quarantined_{kind}"), Summary::of(column(&answers, kind)));
            match answers.is_empty() {
                true => self.teller.line("No hosts returned valid data.")?,
                false => self.summarise(&name, &name, &summary)?,
            }
        }
        self.teller.rule()
    }

    pub(super) async fn auditor(&mut self) -> io::Result<()> {
        match self.scout.kind {
            Kind::Object => self.object_auditor().await,
            kind => self.database_auditor(kind.word()).await,
        }
    }

    async fn database_auditor(&mut self, kind: &str) -> io::Result<()> {
        self.begin("auditor", "Checking auditor stats")?;
        let answers = self.answers(&format!("auditor/{kind}")).await?;
        let of = |name: &str| {
            let name = format!("{kind}_{name}");
            let said = numbers(&answers, &name).into_iter().map(|row| row.1).collect();
            (name, Summary::of_numbers(said))
        };
        for figure in ["auditor_pass_completed", "audits_failed", "audits_passed"] {
            let (name, summary) = of(figure);
            self.summarise(&name, &name, &summary)?;
        }
        let (name, since) = of("audits_since");
        match since.is_there() {
            false => self.summarise(&name, &name, &since)?,
            true => {
                let (oldest, newest, average) = (since.low(), since.high(), since.average());
                self.teller.summary(
                    "last_pass",
                    json!({ "oldest": oldest, "newest": newest, "average": average }),
                );
                let (oldest, newest, average) = (date(oldest), date(newest), date(average));
                self.teller.line(format_args!(
                    "[last_pass] oldest: {oldest}, newest: {newest}, avg: {average}"
                ))?;
            }
        }
        self.teller.rule()
    }

    async fn object_auditor(&mut self) -> io::Result<()> {
        const WHOLE: &[&str] = &["audit_time", "bytes_processed", "passes", "errors", "quarantined"];
        const QUICK: &[&str] = &["audit_time", "bytes_processed", "errors", "quarantined"];
        self.begin("auditor", "Checking auditor stats ")?;
        let answers = self.answers("auditor/object").await?;
        for (scan, names) in [("ALL", WHOLE), ("ZBF", QUICK)] {
            let stats = format!("object_auditor_stats_{scan}");
            let said: Vec<&Value> = column(&answers, &stats)
                .filter(|stats| stats.as_object().is_some_and(|stats| !stats.is_empty()))
                .collect();
            if said.is_empty() {
                self.summarise(scan, &format!("{scan}_auditor"), &Summary::of_numbers(vec![]))?;
                continue;
            }
            for figure in names {
                let sums = said.iter().map(|stats| over_devices(stats, figure)).collect();
                let name = format!("{scan}_{figure}_last_path");
                self.summarise(&name, &name, &Summary::of_numbers(sums))?;
            }
        }
        self.teller.rule()
    }
}

/// A figure of an auditor, or of its auditors for single devices together.
fn over_devices(stats: &Value, figure: &str) -> f64 {
    let of = |stats: &Value| stats.get(figure).and_then(Value::as_f64).unwrap_or(0.0);
    let devices = stats.as_object().into_iter().flatten().map(|(_, part)| part);
    let devices: Vec<&Value> = devices.filter(|part| part.is_object()).collect();
    match devices.is_empty() {
        true => of(stats),
        false => devices.into_iter().map(of).sum(),
    }
}
