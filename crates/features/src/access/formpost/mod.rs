//! Signed forms: a web page sends files from a browser straight into a container, for a while.
//!
//! Stands in front of authentication. A POST of `multipart/form-data` whose field `signature` was made with a key
//! of the account or container; every file in it becomes an object, by a PUT of this feature's own.
//! Always holds: the signature is compared before the first byte of a file is stored; files stream, one
//! after the other, and none is longer than the form allows; a form that ends early stores nothing of its last
//! file.
//! Deliberately absent: reading the form twice (fields behind a file come too late, as in Swift).
//! Source: `doc/source/api/form_post_middleware.rst` and OpenStack Swift's answers. Stricter than those: a form
//! without its last boundary is refused, and so is a redirect that cannot be a header.
//!
//! | question | file |
//! |---|---|
//! | what is a part | `crates/request-pipeline/src/multipart.rs` |
//! | what do its fields allow | `fields.rs` |
//! | is the signature right | `../signatures.rs` |

pub mod fields;
#[cfg(test)]
mod tests;

use crate::access::signatures::{KeyScope, SigningKeys, Within, info_of};
use crate::bulk::delete::add_agent;
use fields::{Fields, MAX_VALUE};
use futures_util::future::join;
use http::header::{
    CONTENT_ENCODING, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION, TRANSFER_ENCODING, USER_AGENT, WWW_AUTHENTICATE,
};
use http::{Method, StatusCode};
use peer::Feed;
use peer::{Body, BodyError};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use request_pipeline::multipart::{Broken, Multipart, PartHeaders, parameters_of};
use request_pipeline::{ClientRequest, Feature, Next, Response, reply};
use serde_json::Value;
use settings::gateway_filters::FormPostSettings;
use std::sync::Arc;
use telemetry::Statsd;
use world::Clock;

/// Swift's `formpost`.
pub struct FormPost {
    settings: FormPostSettings,
    clock: Arc<dyn Clock>,
    statsd: Statsd,
}

/// The requesting user, for the features behind.
const USER: &str = ".wsgi.formpost";
/// In the access log.
const SOURCE: &str = "FP";
/// Chunks of a file on their way from the form to its PUT.
const CHUNKS_UNDER_WAY: usize = 4;

/// Why a form is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FormRefusal {
    /// It is not what a form should be.
    Invalid(&'static str),
    /// It is not allowed.
    Unauthorised(&'static str),
    /// The client went away.
    Left,
}

impl From<Broken> for FormRefusal {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::Start => Self::Invalid("invalid starting boundary"),
            Broken::End => Self::Invalid("unexpected end of form"),
            Broken::Headers => Self::Invalid("headers of a part are too long"),
            Broken::Client(_) => Self::Left,
        }
    }
}

/// How it ended: a status, and in lower case why.
struct Outcome {
    code: u16,
    message: &'static str,
}

impl FormPost {
    /// As configured.
    pub fn new(settings: FormPostSettings, clock: Arc<dyn Clock>) -> Self {
        Self {
            settings,
            clock,
            statsd: Statsd::default(),
        }
    }

    /// With the digests of good signatures reported to `statsd`.
    pub fn counting(self, statsd: Statsd) -> Self {
        Self { statsd, ..self }
    }

    async fn take(&self, mut request: ClientRequest, next: &Next, boundary: &str) -> Result<Response, FormRefusal> {
        let body = std::mem::replace(&mut request.body, Body::empty());
        let mut form = Multipart::new(body, boundary, self.clock.clone());
        let mut fields = Fields::default();
        form.start().await?;
        let outcome = self.take_parts(&request, next, &mut form, &mut fields).await?;
        answer(&outcome, &fields)
    }

