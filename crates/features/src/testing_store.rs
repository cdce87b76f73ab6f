//! For this crate's unit tests: a core that keeps objects, and notes what it was asked.

use crate::testing::Answer;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use md5::{Digest, Md5};
use parking_lot::Mutex;
use peer::Body;
use request_pipeline::{ClientRequest, Feature, Next, Pipeline, Response, reply};
use std::collections::BTreeMap;
use std::sync::Arc;
use vocabulary::{Fault, RangeSet};

/// An object: headers and bytes.
#[derive(Clone)]
pub(crate) struct Kept {
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: bytes::Bytes,
}

/// Objects by path, and the requests that came (`GET /v1/a/c/o bytes=0-1`).
#[derive(Clone, Default)]
pub(crate) struct Store {
    pub(crate) objects: Arc<Mutex<BTreeMap<String, Kept>>>,
    pub(crate) asked: Arc<Mutex<Vec<String>>>,
    /// Answers with this instead, by path.
    pub(crate) instead: Arc<Mutex<BTreeMap<String, u16>>>,
}

impl Store {
    /// Keeps an object of `/v1/a`.
    pub(crate) fn put(&self, name: &str, bytes: &str) {
        self.put_with(name, bytes, &[]);
    }

    pub(crate) fn put_with(&self, name: &str, bytes: &str, headers: &[(&'static str, &str)]) {
        let mut kept = HeaderMap::new();
        kept.insert("etag", HeaderValue::from_str(&etag(bytes.as_bytes())).unwrap());
        kept.insert("content-type", HeaderValue::from_static("t/x"));
        kept.insert(
            "last-modified",
            HeaderValue::from_static("Fri, 20 Nov 2026 15:17:12 GMT"),
        );
        for (name, value) in headers {
            kept.insert(*name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        let kept = Kept {
            headers: kept,
            bytes: bytes.to_owned().into(),
        };
        self.objects.lock().insert(format!("/v1/a/{name}"), kept);
    }

    /// What `feature` in front of this answers.
    pub(crate) async fn ask(&self, feature: impl Feature + 'static, request: ClientRequest) -> Response {
        let store = self.clone();
        let core = Answer::new(move |request| store.answer(request));
        Pipeline::new(vec![Arc::new(feature)], Arc::new(core))
            .run(request)
            .await
    }

    pub(crate) fn take_asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock())
    }

    fn answer(&self, request: ClientRequest) -> Response {
        let range = request
            .header("range")
            .map(|range| format!(" {range}"))
            .unwrap_or_default();
        let line = format!("{} {}{range}", request.method, request.path);
        self.asked.lock().push(line);
        if let Some(code) = self.instead.lock().get(&*request.path) {
            return reply::status(*code);
        }
        match request.method {
            Method::PUT => {
                let bytes = request.body.as_whole().unwrap_or_default();
                let mut headers = request.headers;
                headers.insert("etag", HeaderValue::from_str(&etag(&bytes)).unwrap());
                self.objects
                    .lock()
                    .insert(request.path.to_string(), Kept { headers, bytes });
                reply::status(201)
            }
            Method::DELETE => match self.objects.lock().remove(&*request.path) {
                Some(_) => reply::status(204),
                None => reply::status(404),
            },
            Method::GET | Method::HEAD if request.entity.as_ref().unwrap().object.is_none() => self.list(&request),
            Method::GET | Method::HEAD => self.read(&request),
            _ => reply::status(202),
        }
    }

    fn list(&self, request: &ClientRequest) -> Response {
        let marker = request.param("marker").map(Result::unwrap).unwrap_or_default();
        let prefix = request.param("prefix").map(Result::unwrap).unwrap_or_default();
        let within = format!("{}/", request.path);
        let rows: Vec<_> = self
            .objects
            .lock()
            .iter()
            .filter_map(|(path, kept)| {
                let name = path.strip_prefix(&within)?;
                let hash = kept.headers["etag"].to_str().unwrap();
                (name.starts_with(&prefix) && name > marker.as_str())
                    .then(|| serde_json::json!({"name": name, "bytes": kept.bytes.len(), "hash": hash}))
            })
            .take(3)
            .collect();
        reply::plain(200, serde_json::to_string(&rows).unwrap())
    }

    fn read(&self, request: &ClientRequest) -> Response {
        let Some(kept) = self.objects.lock().get(&*request.path).cloned() else {
            return reply::status(404);
        };
        let total = kept.bytes.len() as u64;
        let mut response = Response::new(Body::whole(kept.bytes.clone()));
        *response.headers_mut() = kept.headers.clone();
        let ignores = request
            .headers
            .contains_key("x-backend-ignore-range-if-metadata-present")
            && kept.headers.contains_key("x-static-large-object");
        if let Some(range) = request.header("range").filter(|_| !ignores) {
            let ranges = RangeSet::parse(range).map(|ranges| ranges.resolve(total));
            let Some(range) = ranges.and_then(|ranges| ranges.first().copied()) else {
                let mut refused = reply::status(416);
                refused.headers_mut().extend(kept.headers);
                return refused;
            };
            let bytes = kept.bytes.slice(range.start as usize..range.end as usize);
            response = response.map(|_| Body::whole(bytes));
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            let text = range.content_range(total);
            response
                .headers_mut()
                .insert("content-range", HeaderValue::from_str(&text).unwrap());
        }
        let length = response.body().length().unwrap();
        response
            .headers_mut()
            .insert("content-length", HeaderValue::from(length));
        match request.method == Method::HEAD {
            true => response.map(|_| Body::empty()),
            false => response,
        }
    }
}

/// The MD5 of some bytes.
pub(crate) fn etag(bytes: &[u8]) -> String {
    vocabulary::hex::encode(Md5::digest(bytes))
}

/// A body's text, or how it broke.
pub(crate) async fn read_text(response: Response) -> Result<String, Fault> {
    let mut body = response.into_body();
    let mut all = Vec::new();
    while let Some(chunk) = body.next().await {
        match chunk {
            Ok(chunk) => all.extend_from_slice(&chunk),
            Err(error) => return Err(Fault::peer(format!("{} then {error:?}", String::from_utf8_lossy(&all)))),
        }
    }
    Ok(String::from_utf8(all).unwrap())
}

/// Passes everything on; for what needs a [`Next`] only.
pub(crate) struct Through<F>(pub(crate) F);

#[async_trait::async_trait]
impl<F: Fn(ClientRequest, Next) -> futures_util::future::BoxFuture<'static, Response> + Send + Sync> Feature
    for Through<F>
{
    fn name(&self) -> &'static str {
        "through"
    }

    async fn handle(&self, request: ClientRequest, next: Next) -> Response {
        (self.0)(request, next).await
    }
}
