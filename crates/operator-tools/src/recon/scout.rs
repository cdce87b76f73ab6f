//! The hosts that are asked, and how: all at once, a bounded number at a time.
//!
//! Always holds: an answer is bounded in size and in time; what is no answer is an [`NoResponse`] with the words of it.

use super::{Checks, ReconArguments};
use crate::swift_dir::read_ring;
use futures_util::StreamExt;
use http::{HeaderMap, Method};
use peer::{Address, Body, PeerError, Peers, RawCall, Timeouts};
use serde_json::{Value, json};
use settings::SwiftConf;
use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::time::Duration;
use vocabulary::{Fault, Policies, PolicyIndex};
use world::World;

/// Hosts asked at the same time.
const AT_ONCE: usize = 30;
/// A longer answer is none.
const LIMIT: u64 = 64 << 20;

/// A kind of server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReconServer {
    Account,
    Container,
    Object,
}

impl ReconServer {
    pub(super) const ALL: [ReconServer; 3] = [ReconServer::Account, ReconServer::Container, ReconServer::Object];

    pub(super) fn named(word: &str) -> Option<ReconServer> {
        ReconServer::ALL.into_iter().find(|kind| kind.word() == word)
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            ReconServer::Account => "account",
            ReconServer::Container => "container",
            ReconServer::Object => "object",
        }
    }
}

/// Why no host can be asked.
pub(super) enum ScoutError {
    /// There is no such storage policy.
    Policy(String),
    /// A file is wanting or wrong.
    Files(Fault),
}

/// Whom to ask.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Host {
    pub(super) ip: String,
    pub(super) port: u16,
}

impl Host {
    /// As OpenStack's program says it, in URLs too: IPv6 addresses are without brackets.
    pub(super) fn name(&self) -> String {
        format!("{}:{}", self.ip, self.port)
    }
}

/// Why there is no answer, as OpenStack's program words it.
#[derive(Debug)]
pub(super) struct NoResponse(String);

/// What a host answered.
pub(super) struct HostResponse {
    pub(super) host: Host,
    pub(super) url: String,
    pub(super) body: Result<Value, NoResponse>,
    /// When it was asked, and when it had answered.
    pub(super) when: (f64, f64),
}

/// Asks hosts.
pub(super) struct Scout<'a> {
    pub(super) kind: ReconServer,
    pub(super) hosts: Vec<Host>,
    pub(super) world: &'a World,
    peers: &'a Peers,
    patience: Duration,
}

impl<'a> Scout<'a> {
    pub(super) fn new(arguments: &ReconArguments, peers: &'a Peers, kind: ReconServer) -> Result<Self, ScoutError> {
        let world = peers.world();
        let policies = policies(&arguments.swiftdir)?;
        let policy = arguments.policy.as_deref().filter(|name| !name.is_empty());
        let mut hosts = BTreeSet::new();
        for name in rings(kind, &policies, policy)? {
            let ring =
                read_ring(world, &arguments.swiftdir.join(format!("{name}.ring.gz"))).map_err(ScoutError::Files)?;
            let asked = ring.devices().filter(|device| {
                let region = arguments.region.is_none_or(|region| region == i64::from(device.region));
                region && arguments.zone.is_none_or(|zone| zone == i64::from(device.zone))
            });
            hosts.extend(asked.map(|device| Host {
                ip: device.ip.clone(),
                port: device.port,
            }));
        }
        Ok(Self {
            kind,
            hosts: hosts.into_iter().collect(),
            world,
            peers,
            patience: Duration::from_secs(arguments.timeout.max(1) as u64),
        })
    }

    /// Seconds since 1970.
    pub(super) fn now(&self) -> f64 {
        self.world.clock.now().as_f64()
    }

    /// What every host says to a question of `/recon/`.
    async fn ask(&self, question: &str) -> Vec<HostResponse> {
        let path = format!("/recon/{question}");
        let asking = self.hosts.iter().map(|host| self.ask_one(host, &path));
        futures_util::stream::iter(asking).buffered(AT_ONCE).collect().await
    }

    async fn ask_one(&self, host: &Host, path: &str) -> HostResponse {
        let began = self.now();
        let body = self
            .world
            .timeout(self.patience, self.exchange(host, Method::GET, path))
            .await;
        let body = match body {
            Err(_) => Err(NoResponse("<urlopen error timed out>".into())),
            Ok(Err(silence)) => Err(silence),
            Ok(Ok((_, body))) => serde_json::from_slice(&body).map_err(|error| NoResponse(format!("no JSON: {error}"))),
        };
        HostResponse {
            host: host.clone(),
            url: format!("http://{}{path}", host.name()),
            body,
            when: (began, self.now()),
        }
    }

