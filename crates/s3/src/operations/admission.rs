//! May the request do what it asks, beside what the account's own authorisation says: limits of access keys, bucket
//! policies, public access blocks.
//!
//! Comes in: an operation before anything of it has happened. Goes out: a refusal, or the operation, its authorizer
//! wrapped in one that lets pass what policies allow, and that knows no public ACLs where these are to be ignored.
//! Always holds: all that a request needs is looked at before anything happens; what a limit or a policy denies is
//! refused whatever else allows it, but the account's owner can always see, replace and delete a policy; a bucket whose
//! policy cannot be known ends the request with 503; what a policy allows reaches the key that it allows, its versions
//! and the parts of its uploads, not what a manifest or a link there leads to.
//! Deliberately absent: ACLs: Swift's own, checked by the verbs, and S3's (`access_checks.rs`), beside which a policy
//! opens the same.

use super::{Operation, bucket_policy, public_access};
use crate::authority::actions::{self, Need};
use crate::authority::policy::{BucketPolicy, PolicyFacts, PolicyOfRequest, PolicyVerdict};
use crate::error::{ACCESS_DENIED, INTERNAL_ERROR, S3Error, SERVICE_UNAVAILABLE};
use http::Method;
use identity::KeyLimits;
use parking_lot::Mutex;
use request_pipeline::{Authorizer, ClientRequest, ContainerInfo, InfoSource, Request, Response};
use serde_json::Value;
use std::sync::Arc;

/// Canned ACLs that give something to everybody.
const PUBLIC_ACLS: [&str; 3] = ["public-read", "public-read-write", "authenticated-read"];
/// In a grant: everybody, or all who sign their requests.
const PUBLIC_GROUPS: [&str; 2] = ["/AllUsers", "/AuthenticatedUsers"];
/// Behind a bucket's name: the container of the parts of its uploads.
const SEGMENTS: &str = "+segments";

/// In front of a bucket's name: the container of the versions of its objects, which no client can name.
const VERSIONS: &str = "\0versions\0";

/// What is known of a bucket that the request is about, and that has a policy.
struct BucketRights {
    name: String,
    /// What of it is about this request.
    policy: PolicyOfRequest,
}

/// The rights of a request beside those that the account's authorisation gives.
#[derive(Default)]
pub(super) struct Rights {
    buckets: Vec<BucketRights>,
    opened: Arc<Mutex<Vec<Need>>>,
    /// Buckets whose ACLs give nothing to everybody.
    ignoring: Vec<String>,
    /// Keys whose GOVERNANCE retention a policy allows to be bypassed.
    bypassed: Mutex<Vec<String>>,
}

