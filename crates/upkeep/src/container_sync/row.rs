//! One row of a synced container, carried to the other side.
//!
//! Always holds: what is sent has the time that it has here, so that the newer of two sides wins whatever the order;
//! what the other side has already, or something newer, is not sent again; a body takes as long as it moves, and no
//! longer; a server that thanks for an object before it has taken all of it is not believed. What is still encrypted
//! when it comes (with the key of a client, S3's SSE-C, or as the pipeline has no keymaster and encryption) is not
//! sent, as the other side could not read it: it stays due, and the log names it.

use super::NAME;
use super::silence::SilentClusters;
use super::target::{HttpProxy, SyncTarget};
use crate::faults::ToFault;
use crate::internal_client::{InternalClient, InternalRequest, is_of_object};
use crate::peer_failures::PeerFailures;
use http::{HeaderMap, HeaderValue, Method};
use listing_engine::ObjectRow;
use peer::message::header_names::{X_CUSTOMER_KEY_PROOF, X_NEWEST, X_POLICY_INDEX, X_TIMESTAMP};
use peer::message::{Message, RawRequest, RequestContext};
use peer::{Address, Body, Call, Meter, PeerError, Peers, Response, Timeouts};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use telemetry::Statsd;
use vocabulary::{EntityPath, Fault, PolicyIndex, Timestamp};
use world::World;

/// No object takes longer, however slowly it moves.
const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// The longest wait for an answer to a request without a body.
const LOOK_PATIENCE: Duration = Duration::from_secs(30);
/// Bytes read of answers that are ignored.
const MAX_IGNORED: u64 = 64 << 10;

/// The way from one side to the other.
#[derive(Clone)]
pub(super) struct Carrier {
    pub(super) world: World,
    pub(super) client: InternalClient,
    pub(super) peers: Arc<Peers>,
    pub(super) proxies: Vec<HttpProxy>,
    pub(super) timeouts: Timeouts,
    pub(super) failures: Arc<PeerFailures>,
    pub(super) silent: SilentClusters,
}

impl Carrier {
    /// Whether the other side is to be left alone for now, as it did not answer in time.
    pub(super) fn is_silent(&self, target: &SyncTarget) -> bool {
        self.silent.has(target, self.world.clock.elapsed())
    }

