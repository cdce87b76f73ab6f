//! One row of a synced container, carried to the other side.
//!
//! Always holds: what is sent has the time that it has here, so that the newer of two sides wins whatever
//! the order; what the other side has already is not sent again; a body takes as long as it moves, and no longer.

use super::NAME;
use super::target::{HttpProxy, Target};
use crate::internal_client::{Ask, InternalClient, is_of_object};
use http::{HeaderMap, HeaderValue, Method};
use listing_engine::ObjectRow;
use peer::{Address, Body, Call, Meter, PeerError, Peers, Response, Timeouts};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use telemetry::Statsd;
use vocabulary::{EntityPath, PolicyIndex, Timestamp};
use world::World;

/// No object takes longer, however slowly it moves.
const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// Bytes read of answers nobody looks at.
const MAX_IGNORED: u64 = 64 << 10;

/// The way from one side to the other.
#[derive(Clone)]
pub(super) struct Carrier {
    pub(super) world: World,
    pub(super) client: InternalClient,
    pub(super) peers: Arc<Peers>,
    pub(super) proxies: Vec<HttpProxy>,
    pub(super) timeouts: Timeouts,
    pub(super) statsd: Statsd,
}

impl Carrier {
    /// Whether the other side has it now.
    pub(super) async fn carry(
        &self,
        target: &Target,
        container: &EntityPath,
        policy: PolicyIndex,
        row: &ObjectRow,
    ) -> bool {
        let began = self.world.clock.elapsed();
        let carried = match row.deleted {
            true => self.delete(target, row).await.map(|()| Some("deletes")),
            false => self.put(target, container, policy, row).await,
        };
        let took = self.world.clock.elapsed().saturating_sub(began);
        match carried {
            Ok(Some(what)) => {
                self.statsd.increment(what);
                self.statsd.timing(format_args!("{what}.timing"), took);
            }
            Ok(None) => {}
            Err(_) => self.statsd.increment("failures"),
        }
        carried
            .inspect_err(|why| {
                let (path, place) = (container.with_object(row.name.as_str()).path(), target.place());
                tracing::warn!("{NAME}: {path} is not synced to {place}: {why}");
            })
            .is_ok()
    }

    async fn delete(&self, target: &Target, row: &ObjectRow) -> Result<(), String> {
        let headers = HeaderMap::new();
        let response = self
            .send(target, Method::DELETE, &row.name, row.timestamp, headers, Body::empty())
            .await;
        match response.map_err(|error| error.to_string())? {
            404 => Ok(()),
            status => success(status),
        }
    }