    /// What hosts are: the names they answer OPTIONS with.
    pub(super) async fn identities(&self) -> Vec<(String, Result<Option<String>, NoResponse>)> {
        let asking = self.hosts.iter().map(|host| async move {
            let asked = self.exchange(host, Method::OPTIONS, "/");
            let body = match self.world.timeout(self.patience, asked).await {
                Err(_) => Err(NoResponse("<urlopen error timed out>".into())),
                Ok(body) => body.map(|(headers, _)| {
                    let name = headers.get(http::header::SERVER)?;
                    Some(String::from_utf8_lossy(name.as_bytes()).into_owned())
                }),
            };
            (format!("http://{}/", host.name()), body)
        });
        futures_util::stream::iter(asking).buffered(AT_ONCE).collect().await
    }

    async fn exchange(&self, host: &Host, method: Method, path: &str) -> Result<(HeaderMap, bytes::Bytes), NoResponse> {
        let call = RawCall {
            method,
            address: Address::Plain(path.to_owned()),
            query: String::new(),
            headers: HeaderMap::new(),
            body: Body::empty(),
            interim: None,
        };
        let timeouts = Timeouts {
            connect: self.patience,
            response: self.patience,
        };
        let response = self
            .peers
            .send(&host.ip, host.port, call, timeouts)
            .await
            .map_err(silence)?;
        let (head, body) = response.into_parts();
        match head.status {
            status if status.is_success() => {}
            status => {
                let reason = status.canonical_reason().unwrap_or_default();
                return Err(NoResponse(format!("HTTP Error {}: {reason}", status.as_u16())));
            }
        }
        let body = body
            .collect(LIMIT)
            .await
            .map_err(|error| NoResponse(error.to_string()))?;
        Ok((head.headers, body))
    }
}

/// As Python's urllib says it.
fn silence(error: PeerError) -> NoResponse {
    let text = match error {
        PeerError::Connect(why) => {
            let refused = why.contains("os error 111");
            match refused {
                true => "<urlopen error [Errno 111] ECONNREFUSED>".to_owned(),
                false => format!("<urlopen error {why}>"),
            }
        }
        PeerError::ConnectTimeout | PeerError::ResponseTimeout => "<urlopen error timed out>".to_owned(),
        other => other.to_string(),
    };
    NoResponse(text)
}

/// The storage policies of the cluster; the usual one when nothing is said of them.
fn policies(swift_dir: &Path) -> Result<Policies, ScoutError> {
    if !swift_dir.join("swift.conf").exists() {
        return Ok(Policies::default());
    }
    let conf =
        SwiftConf::load_from_dir(swift_dir).map_err(|error| ScoutError::Files(Fault::caller(error.to_string())))?;
    Ok(conf.policies)
}

/// The names of a kind's rings.
fn rings(kind: ReconServer, policies: &Policies, policy: Option<&str>) -> Result<Vec<String>, ScoutError> {
    let chosen = |name: &str| {
        let index = name.parse().ok().map(PolicyIndex);
        let found = policies.by_name(name).or_else(|| policies.get(index?));
        found.ok_or_else(|| ScoutError::Policy(name.to_owned()))
    };
    let policy = policy.map(chosen).transpose()?;
    Ok(match (kind, policy) {
        (ReconServer::Object, Some(policy)) => vec![policy.index.ring_name()],
        (ReconServer::Object, None) => policies.iter().map(|policy| policy.index.ring_name()).collect(),
        (kind, _) => vec![kind.word().to_owned()],
    })
}

impl Checks<'_, '_, '_> {
    /// What every host answers, one line each as the options ask.
    pub(super) async fn ask(&mut self, question: &str) -> io::Result<Vec<HostResponse>> {
        let responses = self.scout.ask(question).await;
        for answer in &responses {
            let reported = match &answer.body {
                Ok(body) => body.clone(),
                Err(silence) => json!({ "error": silence.0 }),
            };
            self.writer.answer(&answer.host.name(), reported);
            match &answer.body {
                Ok(body) if self.arguments.verbose => {
                    let body = pythonic::repr(body);
                    self.writer.line(format_args!("-> {}: {body}", answer.url))?;
                }
                Err(silence) => self.silent(&answer.url, silence)?,
                Ok(_) => {}
            }
        }
        Ok(responses)
    }

    /// The same without those who did not answer.
    pub(super) async fn responses(&mut self, question: &str) -> io::Result<Vec<(Host, Value)>> {
        let responses = self.ask(question).await?.into_iter();
        Ok(responses
            .filter_map(|answer| Some((answer.host, answer.body.ok()?)))
            .collect())
    }

    /// The line of a host that did not answer.
    pub(super) fn silent(&mut self, url: &str, silence: &NoResponse) -> io::Result<()> {
        match self.arguments.suppress && !self.arguments.verbose {
            true => Ok(()),
            false => self.writer.line(format_args!("-> {url}: {}", silence.0)),
        }
    }
}
