//! Do all say the same: rings and `swift.conf`, clocks, versions, and what they are.
//!
//! A `swift.conf` or a clock that differs is no "error" in the last line, a ring that differs is: as OpenStack counts.
//! Always holds: a host that does not say what it is asked for is an "error" there. (OpenStack's program takes hosts
//! that do not say what they are, or that name no ring of the kind, for good ones.)

use super::Checks;
use super::summary::date;
use md5::{Digest, Md5};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

/// A larger file is none of ours.
const LIMIT: u64 = 1 << 30;

impl Checks<'_, '_, '_> {
    pub(super) async fn rings(&mut self) -> io::Result<()> {
        self.begin("ringmd5", "Checking ring md5sums")?;
        let own = self.own_rings();
        if self.arguments.verbose {
            for (name, sum) in &own {
                self.writer.line(format_args!("-> On disk {name} md5sum: {sum}"))?;
            }
        }
        let (mut matched, mut wrong) = (0, 0);
        for answer in self.ask("ringmd5").await? {
            let Ok(body) = answer.body else {
                wrong += 1;
                continue;
            };
            let (mut is_compared, mut differs) = (false, false);
            for (path, sum) in body.as_object().into_iter().flatten() {
                let (name, sum) = (file_name(path), sum.as_str());
                if !self.is_ring_of_kind(name) {
                    continue;
                }
                let expected = own.get(name).map(String::as_str);
                is_compared |= expected.is_some();
                if sum != expected {
                    differs = true;
                    let sum = sum.unwrap_or("None");
                    self.writer.line(format_args!(
                        "!! {} ({name} => {sum}) doesn't match on disk md5sum",
                        answer.url
                    ))?;
                }
            }
            match (is_compared, differs) {
                (_, true) => wrong += 1,
                (false, false) => {
                    wrong += 1;
                    self.says_no_sum(&answer.url, "the rings")?;
                }
                (true, false) => {
                    matched += 1;
                    self.matches(&answer.url)?;
                }
            }
        }
        self.verdict(matched, wrong)
    }

    pub(super) async fn swift_conf(&mut self) -> io::Result<()> {
        self.begin("swiftconfmd5", "Checking swift.conf md5sum")?;
        let path = self.arguments.swiftdir.join("swift.conf");
        let own = self.checksum(&path);
        if self.arguments.verbose {
            let sum = own.as_deref().unwrap_or("None");
            self.writer.line(format_args!("-> On disk swift.conf md5sum: {sum}"))?;
        }
        let (mut matched, mut wrong) = (0, 0);
        for answer in self.ask("swiftconfmd5").await? {
            let Ok(body) = answer.body else {
                wrong += 1;
                continue;
            };
            // In whatever directory the other has it.
            let mut sums = body.as_object().into_iter().flatten();
            let sum = match sums.find(|(path, _)| file_name(path) == "swift.conf") {
                Some((_, Value::String(sum))) => Some(sum.as_str()),
                // The other has none that it can read.
                Some((_, Value::Null)) => None,
                _ => {
                    wrong += 1;
                    self.says_no_sum(&answer.url, "swift.conf")?;
                    continue;
                }
            };
            match sum.is_some() && sum == own.as_deref() {
                true => {
                    matched += 1;
                    self.matches(&answer.url)?;
                }
                false => {
                    let sum = sum.unwrap_or("None");
                    self.writer
                        .line(format_args!("!! {} ({sum}) doesn't match on disk md5sum", answer.url))?;
                }
            }
        }
        self.verdict(matched, wrong)
    }

    pub(super) async fn time(&mut self) -> io::Result<()> {
        self.begin("time", "Checking time-sync")?;
        let jitter = self.arguments.jitter;
        let (mut matched, mut wrong) = (0, 0);
        for answer in self.ask("time").await? {
            let Some(remote) = answer.body.ok().and_then(|body| body.as_f64()) else {
                wrong += 1;
                continue;
            };
            let (asked, answered) = answer.when;
            match remote + jitter < asked || remote - jitter > answered {
                true => {
                    let (here, there, off) = (date(answered), date(remote), (answered - remote).abs());
                    self.writer.line(format_args!(
                        "!! {} current time is {here}, but remote is {there}, differs by {off:.4} sec",
                        answer.url
                    ))?;
                }
                false => {
                    matched += 1;
                    self.matches(&answer.url)?;
                }
            }
        }
        self.verdict(matched, wrong)
    }

    pub(super) async fn versions(&mut self) -> io::Result<()> {
        self.begin("version", "Checking versions")?;
        let (mut versions, mut wrong) = (BTreeSet::new(), 0);
        for answer in self.ask("version").await? {
            let body = answer.body.ok();
            let Some(version) = body.as_ref().and_then(|body| body.get("version")?.as_str()) else {
                wrong += 1;
                continue;
            };
            if self.arguments.verbose {
                self.writer
                    .line(format_args!("-> {} installed version {version}", answer.url))?;
            }
            versions.insert(version.to_owned());
        }
        let all: Vec<String> = versions.into_iter().collect();
        let word = if all.len() == 1 { "matched" } else { "not matched" };
        self.writer.summary("versions", json!(all));
        self.writer.summary("errors", json!(wrong));
        let all = all.join(", ");
        self.writer.line(format_args!(
            "Versions {word} ({all}), {wrong} error[s] while checking hosts."
        ))?;
        self.writer.rule()
    }

    pub(super) async fn validate(&mut self) -> io::Result<()> {
        let (hosts, kind) = (self.scout.hosts.len(), self.scout.kind.word());
        self.begin(
            "validate",
            &format!("Validating server type '{kind}' on {hosts} hosts..."),
        )?;
        let right = format!("{kind}-server");
        let (mut good, mut wrong) = (0, vec![]);
        for (url, body) in self.scout.identities().await {
            match body {
                Err(silence) => self.silent(&url, &silence)?,
                Ok(Some(name)) if name.split('/').next() == Some(&right) => good += 1,
                Ok(name) => wrong.push(format!("{url} is {}", name.as_deref().unwrap_or("None"))),
            }
        }
        let errors = hosts - good;
        self.writer.summary("ok", json!(good));
        self.writer.summary("errors", json!(errors));
        self.writer.summary("invalid", json!(wrong));
        self.writer.line(format_args!(
            "{good}/{hosts} hosts ok, {errors} error[s] while checking hosts."
        ))?;
        for line in wrong {
            self.writer.line(format_args!("Invalid: {line}"))?;
        }
        self.writer.rule()
    }

    fn matches(&mut self, url: &str) -> io::Result<()> {
        match self.arguments.verbose {
            true => self.writer.line(format_args!("-> {url} matches.")),
            false => Ok(()),
        }
    }

    fn says_no_sum(&mut self, url: &str, what: &str) -> io::Result<()> {
        self.writer.line(format_args!("!! {url} says no md5sum of {what}"))
    }

    fn verdict(&mut self, matched: usize, wrong: usize) -> io::Result<()> {
        let hosts = self.scout.hosts.len();
        self.writer.summary("matched", json!(matched));
        self.writer.summary("hosts", json!(hosts));
        self.writer.summary("errors", json!(wrong));
        self.writer.line(format_args!(
            "{matched}/{hosts} hosts matched, {wrong} error[s] while checking hosts."
        ))?;
        self.writer.rule()
    }

    /// The rings of the kind that are here, by their names.
    fn own_rings(&self) -> BTreeMap<String, String> {
        let mut names = vec![];
        let directory = self.scout.world.files.open_directory(&self.arguments.swiftdir);
        let listed = directory.and_then(|directory| directory.list(&mut |name| names.push(name.to_owned())));
        if listed.is_err() {
            return BTreeMap::new();
        }
        let names = names.into_iter().filter_map(|name| name.into_string().ok());
        names
            .filter(|name| self.is_ring_of_kind(name))
            .filter_map(|name| {
                let sum = self.checksum(&self.arguments.swiftdir.join(&name))?;
                Some((name, sum))
            })
            .collect()
    }

    fn is_ring_of_kind(&self, name: &str) -> bool {
        let stem = name.strip_suffix(".ring.gz");
        let policy = stem.and_then(|stem| stem.strip_prefix(self.scout.kind.word()));
        policy.is_some_and(|policy| policy.is_empty() || policy.starts_with('-'))
    }

    fn checksum(&self, path: &Path) -> Option<String> {
        let bytes = self.scout.world.files.read(path, LIMIT).ok()?;
        Some(vocabulary::hex::encode(Md5::digest(&bytes)))
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
