//! Requests that a feature makes by itself, on behalf of a client's.
//!
//! A feature sends them down the rest of its pipeline ([`crate::Next`]); they have a line of their own
//! in the access log, marked with the feature's `source`.
//! Always holds: such a request carries no header of the client but its agent, referrer, token and host; it is
//! authorised like the client's own unless the feature says [`Request::preauthorised`].

use crate::access_notes::AccessNotes;
use crate::request::{ClientRequest, Request};
use http::header::{HOST, REFERER, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use peer::Body;
use std::borrow::Cow;
use std::iter;
use std::sync::Arc;
use vocabulary::EntityPath;
use vocabulary::names::{quote, quote_lazily};

/// What a request of a feature inherits of the client's headers.
static INHERITED: [HeaderName; 4] = [HOST, REFERER, USER_AGENT, HeaderName::from_static("x-auth-token")];

/// Headers that such a request has room for before its map grows: what it inherits, and what an object is stored with.
const ROOM: usize = 12;

impl Request {
    /// A request of the feature known as `source` in the access log (`SLO`, `VW`, …), authorised as
    /// this one is. `entity` may be of another account.
    pub fn subrequest(&self, method: Method, entity: EntityPath, source: &'static str) -> ClientRequest {
        let notes = AccessNotes::of_feature(source);
        if let Some(user) = self.notes.user() {
            notes.set_user(user);
        }
        let mut request = self.inheriting(method, notes);
        request.aim_at(entity);
        request
    }

    /// A request about the same thing that is part of this one: what is noted of it stands in this one's line in the
    /// access log. Authorised as this one is.
    pub fn part_of_same(&self, method: Method) -> ClientRequest {
        self.inheriting(method, self.notes.clone())
    }

    /// A request about the same thing with nothing of the client's but what features inherit.
    fn inheriting(&self, method: Method, notes: AccessNotes) -> ClientRequest {
        let mut headers = HeaderMap::with_capacity(ROOM);
        for name in &INHERITED {
            if let Some(value) = self.headers.get(name) {
                headers.insert(name, value.clone());
            }
        }
        let mut request = self.copy(method, String::new(), headers, notes);
        (request.is_synced, request.own_content_type, request.is_owner) = (false, false, false);
        request.acl = None;
        request
    }

    /// This request, allowed to do whatever it asks: for what the feature itself vouches for.
    pub fn preauthorised(mut self: Box<Self>) -> ClientRequest {
        self.authorizer = None;
        self.authorize_override = true;
        self
    }

    /// The same request again, without its body (which only one can have).
    pub fn without_body(&self) -> ClientRequest {
        self.copy(
            self.method.clone(),
            self.query.clone(),
            self.headers.clone(),
            self.notes.clone(),
        )
    }

    /// The same request without its body, but for what is given.
    fn copy(&self, method: Method, query: String, headers: HeaderMap, notes: AccessNotes) -> ClientRequest {
        Box::new(Request {
            method,
            raw_path: self.raw_path.clone(),
            path: self.path.clone(),
            query,
            api_version: self.api_version.clone(),
            entity: self.entity.clone(),
            headers,
            body: Body::empty(),
            from: self.from,
            scheme: self.scheme,
            trans_id: self.trans_id.clone(),
            began: self.began,
            authorizer: self.authorizer.clone(),
            authorize_override: self.authorize_override,
            is_synced: self.is_synced,
            own_content_type: self.own_content_type,
            remote_user: self.remote_user.clone(),
            acl: self.acl.clone(),
            is_owner: self.is_owner,
            is_reseller_admin: self.is_reseller_admin,
            notes,
            extensions: self.extensions.clone(),
            footers: None,
        })
    }

    /// Makes this a request about something else.
    pub fn aim_at(&mut self, entity: EntityPath) {
        if self.api_version.is_empty() {
            self.api_version = "v1".into();
        }
        let parts = [
            Some(entity.account.as_str()),
            entity.container.as_deref(),
            entity.object.as_deref(),
        ];
        let parts = || iter::once(self.api_version.as_str()).chain(parts.into_iter().flatten());
        let mut path = String::with_capacity(parts().map(|part| 1 + part.len()).sum());
        for part in parts() {
            path.push('/');
            path.push_str(part);
        }
        self.path = path.into();
        self.raw_path = match quote_lazily(&self.path) {
            Cow::Borrowed(_) => self.path.clone(),
            Cow::Owned(quoted) => quoted.into(),
        };
        self.entity = Some(Arc::new(entity));
    }

    /// Makes this a request with another path (decoded), whatever it names; for features that read paths of
    /// their own. `false`, and nothing changes, when the path names no entity.
    pub fn aim_at_path(&mut self, path: &str) -> bool {
        let Some((version, rest)) = path.strip_prefix('/').and_then(|path| path.split_once('/')) else {
            return false;
        };
        let Ok(entity) = EntityPath::split(rest) else {
            return false;
        };
        self.api_version = version.to_owned();
        self.path = path.into();
        self.raw_path = quote(path).into();
        self.entity = Some(Arc::new(entity));
        true
    }

    /// Sets a header of this program's own making. What cannot be a header value is left out.
    pub fn set_header(&mut self, name: &'static str, value: &str) {
        set_header(&mut self.headers, name, value);
    }
}

/// Sets a header of this program's own making. What cannot be a header value is left out.
pub fn set_header(headers: &mut HeaderMap, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
        headers.insert(HeaderName::from_static(name), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_ask_in_their_own_name() {
        let mut client = Request::new(Method::PUT, "/v1/a/c/o".into(), "/v1/a/c/o".into());
        client.query = "multipart-manifest=put".into();
        for (name, value) in [("x-auth-token", "t"), ("etag", "x"), ("x-object-meta-a", "b")] {
            client.set_header(name, value);
        }
        client.notes.set_user("a:u");
        let entity = EntityPath::account("b").with_container("d").with_object("ü/ x");
        let asked = client.subrequest(Method::GET, entity, "SLO");
        assert_eq!((&*asked.path, asked.query.as_str()), ("/v1/b/d/ü/ x", ""));
        assert_eq!(&*asked.raw_path, "/v1/b/d/%C3%BC/%20x");
        assert_eq!(asked.headers.len(), 1);
        let noted = asked.notes.read();
        assert_eq!((noted.source, noted.user.as_deref()), (Some("SLO"), Some("a:u")));
        assert!(asked.preauthorised().authorize_override);
    }

    #[test]
    fn parts_of_a_request_are_about_the_same_and_note_in_its_line() {
        let mut client = Request::new(Method::PUT, "/v1/a/c/o%20x".into(), "/v1/a/c/o x".into());
        client.query = "versionId=1".into();
        for (name, value) in [("host", "h"), ("if-match", "x"), ("x-object-meta-a", "b")] {
            client.set_header(name, value);
        }
        (client.is_owner, client.acl) = (true, Some("a:b".into()));
        let asked = client.part_of_same(Method::GET);
        assert_eq!((&*asked.path, &*asked.raw_path), ("/v1/a/c/o x", "/v1/a/c/o%20x"));
        assert_eq!(
            (asked.entity.as_ref(), asked.query.as_str()),
            (client.entity.as_ref(), "")
        );
        assert_eq!(asked.headers.len(), 1);
        assert_eq!(asked.headers["host"], "h");
        assert_eq!((asked.is_owner, asked.acl.as_deref()), (false, None));
        asked.notes.remark("seen");
        assert_eq!(client.notes.read().remarks, ["seen"]);
    }

    #[test]
    fn paths_are_taken_whole_or_not_at_all() {
        let mut asked = Request::new(Method::GET, "/v1/a/c/o".into(), "/v1/a/c/o".into());
        assert!(!asked.aim_at_path("nothing"));
        assert!(!asked.aim_at_path("/v1//c"));
        assert_eq!(&*asked.path, "/v1/a/c/o");
        assert!(asked.aim_at_path("/v1.0/b/c//o"));
        assert_eq!(asked.entity.unwrap().object.as_deref(), Some("/o"));
    }
}