    /// Whether the other side has it now.
    pub(super) async fn carry(
        &self,
        statsd: &Statsd,
        target: &SyncTarget,
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
                statsd.increment(what);
                statsd.timing(format_args!("{what}.timing"), took);
            }
            Ok(None) => {}
            Err(_) => statsd.increment("failures"),
        }
        carried
            .inspect_err(|why| {
                let path = container.with_object(row.name.as_str()).path();
                self.failures
                    .note_at(target.place(), path, format!("not synced: {why}"));
            })
            .is_ok()
    }

    async fn delete(&self, target: &SyncTarget, row: &ObjectRow) -> Result<(), Fault> {
        let headers = HeaderMap::new();
        let response = self
            .send(target, Method::DELETE, &row.name, row.timestamp, headers, Body::empty())
            .await;
        match response.map_err(|error| error.to_fault())? {
            // Nothing there, or something newer.
            (404 | 409, _) => Ok(()),
            (status, _) => success(status),
        }
    }

    /// What was done, if anything had to be.
    async fn put(
        &self,
        target: &SyncTarget,
        container: &EntityPath,
        policy: PolicyIndex,
        row: &ObjectRow,
    ) -> Result<Option<&'static str>, Fault> {
        let newest = [row.content_type_timestamp, row.meta_timestamp].into_iter().flatten();
        let time = newest.fold(row.timestamp, Timestamp::max);
        if self.is_there(target, row, time).await? {
            return Ok(None);
        }
        let mut get =
            InternalRequest::new(Method::GET, container.with_object(row.name.as_str())).with(X_NEWEST, "true");
        get.query = "symlink=get".into();
        get.headers.insert(X_POLICY_INDEX, HeaderValue::from(policy.0));
        let source = self
            .client
            .ask(&get, &[2])
            .await
            .map_err(|error| Fault::peer(error.to_string()))?;
        let (head, body) = source.into_parts();
        if head
            .headers
            .get(X_CUSTOMER_KEY_PROOF)
            .is_some_and(|proof| !proof.is_empty())
        {
            return Err(Fault::data(
                "it is encrypted with a client's key (SSE-C), without which it cannot be sent",
            ));
        }
        if is_encrypted(&head.headers) {
            return Err(Fault::data(
                "it is encrypted: give keymaster and encryption to the pipeline of internal_client_conf_path",
            ));
        }
        let written = time_of(&head.headers);
        if written < time {
            return Err(Fault::peer(format!("only an older version ({written}) was found")));
        }
        let mut headers = sent(&head.headers);
        let length = body.length();
        match length {
            Some(length) => headers.insert("content-length", HeaderValue::from(length)),
            None => headers.insert("transfer-encoding", HeaderValue::from_static("chunked")),
        };
        let sent = self.send(target, Method::PUT, &row.name, written, headers, body).await;
        let (status, taken) = sent.map_err(|error| error.to_fault())?;
        success(status)?;
        match length {
            // A gateway need not read what is older than what it has, a deletion perhaps.
            Some(_) if status == http::StatusCode::ACCEPTED.as_u16() => Ok(Some("puts")),
            Some(length) if taken < length => {
                Err(Fault::peer(format!("answered {status} to {taken} of {length} bytes")))
            }
            _ => Ok(Some("puts")),
        }
    }

    /// Whether the other side has it already. What else goes wrong than time shows when it is sent.
    async fn is_there(&self, target: &SyncTarget, row: &ObjectRow, time: Timestamp) -> Result<bool, Fault> {
        let response = self
            .ask(target, Method::HEAD, &row.name, time, HeaderMap::new(), Body::empty())
            .await;
        match response {
            Ok((response, _)) => Ok(response.status().is_success() && time_of(response.headers()) >= time),
            Err(error) if is_silence(&error) => Err(error.to_fault()),
            Err(_) => Ok(false),
        }
    }

    /// The status of the answer, and how much of the body was taken before it.
    async fn send(
        &self,
        target: &SyncTarget,
        method: Method,
        name: &str,
        time: Timestamp,
        headers: HeaderMap,
        body: Body,
    ) -> Result<(u16, u64), PeerError> {
        let (response, taken) = self.ask(target, method, name, time, headers, body).await?;
        let status = response.status().as_u16();
        drop(
            self.world
                .timeout(self.timeouts.response, response.into_body().collect(MAX_IGNORED))
                .await,
        );
        Ok((status, taken))
    }

    async fn ask(
        &self,
        target: &SyncTarget,
        method: Method,
        name: &str,
        time: Timestamp,
        mut headers: HeaderMap,
        body: Body,
    ) -> Result<(Response, u64), PeerError> {
        let path = target.path_of(name);
        target.sign(&self.world, method.as_str(), &path, time, &mut headers);
        headers.insert("user-agent", crate::ring_client::user_agent(NAME));
        let via = self.proxy();
        let address = match via {
            Some(_) => target.whole(&path),
            None => path,
        };
        let patience = match method {
            Method::PUT => self.timeouts.response,
            _ => self.timeouts.response.min(LOOK_PATIENCE),
        };
        // What a client sends to a gateway, not a message between servers of one cluster.
        let request = Message::Raw(RawRequest {
            method,
            address: Address::Plain(address),
            query: String::new(),
            headers,
        });
        let (host, port) = via.map_or((&target.host, target.port), |via| (&via.host, via.port));
        let sent = Arc::new(Passed::default());
        let call = Call::new(RequestContext::default(), request).with_body(body.metered(&sent));
        let timeouts = Timeouts {
            response: LONGEST,
            ..self.timeouts
        };
        let sending = self.peers.send(host, port, call, timeouts);
        let response = while_it_moves(&self.world, patience, &sent, sending).await;
        self.silent
            .note(target, self.world.clock.elapsed(), response.as_ref().err());
        Ok((response?, sent.taken()))
    }

    /// Any of the proxies on the way, if there are some.
    fn proxy(&self) -> Option<&HttpProxy> {
        let count = u64::try_from(self.proxies.len()).ok().filter(|count| *count > 0)?;
        let any = self.world.random.next_u64() % count;
        self.proxies.get(usize::try_from(any).ok()?)
    }
}

