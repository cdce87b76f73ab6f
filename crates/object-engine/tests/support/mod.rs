//! What tests beside OpenStack Swift's own code share: our engine, and its Python.

use object_engine::{FilesConfig, FilesEngine};
use serde::de::DeserializeOwned;
use std::path::Path;
use std::process::Command;
use world::World;

/// The engine of `sda` below `devices`, which is made when it is missing.
pub fn engine(devices: &Path) -> FilesEngine {
    let root = devices.join("sda");
    std::fs::create_dir_all(&root).unwrap();
    let mut config = FilesConfig::new("sda", root);
    config.mount_check = false;
    FilesEngine::start(config, World::real())
}

/// A Python with OpenStack Swift; `None`, with the reason printed, where there is none.
#[allow(clippy::print_stdout)] // a skipped test says why
pub fn python() -> Option<String> {
    let named = std::env::var("MARTLET_ORACLE_PYTHON").ok();
    let usual = "../../.venv/bin/python";
    let found = named.or_else(|| Path::new(usual).exists().then(|| usual.to_owned()));
    if found.is_none() {
        println!("skipped: no Python with OpenStack Swift (set MARTLET_ORACLE_PYTHON)");
    }
    found
}

/// What a script beside the golden files prints.
pub fn run<T: DeserializeOwned>(python: &str, script: &str, arguments: &[&Path]) -> T {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(script);
    let output = Command::new(python).arg(script).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}
