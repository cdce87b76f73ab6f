//! The same questions to OpenStack's object server and to ours.

use super::Times;
use super::oracle::Oracle;
use super::ours::{FileDevices, MemoryDevices, Ours};
use super::wire::{Answer, Ask, ask};
use std::sync::Arc;

/// OpenStack's server, and ours on either engine.
pub struct Both {
    pub oracle: Oracle,
    pub files: Ours,
    pub memory: Ours,
    pub devices: tempfile::TempDir,
    pub t: Times,
    pub wrong: Vec<String>,
}

impl Both {
    pub fn start() -> Option<Self> {
        let oracle = Oracle::start()?;
        let devices = tempfile::tempdir().unwrap();
        std::fs::create_dir(devices.path().join("sda")).unwrap();
        Some(Self {
            oracle,
            files: Ours::start(Arc::new(FileDevices(devices.path().into()))),
            memory: Ours::start(MemoryDevices::with(&["sda"])),
            devices,
            t: Times::new(),
            wrong: vec![],
        })
    }

    pub fn at(&self, seconds: f64) -> String {
        self.t.at(seconds)
    }

    /// Asks both; notes a difference, and goes on.
    pub fn same(&mut self, question: Ask) {
        let mut theirs = question.send(self.oracle.port).comparable();
        if question.method == "HEAD" {
            // For some refusals OpenStack sends a body where HTTP has none.
            theirs.body.clear();
        }
        for port in [self.files.port, self.memory.port] {
            let ours = question.send(port).comparable();
            if theirs != ours {
                self.note(&question, &theirs, &ours);
            }
        }
    }

    pub fn note(&mut self, question: &Ask, theirs: &Answer, ours: &Answer) {
        let show = |answer: &Answer| {
            let body = String::from_utf8_lossy(&answer.body)
                .chars()
                .take(300)
                .collect::<String>();
            format!("{} {:?}\n      {body:?}", answer.status, answer.headers)
        };
        let headers: Vec<String> = question
            .headers
            .iter()
            .map(|(n, v)| format!("{n}: {:.80}", v))
            .collect();
        self.wrong.push(format!(
            "{} {:.100} {headers:?}\n   OpenStack: {}\n   ours:      {}",
            question.method,
            question.path,
            show(theirs),
            show(ours)
        ));
    }

    pub fn put(&self, path: &str, seconds: f64) -> Ask {
        ask("PUT", path)
            .with("X-Timestamp", self.at(seconds))
            .with("Content-Type", "text/plain")
            .body(b"hello")
    }

    pub fn post(&self, path: &str, seconds: f64) -> Ask {
        ask("POST", path).with("X-Timestamp", self.at(seconds))
    }

    pub fn delete(&self, path: &str, seconds: f64) -> Ask {
        ask("DELETE", path).with("X-Timestamp", self.at(seconds))
    }

    pub fn read_and_head(&mut self, path: &str) {
        self.same(ask("GET", path));
        self.same(ask("HEAD", path));
    }

    pub fn finish(self) {
        assert!(
            self.wrong.is_empty(),
            "{} differences:\n{}",
            self.wrong.len(),
            self.wrong.join("\n")
        );
    }
}

/// [`Both::start`], or the end of the test where OpenStack Swift is not installed.
#[macro_export]
macro_rules! both_or_return {
    () => {
        match $crate::support::both::Both::start() {
            Some(both) => both,
            None => return,
        }
    };
}