fn is_silence(error: &PeerError) -> bool {
    matches!(error, PeerError::ConnectTimeout | PeerError::ResponseTimeout)
}

/// How much of a body has been taken.
#[derive(Default)]
struct Passed(AtomicU64);

impl Passed {
    fn taken(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

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
        let before = sent.taken();
        match world.timeout(patience, sending.as_mut()).await {
            Ok(answer) => return answer,
            Err(_) if sent.taken() == before => return Err(PeerError::ResponseTimeout),
            Err(_) => {}
        }
    }
}

fn success(status: u16) -> Result<(), Fault> {
    match status {
        200..=299 => Ok(()),
        401 => Err(Fault::peer("Unauth (401): do the keys of both sides agree?")),
        404 => Err(Fault::peer("Not found (404): is the other container there?")),
        other => Err(Fault::peer(format!("answered {other}"))),
    }
}

fn time_of(headers: &HeaderMap) -> Timestamp {
    let text = headers.get(X_TIMESTAMP).and_then(|value| value.to_str().ok());
    text.and_then(|text| text.parse().ok()).unwrap_or(Timestamp::ZERO)
}

/// Whether the body or user metadata are as they are stored: where the pipeline has `encryption`, it leaves nothing of
/// its own among the headers.
fn is_encrypted(headers: &HeaderMap) -> bool {
    let own = ["x-object-sysmeta-crypto-", "x-object-transient-sysmeta-crypto-meta"];
    let names = headers.keys().map(http::HeaderName::as_str);
    names
        .into_iter()
        .any(|name| own.iter().any(|own| name.starts_with(own)))
}

