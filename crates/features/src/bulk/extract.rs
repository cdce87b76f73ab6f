//! Unpacking an archive: each of its files becomes an object, by a PUT of this feature's own.
//!
//! Always holds: files stream, one after the other; a name stays within the account the request is for,
//! since every destination begins with it and `..` is a name like any other; a file that is cut is not stored; nothing
//! is unpacked for a client that does not say who it is, and no more than [`MOST_UNUSED`] bytes in a row for nothing.
//! Source: OpenStack Swift's documentation and answers.

use super::decode::{Compression, Decoded};
use super::delete::{quote, subrequest};
use super::tar::{Archive, TarEntry, Unreadable};
use crate::bulk::report::Report;
use futures_util::future::join;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue, USER_AGENT};
use http::{HeaderMap, Method};
use peer::{Body, BodyError, Feed};
use request_pipeline::{ClientRequest, Next, reply};
use std::collections::HashSet;
use vocabulary::EntityPath;

/// In the access log.
const SOURCE: &str = "EA";
/// Chunks of a file on their way from the archive to its PUT.
const CHUNKS_UNDER_WAY: usize = 4;

/// Bytes of a compressed archive that are unpacked in a row without an object that is stored: headers, directories,
/// files that are too large or were refused. Some tenths of a second; OpenStack Swift reads on for as long as it takes.
const MOST_UNUSED: u64 = 128 << 20;

/// What an operator allows.
#[derive(Debug, Clone, Copy)]
pub struct ExtractLimits {
    /// Containers that one archive may make.
    pub containers: usize,
    /// Failed files after which it is given up.
    pub failures: usize,
    /// Bytes of a file.
    pub file_size: u64,
}

/// Unpacks what `request` brings and tells what became of it.
pub async fn extract(
    mut request: ClientRequest,
    next: Next,
    compression: Compression,
    limits: ExtractLimits,
) -> Report {
    let Some(entity) = request.entity.clone() else {
        return refusal(404, "");
    };
    if !has_length(&request.headers) {
        return refusal(411, "");
    }
    let body = std::mem::replace(&mut request.body, Body::empty());
    let mut archive = Archive::new(Decoded::new(body, compression));
    if compression != Compression::None {
        archive = archive.with_most_unused(MOST_UNUSED);
    }
    let mut work = Work {
        archive,
        base: base_of(&request, &entity),
        metadata: kept_headers(&request.headers),
        request,
        next,
        entity: (*entity).clone(),
        limits,
        seen: HashSet::new(),
        made: 0,
        created: 0,
        errors: Vec::new(),
        is_servers_fault: false,
    };
    let end = work.run().await.err();
    work.report(end)
}

/// The report of an archive that was not even looked at.
pub fn refusal(code: u16, reason: &str) -> Report {
    report(code, reason, 0, Vec::new())
}

fn report(code: u16, reason: &str, created: u64, errors: Vec<(String, String)>) -> Report {
    let mut report = Report::new()
        .with("Response Status", reply::status_line(code))
        .with("Response Body", reason)
        .with("Number Files Created", created);
    report.errors = errors;
    report
}

/// Whether the request says how long it is, or that it will tell.
pub(super) fn has_length(headers: &HeaderMap) -> bool {
    let chunked = headers.get(http::header::TRANSFER_ENCODING);
    headers.contains_key(CONTENT_LENGTH)
        || chunked.is_some_and(|coding| coding.as_bytes().eq_ignore_ascii_case(b"chunked"))
}

/// Where files go: `container/prefix`, or nothing.
fn base_of(request: &ClientRequest, entity: &EntityPath) -> String {
    let account = format!("/{}/{}", request.api_version, entity.account);
    let base = request.path.strip_prefix(&account).unwrap_or_default();
    base.trim_matches('/').to_owned()
}

/// What every file gets of the request's headers.
fn kept_headers(headers: &HeaderMap) -> HeaderMap {
    let is_kept = |name: &HeaderName| {
        let name = name.as_str();
        name.starts_with("x-object-meta-") || name == "x-delete-at" || name == "x-delete-after"
    };
    let kept = headers.iter().filter(|(name, _)| is_kept(name));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}

