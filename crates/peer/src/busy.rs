//! What clients hear that a server has no room for.
//!
//! Always holds: a refusal costs little memory, little time and no look at the request; it names no internals.

use crate::arrival::Arrival;
use crate::call::Response;
use crate::http_service::plain;
use http::StatusCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use world::{Clock, Stream, World};

/// The text of an answer to a request that is not served now.
const BUSY: &str = "The server is busy\n";
/// How long a refused client is waited for.
const PATIENCE: Duration = Duration::from_secs(1);
/// Seconds until it is worth another try.
const RETRY_AFTER: u16 = 5;
/// Bytes read of a refused connection, so that it sees the answer.
const READ_AFTER_REFUSAL: u64 = 16 * 1024;

/// Tells clients that they come in vain.
#[derive(Default)]
pub(crate) struct Refusing(Arc<AtomicUsize>);

impl Refusing {
    /// Refused clients that are waited for.
    const MOST: usize = 64;

    /// Answers without a look at the request. Where TLS comes first, or when many are refused, the connection is
    /// closed.
    pub(crate) fn refuse(&mut self, world: &World, stream: Box<dyn Stream>, arrival: &Arrival) {
        if arrival.tls.is_some() || arrival.cluster.is_some() || self.0.load(Ordering::Relaxed) >= Self::MOST {
            return;
        }
        let (count, clock) = (self.0.clone(), world.clock.clone());
        count.fetch_add(1, Ordering::Relaxed);
        world.spawn_unrelated(async move {
            turn_away(stream, &*clock).await;
            count.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

/// Says that the server is busy, and reads a little of what comes, so that the client sees the answer.
pub(crate) async fn turn_away(stream: Box<dyn Stream>, clock: &dyn Clock) {
    // A client that is gone by then needs no answer.
    let _ = world::clock::timeout(clock, PATIENCE, say_busy(stream)).await;
}

async fn say_busy(mut stream: Box<dyn Stream>) -> std::io::Result<()> {
    let text = BUSY;
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\
         Retry-After: {RETRY_AFTER}\r\nConnection: close\r\n\r\n{text}",
        text.len()
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await?;
    let mut rest = stream.take(READ_AFTER_REFUSAL);
    tokio::io::copy(&mut rest, &mut tokio::io::sink()).await?;
    Ok(())
}

/// The answer to a request that is not served now.
pub(crate) fn busy() -> Response {
    let mut response = plain(StatusCode::SERVICE_UNAVAILABLE, BUSY);
    response
        .headers_mut()
        .insert(http::header::RETRY_AFTER, RETRY_AFTER.into());
    response
}
