//! A Python that runs OpenStack Swift's code and answers line by line, and the dice that choose what it is asked.
//!
//! Needs a Python with `swift` installed, named by `MARTLET_ORACLE_PYTHON`; without it tests say so and pass. Random
//! cases come from a seed that is printed on failure (`MARTLET_SEED` repeats it).

use serde_json::Value;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Ends with its input.
pub struct OraclePython(Child);

impl OraclePython {
    /// Runs a script of the crate that is tested.
    pub fn start(crate_root: &str, script: &str, arguments: &[&OsStr]) -> Option<Self> {
        let Some(python) = std::env::var_os("MARTLET_ORACLE_PYTHON") else {
            println!("skipped: set MARTLET_ORACLE_PYTHON to a Python that has OpenStack Swift installed");
            return None;
        };
        let python = Command::new(python)
            .arg(Path::new(crate_root).join("tests/golden").join(script))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Some(Self(python))
    }

    /// The answer to one request.
    pub fn ask(&mut self, request: &Value) -> Value {
        let mut line = String::new();
        writeln!(self.0.stdin.as_mut().unwrap(), "{request}").unwrap();
        BufReader::new(self.0.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        serde_json::from_str(&line)
            .unwrap_or_else(|_| panic!("OpenStack's code gave no answer to {request}; see its output"))
    }
}

impl Drop for OraclePython {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// A small generator: the same seed makes the same cases on every machine.
pub struct Dice(u64);

impl Dice {
    pub fn new() -> Self {
        let seed = std::env::var("MARTLET_SEED").map_or(20_240_229, |text| text.parse().unwrap());
        println!("MARTLET_SEED={seed}");
        Self(seed)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    pub fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len() as u64) as usize]
    }
}
