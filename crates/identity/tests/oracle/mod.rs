//! Asking OpenStack Swift's filters, through `openstack_tempauth.py` and `openstack_keystone.py`.
//!
//! Needs Python with OpenStack Swift: `MARTLET_ORACLE_PYTHON`, by default ../../.venv/bin/python; says
//! so and passes when there is none.

use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn ask(script: &str, questions: &[Value]) -> Option<Vec<Value>> {
    let python = std::env::var_os("MARTLET_ORACLE_PYTHON").map_or("../../.venv/bin/python".into(), PathBuf::from);
    if !python.exists() {
        eprintln!("skipped: no Python with OpenStack Swift at {}", python.display());
        return None;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(script);
    let mut process = Command::new(python)
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = process.stdin.take().unwrap();
    let text = Value::from(questions.to_vec()).to_string();
    std::thread::spawn(move || stdin.write_all(text.as_bytes()).unwrap());
    let output = process.wait_with_output().unwrap();
    assert!(output.status.success());
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

/// Every question's answer is the oracle's, or the first ten that differ are shown.
pub fn compare(script: &str, questions: &[Value], ours: impl Fn(&Value) -> Value) {
    let Some(theirs) = ask(script, questions) else { return };
    let differing: Vec<String> = questions
        .iter()
        .zip(theirs)
        .map(|(question, theirs)| (question, ours(question), theirs))
        .filter(|(_, ours, theirs)| ours != theirs)
        .map(|(question, ours, theirs)| format!("{question}\n   ours {ours}\n theirs {theirs}"))
        .collect();
    let shown = differing.iter().take(10).cloned().collect::<Vec<_>>().join("\n");
    assert!(
        differing.is_empty(),
        "{} of {} differ:\n{shown}",
        differing.len(),
        questions.len()
    );
}
