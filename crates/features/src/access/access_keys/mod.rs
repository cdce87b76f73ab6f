//! Access keys of S3 that the cluster itself keeps, for users of its accounts (`access_keys` of `s3api`).
//!
//! Two halves. [`AccessKeys`] stands right behind `s3api`, in front of the authenticators: a request that is signed
//! with a key of the store is verified, aimed at the key's account, and goes on as the user for whom the key was made
//! ([`identity::KeyHolder`], which the authenticator behind takes). [`AccessKeysApi`] stands right behind the last
//! authenticator: an account's owner makes, lists, changes and deletes keys by HTTP.
//! Always holds: secrets are in no log, error, listing or shared cache; a request that is signed with a key reaches
//! the key's own account only; a store that cannot be read ends such a request with 503; clients reach the store by
//! [`AccessKeysApi`] only.
//! Deliberately absent: whether the user may do what the request asks (the authenticator's), limits of keys (checked
//! by `s3`, which knows what a request of S3 does).
//!
//! | question | file |
//! |---|---|
//! | where records are, and how long they are believed | `store.rs` |
//! | what an owner may ask, and the answers | `api.rs` |
//!
//! Tests: beside the code, `tests/clients/test_access_keys.py`; [the page](../../../../../docs/operating/s3.md).

mod api;
mod store;

pub use self::api::AccessKeysApi;
use self::store::{KeyStore, StoreUnavailable};
use http::Method;
use identity::access_key::{self, KeyRecord};
use identity::{SignatureRefusal, SignedRequest, VerifiedKey};
use request_pipeline::{ClientRequest, Feature, Next, Response, reply};
use s3::SessionWish;
use settings::S3ApiSettings;
use std::sync::Arc;
use world::World;

/// In the access log, of requests to the store.
const SOURCE: &str = "KEYS";

/// The account of the store, below the prefix of accounts that the cluster itself makes.
pub(crate) fn store_account(prefix: &str) -> String {
    format!("{prefix}access_keys")
}

/// The half in front of the authenticators.
pub struct AccessKeys {
    store: KeyStore,
    world: World,
}

impl AccessKeys {
    /// `account` is the store's.
    pub fn new(settings: &S3ApiSettings, account: String, world: World) -> Self {
        Self {
            store: KeyStore::new(account, settings.access_key_cache_duration, world.clone()),
            world,
        }
    }

    /// The record of the key of a request, and the secret that it is signed with; nothing where the store has no such
    /// key.
    async fn verified(
        &self,
        request: &ClientRequest,
        next: &Next,
        signed: &SignedRequest,
        id: &str,
    ) -> Result<Option<(Arc<KeyRecord>, String)>, KeyFailure> {
        let now = self.world.clock.now().seconds();
        let Some((record, is_fresh)) = self.store.find(request, next, id).await? else {
            return Ok(None);
        };
        let refusal = match record.verify(signed, now) {
            Ok(secret) => return Ok(Some((record, secret))),
            Err(refusal) => refusal,
        };
        // The key may have been changed by another gateway since it was read.
        if is_fresh {
            return Err(refusal.into());
        }
        let Some(record) = self.store.fetch(request, next, id).await? else {
            return Ok(None);
        };
        let secret = record.verify(signed, now)?;
        Ok(Some((record, secret)))
    }

    async fn take(&self, mut request: ClientRequest, next: Next, signed: &SignedRequest, id: &str) -> Response {
        let wish = request.extensions.get::<SessionWish>().copied();
        let (record, secret) = match self.verified(&request, &next, signed, id).await {
            Ok(Some(found)) => found,
            // Another authenticator may know a key of this form, but none a temporary one.
            Ok(None) if wish.is_none() && id == signed.access_key => return next.run(request).await,
            Ok(None) => return refused(&request.method, SignatureRefusal::UnknownKey),
            Err(KeyFailure::Refused(refusal)) => return refused(&request.method, refusal),
            Err(KeyFailure::Unavailable(unavailable)) => {
                tracing::warn!("the store of access keys: {unavailable}");
                return reply::status_for(&request.method, 503);
            }
        };
        if let Some(SessionWish(seconds)) = wish {
            return self.session(&request.method, &record, signed, seconds);
        }
        request.extensions.remove::<Arc<SignedRequest>>();
        let scope = signed.scope.as_ref();
        request.extensions.insert(VerifiedKey {
            signing_key: scope.map(|scope| scope.signing_key(&secret)),
            user: record.holder.user.clone(),
            principal: record.holder.principal(),
        });
        request.extensions.insert(record.holder.clone());
        request.extensions.insert(Arc::new(record.limits.clone()));
        if let Some(entity) = request
            .entity
            .as_deref()
            .filter(|entity| entity.account == signed.access_key)
        {
            let mut owned = entity.clone();
            owned.account.clone_from(&record.account);
            request.aim_at(owned);
        }
        next.run(request).await
    }

    /// A temporary key, for those who have the stored one.
    fn session(&self, method: &Method, record: &KeyRecord, signed: &SignedRequest, seconds: u64) -> Response {
        if signed.access_key != record.id {
            return reply::status_for(method, 403);
        }
        let mut random = [0; 16];
        self.world.random.fill(&mut random);
        let ends = self.world.clock.now().seconds().saturating_add(seconds);
        let mut response = reply::status(200);
        response.extensions_mut().insert(Arc::new(record.session(ends, random)));
        response
    }
}

#[async_trait::async_trait]
impl Feature for AccessKeys {
    fn name(&self) -> &'static str {
        "s3api-access-keys"
    }

    fn wants(&self, request: &ClientRequest) -> bool {
        let names_store = |account: &str| account == self.store.account();
        request.extensions.get::<Arc<SignedRequest>>().is_some()
            || request
                .entity
                .as_deref()
                .is_some_and(|entity| names_store(&entity.account))
    }

    async fn handle(&self, request: ClientRequest, next: Next) -> Response {
        let Some(signed) = request.extensions.get::<Arc<SignedRequest>>().cloned() else {
            // A client names the store's account.
            return reply::status_for(&request.method, 403);
        };
        match access_key::stored_key_of(&signed) {
            Some(Ok(id)) => Box::pin(self.take(request, next, &signed, &id)).await,
            Some(Err(refusal)) => refused(&request.method, refusal),
            None if request.extensions.get::<SessionWish>().is_some() => reply::status_for(&request.method, 403),
            None => next.run(request).await,
        }
    }
}

/// Why a key is not taken.
enum KeyFailure {
    Refused(SignatureRefusal),
    Unavailable(StoreUnavailable),
}

impl From<SignatureRefusal> for KeyFailure {
    fn from(refusal: SignatureRefusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<StoreUnavailable> for KeyFailure {
    fn from(unavailable: StoreUnavailable) -> Self {
        Self::Unavailable(unavailable)
    }
}

fn refused(method: &Method, refusal: SignatureRefusal) -> Response {
    let mut response = reply::status_for(method, 403);
    response.extensions_mut().insert(refusal);
    response
}

#[cfg(test)]
mod tests;
