//! What a feature costs a request that does not use it: `make bench-features`.
//!
//! Every feature of the pipeline that `martlet up` writes, and encryption, stands alone before a core that
//! answers at once; the time of a request through both, less that of a request to the core alone, is what the feature
//! costs. The whole pipeline is measured likewise.
//! Always holds: with optimisation, a feature that costs a GET, HEAD or PUT of an object [`LIMIT`] or more
//! fails the run.
//! What each request must pay for (an access line, a transaction id, a token) is shown, and not held to it
//! ([`WORKS`]).

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench prints, and its set-up holds or stops it"
)]

use features::context::FeatureContext;
use features::registry::{FEATURES, build};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use request_pipeline::{
    AccountInfo, ClientRequest, ContainerInfo, Core, Feature, InfoSource, MemoryRoom, Pipeline, Request, Response,
    reply,
};
use settings::write::{NewCluster, files, test_users};
use settings::{Document, ProxyConf, SwiftConf};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use vocabulary::{EntityPath, Timestamp};
use world::World;

/// A millionth of a second.
const LIMIT: f64 = 1000.0;
/// Features that every request uses.
const WORKS: [&str; 3] = ["catch_errors", "proxy_logging", "tempauth"];
const ROUNDS: usize = 60;
const REQUESTS: u32 = 3000;
const METHODS: [&str; 3] = ["GET", "HEAD", "PUT"];
const SECRET: &str = "cnJycnJycnJycnJycnJycnJycnJycnJycnJycnJycnI=";

/// Answers at once, with what an object server says.
struct AtOnce {
    account: Arc<AccountInfo>,
    container: Arc<ContainerInfo>,
}

#[async_trait::async_trait]
impl Core for AtOnce {
    async fn handle(&self, request: ClientRequest) -> Response {
        let mut response = reply::html(if request.method == "PUT" { 201 } else { 200 }, String::new());
        for (name, value) in [
            ("etag", "d41d8cd98f00b204e9800998ecf8427e"),
            ("last-modified", "Fri, 20 Nov 2026 12:00:00 GMT"),
            ("x-timestamp", "1700000000.00000"),
            ("content-type", "application/octet-stream"),
            ("x-object-meta-colour", "blue"),
        ] {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response
    }

    fn info(&self) -> &dyn InfoSource {
        self
    }
}

#[async_trait::async_trait]
impl InfoSource for AtOnce {
    async fn account(&self, _account: &str) -> Arc<AccountInfo> {
        self.account.clone()
    }

    async fn container(&self, _account: &str, _container: &str) -> Arc<ContainerInfo> {
        self.container.clone()
    }
}

fn request(method: &Method, entity: &Arc<EntityPath>, headers: &HeaderMap) -> ClientRequest {
    let path = "/v1/AUTH_test/container/some/object";
    let mut request = Request::new(method.clone(), path.into(), path.into());
    request.entity = Some(entity.clone());
    request.headers = headers.clone();
    request.from = ([127, 0, 0, 1], 1234).into();
    request.trans_id = "tx0123456789abcdef01234-0065a0b1c2".into();
    request.began = (Duration::ZERO, Timestamp::from_seconds(1_700_000_000));
    request
}

fn headers(method: &str) -> HeaderMap {
    let mut pairs = vec![
        ("host", "127.0.0.1:8080"),
        ("user-agent", "python-swiftclient-4.9.0"),
        ("accept", "*/*"),
        ("accept-encoding", "identity"),
        ("x-trans-id-extra", "abc"),
    ];
    if method == "PUT" {
        pairs.extend([("content-length", "0"), ("content-type", "application/octet-stream")]);
    }
    let header = |(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value));
    pairs.into_iter().map(header).collect()
}

