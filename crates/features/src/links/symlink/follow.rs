//! Reading through links: each step is a request of its own down the pipeline.
//!
//! Always holds: the answer is that of the last step, and says where that was; a static link that no
//! longer stands for what it was made for is 409, as is a row of too many links.

use super::link::{self, Link, STORED_TARGET};
use super::{SOURCE, Symlink};
use http::Method;
use http::header::{ETAG, HeaderName, HeaderValue, RANGE};
use peer::message::header_names::{X_ALLOW_RESERVED_NAMES, X_IGNORE_RANGE_IF, X_POLICY_INDEX};
use request_pipeline::{ClientRequest, Next, Response, reply, set_header};
use vocabulary::conditional::bare_etag;

/// Objects with such metadata are sent whole: a range is that of the target.
const WHOLE_IF: HeaderName = X_IGNORE_RANGE_IF;

/// How far a read has come.
pub(super) struct Trail {
    /// What the present step must be.
    pub(super) expected: Option<String>,
    /// The path of the present step, once it is not the client's own.
    pub(super) location: Option<String>,
    /// Whether dynamic links are followed.
    pub(super) through_dynamic: bool,
}

impl Symlink {
    pub(super) async fn read(&self, mut request: ClientRequest, next: Next) -> Response {
        let shows_link = !request.query.is_empty()
            && request
                .param("symlink")
                .is_some_and(|value| value.is_ok_and(|value| value == "get"));
        if shows_link {
            let mut response = next.run(request).await;
            link::show(response.headers_mut());
            return response;
        }
        if request.headers.contains_key(RANGE) {
            let more = request
                .header(WHOLE_IF.as_str())
                .map(|names| format!("{names},"))
                .unwrap_or_default();
            if let Ok(names) = HeaderValue::try_from(format!("{more}{STORED_TARGET}")) {
                request.headers.insert(WHOLE_IF, names);
            }
        }
        let asked = request.without_body();
        let response = next.clone().run(request).await;
        if !response.headers().contains_key(STORED_TARGET) {
            return response;
        }
        let trail = Trail {
            expected: None,
            location: None,
            through_dynamic: true,
        };
        match Box::pin(self.follow(&asked, response, trail, &next)).await {
            Ok(response) => response,
            Err(refusal) => for_method(&asked.method, refusal),
        }
    }

    /// From the answer to `asked` to that of the end of the trail. `Err` is an answer that ends the read.
    pub(super) async fn follow(
        &self,
        asked: &ClientRequest,
        mut response: Response,
        mut trail: Trail,
        next: &Next,
    ) -> Result<Response, Response> {
        let mut entity = asked.entity.clone();
        let mut steps = 0;
        loop {
            let found = Link::of(response.headers()).filter(|link| trail.through_dynamic || link.etag.is_some());
            let Some(link) = found else {
                return trail.arrive(response);
            };
            trail.check_link(&link, &response)?;
            if steps >= self.most {
                return Err(self.too_many());
            }
            steps += u64::from(!link.extends);
            let account = entity.map(|entity| entity.account.clone()).unwrap_or_default();
            trail.location = Some(link.location(&asked.api_version, &account));
            let Some(target) = link.leads_to(&account) else {
                let text = "Invalid UTF8 or contains NULL".to_owned();
                return Err(trail.refuse(reply::html(412, text)));
            };
            let mut step = asked.subrequest(asked.method.clone(), target, SOURCE);
            step.headers = asked.headers.clone();
            step.headers.remove(X_POLICY_INDEX);
            if link.allows_reserved {
                step = step.preauthorised();
                step.headers
                    .insert(X_ALLOW_RESERVED_NAMES, HeaderValue::from_static("true"));
            }
            entity = step.entity.clone();
            trail.expected = link.etag;
            response = next.clone().run(step).await;
        }
    }

    fn too_many(&self) -> Response {
        let text = format!("Too many levels of symbolic links, maximum allowed is {}", self.most);
        reply::plain(409, text)
    }
}

impl Trail {
    /// A static link must lead to the same as the one that led here.
    fn check_link(&self, link: &Link, response: &Response) -> Result<(), Response> {
        let found = link.etag.clone().or_else(|| etag(response));
        match &self.expected {
            Some(expected) if found.as_ref() != Some(expected) => {
                let text = "X-Symlink-Target-Etag headers do not match";
                Err(self.refuse(reply::plain(409, text)))
            }
            _ => Ok(()),
        }
    }

    /// The end of the trail must be what the last static link was made for.
    fn arrive(self, mut response: Response) -> Result<Response, Response> {
        if let (Some(expected), Some(found)) = (&self.expected, etag(&response))
            && *expected != found
        {
            let text = format!("Object Etag '{found}' does not match X-Symlink-Target-Etag header '{expected}'");
            return Err(self.refuse(reply::plain(409, text)));
        }
        self.say_where(&mut response);
        Ok(response)
    }

    /// A refusal, with where it was met.
    pub(super) fn refuse(&self, mut response: Response) -> Response {
        self.say_where(&mut response);
        response
    }

    fn say_where(&self, response: &mut Response) {
        if let Some(location) = &self.location {
            set_header(response.headers_mut(), "content-location", location);
        }
    }
}

/// An answer to HEAD has no page.
fn for_method(method: &Method, response: Response) -> Response {
    match *method {
        Method::HEAD => {
            let mut response = response.map(|_| peer::Body::empty());
            set_header(response.headers_mut(), "content-length", "0");
            response
        }
        _ => response,
    }
}

fn etag(response: &Response) -> Option<String> {
    let etag = response.headers().get(ETAG)?.to_str().ok()?;
    Some(bare_etag(etag).to_owned()).filter(|etag| !etag.is_empty())
}
