//! What storage servers say of themselves, their devices and daemons: `/recon`, and `/metrics` where there is one.
//!
//! Always holds: a server that does not answer one question is asked no other, so that one that hangs costs one
//! patience; what it answered before counts. Figures of a wrong shape are none.

use super::clocks::{ClockOffset, narrowed};
use super::gateways::is_others_version;
use super::inquiry::{APART, Inquiry, NoAnswer, ServerAnswer, place};
use super::rings::{RingSight, RingUse};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A node has fewer devices, rings and checksums.
const MOST_ROWS: usize = 4096;
/// No device is larger: bytes.
const LARGEST_DEVICE: f64 = 1e18;
/// No count and no time in seconds since 1970 is larger.
const LARGEST_FIGURE: f64 = 1e12;
/// A longer name or checksum is none.
const LONGEST_WORD: usize = 512;

/// A device as its server reports it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ServedDevice {
    pub name: String,
    pub is_mounted: bool,
    /// Of those that are mounted: bytes.
    pub size: f64,
    pub used: f64,
}

/// A storage server.
#[derive(Debug, Clone)]
pub(super) struct ServerSight {
    pub ring_use: RingUse,
    pub ip: String,
    pub port: u16,
    /// Why it gave no answer to a question; nothing where all were answered.
    pub silence: Option<String>,
    /// Why it answered a question with something else than its figures.
    pub refusal: Option<String>,
    /// It has answered some question.
    pub has_answered: bool,
    pub devices: Option<Vec<ServedDevice>>,
    /// MD5 of rings by the names of their files, and of `swift.conf`.
    pub sums: BTreeMap<String, String>,
    /// When replication last ended, in seconds since 1970; 0 for never.
    pub replicated: Option<f64>,
    /// When the object-updater last ended a pass, how many updates wait.
    pub updated: Option<f64>,
    pub pending: Option<f64>,
    pub quarantined: Option<f64>,
    pub drive_errors: Option<f64>,
    /// The page of metrics, of Martlet's.
    pub metrics: Option<String>,
    /// The same a while later: counters count for what they grew by.
    pub metrics_later: Option<String>,
    /// It says that it is another make than Martlet.
    pub is_others: bool,
    /// How far its clock is from this machine's.
    pub clock: Option<ClockOffset>,
}

impl ServerSight {
    /// Its address.
    pub fn place(&self) -> String {
        place(&self.ip, self.port)
    }

    /// What a figure was read from.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.place())
    }

    fn new(ring_use: RingUse, ip: String, port: u16) -> Self {
        Self {
            ring_use,
            ip,
            port,
            silence: None,
            refusal: None,
            has_answered: false,
            devices: None,
            sums: BTreeMap::new(),
            replicated: None,
            updated: None,
            pending: None,
            quarantined: None,
            drive_errors: None,
            metrics: None,
            metrics_later: None,
            is_others: false,
            clock: None,
        }
    }

    /// What its clock says when this machine's says `at`: what its daemons wrote down is as of that.
    pub fn time(&self, at: f64) -> f64 {
        at + self.clock.map_or(0.0, ClockOffset::middle)
    }

    /// An answer with a date, and perhaps with a time in it.
    fn take_clock(&mut self, answer: &ServerAnswer, reported: Option<f64>) {
        let exact = reported.and_then(|reported| answer.clock_by(reported, 0.0));
        self.clock = narrowed(self.clock, exact.or_else(|| answer.clock()));
    }

    /// Takes an answer of recon. A figure that cannot be one is none.
    fn take(&mut self, question: &str, body: &Value) {
        match question {
            // Of the clock alone.
            "time" => {}
            "diskusage" => self.devices = body.as_array().map(|rows| devices(rows)),
            "ringmd5" | "swiftconfmd5" => self.sums.extend(sums(body)),
            "quarantined" => {
                let count = |name: &str| figure(&body[name]).unwrap_or(0.0);
                self.quarantined = Some(match self.ring_use {
                    RingUse::Account => count("accounts"),
                    RingUse::Container => count("containers"),
                    RingUse::Object => count("objects"),
                });
            }
            "driveaudit" => self.drive_errors = figure(&body["drive_audit_errors"]),
            "async" => self.pending = figure(&body["async_pending"]),
            "updater/object" => {
                self.updated = Some(figure(&body["object_updater_last"]).unwrap_or(0.0));
                // Of a version that does not say when, only how long it took.
                if self.updated == Some(0.0) && body["object_updater_sweep"].is_number() {
                    self.updated = None;
                }
            }
            _ => {
                let first = ["object_replication_last", "replication_last"];
                let last = first.iter().find_map(|name| figure(&body[*name]));
                self.replicated = Some(last.unwrap_or(0.0));
            }
        }
    }
}

