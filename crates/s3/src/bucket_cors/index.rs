//! Which accounts have a bucket of a name with CORS rules.
//!
//! A browser's preflight has no signature, and so no account: all it names is a bucket. So `.s3_cors/BUCKET/ACCOUNT`,
//! an empty object in an account that no client reaches, says that the account's bucket of that name has rules. What a
//! preflight is allowed by the rules of any of them lets a page send a request, nothing more: the request has to be
//! signed, and the rules of its own bucket say what the page sees of the answer.
//! Always holds: an entry is a hint: the rules are read from the bucket, so that one that is left behind allows
//! nothing; rules whose storing was acknowledged have an entry; no preflight looks at more than [`MOST_ACCOUNTS`].

use super::{CorsRule, CorsRules, text_in_info};
use futures_util::{StreamExt, stream};
use http::{HeaderValue, Method};
use peer::Body;
use request_pipeline::{ClientRequest, Next, Request, Response};
use serde::Deserialize;
use std::pin::pin;
use vocabulary::EntityPath;

/// In the access log.
const SOURCE: &str = "S3CORS";
/// Accounts that are looked at for one preflight: the first by name.
const MOST_ACCOUNTS: usize = 100;
/// Those at the same time.
const LOOKS_AT_A_TIME: usize = 8;
/// Bytes of a listing of so many.
const LARGEST_LISTING: u64 = 1 << 20;

/// The index could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{method} of {place} was answered with {status}")]
pub(crate) struct CorsIndexUnavailable {
    method: Method,
    place: String,
    status: u16,
}

#[cfg(test)]
impl CorsIndexUnavailable {
    pub(crate) fn for_tests() -> Self {
        Self {
            method: Method::GET,
            place: "/.s3_cors/b".into(),
            status: 503,
        }
    }
}

/// See the module.
pub(crate) struct CorsIndex {
    account: String,
}

/// What the rules of all buckets of a name say to a preflight.
#[derive(Debug, Default)]
pub(crate) struct FoundCors {
    /// Some bucket has rules.
    pub(crate) has_rules: bool,
    /// The first that fits.
    pub(crate) rule: Option<CorsRule>,
}

#[derive(Deserialize)]
struct IndexRow {
    name: String,
}

impl CorsIndex {
    /// Below the prefix of accounts that the cluster itself makes.
    pub(crate) fn new(hidden_prefix: &str) -> Self {
        Self {
            account: format!("{hidden_prefix}s3_cors"),
        }
    }

    /// Enters the bucket of an account.
    pub(crate) async fn enter(
        &self,
        request: &Request,
        next: &Next,
        bucket: &EntityPath,
    ) -> Result<(), CorsIndexUnavailable> {
        let place = self.place(bucket);
        let mut answer = put(request, next, place.clone()).await;
        if answer.status() == 404 {
            let container = EntityPath::account(&*self.account).with_container(name_of(bucket));
            let made = put(request, next, container.clone()).await;
            if !made.status().is_success() {
                return Err(unavailable(Method::PUT, &container, &made));
            }
            answer = put(request, next, place.clone()).await;
        }
        match answer.status().is_success() {
            true => Ok(()),
            false => Err(unavailable(Method::PUT, &place, &answer)),
        }
    }

    /// Takes the bucket of an account out of it.
    pub(crate) async fn remove(
        &self,
        request: &Request,
        next: &Next,
        bucket: &EntityPath,
    ) -> Result<(), CorsIndexUnavailable> {
        let place = self.place(bucket);
        let answer = next.clone().run(ask(request, Method::DELETE, place.clone())).await;
        match answer.status().as_u16() {
            200..=299 | 404 => Ok(()),
            _ => Err(unavailable(Method::DELETE, &place, &answer)),
        }
    }

    /// The first rule that `fitting` finds among those of all buckets of this name; those of few are in memory at a
    /// time.
    pub(crate) async fn find(
        &self,
        request: &Request,
        next: &Next,
        bucket: &str,
        fitting: impl Fn(&CorsRules) -> Option<CorsRule>,
    ) -> Result<FoundCors, CorsIndexUnavailable> {
        let container = EntityPath::account(&*self.account).with_container(bucket);
        // Remembered like any container, so that names without rules cost little.
        if next.info().container(&self.account, bucket).await.status == 404 {
            return Ok(FoundCors::default());
        }
        let mut get = ask(request, Method::GET, container.clone());
        get.query = format!("format=json&limit={MOST_ACCOUNTS}");
        let answer = next.clone().run(get).await;
        match answer.status().as_u16() {
            200 => {}
            204 | 404 => return Ok(FoundCors::default()),
            _ => return Err(unavailable(Method::GET, &container, &answer)),
        }
        let body = answer.into_body().collect(LARGEST_LISTING).await.ok();
        let rows: Option<Vec<IndexRow>> = body.and_then(|body| serde_json::from_slice(&body).ok());
        let rows = rows.ok_or_else(|| CorsIndexUnavailable {
            method: Method::GET,
            place: container.path(),
            status: 0,
        })?;
        let looks = rows.into_iter().take(MOST_ACCOUNTS).map(|row| async move {
            let info = next.info().container(&row.name, bucket).await;
            text_in_info(&info).and_then(|text| CorsRules::of_text(&text).ok())
        });
        let mut looks = pin!(stream::iter(looks).buffered(LOOKS_AT_A_TIME));
        let mut found = FoundCors::default();
        while found.rule.is_none()
            && let Some(rules) = looks.next().await
        {
            found.has_rules |= rules.is_some();
            found.rule = rules.as_ref().and_then(&fitting);
        }
        Ok(found)
    }

    fn place(&self, bucket: &EntityPath) -> EntityPath {
        let container = EntityPath::account(&*self.account).with_container(name_of(bucket));
        container.with_object(&*bucket.account)
    }
}

fn name_of(bucket: &EntityPath) -> &str {
    bucket.container.as_deref().unwrap_or_default()
}

async fn put(request: &Request, next: &Next, place: EntityPath) -> Response {
    let mut put = ask(request, Method::PUT, place);
    put.headers.insert("content-length", HeaderValue::from_static("0"));
    put.body = Body::empty();
    next.clone().run(put).await
}

fn ask(request: &Request, method: Method, place: EntityPath) -> ClientRequest {
    request.subrequest(method, place, SOURCE).preauthorised()
}

fn unavailable(method: Method, place: &EntityPath, answer: &Response) -> CorsIndexUnavailable {
    CorsIndexUnavailable {
        method,
        place: place.path(),
        status: answer.status().as_u16(),
    }
}