impl Operation<'_> {
    /// Looks at all that the request needs.
    pub(super) async fn admit(&mut self) -> Result<(), S3Error> {
        let needs = actions::needs(&self.request.method, &self.call, &self.request.headers);
        needs.iter().try_for_each(|need| self.is_within_limits(need))?;
        for bucket in needs.iter().filter_map(|need| need.bucket.as_deref()) {
            if self.rights.buckets.iter().any(|known| known.name == bucket) {
                continue;
            }
            let account = self.request.entity.as_deref().map_or("", |entity| &entity.account);
            let container = self.next.info().container(account, bucket).await;
            if container.status == 0 {
                return Err(SERVICE_UNAVAILABLE.into());
            }
            if bucket == self.bucket() {
                self.known_bucket = Some(container.clone());
            }
            let block = public_access::of_metadata(&container.sysmeta);
            if block.block_acls && bucket == self.bucket() && self.asks_for_public_acl() {
                return Err(public_access::blocked());
            }
            if block.ignore_acls {
                self.rights.ignoring.push(bucket.to_owned());
            }
            let policy = policy_of(&container, bucket);
            let is_about_policy = needs.iter().any(|need| actions::is_about_policy(need.action));
            let policy = match policy {
                // What cannot be read can be replaced and deleted.
                Err(_) if is_about_policy => None,
                policy => policy?,
            };
            let Some(policy) = policy else { continue };
            let is_restricted = block.restrict && policy.is_public();
            self.rights.buckets.push(BucketRights {
                name: bucket.to_owned(),
                policy: policy.about(&self.facts(), is_restricted),
            });
        }
        if !self.rights.buckets.is_empty() {
            // Of many keys that are deleted each is looked at by itself.
            let are_many = self.request.method == Method::POST && self.call.subresource() == Some("delete");
            let mut silent = Vec::new();
            for need in needs.iter().filter(|_| !are_many) {
                if self.judge(need).await? == PolicyVerdict::Silent {
                    silent.push(need);
                }
            }
            // All that is done to a key or a bucket has to be allowed.
            let is_whole = |need: &Need| {
                silent
                    .iter()
                    .all(|other| (&other.bucket, &other.key) != (&need.bucket, &need.key))
            };
            self.rights.opened.lock().retain(is_whole);
        } else if self.rights.ignoring.is_empty() {
            return Ok(());
        }
        if let Some(inner) = self.request.authorizer.take() {
            self.request.authorizer = Some(Arc::new(PolicyAuthorizer {
                inner,
                account: self.account().account,
                opened: self.rights.opened.clone(),
                ignoring: self.rights.ignoring.clone(),
            }));
        }
        Ok(())
    }

    /// Looks at one key of those that a request deletes.
    pub(super) async fn admit_deletion(&self, key: &str, version: Option<&str>) -> Result<(), S3Error> {
        let bypasses = version.is_some() && actions::wants_bypass(&self.request.headers);
        let bypass = bypasses.then(|| actions::bypass(self.bucket(), key));
        for need in bypass
            .into_iter()
            .chain([actions::deletion(self.bucket(), key, version)])
        {
            self.is_within_limits(&need)?;
            self.judge(&need).await?;
        }
        Ok(())
    }

    /// Whether a policy allows the client to bypass the GOVERNANCE retention of a key.
    pub(super) fn policy_bypasses(&self, key: &str) -> bool {
        self.rights.bypassed.lock().iter().any(|bypassed| bypassed == key)
    }

    /// Whether a policy allows all that the request does to this bucket, or to this key of it.
    pub(super) fn policy_opens(&self, bucket: &str, key: Option<&str>) -> bool {
        let opened = self.rights.opened.lock();
        opened
            .iter()
            .any(|need| need.bucket.as_deref() == Some(bucket) && need.key.as_deref() == key)
    }

    /// Opens the source of a copy, which its list lets the client read.
    pub(super) fn open_source(&self, bucket: &str, key: &str) {
        self.rights.opened.lock().push(actions::reading(bucket, key));
    }

    /// Whether public grants in a bucket count for nothing.
    pub(super) fn ignores_public(&self, bucket: &str) -> bool {
        self.rights.ignoring.iter().any(|ignoring| ignoring == bucket)
    }

    /// Whether a bucket is among those that the client is shown.
    pub(super) fn shows_bucket(&self, bucket: &str) -> bool {
        self.limits().is_none_or(|limits| limits.allow_bucket(bucket))
    }

    fn limits(&self) -> Option<&KeyLimits> {
        self.request.extensions.get::<Arc<KeyLimits>>().map(Arc::as_ref)
    }

    fn is_within_limits(&self, need: &Need) -> Result<(), S3Error> {
        let Some(limits) = self.limits() else {
            return Ok(());
        };
        let has_bucket = need.bucket.as_deref().is_none_or(|bucket| limits.allow_bucket(bucket));
        match has_bucket && limits.allow_action(need.action.name, need.action.kind) {
            true => Ok(()),
            false => Err(ACCESS_DENIED.saying("The access key is not allowed to do this.")),
        }
    }

    /// Refuses what a policy denies; what one allows is opened.
    async fn judge(&self, need: &Need) -> Result<PolicyVerdict, S3Error> {
        let bucket = self
            .rights
            .buckets
            .iter()
            .find(|known| Some(&known.name) == need.bucket.as_ref());
        let Some(bucket) = bucket else {
            return Ok(PolicyVerdict::Silent);
        };
        let verdict = bucket.policy.verdict(need);
        match verdict {
            PolicyVerdict::Denied if actions::is_about_policy(need.action) && self.owns_account().await => {
                Ok(PolicyVerdict::Silent)
            }
            PolicyVerdict::Denied => Err(ACCESS_DENIED.saying("The bucket's policy denies this.")),
            PolicyVerdict::Allowed if need.action == actions::BYPASS_GOVERNANCE => {
                self.rights.bypassed.lock().extend(need.key.clone());
                Ok(verdict)
            }
            PolicyVerdict::Allowed => {
                self.rights.opened.lock().push(need.clone());
                Ok(verdict)
            }
            PolicyVerdict::Silent => Ok(verdict),
        }
    }

    /// Whether the client owns the account, as its authenticator says.
    pub(super) async fn owns_account(&self) -> bool {
        let Some(authorizer) = self.request.authorizer.clone() else {
            return false;
        };
        let mut probe = self.further(Method::POST, self.account());
        authorizer.authorize(&mut probe, self.next.info()).await.is_ok() && probe.is_owner
    }

    fn asks_for_public_acl(&self) -> bool {
        let is_public = |acl: &str| PUBLIC_ACLS.contains(&acl);
        let mut headers = self.request.headers.iter();
        self.request.header("x-amz-acl").is_some_and(is_public)
            || headers.any(|(name, value)| {
                let text = String::from_utf8_lossy(value.as_bytes());
                name.as_str().starts_with("x-amz-grant-") && PUBLIC_GROUPS.iter().any(|group| text.contains(group))
            })
    }

    fn facts(&self) -> PolicyFacts {
        let mut texts = Vec::new();
        let mut add = |key, value: Option<&str>| texts.extend(value.map(|value| (key, value.to_owned())));
        add("aws:referer", self.request.header("referer"));
        add("aws:useragent", self.request.header("user-agent"));
        add("s3:x-amz-acl", self.request.header("x-amz-acl"));
        add("s3:prefix", self.call.parameter("prefix"));
        add("s3:delimiter", self.call.parameter("delimiter"));
        let key = self.verified.as_ref();
        PolicyFacts {
            principal: key.map(|key| key.principal.clone()),
            source: self.request.from.ip().to_canonical(),
            is_secure: self.request.scheme == "https",
            now: self.service.world.clock.now().seconds(),
            texts,
        }
    }
}

