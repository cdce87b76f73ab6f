//! ACLs against OpenStack's functions, question by question.
#![allow(clippy::unwrap_used, reason = "tests may fail by panicking")]

mod oracle;

use identity::account_acl::AccountAcl;
use identity::container_acl::{AclKind, clean_container_acl};
use identity::referrer;
use oracle::compare;
use serde_json::{Value, json};

#[test]
fn cleaning() {
    let values = [
        "",
        "  ",
        ",",
        "a , b",
        "a:b,c",
        ".r:*",
        ".r:*,.rlistings",
        " .r : *",
        ".ref:*",
        ".referer:*",
        ".referrer:*",
        ".referer : -bad",
        ".r:",
        " .r: ",
        ".r:-",
        ".r: - bad.com",
        ".r:-.bad.com",
        ".r:.bad.com",
        ".r:*.bad.com",
        ".r:*bad.com",
        ".r:-*.bad.com",
        ".r: *.bad.com ",
        ".x",
        ".x:y",
        ".rlistings:x",
        "*:*",
        "*",
        "a::b",
        ":",
        "a:",
        ".r:a b",
        ".r:-*",
        "ü",
        "a:b:c",
        ".:x",
        ".r:a:b",
        ".R:*",
        ".r:--a",
        ".r:.",
        ".r:*.",
        ".r:-.",
        ".it's:x",
        ".\"q'\":x",
        ".a\\b:x",
        "a, .x:y ,b",
        ".r:**",
        ".r:* .a",
    ];
    let mut questions = Vec::new();
    for header in ["X-Container-Read", "X-Container-Write"] {
        questions.extend(values.map(|value| json!({"ask": "clean", "header": header, "value": value})));
    }
    compare("openstack_tempauth.py", &questions, |question| {
        let kind = match question["header"].as_str() {
            Some("X-Container-Read") => AclKind::Read,
            _ => AclKind::Write,
        };
        match clean_container_acl(kind, question["value"].as_str().unwrap()) {
            Ok(cleaned) => json!({"ok": cleaned}),
            Err(error) => json!({"error": error.to_string()}),
        }
    });
}

#[test]
fn referring() {
    let referers = [
        json!(null),
        json!(""),
        json!("http://www.example.com/x"),
        json!("https://example.com"),
        json!("http://user:pw@www.example.com:80/"),
        json!("www.example.com"),
        json!("ftp://www.example.com"),
        json!("http://WWW.EXAMPLE.COM/"),
        json!("unknown"),
        json!("http://"),
        json!("http://[::1]:8/"),
        json!("//www.example.com/"),
        json!("http://www.example.com?x"),
        json!("http://www.example.com#x"),
        json!("http:///www.example.com"),
        json!("1ttp://www.example.com"),
        json!("android-app://www.example.com/"),
    ];
    let rules = json!([
        ["*"],
        [".example.com"],
        ["www.example.com"],
        ["*", "-.example.com"],
        ["-.example.com", "*"],
        ["unknown"],
        ["-unknown", "*"],
        ["*", "-www.example.com", "www.example.com"],
        [],
        ["*", "-*"],
        ["-*"],
        ["."],
        [""],
        ["-"],
        ["::1"]
    ]);
    let mut questions = Vec::new();
    for referer in &referers {
        for rules in rules.as_array().unwrap() {
            questions.push(json!({"ask": "referrer", "referer": referer, "rules": rules}));
        }
    }
    compare("openstack_tempauth.py", &questions, |question| {
        let rules = question["rules"].as_array().unwrap().iter();
        let rules: Vec<&str> = rules.map(|r| r.as_str().unwrap()).collect();
        Value::from(referrer::allowed(question["referer"].as_str(), &rules))
    });
}

#[test]
fn judging_account_acls() {
    let values = [
        "",
        "{}",
        "{\"admin\":[\"a\"]}",
        "[]",
        "null",
        "\"x\"",
        "1",
        "{\"admin\":\"a\"}",
        "{\"x\":[\"a\"]}",
        "bad",
        "{\"admin\":[1]}",
        "{\"admin\":[\"a\"],\"read-only\":[]}",
        "{\"admin\":null}",
        "{\"admin\":[\"\"]}",
        "{\"ad min\":[]}",
        "{\"admin\":[\"a\"],\"junk\":3}",
        " {\"admin\" : [\"q\"]} ",
        "it's",
    ];
    let questions = values.map(|value| json!({"ask": "account_acl", "conf": {}, "value": value}));
    compare("openstack_tempauth.py", &questions, |question| {
        let value = question["value"].as_str().unwrap();
        match AccountAcl::check(value) {
            Ok(_) => Value::Null,
            Err(fault) => {
                let text = fault.what.strip_prefix("X-Account-Access-Control invalid: ").unwrap();
                Value::from(text.strip_suffix(&format!("\n\nInput: {value}\n")).unwrap())
            }
        }
    });
}
