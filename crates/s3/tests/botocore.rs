//! Signatures of random requests that botocore has signed: all are good, and none is of another request.
//!
//! Needs Python with botocore: `MARTLET_ORACLE_PYTHON`, by default ../../.venv/bin/python; says so and passes when
//! there is none. `MARTLET_SEED` and `MARTLET_COUNT` choose the requests.

#![allow(clippy::unwrap_used, reason = "this is test code")]

use http::{HeaderName, HeaderValue, Method};
use request_pipeline::{ClientRequest, Request};
use s3::parsers::is_signed_with;
use serde_json::Value;
use settings::S3ApiSettings;
use settings::declare::{Options, Scope};
use std::path::{Path, PathBuf};
use std::process::Command;

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().unwrap())
}

fn requests(seed: u64) -> Option<Vec<Value>> {
    let python = std::env::var_os("MARTLET_ORACLE_PYTHON").map_or("../../.venv/bin/python".into(), PathBuf::from);
    if !python.exists() {
        eprintln!("skipped: no Python with botocore at {}", python.display());
        return None;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/botocore_signs.py");
    let count = number("MARTLET_COUNT", 1000).to_string();
    let output = Command::new(python)
        .arg(script)
        .args([&seed.to_string(), &count])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

/// The request as the server reads it, by another method or of another path where that is asked for.
fn read(sent: &Value, method: &str, path: &str) -> ClientRequest {
    let decoded = vocabulary::names::unquote(path).unwrap();
    let mut request = Request::new(method.parse::<Method>().unwrap(), path.into(), decoded.into());
    sent["query"].as_str().unwrap().clone_into(&mut request.query);
    for header in sent["headers"].as_array().unwrap() {
        let name: HeaderName = header[0].as_str().unwrap().parse().unwrap();
        let value = HeaderValue::from_str(header[1].as_str().unwrap()).unwrap();
        request.headers.append(name, value);
    }
    request
}

#[test]
fn what_botocore_signs_is_signed() {
    let seed = number("MARTLET_SEED", 1);
    let Some(requests) = requests(seed) else { return };
    let settings: S3ApiSettings = Options::read(&Scope::empty()).unwrap();
    let mut wrong = vec![];
    for sent in &requests {
        let text = |name: &str| sent[name].as_str().unwrap();
        let (method, path, secret) = (text("method"), text("path"), text("secret"));
        let judge = |method: &str, path: &str, secret: &str| {
            let request = read(sent, method, path);
            is_signed_with(&request, &settings, sent["now"].as_u64().unwrap(), secret)
        };
        let other = if method == "PUT" { "GET" } else { "PUT" };
        for (what, answer, expected) in [
            ("as sent", judge(method, path, secret), true),
            ("another secret", judge(method, path, "other"), false),
            ("another method", judge(other, path, secret), false),
            ("another path", judge(method, &format!("{path}x"), secret), false),
        ] {
            if answer != Ok(expected) {
                wrong.push(format!("{what}: {answer:?}: {sent}"));
            }
        }
    }
    let shown = wrong.iter().take(5).cloned().collect::<Vec<_>>().join("\n");
    assert!(wrong.is_empty(), "seed {seed}: {} wrong:\n{shown}", wrong.len());
}