    /// What was done, if anything had to be.
    async fn put(
        &self,
        target: &Target,
        container: &EntityPath,
        policy: PolicyIndex,
        row: &ObjectRow,
    ) -> Result<Option<&'static str>, String> {
        let newest = [row.content_type_timestamp, row.meta_timestamp].into_iter().flatten();
        let time = newest.fold(row.timestamp, Timestamp::max);
        if self.is_there(target, row, time).await {
            return Ok(None);
        }
        let mut get = Ask::new(Method::GET, container.with_object(row.name.as_str())).with("x-newest", "true");
        get.query = "symlink=get".into();
        get.headers
            .insert("x-backend-storage-policy-index", HeaderValue::from(policy.0));
        let source = self.client.ask(&get, &[2]).await.map_err(|error| error.to_string())?;
        let (head, body) = source.into_parts();
        let written = time_of(&head.headers);
        if written < time {
            return Err(format!("only an older version ({written}) was found"));
        }
        let mut headers = sent(&head.headers);
        match body.length() {
            Some(length) => headers.insert("content-length", HeaderValue::from(length)),
            None => headers.insert("transfer-encoding", HeaderValue::from_static("chunked")),
        };
        let status = self.send(target, Method::PUT, &row.name, written, headers, body).await;
        success(status.map_err(|error| error.to_string())?).map(|()| Some("puts"))
    }

    async fn is_there(&self, target: &Target, row: &ObjectRow, time: Timestamp) -> bool {
        let response = self
            .ask(target, Method::HEAD, &row.name, time, HeaderMap::new(), Body::empty())
            .await;
        response.is_ok_and(|response| response.status().is_success() && time_of(response.headers()) >= time)
    }

    /// The status of the answer.
    async fn send(
        &self,
        target: &Target,
        method: Method,
        name: &str,
        time: Timestamp,
        headers: HeaderMap,
        body: Body,
    ) -> Result<u16, PeerError> {
        let response = self.ask(target, method, name, time, headers, body).await?;
        let status = response.status().as_u16();
        drop(
            self.world
                .timeout(self.timeouts.response, response.into_body().collect(MAX_IGNORED))
                .await,
        );
        Ok(status)
    }

    async fn ask(
        &self,
        target: &Target,
        method: Method,
        name: &str,
        time: Timestamp,
        mut headers: HeaderMap,
        body: Body,
    ) -> Result<Response, PeerError> {
        let path = target.path_of(name);
        target.sign(&self.world, method.as_str(), &path, time, &mut headers);
        headers.insert("user-agent", crate::circle::user_agent(NAME));
        let via = self.proxy();
        let address = match via {
            Some(_) => target.whole(&path),
            None => path,
        };
        let call = Call {
            method,
            address: Address::Plain(address),
            query: String::new(),
            headers,
            body,
            interim: None,
        };
        let (host, port) = via.map_or((&target.host, target.port), |via| (&via.host, via.port));
        let sent = Arc::new(Passed::default());
        let call = Call {
            body: call.body.metered(&sent),
            ..call
        };
        let timeouts = Timeouts {
            response: LONGEST,
            ..self.timeouts
        };
        let sending = self.peers.send(host, port, call, timeouts);
        while_it_moves(&self.world, self.timeouts.response, &sent, sending).await
    }

    /// Any of the proxies on the way, if there are some.
    fn proxy(&self) -> Option<&HttpProxy> {
        let count = u64::try_from(self.proxies.len()).ok().filter(|count| *count > 0)?;
        let any = self.world.random.next_u64() % count;
        self.proxies.get(usize::try_from(any).ok()?)
    }
}

/// How much of a body has been taken.
#[derive(Default)]
struct Passed(AtomicU64);

impl Meter for Passed {
    fn passed(&self, bytes: u64) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Waits for an answer; a body on its way may take its time, as long as some of it is taken within `patience`.
async fn while_it_moves<T>(
    world: &World,
    patience: Duration,
    sent: &Passed,
    sending: impl Future<Output = Result<T, PeerError>>,
) -> Result<T, PeerError> {
    let mut sending = pin!(sending);
    loop {
        let before = sent.0.load(Ordering::Relaxed);
        match world.timeout(patience, sending.as_mut()).await {
            Ok(answer) => return answer,
            Err(_) if sent.0.load(Ordering::Relaxed) == before => return Err(PeerError::ResponseTimeout),
            Err(_) => {}
        }
    }
}

fn success(status: u16) -> Result<(), String> {
    match status {
        200..=299 => Ok(()),
        401 => Err("Unauth (401): do the keys of both sides agree?".into()),
        404 => Err("Not found (404): is the other container there?".into()),
        other => Err(format!("answered {other}")),
    }
}

fn time_of(headers: &HeaderMap) -> Timestamp {
    let text = headers.get("x-timestamp").and_then(|value| value.to_str().ok());
    text.and_then(|text| text.parse().ok()).unwrap_or(Timestamp::ZERO)
}

fn sent(headers: &HeaderMap) -> HeaderMap {
    let sent = headers.iter().filter(|(name, _)| is_of_object(name.as_str()));
    sent.map(|(name, value)| (name.clone(), value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;

    const PATIENCE: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn a_body_may_take_long_while_it_moves() {
        let (world, sent) = (World::real(), Passed::default());
        let slow = async {
            for _ in 0..10 {
                world.clock.sleep(PATIENCE * 2 / 3).await;
                sent.passed(1);
            }
            Ok(201)
        };
        assert_eq!(while_it_moves(&world, PATIENCE, &sent, slow).await.ok(), Some(201));
        let stalled = async {
            sent.passed(1);
            pending::<Result<u16, PeerError>>().await
        };
        let began = tokio::time::Instant::now();
        let late = while_it_moves(&world, PATIENCE, &sent, stalled).await;
        assert!(matches!(late, Err(PeerError::ResponseTimeout)) && began.elapsed() <= PATIENCE * 3);
    }
}
