//! `s3_acl`: what S3's own lists grant is checked before an operation begins.
//!
//! A list lies in the system metadata of the container or the object. A bucket's comes with what the gateway knows of
//! the container, an object's with its HEAD, or with the very answer that a read gives.
//! Always holds: an operation that goes on here was granted what it needs, and its further requests are allowed for
//! that; what has no owner is refused to all, unless `allow_no_owner`; only a verified user is granted anything. What
//! the bucket's policy allows is done though no list grants it; its further requests are authorised then, as far as the
//! policy reaches (`admission.rs`). Where the public access block of a bucket says so, grants to everybody count for
//! nothing.

use super::Operation;
use crate::acl::{AccessControl, AclPermission, Needed, needed};
use crate::error::{ACCESS_DENIED, NO_SUCH_BUCKET, S3Error, SERVICE_UNAVAILABLE};
use http::header::CONTENT_LOCATION;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use request_pipeline::Response;
use vocabulary::EntityPath;

/// The list of an object, and of what an upload is to become.
pub(super) const OBJECTS_LIST: HeaderName = HeaderName::from_static("x-object-sysmeta-s3api-acl");
pub(super) const UPLOADS_LIST: HeaderName = HeaderName::from_static("x-object-sysmeta-s3api-tmpacl");
pub(super) const BUCKETS_LIST: HeaderName = HeaderName::from_static("x-container-sysmeta-s3api-acl");
/// The same in what the gateway knows of a container.
const BUCKETS_KEPT: &str = "s3api-acl";

/// The lists by which an operation was allowed.
#[derive(Debug, Clone, Default)]
pub(super) struct AllowedBy {
    pub(super) bucket: AccessControl,
    /// The headers and the list of the object that was asked about.
    pub(super) object: Option<(HeaderMap, AccessControl)>,
    /// No list grants it, but the bucket's policy allows it.
    pub(super) by_policy: bool,
}

