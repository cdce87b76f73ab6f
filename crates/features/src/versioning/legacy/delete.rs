//! DELETE of an object whose older versions are kept.
//!
//! Stack: the newest version comes back, and the DELETE takes it from the versions. A marker that says "deleted here"
//! is what comes back while the object is there; once it has gone, the marker goes with what was under it.
//! History: what is there is kept, a marker put on top, and the object deleted.
//! Always holds: a version is deleted only once it is the current object again.

use super::keep::check;
use super::{HISTORY, Kept, MODE, SOURCE};
use http::{Method, StatusCode};
use request_pipeline::{ClientRequest, Response, reply};
use serde_json::Value;
use std::collections::VecDeque;
use vocabulary::EntityPath;
use vocabulary::names::quote;

/// The type of a marker: only features can give it.
const MARKER: &str = "application/x-deleted;swift_versions_deleted=1";
/// Versions looked at in one go; the first is mostly the one.
const PAGE: usize = 100;
/// Bytes of such a page of the longest names.
const MAX_PAGE: u64 = 4 << 20;

/// An older version, as a listing has it.
struct Version {
    entity: EntityPath,
    is_marker: bool,
}

/// The versions of an object, newest first, as many as are asked for.
struct Versions<'a, 'b> {
    kept: &'a Kept<'b>,
    request: &'a ClientRequest,
    page: VecDeque<Version>,
    /// The last name seen; the next page begins behind it.
    marker: String,
    ended: bool,
}

impl Kept<'_> {
    /// Answers the DELETE of an object.
    pub(super) async fn delete(self, request: ClientRequest) -> Response {
        let of_history = self.container.sysmeta.get(MODE).is_some_and(|mode| mode == HISTORY);
        let prepared = match of_history {
            true => self.push(&request).await.map(|()| None),
            false => self.pop(&request).await,
        };
        match prepared {
            Ok(None) => self.next.run(request).await,
            Ok(Some(instead)) => self.next.run(instead).await,
            Err(refusal) => refusal,
        }
    }

    /// Keeps what is there, and notes that it was deleted.
    async fn push(&self, request: &ClientRequest) -> Result<(), Response> {
        self.keep_current(request).await?;
        let marker = self.version_at(self.owner.clock.now());
        let mut put = request.subrequest(Method::PUT, marker, SOURCE).preauthorised();
        put.set_header("content-type", MARKER);
        put.set_header("content-length", "0");
        put.own_content_type = true;
        check(&self.next.clone().run(put).await)
    }

    /// Brings back the newest version; answers with the DELETE to be done instead of the client's.
    async fn pop(&self, request: &ClientRequest) -> Result<Option<ClientRequest>, Response> {
        let mut versions = Versions {
            kept: self,
            request,
            page: VecDeque::new(),
            marker: String::new(),
            ended: false,
        };
        let mut authorised = false;
        while let Some(version) = versions.next().await? {
            if !authorised {
                self.authorise(request).await?;
                authorised = true;
            }
            if version.is_marker {
                if self.exists(request).await? {
                    return Ok(None);
                }
                self.uncover(request, &mut versions).await?;
            } else if !self.restore(request, &version.entity).await? {
                continue;
            }
            return Ok(Some(self.deletion(request, version.entity)));
        }
        Ok(None)
    }

    /// Brings back what lies under a marker, unless that is another one.
    async fn uncover(&self, request: &ClientRequest, versions: &mut Versions<'_, '_>) -> Result<(), Response> {
        while let Some(version) = versions.next().await? {
            if version.is_marker {
                break;
            }
            if self.restore(request, &version.entity).await? {
                let deletion = self.deletion(request, version.entity);
                let deleted = self.next.clone().run(deletion).await;
                if deleted.status() != StatusCode::NOT_FOUND {
                    check(&deleted)?;
                }
                break;
            }
        }
        Ok(())
    }

    fn deletion(&self, request: &ClientRequest, entity: EntityPath) -> ClientRequest {
        request.subrequest(Method::DELETE, entity, SOURCE).preauthorised()
    }

    async fn exists(&self, request: &ClientRequest) -> Result<bool, Response> {
        let entity = EntityPath::clone(&self.entity);
        let mut head = request.subrequest(Method::HEAD, entity, SOURCE).preauthorised();
        head.set_header("x-newest", "true");
        head.query = "symlink=get".into();
        let found = self.next.clone().run(head).await;
        if found.status() == StatusCode::NOT_FOUND {
            return Ok(false);
        }
        check(&found).map(|()| true)
    }
}

impl Versions<'_, '_> {
    async fn next(&mut self) -> Result<Option<Version>, Response> {
        if self.page.is_empty() && !self.ended {
            self.turn_page().await?;
        }
        Ok(self.page.pop_front())
    }

    async fn turn_page(&mut self) -> Result<(), Response> {
        let (kept, prefix) = (self.kept, self.kept.prefix());
        let list = kept.versions.clone();
        let mut get = self.request.subrequest(Method::GET, list, SOURCE).preauthorised();
        get.query = format!(
            "format=json&reverse=on&limit={PAGE}&prefix={}&marker={}",
            quote(&prefix),
            quote(&self.marker)
        );
        let response = kept.next.clone().run(get).await;
        if response.status() == StatusCode::NOT_FOUND {
            self.ended = true;
            return Ok(());
        }
        check(&response)?;
        let json = response.into_body().collect(MAX_PAGE).await;
        let rows: Vec<Value> = json
            .ok()
            .and_then(|json| {
                if json.is_empty() {
                    Some(Vec::new())
                } else {
                    serde_json::from_slice(&json).ok()
                }
            })
            .ok_or_else(|| reply::status(503))?;
        self.ended = rows.len() < PAGE;
        for row in &rows {
            let Some(name) = row.get("name").and_then(Value::as_str) else {
                continue;
            };
            self.marker = name.to_owned();
            self.page.push_back(Version {
                entity: kept.versions.with_object(name),
                is_marker: row.get("content_type").and_then(Value::as_str) == Some(MARKER),
            });
        }
        Ok(())
    }
}