struct Work {
    request: ClientRequest,
    next: Next,
    archive: Archive,
    entity: EntityPath,
    base: String,
    metadata: HeaderMap,
    limits: ExtractLimits,
    seen: HashSet<String>,
    made: usize,
    created: u64,
    errors: Vec<(String, String)>,
    is_servers_fault: bool,
}

/// Why it ended before the archive did.
enum End {
    Archive(Unreadable),
    Unauthorised,
    TooManyContainers,
    TooManyFailures,
}

impl From<Unreadable> for End {
    fn from(problem: Unreadable) -> Self {
        Self::Archive(problem)
    }
}

impl Work {
    async fn run(&mut self) -> Result<(), End> {
        let mut is_client_known = false;
        while let Some(entry) = self.archive.entry().await? {
            if !std::mem::replace(&mut is_client_known, true) {
                self.check_client().await?;
            }
            if self.errors.len() >= self.limits.failures {
                return Err(End::TooManyFailures);
            }
            if entry.is_file {
                self.file(entry).await?;
            }
        }
        Ok(())
    }

    /// Ends with a client that the first file would end with: one that does not say who it is may make no container.
    async fn check_client(&mut self) -> Result<(), End> {
        let container = self.base.split('/').next().unwrap_or_default().to_owned();
        let path = match container.as_str() {
            "" => format!("/{}/{}", self.request.api_version, self.entity.account),
            container => self.path_to(container),
        };
        match self.ask(Method::HEAD, &path).await {
            401 => return Err(End::Unauthorised),
            200..300 if !container.is_empty() => self.seen.insert(container),
            _ => false,
        };
        Ok(())
    }

    async fn file(&mut self, entry: TarEntry) -> Result<(), End> {
        let destination = destination(&self.base, &entry.name);
        let Some((container, object)) = split(&destination) else {
            return Ok(());
        };
        if object.is_empty() {
            return Ok(());
        }
        if entry.size > self.limits.file_size {
            self.failed(quote(&destination), 413);
            return Ok(());
        }
        let Some(path) = text(&destination).map(|name| self.path_to(name)) else {
            self.failed(quote(&destination), 412);
            return Ok(());
        };
        if let Some(container) = text(container) {
            self.make_container(container).await?;
        }
        let put = self.put_of(&path, &entry).ok_or(400);
        let code = match put {
            Ok(put) => self.store(put).await,
            Err(code) => Ok(code),
        };
        match code {
            Ok(200..300) => {
                self.created += 1;
                self.archive.is_stored();
            }
            Ok(code) => {
                self.failed(quote(&destination), code);
                if code == 401 {
                    return Err(End::Unauthorised);
                }
            }
            Err(problem) => {
                self.failed(quote(&destination), 500);
                return Err(problem.into());
            }
        }
        Ok(())
    }

    fn path_to(&self, name: &str) -> String {
        format!("/{}/{}/{name}", self.request.api_version, self.entity.account)
    }

    fn failed(&mut self, name: String, code: u16) {
        self.is_servers_fault |= code >= 500;
        self.errors.push((name, reply::status_line(code)));
    }

    /// Sees to it, once, that a container is there.
    async fn make_container(&mut self, container: &str) -> Result<(), End> {
        if !self.seen.insert(container.to_owned()) {
            return Ok(());
        }
        let path = self.path_to(container);
        if (200..300).contains(&self.ask(Method::HEAD, &path).await) {
            return Ok(());
        }
        if self.made >= self.limits.containers {
            return Err(End::TooManyContainers);
        }
        match self.ask(Method::PUT, &path).await {
            200..300 => self.made += 1,
            401 => return Err(End::Unauthorised),
            code => self.failed(quote(path.as_bytes()), code),
        }
        Ok(())
    }