impl Operation<'_> {
    /// Refuses what S3's own lists do not grant.
    pub(super) async fn check_access(&mut self) -> Result<(), S3Error> {
        let level = (self.call.bucket.is_some(), self.call.key.is_some());
        let Some(needed) = needed(level, &self.request.method, self.call.subresource()) else {
            return Ok(());
        };
        if self.verified.is_none() {
            return Err(ACCESS_DENIED.into());
        }
        let mut allowed = AllowedBy::default();
        if needed != Needed::OwnAccount {
            allowed.bucket = self.list_of_bucket(self.bucket()).await?;
        }
        let is_allowed = match needed {
            // Elsewhere the account's own authorisation decides.
            Needed::OwnAccount if !self.is_own_account() => return Ok(()),
            Needed::OwnAccount | Needed::BucketThere => true,
            // Its list comes with the answer.
            Needed::ObjectsOwnWord => !self.is_opened(),
            Needed::OnBucket(permission) => self.grants(self.bucket(), &allowed.bucket, permission),
            Needed::OwnBucket => self.owns(&allowed.bucket),
            Needed::OnObject(_) | Needed::OwnObject => {
                let (headers, list) = self.list_of_object().await?;
                let is_allowed = match needed {
                    Needed::OnObject(permission) => self.object_grants(self.bucket(), (&headers, &list), permission),
                    _ => self.owns(&list) && !self.leads_away(&headers, &list),
                };
                allowed.object = Some((headers, list));
                is_allowed
            }
        };
        if !is_allowed && !self.is_opened() {
            return Err(ACCESS_DENIED.into());
        }
        allowed.by_policy = !is_allowed;
        self.allowed = Some(allowed);
        Ok(())
    }

    /// Whether the bucket's policy allows what the request does to its bucket or key.
    fn is_opened(&self) -> bool {
        self.policy_opens(self.bucket(), self.call.key.as_deref())
    }

    /// The account is that of the user, and not another that a key of Keystone's names.
    fn is_own_account(&self) -> bool {
        let project = self.request.header("x-project-id");
        project.is_none_or(|project| self.account().account.ends_with(project))
    }

    /// Whether the list of this bucket, or of an object in it, grants this to the user.
    fn grants(&self, bucket: &str, list: &AccessControl, permission: AclPermission) -> bool {
        let (user, allow_no_owner) = (self.user(), self.service.settings.allow_no_owner);
        match self.ignores_public(bucket) {
            true => list.clone().without_public().allows(permission, &user, allow_no_owner),
            false => list.allows(permission, &user, allow_no_owner),
        }
    }

    pub(super) fn owns(&self, list: &AccessControl) -> bool {
        list.is_owned_by(&self.user(), self.service.settings.allow_no_owner)
    }

    /// The list of a bucket of the account, which must be there.
    pub(super) async fn list_of_bucket(&self, bucket: &str) -> Result<AccessControl, S3Error> {
        let container = self.next.info().container(&self.account().account, bucket).await;
        match container.status {
            200..=299 => Ok(AccessControl::of_kept(
                container.sysmeta.get(BUCKETS_KEPT).map(String::as_str),
            )),
            404 => Err(NO_SUCH_BUCKET.about("BucketName", bucket)),
            _ => Err(SERVICE_UNAVAILABLE.into()),
        }
    }

    /// The object that the request names, perhaps a version of it, and its list.
    async fn list_of_object(&self) -> Result<(HeaderMap, AccessControl), S3Error> {
        let version = self.call.parameter("versionId");
        let mut head = self
            .further(Method::HEAD, self.container().with_object(self.key()))
            .preauthorised();
        head.set_header("x-newest", "true");
        self.aim_at_version(&mut head, version);
        let response = self.send(head).await;
        match (response.status().is_success(), version) {
            (true, _) => {
                let list = list_in(response.headers(), &OBJECTS_LIST);
                Ok((response.into_parts().0.headers, list))
            }
            (false, Some(version)) => Err(self.version_refusal(&response, version).await),
            (false, None) => Err(self.refusal(&response).await),
        }
    }

    /// Refuses an answer with an object that the user may not read. One that does not have the object's list, as its
    /// condition did not hold, is followed by a look at the object.
    pub(super) async fn may_read(
        &self,
        response: &Response,
        object: impl FnOnce() -> EntityPath,
        version: Option<&str>,
    ) -> Result<(), S3Error> {
        if !self.service.settings.s3_acl || response.status() == 404 {
            return Ok(());
        }
        let entity = object();
        let (bucket, key) = (entity.container.clone().unwrap_or_default(), entity.object.clone());
        let looked_at;
        let headers = match response.status().is_success() {
            true => response.headers(),
            false => {
                let mut bare = self.further(Method::HEAD, entity).preauthorised();
                self.aim_at_version(&mut bare, version);
                looked_at = self.send(bare).await;
                if !looked_at.status().is_success() {
                    return Err(self.refusal(&looked_at).await);
                }
                looked_at.headers()
            }
        };
        let list = list_in(headers, &OBJECTS_LIST);
        let is_opened = self.policy_opens(&bucket, key.as_deref()) && !self.leads_away(headers, &list);
        match is_opened || self.object_grants(&bucket, (headers, &list), AclPermission::Read) {
            true => Ok(()),
            false => Err(ACCESS_DENIED.into()),
        }
    }

    /// Whether an object's list grants this.
    fn object_grants(
        &self,
        bucket: &str,
        (headers, list): (&HeaderMap, &AccessControl),
        permission: AclPermission,
    ) -> bool {
        self.grants(bucket, list, permission) && !self.leads_away(headers, list)
    }

    /// Whether a link of Swift's leads to what has no owner in another account, where it is not open to all.
    fn leads_away(&self, headers: &HeaderMap, list: &AccessControl) -> bool {
        let leads_to = headers.get(CONTENT_LOCATION).and_then(|path| path.to_str().ok());
        let account = vocabulary::names::quote(&self.account().account);
        list.owner.is_none() && leads_to.is_some_and(|path| path.split('/').nth(2) != Some(&account))
    }

    /// Whether this key among others may be deleted.
    pub(super) fn may_delete(&self, key: &str) -> Result<(), S3Error> {
        let Some(allowed) = &self.allowed else {
            return Ok(());
        };
        let is_granted = self.grants(self.bucket(), &allowed.bucket, AclPermission::Write);
        match is_granted || self.policy_opens(self.bucket(), Some(key)) {
            true => Ok(()),
            false => Err(ACCESS_DENIED.into()),
        }
    }

    /// The list of an object that this request makes, under the name of its header; nothing without `s3_acl`.
    pub(super) fn list_of_new(&self, name: HeaderName) -> Result<Option<(HeaderName, HeaderValue)>, S3Error> {
        let Some(allowed) = self.allowed.as_ref().filter(|_| self.service.settings.s3_acl) else {
            return Ok(None);
        };
        let user = self.user();
        let asked = crate::acl::asked(&self.request.headers, &user, allowed.bucket.owner.as_deref())?;
        let list = asked.unwrap_or_else(|| AccessControl::private(&user));
        Ok(Some((name, header(&list)?)))
    }
}

/// The list in the headers of what it is about.
pub(super) fn list_in(headers: &HeaderMap, name: &HeaderName) -> AccessControl {
    AccessControl::of_kept(headers.get(name).and_then(|kept| kept.to_str().ok()))
}

/// A list as a header keeps it.
pub(super) fn header(list: &AccessControl) -> Result<HeaderValue, S3Error> {
    // JSON in ASCII has no control characters.
    HeaderValue::from_str(&list.kept()).map_err(|_| crate::error::INTERNAL_ERROR.into())
}
