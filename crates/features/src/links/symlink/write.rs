//! Making a link, and POST to one.
//!
//! Always holds: a link has no bytes and does not lead to itself; a static link is only made when its
//! target is what it says; a POST is applied to the link, and the client is sent on to the target.

use super::follow::Trail;
use super::link::{EMPTY_ETAG, LISTED_ETAG, Link, TARGET, TARGET_ACCOUNT, TARGET_BYTES, TARGET_ETAG, without_link};
use super::{SOURCE, Symlink};
use http::Method;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use request_pipeline::{ClientRequest, Next, Response, reply, set_header};
use vocabulary::EntityPath;
use vocabulary::conditional::bare_etag;
use vocabulary::metadata::Entity;
use vocabulary::names::{requote, unquote};

const SYMLINK_TYPE: HeaderValue = HeaderValue::from_static("application/symlink");

/// Answers a POST to an object.
pub(super) async fn post(request: ClientRequest, next: Next) -> Response {
    if request.headers.contains_key(TARGET) {
        return reply::plain(400, "A PUT request is required to set a symlink target");
    }
    let version = request.api_version.clone();
    let entity = request.entity.clone();
    let posted = next.run(request).await;
    let found = Link::of(posted.headers()).filter(|_| posted.status().is_success());
    let (Some(link), Some(entity)) = (found, entity) else {
        return posted;
    };
    let text = "The requested POST was applied to a symlink. POST directly to the target to apply requested metadata.";
    let mut response = reply::html(307, text.into());
    let headers = response.headers_mut();
    for (name, value) in posted.headers() {
        if Entity::Object.is_system_meta(name.as_str()) {
            headers.insert(name.clone(), value.clone());
        }
    }
    set_header(headers, "location", &link.location(&version, &entity.account));
    if let Some(etag) = &link.etag {
        set_header(headers, TARGET_ETAG, etag);
    }
    response
}

impl Symlink {
    /// Answers the PUT of a link.
    pub(super) async fn put(&self, mut request: ClientRequest, next: Next) -> Response {
        match self.prepare(&mut request, &next).await {
            Ok(()) => next.run(request).await,
            Err(refusal) => *refusal,
        }
    }

    /// Turns what the client asks for into what is stored.
    async fn prepare(&self, request: &mut ClientRequest, next: &Next) -> Result<(), Box<Response>> {
        if has_body(request).await {
            return Err(Box::new(reply::plain(400, "Symlink requests require a zero byte body")));
        }
        let own = request.entity.clone();
        let Some(own) = own else { return Ok(()) };
        let (mut link, target) = wanted(request, &own)?;
        match &link.etag {
            // From a cluster that has checked it; the target may be somewhere else by now.
            Some(_) if request.is_synced => {
                let bytes = request.header(TARGET_BYTES);
                link.bytes = bytes.filter(|text| text.parse::<u64>().is_ok()).map(str::to_owned);
            }
            Some(_) => match target {
                Some(target) => self.vouch(request, &mut link, target, next).await?,
                None => return Err(Box::new(reply::status(412))),
            },
            None => declare(request, &SYMLINK_TYPE),
        }
        link.store(&mut request.headers);
        Ok(())
    }