    async fn take_parts(
        &self,
        request: &ClientRequest,
        next: &Next,
        form: &mut Multipart,
        fields: &mut Fields,
    ) -> Result<Outcome, FormRefusal> {
        let mut files: i128 = 0;
        let mut outcome = Outcome {
            code: 400,
            message: "no files to process",
        };
        while let Some(part) = form.part().await? {
            let Some(filename) = &part.filename else {
                let value = form.value(MAX_VALUE).await?;
                fields.set(part.name.as_deref().unwrap_or_default(), value);
                continue;
            };
            files += 1;
            if files > fields.max_file_count()? {
                return Ok(Outcome {
                    code: 400,
                    message: "max file count exceeded",
                });
            }
            let scope = self.check(request, next, fields).await?;
            let put = put_of(request, filename, &part, fields, scope);
            let limit = u64::try_from(fields.max_file_size()?).unwrap_or(0);
            let code = match put {
                Some(put) => store(put, next, form, limit).await?,
                None => 412,
            };
            outcome = Outcome { code, message: "" };
            if !(200..300).contains(&code) {
                break;
            }
        }
        Ok(outcome)
    }

    /// Whether the fields that came so far allow a file.
    async fn check(&self, request: &ClientRequest, next: &Next, fields: &Fields) -> Result<KeyScope, FormRefusal> {
        fields.max_file_size()?;
        fields.check_times()?;
        fields.check_expiry(self.clock.now().seconds())?;
        let refused = FormRefusal::Unauthorised("Invalid Signature");
        let entity = request.entity.as_deref().filter(|_| request.api_version == "v1");
        let Some((entity, container)) = entity.and_then(|entity| Some((entity, entity.container.as_deref()?))) else {
            return Err(refused);
        };
        let keys = SigningKeys::of(next.info(), &entity.account, container).await;
        let scope = fields.scope(&request.path, &keys, &self.settings.allowed_digests);
        let (scope, digest) = scope.ok_or(refused)?;
        self.statsd.count(format_args!("formpost.digests.{digest}"), 1);
        Ok(scope)
    }
}

/// Whether the path is that of a bucket or the root, where no form of Swift can go: forms of S3 are `s3api`'s, which
/// may stand behind.
fn is_of_bucket(path: &str) -> bool {
    !path.trim_matches('/').contains('/')
}

#[async_trait::async_trait]
impl Feature for FormPost {
    fn name(&self) -> &'static str {
        "formpost"
    }

    fn info(&self) -> Vec<(&'static str, Value)> {
        vec![("formpost", info_of(&self.settings.allowed_digests).into())]
    }

    fn wants(&self, request: &ClientRequest) -> bool {
        request.method == Method::POST
    }

    async fn handle(&self, request: ClientRequest, next: Next) -> Response {
        let boundary = match request.method {
            Method::POST if !is_of_bucket(&request.path) => boundary_of(&request),
            _ => None,
        };
        let Some(boundary) = boundary else {
            return next.run(request).await;
        };
        match self.take(request, &next, &boundary).await {
            Ok(response) => response,
            Err(FormRefusal::Invalid(reason)) => reply::plain(400, format!("FormPost: {reason}")),
            Err(FormRefusal::Unauthorised(reason)) => {
                let mut refusal = reply::html(401, format!("FormPost: {reason}"));
                let realm = HeaderValue::from_static("Swift realm=\"unknown\"");
                refusal.headers_mut().insert(WWW_AUTHENTICATE, realm);
                refusal
            }
            Err(FormRefusal::Left) => reply::status(reply::CLIENT_DISCONNECT),
        }
    }
}

/// The boundary of a form; `None` for any other content.
fn boundary_of(request: &ClientRequest) -> Option<String> {
    let content_type = request.header("content-type")?;
    let (kind, parameters) = content_type.split_once(';')?;
    if kind.trim() != "multipart/form-data" {
        return None;
    }
    let found = parameters_of(parameters)
        .into_iter()
        .find(|(name, _)| name == "boundary");
    found
        .map(|(_, boundary)| boundary)
        .filter(|boundary| !boundary.is_empty())
}

