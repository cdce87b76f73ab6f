//! An account and a container server on one device, and a way to ask them.

#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::unwrap_used, reason = "this is test code")]

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use listing_server::{Kind, ListingServer, ListingServerOptions, Reserve};
use peer::{Address, Body, RawCall, Response, Service};
use serde_json::{Value, json};
use std::sync::Arc;
use vocabulary::{HashPrefix, Policies, Policy, PolicyIndex};
use world::World;

/// Both servers and the directory they serve.
pub struct Both {
    pub account: Arc<ListingServer>,
    pub container: Arc<ListingServer>,
    pub devices: tempfile::TempDir,
}

pub fn options(devices: &std::path::Path) -> ListingServerOptions {
    let old = Policy {
        deprecated: true,
        ..Policy::replication(2, "old")
    };
    let list = vec![Policy::replication(0, "gold"), Policy::replication(1, "silver"), old];
    let policies = Policies::new(list, Some(PolicyIndex(0))).unwrap();
    let prefix = HashPrefix::new("pre", "suf").unwrap();
    ListingServerOptions {
        mount_check: false,
        fallocate_reserve: Reserve::Bytes(0),
        // As OpenStack has it by default.
        allowed_sync_hosts: vec!["127.0.0.1".into()],
        ..ListingServerOptions::new(devices, prefix, Arc::new(policies))
    }
}

impl Both {
    pub fn new() -> Self {
        let devices = tempfile::tempdir().unwrap();
        std::fs::create_dir(devices.path().join("sda1")).unwrap();
        let start = |kind| ListingServer::new(World::real(), kind, options(devices.path())).unwrap();
        Self {
            account: start(Kind::Account),
            container: start(Kind::Container),
            devices,
        }
    }
}

/// A request as a test spells it.
#[derive(Debug, Clone)]
pub struct Asked {
    pub server: &'static str,
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Asked {
    pub fn new(server: &'static str, method: &str, path: &str) -> Self {
        Self {
            server,
            method: method.to_owned(),
            path: path.to_owned(),
            headers: Vec::new(),
            body: String::new(),
        }
    }

    pub fn header(&mut self, name: &str, value: &str) {
        self.headers.push((name.to_owned(), value.to_owned()));
    }

    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.header(name, value);
        self
    }
}

pub async fn send(both: &Both, asked: &Asked) -> Response {
    let method = Method::from_bytes(asked.method.as_bytes()).unwrap();
    let (path, query) = asked.path.split_once('?').unwrap_or((&asked.path, ""));
    let mut headers = HeaderMap::new();
    for (name, value) in &asked.headers {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        headers.insert(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    let call = RawCall {
        address: Address::parse(&method, path).unwrap(),
        method,
        query: query.to_owned(),
        headers,
        body: Body::whole(asked.body.clone()),
        interim: None,
    };
    match asked.server {
        "account" => both.account.call(call.into()).await,
        _ => both.container.call(call.into()).await,
    }
}

/// The answer as JSON: status, headers, body.
pub async fn ask(both: &Both, asked: &Asked) -> Value {
    let (parts, body) = send(both, asked).await.into_parts();
    let text = |value: &HeaderValue| String::from_utf8(value.as_bytes().to_vec()).unwrap();
    let headers: serde_json::Map<String, Value> = parts
        .headers
        .iter()
        .map(|(name, value)| (name.as_str().to_owned(), json!(text(value))))
        .collect();
    let body = body.collect(1 << 30).await.unwrap();
    json!({
        "status": parts.status.as_u16(),
        "headers": headers,
        "body": String::from_utf8(body.to_vec()).unwrap(),
    })
}