    /// Looks whether the target of a static link is what it should be, and learns what listings say of it.
    async fn vouch(
        &self,
        request: &mut ClientRequest,
        link: &mut Link,
        target: EntityPath,
        next: &Next,
    ) -> Result<(), Box<Response>> {
        let trail = || Trail {
            expected: link.etag.clone(),
            location: Some(link.location(&request.api_version, &target.account)),
            through_dynamic: false,
        };
        let look = request.subrequest(Method::HEAD, target.clone(), SOURCE);
        let asked = look.without_body();
        let answer = next.clone().run(look).await;
        let found = self.follow(&asked, answer, trail(), next).await.map_err(Box::new)?;
        if found.status() == http::StatusCode::NOT_FOUND {
            let missing = reply::plain(409, "X-Symlink-Target does not exist");
            let mut missing = trail().refuse(missing);
            if let Some(location) = found.headers().get("content-location") {
                missing.headers_mut().insert("content-location", location.clone());
            }
            return Err(Box::new(missing));
        }
        if !found.status().is_success() {
            return Err(Box::new(reply::status(found.status().as_u16())));
        }
        let text = |name: &str| found.headers().get(name).and_then(|text| text.to_str().ok());
        if !request.headers.contains_key(LISTED_ETAG) {
            let of_others =
                text(LISTED_ETAG).and_then(|listed| Some(without_link(listed).split_once(';')?.1.to_owned()));
            let of_large = text("x-object-sysmeta-slo-etag").map(|etag| format!(" slo_etag={etag}"));
            if let Some(parameters) = of_others.or(of_large) {
                request.set_header(LISTED_ETAG, &format!("{EMPTY_ETAG};{parameters}"));
            }
        }
        let bytes = text("x-object-sysmeta-slo-size").filter(|size| !size.is_empty());
        link.bytes = bytes.or_else(|| text("content-length")).map(str::to_owned);
        if let Some(content_type) = found.headers().get(CONTENT_TYPE) {
            declare(request, content_type);
        }
        Ok(())
    }
}

/// A content type, if the client has not set one.
fn declare(request: &mut ClientRequest, content_type: &HeaderValue) {
    if request.headers.get(CONTENT_TYPE).is_none_or(HeaderValue::is_empty) {
        request.headers.insert(CONTENT_TYPE, content_type.clone());
    }
}

async fn has_body(request: &mut ClientRequest) -> bool {
    let declared = request
        .headers
        .get(CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok());
    match declared
        .and_then(|length| length.parse::<u64>().ok())
        .or(request.body.length())
    {
        Some(length) => length > 0,
        None => request.body.next().await.is_some(),
    }
}

/// The link that the headers ask for, and where it leads: nowhere when that is no name. Such a link can be stored
/// all the same, and is refused to a client that follows it.
fn wanted(request: &ClientRequest, own: &EntityPath) -> Result<(Link, Option<EntityPath>), Box<Response>> {
    let html = |text: &str| Box::new(reply::html(412, text.into()));
    let not_text = || html("Invalid UTF8 or contains NULL");
    let form = "X-Symlink-Target header must be of the form <container name>/<object name>";
    let text = request.header(TARGET).ok_or_else(not_text)?;
    let path = requote(text);
    if path.starts_with('/') {
        return Err(Box::new(reply::plain(412, form)));
    }
    let parts = path.split_once('/');
    let (container, object) = parts
        .filter(|(c, o)| !c.is_empty() && !o.is_empty())
        .ok_or_else(|| Box::new(reply::page(412, form.into())))?;
    let account = match request.header(TARGET_ACCOUNT).map(requote) {
        Some(account) if account.is_empty() => return Err(html("Account name cannot be empty")),
        Some(account) if account.contains('/') => return Err(html("Account name cannot contain slashes")),
        account => account,
    };
    let name = |quoted: &str| unquote(quoted).ok().filter(|name| !name.contains('\0'));
    let in_account = match &account {
        Some(account) => name(account),
        None => Some(own.account.clone()),
    };
    let target = match (in_account, name(container), name(object)) {
        (Some(account), Some(container), Some(object)) => Some(
            EntityPath::account(account)
                .with_container(container)
                .with_object(object),
        ),
        _ => None,
    };
    if target.as_ref() == Some(own) {
        return Err(Box::new(reply::plain(400, "Symlink cannot target itself")));
    }
    let etag = request
        .header(TARGET_ETAG)
        .map(bare_etag)
        .filter(|etag| !etag.is_empty());
    if etag.is_some_and(|etag| etag.contains([';', '"', '\\'])) {
        return Err(Box::new(reply::plain(400, "Bad X-Symlink-Target-Etag format")));
    }
    let link = Link {
        target: path,
        account,
        etag: etag.map(str::to_owned),
        bytes: None,
        extends: false,
        allows_reserved: false,
    };
    Ok((link, target))
}
