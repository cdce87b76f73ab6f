//! Figures of daemons and of machines, summed up over hosts.
//!
//! Always holds: a figure that a host does not have counts as "no result" where OpenStack's program counts it, and is
//! passed over where that does.

use super::Checks;
use super::scout::{Host, ReconServerKind};
use super::summary::{FigureSummary, date};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;

/// What `name` is in each answer, null where there is none.
fn column<'v>(responses: &'v [(Host, Value)], name: &'v str) -> impl Iterator<Item = &'v Value> {
    responses
        .iter()
        .map(move |(_, body)| body.get(name).unwrap_or(&Value::Null))
}

/// Those who said a number: the name of the host, and the number.
fn numbers(responses: &[(Host, Value)], name: &str) -> Vec<(String, f64)> {
    let body = responses.iter();
    body.filter_map(|(host, body)| Some((host.name(), body.get(name)?.as_f64()?)))
        .collect()
}

impl Checks<'_, '_, '_> {
    /// A check of figures that are all told alike.
    async fn simple(&mut self, check: &'static str, line: &str, question: &str, names: &[&str]) -> io::Result<()> {
        self.begin(check, line)?;
        let responses = self.responses(question).await?;
        for name in names {
            self.summarise(name, name, &FigureSummary::of(column(&responses, name)))?;
        }
        self.writer.rule()
    }

    /// The line instead of a check that makes no sense for the kind of server.
    fn senseless(&mut self, why: &str) -> io::Result<()> {
        self.writer.line(format_args!("Error: Can't check {why}."))?;
        self.writer.rule()
    }

    pub(super) async fn async_pendings(&mut self) -> io::Result<()> {
        if self.scout.kind != ReconServerKind::Object {
            return self.senseless("asyncs on non object servers");
        }
        self.simple("async", "Checking async pendings", "async", &["async_pending"])
            .await
    }

    pub(super) async fn expirer(&mut self) -> io::Result<()> {
        if self.scout.kind != ReconServerKind::Object {
            return self.senseless("expirer on non object servers");
        }
        let names = ["object_expiration_pass", "expired_last_pass"];
        self.simple("expirer", "Checking on expirers", "expirer/object", &names)
            .await
    }

    pub(super) async fn load(&mut self) -> io::Result<()> {
        self.begin("load", "Checking load averages")?;
        let responses = self.responses("load").await?;
        for span in ["1m", "5m", "15m"] {
            let name = format!("{span}_load_avg");
            self.summarise(&name, &name, &FigureSummary::of(column(&responses, span)))?;
        }
        self.writer.rule()
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
            ReconServerKind::Account => return self.senseless("updaters on account servers"),
            ReconServerKind::Container => ("updater/container", "container_updater_sweep"),
            ReconServerKind::Object => ("updater/object", "object_updater_sweep"),
        };
        self.begin("updater", "Checking updater times")?;
        let responses = self.responses(question).await?;
        let times = numbers(&responses, name).into_iter().map(|row| row.1).collect();
        let shown = "updater_last_sweep";
        self.summarise(shown, shown, &FigureSummary::of_numbers(times))?;
        self.writer.rule()
    }

    pub(super) async fn reconstruction(&mut self) -> io::Result<()> {
        if self.scout.kind != ReconServerKind::Object {
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
        if self.scout.kind != ReconServerKind::Container {
            return self.senseless("sharding on non container servers");
        }
        self.begin("sharding", "Checking on sharders")?;
        self.passes("sharding", "sharding", Some("")).await
    }

    /// How long a daemon's passes took, how they ended where `outcomes` says what to call that, and when the last ones
    /// did.
    async fn passes(&mut self, question: &str, daemon: &str, outcomes: Option<&str>) -> io::Result<()> {
        let responses = self.responses(question).await?;
        let name = &format!("{daemon}_time");
        self.summarise(name, name, &FigureSummary::of(column(&responses, name)))?;
        if let Some(prefix) = outcomes {
            self.outcomes(&responses, &format!("{daemon}_stats"), prefix)?;
        }
        self.completions(&numbers(&responses, &format!("{daemon}_last")))?;
        self.writer.rule()
    }

    /// How often daemons tried, and how that ended.
    fn outcomes(&mut self, responses: &[(Host, Value)], stats: &str, prefix: &str) -> io::Result<()> {
        for outcome in ["failure", "success", "attempted"] {
            let body = responses.iter().filter_map(|(_, body)| body.get(stats)?.get(outcome));
            let summary = FigureSummary::of(body);
            self.summarise(&format!("{prefix}{outcome}"), outcome, &summary)?;
        }
        Ok(())
    }

    pub(super) async fn quarantined(&mut self) -> io::Result<()> {
        self.begin("quarantined", "Checking quarantine")?;
        let responses = self.responses("quarantined").await?;
        let mut policies: BTreeMap<(usize, &str), Vec<&Value>> = BTreeMap::new();
        for (_, body) in &responses {
            for (policy, counts) in body.get("policies").and_then(Value::as_object).into_iter().flatten() {
                let count = counts.get("objects").unwrap_or(&Value::Null);
                // "10" behind "9".
                policies.entry((policy.len(), policy)).or_default().push(count);
            }
        }
        for ((_, policy), counts) in &policies {
            let name = format!("quarantined_objects_{policy}");
            self.summarise(&name, &name, &FigureSummary::of(counts.iter().copied()))?;
        }
        for kind in ["objects", "containers", "accounts"] {
            let (name, summary) = (
                format!("quarantined_{kind}"),
                FigureSummary::of(column(&responses, kind)),
            );
            match responses.is_empty() {
                true => self.writer.line("No hosts returned valid data.")?,
                false => self.summarise(&name, &name, &summary)?,
            }
        }
        self.writer.rule()
    }

    pub(super) async fn auditor(&mut self) -> io::Result<()> {
        match self.scout.kind {
            ReconServerKind::Object => self.object_auditor().await,
            kind => self.database_auditor(kind.word()).await,
        }
    }

    async fn database_auditor(&mut self, kind: &str) -> io::Result<()> {
        self.begin("auditor", "Checking auditor stats")?;
        let responses = self.responses(&format!("auditor/{kind}")).await?;
        let of = |name: &str| {
            let name = format!("{kind}_{name}");
            let body = numbers(&responses, &name).into_iter().map(|row| row.1).collect();
            (name, FigureSummary::of_numbers(body))
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
                self.writer.summary(
                    "last_pass",
                    json!({ "oldest": oldest, "newest": newest, "average": average }),
                );
                let (oldest, newest, average) = (date(oldest), date(newest), date(average));
                self.writer.line(format_args!(
                    "[last_pass] oldest: {oldest}, newest: {newest}, avg: {average}"
                ))?;
            }
        }
        self.writer.rule()
    }

    async fn object_auditor(&mut self) -> io::Result<()> {
        const WHOLE: &[&str] = &["audit_time", "bytes_processed", "passes", "errors", "quarantined"];
        const QUICK: &[&str] = &["audit_time", "bytes_processed", "errors", "quarantined"];
        self.begin("auditor", "Checking auditor stats ")?;
        let responses = self.responses("auditor/object").await?;
        for (scan, names) in [("ALL", WHOLE), ("ZBF", QUICK)] {
            let stats = format!("object_auditor_stats_{scan}");
            let body: Vec<&Value> = column(&responses, &stats)
                .filter(|stats| stats.as_object().is_some_and(|stats| !stats.is_empty()))
                .collect();
            if body.is_empty() {
                self.summarise(scan, &format!("{scan}_auditor"), &FigureSummary::of_numbers(vec![]))?;
                continue;
            }
            for figure in names {
                let sums = body.iter().map(|stats| over_devices(stats, figure)).collect();
                let name = format!("{scan}_{figure}_last_path");
                self.summarise(&name, &name, &FigureSummary::of_numbers(sums))?;
            }
        }
        self.writer.rule()
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