/// The policy of a bucket, if it has one.
fn policy_of(container: &ContainerInfo, bucket: &str) -> Result<Option<BucketPolicy>, S3Error> {
    let text = bucket_policy::text_of(&container.sysmeta);
    let policy = text.map(|text| BucketPolicy::read(text.as_bytes(), bucket)).transpose();
    policy.map_err(|problem| {
        tracing::warn!("the policy of bucket {bucket} cannot be read: {problem}");
        S3Error::from(INTERNAL_ERROR)
    })
}

/// Lets pass what policies have opened, and asks the account's own authorizer about all else.
struct PolicyAuthorizer {
    inner: Arc<dyn Authorizer>,
    account: String,
    opened: Arc<Mutex<Vec<Need>>>,
    /// Buckets whose ACLs give nothing to everybody.
    ignoring: Vec<String>,
}

impl PolicyAuthorizer {
    fn opens(&self, request: &Request) -> bool {
        let Some(entity) = request
            .entity
            .as_deref()
            .filter(|entity| entity.account == self.account)
        else {
            return false;
        };
        let Some(container) = entity.container.as_deref() else {
            return false;
        };
        let object = entity.object.as_deref();
        self.opened.lock().iter().any(|need| {
            let Some(bucket) = need.bucket.as_deref() else {
                return false;
            };
            let is_parts = container.strip_suffix(SEGMENTS) == Some(bucket);
            match (&need.key, object) {
                // The bucket itself, and listings of its uploads.
                (None, None) => container == bucket || is_parts,
                // Its container is looked at; that of the parts is made and listed.
                (Some(_), None) => is_parts || container == bucket && request.method == Method::HEAD,
                (Some(key), Some(object)) if is_parts => object
                    .strip_prefix(key.as_str())
                    .is_some_and(|rest| rest.starts_with('/')),
                (Some(key), Some(object)) if container == bucket => object == key,
                // The versions of a key, to which the key itself is a link.
                (Some(key), Some(object)) => {
                    container.strip_prefix(VERSIONS) == Some(bucket) && object.starts_with(&format!("\0{key}\0"))
                }
                // A bucket is deleted with what uploads have left.
                (None, Some(_)) => is_parts && actions::deletes_bucket(need.action),
            }
        })
    }
}

#[async_trait::async_trait]
impl Authorizer for PolicyAuthorizer {
    async fn authorize(&self, request: &mut ClientRequest, info: &dyn InfoSource) -> Result<(), Response> {
        let container = request.entity.as_deref().and_then(|entity| entity.container.as_deref());
        if container.is_some_and(|name| self.ignoring.iter().any(|bucket| bucket == name)) {
            request.acl = request.acl.take().map(|acl| without_public(&acl));
        }
        match self.inner.authorize(request, info).await {
            Ok(()) => Ok(()),
            Err(_) if self.opens(request) => Ok(()),
            Err(refusal) => Err(refusal),
        }
    }

    fn key_holder(&self, request: &Request, account: &str, user: Option<&str>) -> Option<Value> {
        self.inner.key_holder(request, account, user)
    }

    fn refuses_keys(&self) -> Option<String> {
        self.inner.refuses_keys()
    }
}

/// A list of Swift's without what it gives to everybody.
fn without_public(acl: &str) -> String {
    let entries = acl.split(',').map(str::trim);
    let entries = entries.filter(|entry| !entry.starts_with(".r:") && *entry != ".rlistings");
    entries.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::without_public;

    #[test]
    fn public_entries_are_left_out() {
        for (acl, expected) in [
            (".r:*,.rlistings", ""),
            ("a:b, .r:example.com ,c", "a:b,c"),
            ("a:b", "a:b"),
            ("", ""),
        ] {
            assert_eq!(without_public(acl), expected);
        }
    }
}
