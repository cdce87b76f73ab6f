//! Log lines against OpenStack's, byte for byte but for times and process.
//!
//! Needs Python with OpenStack Swift: `MARTLET_ORACLE_PYTHON`, by default ../../.venv/bin/python; says
//! so and passes when there is none.
#![allow(clippy::unwrap_used, reason = "tests may fail by panicking")]

use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use settings::ProxyLoggingSettings;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use telemetry::access::{AccessLine, Style};
use telemetry::storage::StorageLine;
use vocabulary::names::unquote;

fn ask(questions: &[Value]) -> Option<Vec<String>> {
    let python = std::env::var_os("MARTLET_ORACLE_PYTHON").map_or("../../.venv/bin/python".into(), PathBuf::from);
    if !python.exists() {
        eprintln!("skipped: no Python with OpenStack Swift at {}", python.display());
        return None;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/openstack_lines.py");
    let command = Command::new(python)
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut process = command.unwrap();
    let mut stdin = process.stdin.take().unwrap();
    stdin
        .write_all(Value::from(questions.to_vec()).to_string().as_bytes())
        .unwrap();
    drop(stdin);
    let output = process.wait_with_output().unwrap();
    assert!(output.status.success());
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

fn questions(line: &str) -> Vec<Value> {
    let key = "0123456789abcdef0123456789abcdef";
    let base = json!({
        "line": line, "method": "GET", "url": "/v1/a/c/o", "headers": {}, "status": 200, "received": 0, "sent": 5,
        "policy": null, "info": "", "user": "", "remote": "1.2.3.4", "reveal": 16, "took": 0.12345678
    });
    let mut all = vec![base.clone()];
    let mut vary = |name: &str, value: Value| {
        let mut question = base.clone();
        question[name] = value;
        all.push(question);
    };
    for url in [
        "/",
        "/info",
        "/v1/a/%C3%BC/o%20p%25",
        "/v1/a:b/c~d_e.f-g",
        "/v1/a/c/o?format=json&x=a%20b",
        "/v1/a?",
        "/v1/a?b=%22c%3Cd",
        "/v1/a?b=c<d>\\",
        "/v1/a/c/o%0Ax",
        "/v1/a/c/x%2Fy",
        &format!("/v1/a/c/o?temp_url_sig={key}&temp_url_expires=99"),
        "/v1/a/c/o?x=1&temp_url_sig=short",
    ] {
        vary("url", json!(url));
    }
    for headers in [
        json!({"X-Auth-Token": format!("AUTH_tk{key}")}),
        json!({"X-Auth-Token": "short"}),
        json!({"X-Auth-Token": "exactly16chars!!"}),
        json!({"X-Storage-Token": "x"}),
        json!({"User-Agent": "curl 1.0 \"q\" %", "Referer": "http://x/ y", "ETag": "\"abc\""}),
        json!({"User-Agent": "", "Referer": "-"}),
        json!({"X-Forwarded-For": "9.9.9.9, 8.8.8.8"}),
        json!({"X-Forwarded-For": " 1.1.1.1 ,2"}),
        json!({"X-Forwarded-For": "unknown host"}),
        json!({"X-Cluster-Client-Ip": "7.7.7.7", "X-Forwarded-For": "9.9.9.9"}),
        json!({"X-Trans-Id": "tx9"}),
    ] {
        vary("headers", headers);
    }
    for method in ["PUT", "HEAD", "COPY", "BAD"] {
        vary("method", json!(method));
    }
    for (name, values) in [
        ("status", json!([201, 404, 499, 503])),
        ("received", json!([7])),
        ("sent", json!([0, 1234])),
        ("policy", json!([0, 1])),
        ("info", json!(["a:b,c d", "ü"])),
        ("user", json!(["test:tester", "te st:té"])),
        ("remote", json!(["::1", ""])),
        ("reveal", json!([0, 5])),
        ("took", json!([0.00004, 0.00015, 12345.67895])),
    ] {
        for value in values.as_array().unwrap() {
            vary(name, value.clone());
        }
    }
    all
}

fn headers(question: &Value) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in question["headers"].as_object().unwrap() {
        let name: HeaderName = name.parse().unwrap();
        map.insert(
            name,
            HeaderValue::from_bytes(value.as_str().unwrap().as_bytes()).unwrap(),
        );
    }
    map
}

fn policy(question: &Value) -> Option<u32> {
    question["policy"].as_u64().map(|p| u32::try_from(p).unwrap())
}

/// `1795177426.550146341`.
fn moment(text: &str) -> Duration {
    let (seconds, nanos) = text.split_once('.').unwrap();
    Duration::new(seconds.parse().unwrap(), nanos.parse().unwrap())
}

#[test]
fn proxy_lines() {
    let questions = questions("proxy");
    let Some(lines) = ask(&questions) else { return };
    for (question, theirs) in questions.iter().zip(lines) {
        let fields: Vec<&str> = theirs.split(' ').collect();
        let url = question["url"].as_str().unwrap();
        let (path, query) = url.split_once('?').map_or((url, None), |(p, q)| (p, Some(q)));
        let headers = headers(question);
        let settings = ProxyLoggingSettings {
            reveal_sensitive_prefix: usize::try_from(question["reveal"].as_u64().unwrap()).unwrap(),
            ..ProxyLoggingSettings::default()
        };
        let style = Style::read(&settings).unwrap();
        let sent = if question["method"] == "HEAD" {
            0
        } else {
            question["sent"].as_u64().unwrap()
        };
        let ours = AccessLine {
            first_byte: None,
            wire_status: 200,
            entity: None,
            remote: question["remote"].as_str().unwrap(),
            method: question["method"].as_str().unwrap(),
            path: &unquote(path).unwrap(),
            query,
            protocol: "HTTP/1.1",
            status: u16::try_from(question["status"].as_u64().unwrap()).unwrap(),
            headers: &headers,
            received: question["received"].as_u64().unwrap(),
            sent,
            transaction_id: "tx123",
            source: "",
            info: question["info"].as_str().unwrap(),
            start: moment(fields[18]),
            end: moment(fields[19]),
            policy: policy(question),
            user: question["user"].as_str().unwrap(),
            style: &style,
        };
        assert_eq!(ours.to_string(), theirs, "{question}");
    }
}

/// Templates, each in front of the times of its line.
fn template_questions() -> Vec<Value> {
    let telling = "client_ip remote_addr domain path referer user_agent client_etag headers account container object";
    let plain = "method protocol status_int auth_token bytes_recvd bytes_sent transaction_id request_time source log_info \
                 policy_index wire_status_int access_user_id";
    let times = "datetime asctime iso8601 s ms us ns a A b B c d H I j m M p S U w W x X y Y Z";
    let mut templates: Vec<String> = plain.split_whitespace().map(|field| format!("{{{field}}}")).collect();
    for field in telling.split_whitespace() {
        templates.extend([format!("{{{field}}}"), format!("{{{field}.anonymized}}")]);
    }
    templates.extend(
        times
            .split_whitespace()
            .map(|form| format!("{{start_time.{form}}}/{{end_time.{form}}}")),
    );
    templates.push("{{a}} \"{method}\"{path}%20é }}".into());
    let headers = json!({"Host": "store.test:80", "User-Agent": "c u", "Referer": "r", "X-Auth-Token": "t".repeat(40), "ETag": "e"});
    let mut all = Vec::new();
    for template in templates {
        for (method, salt, url) in [
            ("MD5", "", "/v1/a/c/o%20p/q"),
            ("sha256", "salt", "/v1/a%C3%BC?x=1&temp_url_sig=short"),
            ("sha1", "s", "/info"),
        ] {
            all.push(json!({
                "line": "template", "method": "PUT", "url": url, "headers": headers, "status": 201, "received": 7, "sent": 5,
                "policy": 1, "info": "a,b", "user": "u:x", "remote": "1.2.3.4", "reveal": 16, "took": 0,
                "template": format!("{{start_time}} {{end_time}} {template}"), "hash": method, "salt": salt,
            }));
        }
    }
    all
}

#[test]
fn lines_of_templates() {
    let questions = template_questions();
    let Some(lines) = ask(&questions) else { return };
    for (question, theirs) in questions.iter().zip(lines) {
        let text = |key: &str| question[key].as_str().unwrap().to_owned();
        let url = text("url");
        let (path, query) = url.split_once('?').map_or((url.as_str(), None), |(p, q)| (p, Some(q)));
        let path = unquote(path).unwrap();
        let entity = path
            .strip_prefix("/v1/")
            .and_then(|rest| vocabulary::EntityPath::split(rest).ok());
        let settings = ProxyLoggingSettings {
            log_msg_template: text("template"),
            log_anonymization_method: text("hash"),
            log_anonymization_salt: text("salt"),
            access_log_headers: true,
            access_log_headers_only: vec!["Referer".into()],
            ..ProxyLoggingSettings::default()
        };
        let fields: Vec<&str> = theirs.split(' ').collect();
        let headers = headers(question);
        let ours = AccessLine {
            remote: "1.2.3.4",
            method: "PUT",
            path: &path,
            query,
            protocol: "HTTP/1.1",
            status: 201,
            headers: &headers,
            received: 7,
            sent: 5,
            transaction_id: "tx123",
            source: "",
            info: "a,b",
            start: moment(fields[0]),
            end: moment(fields[1]),
            policy: Some(1),
            first_byte: None,
            wire_status: 201,
            entity: entity.as_ref(),
            user: "u:x",
            style: &Style::read(&settings).unwrap(),
        };
        // The very last digit of a time is a matter of how it was rounded.
        assert_eq!(ours.to_string(), theirs, "{question}");
    }
}

#[test]
fn storage_lines() {
    let questions = questions("storage");
    let Some(lines) = ask(&questions) else { return };
    for (question, theirs) in questions.iter().zip(lines) {
        let headers = headers(question);
        let header = |name: &str| headers.get(name).map_or(&b""[..], |value| value.as_bytes());
        let url = question["url"].as_str().unwrap();
        let path = vocabulary::names::quote(&unquote(url.split('?').next().unwrap()).unwrap());
        let sent = question["sent"].as_u64().unwrap();
        let line = |ended: u64| {
            StorageLine {
                remote: question["remote"].as_str().unwrap(),
                method: question["method"].as_str().unwrap(),
                path: &path,
                status: u16::try_from(question["status"].as_u64().unwrap()).unwrap(),
                length: sent,
                referer: header("referer"),
                trans_id: header("x-trans-id"),
                user_agent: header("user-agent"),
                info: question["info"].as_str().unwrap(),
                took: Duration::from_secs_f64(question["took"].as_f64().unwrap()),
                ended,
                policy: policy(question),
                pid: 0,
            }
            .to_string()
        };
        let without_time = |text: &str| {
            let (before, rest) = text.split_once('[').unwrap();
            let (_, after) = rest.split_once(']').unwrap();
            let mut words: Vec<&str> = after.split(' ').collect();
            let pid = words.len() - 2;
            words[pid] = "pid";
            format!("{before}{}", words.join(" "))
        };
        assert_eq!(without_time(&line(0)), without_time(&theirs), "{question}");
    }
}
