//! Connections last no longer than the other end's certificate is vouched for.
//!
//! Each stream of the cluster looks again at what its other end has shown whenever the credentials of this process
//! have been replaced, and when the certificate ends; it fails from then on if they no longer vouch for it: an
//! authority that was dropped, a certificate that was revoked or has ended. A task that reads from it or writes to it
//! is woken for that.
//! Always holds: what was vouched for by neither set of credentials is never read; a replacement between a handshake
//! and the first byte is not missed ([`Changes`] are subscribed to before the handshake's credentials are taken).

use super::{Credentials, refused, time};
use arc_swap::ArcSwap;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;
use tokio_rustls::rustls::client::danger::ServerCertVerifier;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{self, CertificateError};
use world::{BoxFuture, Clock, Stream};
use x509_parser::prelude::{FromDer, X509Certificate};

/// Between two looks at the clock, at most: that of the world may be set.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// What the other end of a connection has shown.
pub(super) struct ShownCertificate {
    certificate: CertificateDer<'static>,
    /// The authorities between it and those of the cluster's file.
    above: Vec<CertificateDer<'static>>,
    /// As what it was connected to; none of a client.
    server: Option<ServerName<'static>>,
    /// The last second of the first of them that ends.
    until: u64,
}

impl ShownCertificate {
    /// By a client, or by the server that was connected to by this name.
    pub(super) fn new(
        shown: Option<&[CertificateDer<'static>]>,
        server: Option<ServerName<'static>>,
    ) -> io::Result<Self> {
        let Some((certificate, above)) = shown.and_then(<[_]>::split_first) else {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "no certificate was shown"));
        };
        Ok(Self {
            certificate: certificate.clone(),
            above: above.to_vec(),
            server,
            until: above
                .iter()
                .chain([certificate])
                .map(last_second)
                .min()
                .unwrap_or(u64::MAX),
        })
    }

    pub(super) fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    /// Why these credentials do not vouch for it, if they do not.
    pub(super) fn verify(&self, credentials: &Credentials, clock: &dyn Clock) -> io::Result<()> {
        let (certificate, above, now) = (&self.certificate, self.above.as_slice(), time(clock));
        match &self.server {
            None => {
                let verified = credentials.clients.verify_client_cert(certificate, above, now);
                verified.map(drop).map_err(refused)
            }
            Some(name) => {
                let servers = &credentials.servers;
                let verified = servers.verify_server_cert(certificate, above, name, &[], now);
                verified.map(drop).map_err(refused)
            }
        }
    }
}

/// Until when a certificate holds; for ever when that cannot be read, which nothing that was verified is.
fn last_second(certificate: &CertificateDer<'_>) -> u64 {
    let Ok((_, parsed)) = X509Certificate::from_der(certificate) else {
        return u64::MAX;
    };
    u64::try_from(parsed.validity().not_after.timestamp()).unwrap_or(0)
}

/// Tells of credentials that are replaced.
pub(super) struct Changes {
    pub(super) seen: watch::Receiver<()>,
    pub(super) credentials: Arc<ArcSwap<Credentials>>,
    pub(super) clock: Arc<dyn Clock>,
}

/// Tells whether a connection is of credentials that have been replaced since. It is used for no further request then:
/// when an authority is dropped, step by step, nothing goes on over what it vouched for.
pub(crate) struct CredentialsAge(pub(super) watch::Receiver<()>);

impl CredentialsAge {
    pub(crate) fn is_over(&self) -> bool {
        self.0.has_changed().unwrap_or(false)
    }
}

impl Changes {
    /// Completes with the reason once the credentials in force do not vouch for what was shown.
    async fn end_of(mut self, shown: ShownCertificate) -> io::Error {
        loop {
            let now = self.clock.now().seconds();
            let left = match now > shown.until {
                // It is not to be had by waiting: the certificate is the same.
                true => return ended(&shown, now),
                false => Duration::from_secs((shown.until - now).saturating_add(1)),
            };
            tokio::select! {
                changed = self.seen.changed() => {
                    if let Err(error) = shown.verify(&self.credentials.load(), &*self.clock) {
                        return error;
                    }
                    if changed.is_err() {
                        // Nothing can replace them any more.
                        self.clock.sleep(left.min(LOOK_EVERY)).await;
                    }
                }
                () = self.clock.sleep(left.min(LOOK_EVERY)) => {}
            }
        }
    }
}

fn ended(shown: &ShownCertificate, now: u64) -> io::Error {
    let context = CertificateError::ExpiredContext {
        time: UnixTime::since_unix_epoch(Duration::from_secs(now)),
        not_after: UnixTime::since_unix_epoch(Duration::from_secs(shown.until)),
    };
    refused(rustls::Error::InvalidCertificate(context))
}

/// A stream that fails once its other end is not vouched for any more.
pub(super) struct VouchedStream<S> {
    stream: S,
    end: BoxFuture<'static, io::Error>,
    ended: bool,
}

impl<S: Stream> VouchedStream<S> {
    pub(super) fn new(stream: S, shown: ShownCertificate, changes: Changes) -> Self {
        Self {
            stream,
            end: Box::pin(changes.end_of(shown)),
            ended: false,
        }
    }

    /// Fails when it has ended; the task is woken when it does.
    fn check(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        if !self.ended {
            let Poll::Ready(error) = self.end.as_mut().poll(context) else {
                return Ok(());
            };
            self.ended = true;
            return Err(error);
        }
        Err(io::ErrorKind::ConnectionAborted.into())
    }
}

impl<S: Stream> AsyncRead for VouchedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: Stream> AsyncWrite for VouchedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // A goodbye does no harm.
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
