//! The link to a version that is deleted while it is the current one.
//!
//! It goes before the version does, and comes back where the version is held after all. Two orders are possible, and
//! both can be cut off by a crash, by servers that do not answer, or by a lock that is lost. With the version first the
//! link may be left behind: a listing would show, for good, a key that answers 404, as soon as one server has taken a
//! deletion of which the gateway heard nothing more. With the link first there may be a version that no key shows: it
//! is whole, `?version-id=` reads and deletes it, and `PUT ?version-id=` makes it current again.
//! Always holds: no link is taken away but the one that was looked at, however late that is done, as its tombstone is
//! older than what came after the look; in a bucket with object lock nothing is taken away before the version's
//! deletion is decided under the version's write lock (`../../object_lock.rs`); a link that comes back is older than
//! what any client has written since.
//! Deliberately absent: the version's own deletion (`removal.rs`).

use super::names::VersionId;
use super::write::{EXPIRY, linked_version, look_at, put_link, shown_by};
use super::{Asked, SOURCE, refused};
use http::{HeaderMap, Method};
use parking_lot::Mutex;
use peer::message::header_names::{X_BACKEND_TIMESTAMP, X_TIMESTAMP};
use request_pipeline::{ClientRequest, Next, Response, reply};
use std::sync::Arc;
use vocabulary::timestamp::TICKS_PER_SECOND;
use vocabulary::{EntityPath, Timestamp};

/// Seconds by which the clocks of gateways may differ without a loss. A tombstone must not be much older than it has to
/// be: one of more than `reclaim_age` would be forgotten at once.
const CLOCKS_DIFFER: u64 = 3600;
/// How often a link is looked at again that has been changed meanwhile.
const LOOKS: usize = 4;

/// A link, until it is taken away; among the extensions of the request that deletes its version.
pub(crate) struct LinkRemoval {
    asked: Asked,
    id: VersionId,
    state: Mutex<LinkState>,
}

#[derive(Clone)]
struct LinkState {
    /// What the link said.
    link: HeaderMap,
    /// The tombstone that it gets.
    at: Timestamp,
    /// What the key shows now.
    current: VersionId,
    is_gone: bool,
}

impl LinkRemoval {
    /// Of a link to the version `id` that was found, by a look that began then.
    pub(super) fn new(asked: &Asked, id: VersionId, link: HeaderMap, looked: Timestamp) -> Arc<Self> {
        let state = LinkState {
            at: removal_time(&link, looked),
            link,
            current: id,
            is_gone: false,
        };
        Arc::new(Self {
            asked: Asked {
                entity: asked.entity.clone(),
                versioned: asked.versioned.clone(),
            },
            id,
            state: Mutex::new(state),
        })
    }

    /// Takes the link away, if that has not been done, and it still shows the version.
    pub(crate) async fn take_away(&self, request: &ClientRequest, next: &Next) -> Result<(), Response> {
        if self.state.lock().is_gone {
            return Ok(());
        }
        for _ in 0..LOOKS {
            let at = self.state.lock().at;
            let mut unlink = request.subrequest(Method::DELETE, self.own(), SOURCE).preauthorised();
            unlink.query.clear();
            unlink.set_header("x-timestamp", &at.internal());
            let unlinked = next.clone().run(unlink).await;
            match unlinked.status().as_u16() {
                status @ (200..=299 | 404) => {
                    let mut state = self.state.lock();
                    state.is_gone = status != 404;
                    state.current = VersionId::Null;
                    return Ok(());
                }
                // Something newer is there: another version, or the same link with new metadata.
                409 => {}
                _ => return Err(refused(&unlinked, request)),
            }
            let looked = request.began.1.max(at);
            let found = next.clone().run(look_at(request, self.own())).await;
            let mut state = self.state.lock();
            state.current = linked_version(&self.asked, found.headers());
            if state.current != self.id {
                return Ok(());
            }
            state.at = removal_time(found.headers(), looked);
            state.link = found.headers().clone();
        }
        Err(reply::status_for(&request.method, 503))
    }

    /// Puts the link back, where it was taken away and the version has to stay.
    pub(super) async fn put_back(&self, request: &ClientRequest, next: &Next) {
        let state = self.state.lock().clone();
        if !state.is_gone {
            return;
        }
        let mut again = request.subrequest(Method::PUT, self.own(), SOURCE).preauthorised();
        for name in EXPIRY {
            if let Some(value) = state.link.get(name) {
                again.headers.insert(name, value.clone());
            }
        }
        let shown = shown_by(self.id, &state.link);
        let linked = put_link(&self.asked, &again, state.at.just_after(), &shown, next).await;
        match linked {
            Ok(()) => self.state.lock().current = self.id,
            Err(_) => tracing::warn!(
                "{}: version {} is held, and the link to it was taken away; PUT ?version-id={} brings the object back",
                self.own().path(),
                self.id,
                self.id
            ),
        }
    }

    /// What the key shows now.
    pub(super) fn current(&self) -> VersionId {
        self.state.lock().current
    }

    fn own(&self) -> EntityPath {
        (*self.asked.entity).clone()
    }
}

/// When the link that was found is to have been taken away: after it was written, and before anything that has come
/// since the look.
fn removal_time(link: &HeaderMap, looked: Timestamp) -> Timestamp {
    let written = [X_BACKEND_TIMESTAMP, X_TIMESTAMP]
        .iter()
        .find_map(|name| link.get(name)?.to_str().ok()?.parse::<Timestamp>().ok());
    written.map_or(looked, |written| written.just_after().max(long_before(looked)))
}

/// Before anything that has come since, whatever the clocks of gateways say.
pub(super) fn long_before(looked: Timestamp) -> Timestamp {
    let ticks = looked.ticks().saturating_sub(CLOCKS_DIFFER * TICKS_PER_SECOND);
    Timestamp::from_ticks(ticks).unwrap_or_default()
}

#[cfg(test)]
#[path = "removal_tests.rs"]
mod tests;