fn sent(headers: &HeaderMap) -> HeaderMap {
    let sent = headers.iter().filter(|(name, _)| is_of_object(name.as_str()));
    sent.map(|(name, value)| (name.clone(), value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container_sync::target::target_of;
    use bytes::Bytes;
    use http::HeaderName;
    use peer::{HttpService, Service};
    use std::future::pending;
    use std::net::SocketAddr;

    const PATIENCE: Duration = Duration::from_secs(60);
    const TIME: &str = "0000000005.00000";

    /// Has every object, of ten bytes, with one header besides its time.
    struct Source(HeaderName, &'static str);

    const PLAIN: (HeaderName, &str) = (X_CUSTOMER_KEY_PROOF, "");

    #[async_trait::async_trait]
    impl HttpService for Source {
        async fn serve(&self, _: http::Request<Body>, _: SocketAddr) -> Response {
            let pieces =
                futures_util::stream::iter([Ok(Bytes::from_static(b"01234")), Ok(Bytes::from_static(b"56789"))]);
            let mut response = Response::new(Body::stream(pieces, Some(10)));
            response
                .headers_mut()
                .insert(X_TIMESTAMP, HeaderValue::from_static(TIME));
            let value = HeaderValue::from_static(self.1);
            response.headers_mut().insert(self.0.clone(), value);
            response
        }
    }

    /// Has nothing, and answers everything else so, having read the body or not.
    struct OtherSide {
        status: u16,
        reads: bool,
    }

    #[async_trait::async_trait]
    impl Service for OtherSide {
        async fn call(&self, call: Call) -> Response {
            let mut response = Response::new(Body::empty());
            let is_head = call.message.method() == Method::HEAD;
            let status = if is_head { 404 } else { self.status };
            *response.status_mut() = http::StatusCode::from_u16(status).unwrap();
            if self.reads {
                call.body.collect(100).await.unwrap();
            }
            response
        }
    }

    /// Whether a row counts as synced then.
    async fn carried(status: u16, reads: bool, deleted: bool) -> bool {
        carried_of(PLAIN, status, reads, deleted).await
    }

    async fn carried_of(header: (HeaderName, &'static str), status: u16, reads: bool, deleted: bool) -> bool {
        carry(&carrier(header, OtherSide { status, reads }), deleted).await
    }

    fn carrier((name, value): (HeaderName, &'static str), other_side: impl Service + 'static) -> Carrier {
        let world = World::real();
        let mut peers = Peers::new(world.clone());
        peers.register("127.0.0.1", 80, Arc::new(other_side));
        Carrier {
            client: InternalClient::new(world.clone(), Arc::new(Source(name, value)), "test", 1),
            world,
            peers: Arc::new(peers),
            proxies: vec![],
            timeouts: Timeouts {
                connect: PATIENCE,
                response: PATIENCE,
            },
            failures: Arc::new(PeerFailures::new(NAME)),
            silent: SilentClusters::default(),
        }
    }

    fn target() -> SyncTarget {
        target_of("c")
    }

    async fn carry(carrier: &Carrier, deleted: bool) -> bool {
        let row = ObjectRow {
            deleted,
            ..ObjectRow::deleted("o", TIME.parse().unwrap(), PolicyIndex(0))
        };
        let container = EntityPath::account("a").with_container("c");
        carrier
            .carry(&Statsd::default(), &target(), &container, PolicyIndex(0), &row)
            .await
    }

    /// Answers nothing.
    struct Hung;

    #[async_trait::async_trait]
    impl Service for Hung {
        async fn call(&self, _: Call) -> Response {
            pending().await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_cluster_that_does_not_answer_is_waited_for_once_and_left_alone_for_a_while() {
        for deleted in [false, true] {
            let mut hung = carrier(PLAIN, Hung);
            let began = tokio::time::Instant::now();
            assert!(!hung.is_silent(&target()) && !carry(&hung, deleted).await);
            assert!(began.elapsed() < LOOK_PATIENCE * 3 / 2, "{:?}", began.elapsed());
            assert!(hung.is_silent(&target()));
            let later = hung.world.clock.elapsed() + Duration::from_secs(60);
            assert!(!hung.silent.has(&target(), later));
            assert!(!hung.is_silent(&target_of("d")), "one container of the cluster");
            hung.peers = carrier(
                PLAIN,
                OtherSide {
                    status: 201,
                    reads: true,
                },
            )
            .peers;
            assert!(carry(&hung, false).await && !hung.is_silent(&target()));
        }
    }

    #[tokio::test]
    async fn only_what_the_other_side_has_taken_whole_is_synced() {
        assert!(carried(201, true, false).await);
        assert!(!carried(201, false, false).await, "it cannot have what it has not read");
        assert!(carried(202, false, false).await, "it has something newer");
        assert!(!carried(503, true, false).await);
    }

    #[tokio::test]
    async fn what_is_still_encrypted_is_not_sent() {
        for header in [
            X_CUSTOMER_KEY_PROOF,
            HeaderName::from_static("x-object-sysmeta-crypto-body-meta"),
            HeaderName::from_static("x-object-transient-sysmeta-crypto-meta-colour"),
        ] {
            assert!(!carried_of((header.clone(), "x"), 201, true, false).await);
            assert!(carried_of((header, "x"), 204, true, true).await, "it can be deleted");
        }
        let other = HeaderName::from_static("x-object-sysmeta-cryptography");
        assert!(carried_of((other, "x"), 201, true, false).await);
    }

    #[tokio::test]
    async fn a_deletion_is_done_where_something_newer_is() {
        for status in [204, 404, 409] {
            assert!(carried(status, true, true).await, "{status}");
        }
        assert!(!carried(401, true, true).await);
    }

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
