//! The records of access keys: an object for each, in an account that no client reaches.
//!
//! `.access_keys/TAG/ID` holds the record of the key ID as JSON; TAG is the part of the id that keys of one account
//! share, so that a container lists an account's keys, and seldom another's besides. Making, changing and deleting a
//! key is one PUT or DELETE of an object, durable and replicated as any other, and encrypted where the pipeline has
//! `encryption`.
//! Always holds: the newest replica that answers is believed, and for no longer than `access_key_cache_duration`; ids
//! that are not in the store are remembered apart, so that they push no key out; nothing of a record goes to memcached.

use super::SOURCE;
use http::{HeaderValue, Method};
use identity::access_key::{self, KeyRecord};
use lru::LruCache;
use parking_lot::Mutex;
use peer::Body;
use request_pipeline::{ClientRequest, Next, Request, Response};
use serde::Deserialize;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;
use vocabulary::EntityPath;
use vocabulary::names::quote;
use world::World;

/// Records that a gateway keeps in memory, and ids of which it keeps that there are none.
const MOST_KEPT: NonZeroUsize = NonZeroUsize::new(8192).expect("not zero");
/// Bytes of a record.
pub(super) const LARGEST_RECORD: u64 = 64 * 1024;
/// Bytes of a page of a listing.
const LARGEST_LISTING: u64 = 16 << 20;

/// The store could not be asked, or what it holds could not be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum StoreUnavailable {
    #[error("{method} of {place} was answered with {status}")]
    Status { method: Method, place: String, status: u16 },
    #[error("no container server answered about {0}")]
    NoContainer(String),
    #[error("what is stored as {0} is no record of a key")]
    NoRecord(String),
    #[error("the answer about {0} broke off")]
    Broken(String),
}

impl StoreUnavailable {
    /// Whether other records may be read all the same: this one is damaged, or encrypted with a secret that is not
    /// here.
    pub(super) fn is_of_one_record(&self) -> bool {
        matches!(self, Self::NoRecord(_) | Self::Status { status: 500, .. })
    }
}

/// The keys of an account.
#[derive(Default)]
pub(super) struct KeyList {
    /// Those that could be read.
    pub(super) records: Vec<KeyRecord>,
    /// The ids of others, which an account whose ids begin alike may have as well.
    pub(super) unreadable: Vec<String>,
}

/// The records, and what this gateway remembers of them.
pub(super) struct KeyStore {
    account: String,
    life: Duration,
    kept: Mutex<LruCache<String, (Arc<KeyRecord>, Duration)>>,
    /// Ids that are not in the store, and until when that is believed.
    unknown: Mutex<LruCache<String, Duration>>,
    world: World,
}

impl KeyStore {
    /// Records are believed for `life` after they were read.
    pub(super) fn new(account: String, life: Duration, world: World) -> Self {
        Self {
            account,
            life,
            kept: Mutex::new(LruCache::new(MOST_KEPT)),
            unknown: Mutex::new(LruCache::new(MOST_KEPT)),
            world,
        }
    }

    pub(super) fn account(&self) -> &str {
        &self.account
    }

    /// A key, and whether it was read just now rather than remembered.
    pub(super) async fn find(
        &self,
        request: &Request,
        next: &Next,
        id: &str,
    ) -> Result<Option<(Arc<KeyRecord>, bool)>, StoreUnavailable> {
        let now = self.world.clock.elapsed();
        let kept = self.kept.lock().get(id).cloned();
        if let Some((record, _)) = kept.filter(|(_, until)| now < *until) {
            return Ok(Some((record, false)));
        }
        if self.unknown.lock().get(id).is_some_and(|until| now < *until) {
            return Ok(None);
        }
        let found = self.fetch(request, next, id).await?;
        Ok(found.map(|record| (record, true)))
    }

    /// A key as it is in the store; remembered.
    pub(super) async fn fetch(
        &self,
        request: &Request,
        next: &Next,
        id: &str,
    ) -> Result<Option<Arc<KeyRecord>>, StoreUnavailable> {
        // Counted from before the store is asked: a change that it does not tell of came later.
        let until = self.world.clock.elapsed().saturating_add(self.life);
        let found = self.read(request, next, id).await?.map(Arc::new);
        match &found {
            Some(record) => {
                self.unknown.lock().pop(id);
                self.kept.lock().put(id.to_owned(), (record.clone(), until));
            }
            None => {
                self.kept.lock().pop(id);
                self.unknown.lock().put(id.to_owned(), until);
            }
        }
        Ok(found)
    }