    async fn ask(&self, method: Method, path: &str) -> u16 {
        match subrequest(&self.request, method, path, SOURCE) {
            Some(asked) => self.next.clone().run(asked).await.status().as_u16(),
            None => 404,
        }
    }

    /// The request that stores a file, without its body; `None` when its attributes cannot be headers.
    fn put_of(&self, path: &str, entry: &TarEntry) -> Option<ClientRequest> {
        let mut put = subrequest(&self.request, Method::PUT, path, SOURCE)?;
        put.headers.extend(self.metadata.clone());
        put.headers.insert(USER_AGENT, HeaderValue::from_static("BulkExpand"));
        put.headers.insert(CONTENT_LENGTH, HeaderValue::from(entry.size));
        for (name, value) in &entry.attributes {
            let name = match name.as_slice() {
                b"mime_type" => CONTENT_TYPE,
                name => match name.strip_prefix(b"meta.") {
                    Some(name) => HeaderName::from_bytes(&[b"x-object-meta-", name].concat()).ok()?,
                    None => continue,
                },
            };
            put.headers.insert(name, HeaderValue::from_bytes(value).ok()?);
        }
        Some(put)
    }

    /// Stores the entry at hand; the status it was stored with.
    async fn store(&mut self, mut put: ClientRequest) -> Result<u16, Unreadable> {
        let (feed, body) = Body::channel(CHUNKS_UNDER_WAY, None);
        put.body = body;
        let stored = self.next.clone().run(put);
        let (response, fed) = join(stored, feed_entry(feed, &mut self.archive)).await;
        fed.map(|()| response.status().as_u16())
    }

    fn report(self, end: Option<End>) -> Report {
        let by_errors = if self.is_servers_fault { 502 } else { 400 };
        let (code, reason) = match end {
            Some(End::Archive(Unreadable::Archive(problem))) => (400, format!("Invalid Tar File: {problem}")),
            Some(End::Archive(Unreadable::Left)) => (499, String::new()),
            Some(End::Archive(Unreadable::ForNothing(most))) => (
                by_errors,
                format!(
                    "The archive was read to where more than {most} bytes would be unpacked without an object to store."
                ),
            ),
            Some(End::Unauthorised) => (401, String::new()),
            Some(End::TooManyContainers) => {
                let most = self.limits.containers;
                (400, format!("More than {most} containers to create from tar."))
            }
            Some(End::TooManyFailures) => (by_errors, String::new()),
            None if !self.errors.is_empty() => (by_errors, String::new()),
            None if self.created == 0 => (400, "Invalid Tar File: No Valid Files".to_owned()),
            None => (201, String::new()),
        };
        report(code, &reason, self.created, self.errors)
    }
}

/// Hands a file over until its end, or until its reader is gone.
async fn feed_entry(feed: Feed, archive: &mut Archive) -> Result<(), Unreadable> {
    loop {
        match archive.chunk().await {
            Ok(Some(chunk)) => {
                if !feed.send(chunk).await {
                    return Ok(());
                }
            }
            Ok(None) => {
                feed.finish().await;
                return Ok(());
            }
            Err(problem) => {
                feed.fail(BodyError::Abandoned).await;
                return Err(problem);
            }
        }
    }
}

/// `container/object` of an entry: its name, without `./` and slashes in front, behind where files go.
fn destination(base: &str, name: &[u8]) -> Vec<u8> {
    let name = name.strip_prefix(b"./").unwrap_or(name);
    let slashes = name.iter().take_while(|byte| **byte == b'/').count();
    match base {
        "" => name[slashes..].to_vec(),
        base => [base.as_bytes(), &name[slashes..]].join(&b'/'),
    }
}

fn split(destination: &[u8]) -> Option<(&[u8], &[u8])> {
    let slash = destination.iter().position(|byte| *byte == b'/')?;
    Some((&destination[..slash], &destination[slash + 1..]))
}

fn text(name: &[u8]) -> Option<&str> {
    std::str::from_utf8(name).ok().filter(|name| !name.contains('\0'))
}
