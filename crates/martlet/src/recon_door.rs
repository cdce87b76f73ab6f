//! The door of a storage server whose pipeline has `recon`: what monitors ask is answered before the service is.

use features::monitoring::recon::Recon;
use peer::{Body, HttpService, Response, StorageDoor};
use std::net::SocketAddr;
use vocabulary::names::unquote;

/// [`StorageDoor`] behind `recon`.
pub struct ReconDoor {
    /// Answers monitors.
    pub recon: Recon,
    /// Answers everybody else.
    pub storage: StorageDoor,
}

#[async_trait::async_trait]
impl HttpService for ReconDoor {
    async fn serve(&self, request: http::Request<Body>, from: SocketAddr) -> Response {
        match unquote(request.uri().path()) {
            Ok(path) if Recon::is_for(&path) => self.recon.answer(&path).await,
            _ => self.storage.serve(request, from).await,
        }
    }

    fn is_for_monitors(&self, request: &http::Request<Body>, from: SocketAddr) -> bool {
        let is_recon = unquote(request.uri().path()).is_ok_and(|path| Recon::is_for(&path));
        is_recon || self.storage.is_for_monitors(request, from)
    }
}
