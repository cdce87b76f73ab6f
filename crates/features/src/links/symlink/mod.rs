//! Links: objects without bytes that stand for another object (`X-Symlink-Target`).
//!
//! A dynamic link stands for whatever is at its target; a static one (`X-Symlink-Target-Etag`) for exactly
//! what was there when it was made. Reads go on to the target, `?symlink=get` shows the link itself.
//!
//! | question | file |
//! |---|---|
//! | where does a link lead, how is that stored and shown | `link.rs` |
//! | reading through links | `follow.rs` |
//! | making a link; POST to one | `write.rs` |
//! | what a listing says of links | `listing.rs` |
//!
//! Always holds: a read goes through at most `symloop_max` links; every step is authorised as the client's own
//! request, but for links that a feature made into the cluster's own names; a link has no bytes.
//! Deliberately absent: what the target is (large objects are put together by features in front of this one).

mod follow;
mod link;
mod listing;
mod write;

use http::Method;
use request_pipeline::{ClientRequest, Feature, Next, Response};
use settings::SymlinkSettings;

/// What the access log calls these requests.
const SOURCE: &str = "SYM";
/// Links in a row, unless the operator says otherwise.
const USUAL_LINKS: u64 = 2;

/// Swift's `symlink`.
pub struct Symlink {
    most: u64,
}

impl Symlink {
    /// As configured; a `symloop_max` below one counts as none.
    pub fn new(settings: &SymlinkSettings) -> Self {
        let most = u64::try_from(settings.symloop_max).unwrap_or(0);
        Self {
            most: if most == 0 { USUAL_LINKS } else { most },
        }
    }
}

#[async_trait::async_trait]
impl Feature for Symlink {
    fn name(&self) -> &'static str {
        "symlink"
    }

    fn info(&self) -> Vec<(&'static str, serde_json::Value)> {
        vec![(
            "symlink",
            serde_json::json!({"symloop_max": self.most, "static_links": true}),
        )]
    }

    fn wants(&self, request: &ClientRequest) -> bool {
        match request.method {
            Method::GET | Method::HEAD | Method::POST => true,
            Method::PUT => request.headers.contains_key(link::TARGET),
            _ => false,
        }
    }

    async fn handle(&self, request: ClientRequest, next: Next) -> Response {
        let (is_container, is_object) = match request.entity.as_deref() {
            Some(entity) => (
                entity.container.is_some() && entity.object.is_none(),
                entity.object.is_some(),
            ),
            None => (false, false),
        };
        match request.method {
            Method::GET if is_container => Box::pin(listing::get(request, next)).await,
            Method::GET | Method::HEAD if is_object => self.read(request, next).await,
            Method::PUT if is_object && request.headers.contains_key(link::TARGET) => {
                Box::pin(self.put(request, next)).await
            }
            Method::POST if is_object => Box::pin(write::post(request, next)).await,
            _ => next.run(request).await,
        }
    }
}

#[cfg(test)]
mod tests;