fn figure(value: &Value) -> Option<f64> {
    value.as_f64().filter(|one| (0.0..=LARGEST_FIGURE).contains(one))
}

fn devices(rows: &[Value]) -> Vec<ServedDevice> {
    let read = |row: &Value| {
        let size = row["size"]
            .as_f64()
            .filter(|size| *size > 0.0 && *size <= LARGEST_DEVICE);
        Some(ServedDevice {
            name: row["device"]
                .as_str()
                .filter(|name| name.len() <= LONGEST_WORD)?
                .to_owned(),
            is_mounted: row["mounted"].as_bool() == Some(true) && size.is_some(),
            size: size.unwrap_or(0.0),
            used: row["used"].as_f64().unwrap_or(0.0).clamp(0.0, size.unwrap_or(0.0)),
        })
    };
    rows.iter().take(MOST_ROWS).filter_map(read).collect()
}

/// Checksums by the names of files, wherever those are.
fn sums(body: &Value) -> Vec<(String, String)> {
    let rows = body.as_object().into_iter().flatten().take(MOST_ROWS);
    let read = |(path, sum): (&String, &Value)| {
        let name = path.rsplit('/').next().unwrap_or(path);
        let sum = sum
            .as_str()
            .filter(|sum| sum.len() <= LONGEST_WORD && name.len() <= LONGEST_WORD)?;
        Some((name.to_owned(), sum.to_owned()))
    };
    rows.filter_map(read).collect()
}

/// Every server of the rings.
pub(super) async fn look(inquiry: &Inquiry<'_>, rings: &[RingSight]) -> Vec<ServerSight> {
    let mut all = BTreeSet::new();
    for ring in rings {
        let active = ring.slots.iter().filter(|slot| slot.weight > 0.0 || slot.parts > 0);
        all.extend(active.map(|slot| (ring.ring_use, slot.ip.clone(), slot.port)));
    }
    let talk = |(ring_use, ip, port)| talk(inquiry, ServerSight::new(ring_use, ip, port));
    let mut all = inquiry.each(all.into_iter().collect(), talk).await;
    let known: Vec<(usize, String, u16)> = all
        .iter()
        .enumerate()
        .filter(|(_, server)| server.metrics.is_some())
        .map(|(at, server)| (at, server.ip.clone(), server.port))
        .collect();
    if known.is_empty() {
        return all;
    }
    inquiry.pause(APART).await;
    let again = inquiry.each(known, |(at, ip, port)| async move {
        let answer = inquiry.get(&ip, port, "/metrics").await.ok()?;
        Some((at, String::from_utf8(answer.body).ok()?))
    });
    for (at, page) in again.await.into_iter().flatten() {
        all[at].metrics_later = Some(page);
    }
    all
}

async fn talk(inquiry: &Inquiry<'_>, mut sight: ServerSight) -> ServerSight {
    let word = sight.ring_use.word();
    let mut questions: Vec<String> = [
        "diskusage",
        "time",
        "ringmd5",
        "swiftconfmd5",
        "quarantined",
        "driveaudit",
    ]
    .map(str::to_owned)
    .to_vec();
    questions.push(format!("replication/{word}"));
    if sight.ring_use == RingUse::Object {
        questions.extend(["async", "updater/object"].map(str::to_owned));
    }
    for question in questions {
        let path = format!("/recon/{question}");
        match inquiry.get(&sight.ip, sight.port, &path).await {
            Ok(answer) => match serde_json::from_slice(&answer.body) {
                Ok(body) => {
                    sight.has_answered = true;
                    let reported = figure(&body).filter(|_| question == "time");
                    sight.take_clock(&answer, reported);
                    sight.take(&question, &body);
                }
                Err(error) => sight.refusal = Some(format!("{path}: no JSON: {error}")),
            },
            // Of an older make: the dates of its other answers are there.
            Err(NoAnswer::Refused(_)) if question == "time" => {}
            Err(NoAnswer::Refused(why)) => sight.refusal = Some(format!("{path}: {why}")),
            Err(NoAnswer::Silent(why)) => {
                sight.silence = Some(format!("{path}: {why}"));
                return sight;
            }
        }
    }
    // OpenStack's have no such page.
    if let Ok(answer) = inquiry.get(&sight.ip, sight.port, "/metrics").await {
        sight.take_clock(&answer, None);
        sight.metrics = String::from_utf8(answer.body).ok();
    } else if let Ok(answer) = inquiry.get(&sight.ip, sight.port, "/recon/version").await {
        let about: Option<Value> = serde_json::from_slice(&answer.body).ok();
        sight.is_others = about.is_some_and(|about| is_others_version(&about["version"]));
    }
    sight
}