/// What `martlet up` writes, with encryption before the last access log.
fn configuration() -> (ProxyConf, SwiftConf) {
    let cluster = NewCluster {
        swift_dir: Path::new("/etc/swift"),
        devices: Path::new("/srv"),
        recon: Path::new("/recon"),
        bind_ip: "127.0.0.1",
        storage_ip: "127.0.0.1",
        proxy_port: 8080,
        object_port: 6200,
        container_port: 6201,
        account_port: 6202,
        hash_prefix: "a",
        hash_suffix: "b",
        users: &test_users(),
        memcache_servers: &[],
        tls: None,
    };
    let files = files(&cluster);
    let text = |name: &str| files.iter().find(|(found, _)| *found == name).unwrap().1.clone();
    let proxy = text("proxy-server.conf").replacen(
        "proxy-logging proxy-server",
        "keymaster encryption proxy-logging proxy-server",
        1,
    ) + &format!(
        "\n[filter:keymaster]\nuse = egg:swift#keymaster\nencryption_root_secret = {SECRET}\n\
             [filter:encryption]\nuse = egg:swift#encryption\n"
    );
    let proxy = Document::parse(Path::new("proxy-server.conf"), &proxy).unwrap();
    let swift = Document::parse(Path::new("swift.conf"), &text("swift.conf")).unwrap();
    (
        ProxyConf::from_documents(&proxy, None).unwrap(),
        SwiftConf::from_document(&swift).unwrap(),
    )
}

/// The best of all rounds, in nanoseconds per request, for each of the pipelines in turn: what disturbs the
/// machine disturbs all of them.
fn measure(runtime: &tokio::runtime::Runtime, pipelines: &[(String, Pipeline)], method: &str) -> Vec<f64> {
    let entity = Arc::new(EntityPath::split("AUTH_test/container/some/object").unwrap());
    let headers = headers(method);
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    let mut best = vec![f64::MAX; pipelines.len()];
    for _ in 0..ROUNDS {
        for ((_, pipeline), best) in pipelines.iter().zip(&mut best) {
            let began = Instant::now();
            runtime.block_on(async {
                for _ in 0..REQUESTS {
                    drop(std::hint::black_box(
                        pipeline.run(request(&method, &entity, &headers)).await,
                    ));
                }
            });
            *best = best.min(began.elapsed().as_nanos() as f64 / f64::from(REQUESTS));
        }
    }
    best
}

fn main() {
    let (conf, swift) = configuration();
    let world = World::real();
    let parts = FeatureContext {
        conf: &conf,
        swift: &swift,
        world: &world,
        cache: None,
        bodies: MemoryRoom::default(),
    };
    let core = || {
        Arc::new(AtOnce {
            account: Arc::new(AccountInfo {
                status: 204,
                ..AccountInfo::default()
            }),
            container: Arc::new(ContainerInfo {
                status: 204,
                ..ContainerInfo::default()
            }),
        })
    };
    let mut pipelines = vec![("the core alone".to_owned(), Pipeline::new(Vec::new(), core()))];
    for filter in &conf.pipeline.filters {
        let rows = FEATURES.iter().filter(|(egg, _)| *egg == filter.egg);
        let features: Vec<Arc<dyn Feature>> = rows.map(|(_, make)| make(&parts, &filter.options).unwrap()).collect();
        if !features.is_empty() && pipelines.iter().all(|(name, _)| *name != filter.egg) {
            pipelines.push((filter.egg.clone(), Pipeline::new(features, core())));
        }
    }
    pipelines.push(("all of them".to_owned(), Pipeline::new(build(&parts).unwrap(), core())));

    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let _in_runtime = runtime.enter();
    let times: Vec<Vec<f64>> = METHODS
        .iter()
        .map(|method| measure(&runtime, &pipelines, method))
        .collect();
    println!(
        "{:<20}{:>8}{:>8}{:>8}  ns per request",
        "", METHODS[0], METHODS[1], METHODS[2]
    );
    let mut worst = (0.0, "");
    for (at, (name, _)) in pipelines.iter().enumerate() {
        let costs: Vec<f64> = times
            .iter()
            .map(|times| if at == 0 { times[0] } else { times[at] - times[0] })
            .collect();
        println!("{name:<20}{:>8.0}{:>8.0}{:>8.0}", costs[0], costs[1], costs[2]);
        let is_held = at > 0 && at + 1 < pipelines.len() && !WORKS.contains(&name.as_str());
        let most = costs.into_iter().fold(0.0, f64::max);
        if is_held && most > worst.0 {
            worst = (most, name);
        }
    }
    println!("dearest of those that are not used: {} with {:.0} ns", worst.1, worst.0);
    if !cfg!(debug_assertions) && worst.0 >= LIMIT {
        println!("a feature that is not used may cost {LIMIT:.0} ns");
        std::process::exit(1);
    }
}
