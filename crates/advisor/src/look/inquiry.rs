//! How servers are asked: many at once, each answer bounded in time and size, and all of them in time.
//!
//! Always holds: an answer takes at most the patience of the command line, and none is waited for past the deadline;
//! what is no answer is a sentence that says why.

use super::clocks::{ClockOffset, DATE_GRAIN};
use futures_util::StreamExt;
use http::header::DATE;
use http::{HeaderMap, Method};
use peer::{Address, Body, BodyError, PeerError, Peers, RawCall, Timeouts};
use std::future::Future;
use std::time::Duration;
use vocabulary::calendar;
use world::World;

/// Servers asked at the same time.
const AT_ONCE: usize = 128;
/// A longer answer is none: `/metrics` of a node with a hundred devices has about 200 KiB.
const LONGEST_ANSWER: u64 = 8 << 20;
/// From the first question on, all answers are there by then.
const DEADLINE: Duration = Duration::from_secs(7);

/// Between two looks at the same counters.
pub(super) const APART: Duration = Duration::from_millis(1500);

/// Asks servers.
pub(super) struct Inquiry<'a> {
    peers: &'a Peers,
    patience: Duration,
    /// On the world's clock.
    deadline: Duration,
}

/// Why there are no figures.
#[derive(Debug, Clone)]
pub(super) enum NoAnswer {
    /// It answered with another status than 2xx, or with more than is read.
    Refused(String),
    /// It could not be reached, or did not answer in time.
    Silent(String),
}

impl NoAnswer {
    pub fn why(&self) -> &str {
        match self {
            NoAnswer::Refused(why) | NoAnswer::Silent(why) => why,
        }
    }
}

/// What a server answered.
pub(super) struct ServerAnswer {
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    /// When it was asked and when it had answered, by this machine's clock: seconds since 1970.
    pub when: (f64, f64),
}

impl ServerAnswer {
    /// How far the server's clock is off, by the date of its answer.
    pub fn clock(&self) -> Option<ClockOffset> {
        let date = calendar::parse_http(self.headers.get(DATE)?.to_str().ok()?)?;
        self.clock_by(date as f64, DATE_GRAIN)
    }

    /// The same, by a time that the server reported in its answer.
    pub fn clock_by(&self, reported: f64, grain: f64) -> Option<ClockOffset> {
        let (asked, answered) = self.when;
        ClockOffset::of(reported, asked, answered, grain)
    }
}

impl<'a> Inquiry<'a> {
    /// From now on.
    pub fn new(peers: &'a Peers, patience: Duration) -> Self {
        Self {
            patience,
            deadline: peers.world().clock.elapsed() + DEADLINE,
            peers,
        }
    }

    pub fn world(&self) -> &World {
        self.peers.world()
    }

    /// Runs one conversation for each thing, many at a time; what comes of them in the order of the things.
    pub async fn each<T, R, F: Future<Output = R>>(&self, all: Vec<T>, talk: impl Fn(T) -> F) -> Vec<R> {
        futures_util::stream::iter(all.into_iter().map(talk))
            .buffered(AT_ONCE)
            .collect()
            .await
    }

    /// What a server says to GET; an error says why there is no answer.
    pub async fn get(&self, host: &str, port: u16, path: &str) -> Result<ServerAnswer, NoAnswer> {
        self.ask(Method::GET, host, port, path, HeaderMap::new()).await
    }

    /// What a server says; any status but 2xx is an error.
    pub async fn ask(
        &self,
        method: Method,
        host: &str,
        port: u16,
        path: &str,
        headers: HeaderMap,
    ) -> Result<ServerAnswer, NoAnswer> {
        let begun = self.world().clock.elapsed();
        let left = self.deadline.saturating_sub(begun).min(self.patience);
        if left.is_zero() {
            return Err(NoAnswer::Silent(
                "not asked: the time for all answers was over".to_owned(),
            ));
        }
        let asked = self.world().clock.now().as_f64();
        let exchange = self.exchange(method, host, port, path, headers);
        let (headers, body) = match self.world().timeout(left, exchange).await {
            Ok(done) => done?,
            Err(_) => {
                return Err(NoAnswer::Silent(format!(
                    "no answer within {:.1} s",
                    left.as_secs_f64()
                )));
            }
        };
        let when = (asked, self.world().clock.now().as_f64());
        Ok(ServerAnswer { headers, body, when })
    }

    async fn exchange(
        &self,
        method: Method,
        host: &str,
        port: u16,
        path: &str,
        headers: HeaderMap,
    ) -> Result<(HeaderMap, Vec<u8>), NoAnswer> {
        let call = RawCall {
            method,
            address: Address::Plain(path.to_owned()),
            query: String::new(),
            headers,
            body: Body::empty(),
            interim: None,
        };
        // The time for the whole answer ends first.
        let timeouts = Timeouts {
            connect: self.patience * 2,
            response: self.patience * 2,
        };
        let response = self.peers.send(host, port, call, timeouts).await.map_err(silence)?;
        let (head, body) = response.into_parts();
        if !head.status.is_success() {
            return Err(NoAnswer::Refused(format!("status {}", head.status.as_u16())));
        }
        let collected = body.collect(LONGEST_ANSWER).await;
        let body = collected.map_err(|error| match error {
            BodyError::TooLarge(_) => NoAnswer::Refused(error.to_string()),
            _ => NoAnswer::Silent(error.to_string()),
        })?;
        Ok((head.headers, body.to_vec()))
    }

    /// Whether something accepts connections there; an error says why not.
    pub async fn connects(&self, host: &str, port: u16) -> Result<(), String> {
        let left = self.deadline.saturating_sub(self.world().clock.elapsed());
        let left = left.min(self.patience);
        let connecting = self.world().network.connect(host.to_owned(), port);
        match self.world().timeout(left, connecting).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("no connection within {:.1} s", left.as_secs_f64())),
        }
    }

    /// Lets time pass between two looks at the same counter, if there is some left.
    pub async fn pause(&self, time: Duration) {
        let left = self.deadline.saturating_sub(self.world().clock.elapsed());
        self.world().clock.sleep(time.min(left)).await;
    }
}

fn silence(error: PeerError) -> NoAnswer {
    NoAnswer::Silent(match error {
        PeerError::Connect(why) => format!("cannot connect: {why}"),
        PeerError::ConnectTimeout => "no connection in time".to_owned(),
        PeerError::ResponseTimeout => "no answer in time".to_owned(),
        other => other.to_string(),
    })
}

/// An address as URLs have it.
pub(super) fn place(host: &str, port: u16) -> String {
    match host.contains(':') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    }
}