    /// A key as it is in the store.
    pub(super) async fn read(
        &self,
        request: &Request,
        next: &Next,
        id: &str,
    ) -> Result<Option<KeyRecord>, StoreUnavailable> {
        let place = self.place(id);
        let tag = access_key::tag_of_id(id);
        // Without its container it is not known in which policy the object would be.
        if next.info().container(&self.account, tag).await.status == 0 {
            return Err(StoreUnavailable::NoContainer(format!("{}/{tag}", self.account)));
        }
        let mut get = ask(request, Method::GET, place.clone());
        get.set_header("x-newest", "true");
        let response = next.clone().run(get).await;
        match response.status().as_u16() {
            200 => {}
            404 => return Ok(None),
            _ => return Err(unavailable(Method::GET, &place, &response)),
        }
        let body = response.into_body().collect(LARGEST_RECORD).await;
        let body = body.map_err(|_| StoreUnavailable::Broken(place.path()))?;
        let record: Option<KeyRecord> = serde_json::from_slice(&body).ok();
        let record = record.filter(|record| record.id == id);
        record.map(Some).ok_or_else(|| StoreUnavailable::NoRecord(place.path()))
    }

    /// Stores a key. A new one replaces none: `false` when there is one of its id.
    pub(super) async fn write(
        &self,
        request: &Request,
        next: &Next,
        record: &KeyRecord,
        is_new: bool,
    ) -> Result<bool, StoreUnavailable> {
        let place = self.place(&record.id);
        let mut answer = self.put(request, next, record, is_new).await;
        if answer.status() == 404 {
            let container = EntityPath::account(&*self.account).with_container(access_key::tag_of_id(&record.id));
            let made = next.clone().run(ask(request, Method::PUT, container.clone())).await;
            if !made.status().is_success() {
                return Err(unavailable(Method::PUT, &container, &made));
            }
            answer = self.put(request, next, record, is_new).await;
        }
        match answer.status().as_u16() {
            201 => Ok(true),
            412 => Ok(false),
            _ => Err(unavailable(Method::PUT, &place, &answer)),
        }
    }

    async fn put(&self, request: &Request, next: &Next, record: &KeyRecord, is_new: bool) -> Response {
        let mut put = ask(request, Method::PUT, self.place(&record.id));
        // A struct of texts and numbers is always JSON.
        let text = serde_json::to_vec(record).unwrap_or_default();
        put.headers.insert("content-length", HeaderValue::from(text.len()));
        put.set_header("content-type", "application/json");
        if is_new {
            put.set_header("if-none-match", "*");
        }
        put.body = Body::whole(text);
        next.clone().run(put).await
    }

    /// Takes a key out of the store; `false` when it was not in it.
    pub(super) async fn delete(&self, request: &Request, next: &Next, id: &str) -> Result<bool, StoreUnavailable> {
        let place = self.place(id);
        let answer = next.clone().run(ask(request, Method::DELETE, place.clone())).await;
        match answer.status().as_u16() {
            200..=299 => Ok(true),
            404 => Ok(false),
            _ => Err(unavailable(Method::DELETE, &place, &answer)),
        }
    }

    /// The keys of an account, in order of their ids.
    pub(super) async fn list(
        &self,
        request: &Request,
        next: &Next,
        account: &str,
    ) -> Result<KeyList, StoreUnavailable> {
        let container = EntityPath::account(&*self.account).with_container(access_key::tag(account));
        let mut found = KeyList::default();
        let mut marker = String::new();
        loop {
            let mut get = ask(request, Method::GET, container.clone());
            get.query = format!("format=json&marker={}", quote(&marker));
            let response = next.clone().run(get).await;
            match response.status().as_u16() {
                200 => {}
                204 | 404 => break,
                _ => return Err(unavailable(Method::GET, &container, &response)),
            }
            let body = response.into_body().collect(LARGEST_LISTING).await;
            let rows: Option<Vec<KeyRow>> = body.ok().and_then(|body| serde_json::from_slice(&body).ok());
            let rows = rows.ok_or_else(|| StoreUnavailable::Broken(container.path()))?;
            let Some(last) = rows.last() else {
                break;
            };
            marker.clone_from(&last.name);
            for row in rows.iter().filter(|row| access_key::is_key_id(&row.name)) {
                // A row may be there for a moment longer than its object.
                match self.read(request, next, &row.name).await {
                    Ok(record) => found.records.extend(record.filter(|record| record.account == account)),
                    Err(error) if error.is_of_one_record() => {
                        tracing::error!("a key of {account} is left out of the list of its keys: {error}");
                        found.unreadable.push(row.name.clone());
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(found)
    }

    fn place(&self, id: &str) -> EntityPath {
        let container = EntityPath::account(&*self.account).with_container(access_key::tag_of_id(id));
        container.with_object(id)
    }
}

/// A row of the listing of a container of keys.
#[derive(Deserialize)]
struct KeyRow {
    name: String,
}

/// A request to the store: of no user, with nothing of the client's.
fn ask(request: &Request, method: Method, place: EntityPath) -> ClientRequest {
    let mut asked = request.subrequest(method, place.clone(), SOURCE).preauthorised();
    asked.headers.clear();
    asked.extensions.clear();
    // The client's path may begin with another word than Swift's.
    asked.api_version = "v1".into();
    asked.aim_at(place);
    asked
}

fn unavailable(method: Method, place: &EntityPath, response: &Response) -> StoreUnavailable {
    StoreUnavailable::Status {
        method,
        place: place.path(),
        status: response.status().as_u16(),
    }
}