/// The request that stores a file, without its body; `None` for a name that no object can have.
fn put_of(
    request: &ClientRequest,
    filename: &str,
    part: &PartHeaders,
    fields: &Fields,
    scope: KeyScope,
) -> Option<ClientRequest> {
    let entity = request.entity.as_deref()?;
    let slash = if request.path.ends_with('/') || entity.object.is_some() {
        ""
    } else {
        "/"
    };
    let path = format!("{}{slash}{filename}", request.path);
    let mut put = request.subrequest(Method::PUT, entity.clone(), SOURCE);
    if path.contains('\0') || !put.aim_at_path(&path) {
        return None;
    }
    put.headers.remove("x-auth-token");
    put.headers.remove(USER_AGENT);
    add_agent(&mut put, "FormPost");
    put.headers
        .insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
    let content_type = fields.some("content-type").or(part.content_type.as_deref());
    let encoding = fields.some("content-encoding").or(part.content_encoding.as_deref());
    for (name, value) in [
        (CONTENT_TYPE, content_type),
        (CONTENT_ENCODING, encoding),
        (HeaderName::from_static("x-delete-at"), fields.some("x_delete_at")),
        (HeaderName::from_static("x-delete-after"), fields.some("x_delete_after")),
    ] {
        if let Some(value) = value.and_then(|value| HeaderValue::from_bytes(value).ok()) {
            put.headers.insert(name, value);
        }
    }
    put.authorizer = Some(Arc::new(Within::scope(scope, entity)));
    put.authorize_override = true;
    put.remote_user = Some(USER.into());
    Some(put)
}

/// Stores the part that comes next; the status it was stored with.
async fn store(mut put: ClientRequest, next: &Next, form: &mut Multipart, limit: u64) -> Result<u16, FormRefusal> {
    let (feed, body) = Body::channel(CHUNKS_UNDER_WAY, None);
    put.body = body;
    let (response, fed) = join(next.clone().run(put), feed_part(feed, form, limit)).await;
    fed.map(|()| response.status().as_u16())
}

/// Hands a part over until its end, or until its reader is gone. What is not whole ends in an error: it is
/// not stored.
async fn feed_part(feed: Feed, form: &mut Multipart, limit: u64) -> Result<(), FormRefusal> {
    let mut passed = 0;
    loop {
        match form.chunk().await {
            Ok(Some(chunk)) => {
                passed += chunk.len() as u64;
                if passed > limit {
                    feed.fail(BodyError::TooLarge(limit)).await;
                    return Err(FormRefusal::Invalid("max_file_size exceeded"));
                }
                if !feed.send(chunk).await {
                    return Ok(());
                }
            }
            Ok(None) => {
                feed.finish().await;
                return Ok(());
            }
            Err(broken) => {
                feed.fail(BodyError::Abandoned).await;
                return Err(broken.into());
            }
        }
    }
}

/// The answer to the browser, or where it is redirected.
fn answer(outcome: &Outcome, fields: &Fields) -> Result<Response, FormRefusal> {
    let Some(redirect) = fields.some("redirect") else {
        let status = reply::status_line(outcome.code);
        let text = match outcome.message {
            "" => status,
            message => format!("{status}\r\nFormPost: {}", title_case(message)),
        };
        return Ok(reply::plain(outcome.code, text));
    };
    let unfit = FormRefusal::Invalid("redirect is no address");
    let redirect = std::str::from_utf8(redirect).map_err(|_| unfit.clone())?;
    let separator = if redirect.contains('?') { '&' } else { '?' };
    let message = utf8_percent_encode(outcome.message, NON_ALPHANUMERIC);
    let target = format!("{redirect}{separator}status={}&message={message}", outcome.code);
    let location = HeaderValue::from_bytes(target.as_bytes()).map_err(|_| unfit)?;
    let shown = target.replace('"', "&quot;").replace('<', "&lt;").replace('>', "&gt;");
    let page = format!("<html><body><p><a href=\"{shown}\">Click to continue...</a></p></body></html>");
    let mut response = reply::page(303, page);
    *response.status_mut() = StatusCode::SEE_OTHER;
    response.headers_mut().remove(CONTENT_TYPE);
    response.headers_mut().insert(LOCATION, location);
    Ok(response)
}

/// `max file count exceeded` → `Max File Count Exceeded`.
fn title_case(text: &str) -> String {
    let capital = |word: &str| {
        let mut letters = word.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    };
    text.split(' ').map(capital).collect::<Vec<_>>().join(" ")
}
