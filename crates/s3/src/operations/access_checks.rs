//! `s3_acl`: what S3's own lists grant is checked before an operation begins.
//!
//! A list lies in the system metadata of the container or the object. A bucket's comes with what the gateway knows of
//! the container, an object's with its HEAD, or with the very answer that a read gives.
//! Always holds: an operation that goes on here was granted what it needs, and its further requests are allowed for
//! that; what has no owner is refused to all, unless `allow_no_owner`; only a verified user is granted anything.

use super::Operation;
use crate::acl::{AccessControl, AclPermission, Needed, needed};
use crate::error::{ACCESS_DENIED, NO_SUCH_BUCKET, S3Error, SERVICE_UNAVAILABLE};
use http::header::CONTENT_LOCATION;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use identity::VerifiedKey;
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
}

impl Operation<'_> {
    /// Refuses what S3's own lists do not grant.
    pub(super) async fn check_access(&mut self) -> Result<(), S3Error> {
        let level = (self.call.bucket.is_some(), self.call.key.is_some());
        let Some(needed) = needed(level, &self.request.method, self.call.subresource()) else {
            return Ok(());
        };
        if self.request.extensions.get::<VerifiedKey>().is_none() {
            return Err(ACCESS_DENIED.into());
        }
        let mut allowed = AllowedBy::default();
        if needed != Needed::OwnAccount {
            allowed.bucket = self.list_of_bucket(self.bucket()).await?;
        }
        let is_allowed = match needed {
            // Elsewhere the account's own authorisation decides.
            Needed::OwnAccount if !self.is_own_account() => return Ok(()),
            Needed::OwnAccount | Needed::BucketThere | Needed::ObjectsOwnWord => true,
            Needed::OnBucket(permission) => self.grants(&allowed.bucket, permission),
            Needed::OwnBucket => self.owns(&allowed.bucket),
            Needed::OnObject(_) | Needed::OwnObject => {
                let (headers, list) = self.list_of_object().await?;
                let is_allowed = match needed {
                    Needed::OnObject(permission) => self.object_grants(&headers, &list, permission),
                    _ => self.owns(&list),
                };
                allowed.object = Some((headers, list));
                is_allowed
            }
        };
        if !is_allowed {
            return Err(ACCESS_DENIED.into());
        }
        self.allowed = Some(allowed);
        Ok(())
    }

    /// The account is that of the user, and not another that a key of Keystone's names.
    fn is_own_account(&self) -> bool {
        let project = self.request.header("x-project-id");
        project.is_none_or(|project| self.account().account.ends_with(project))
    }

    fn grants(&self, list: &AccessControl, permission: AclPermission) -> bool {
        list.allows(permission, &self.user(), self.service.settings.allow_no_owner)
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
        let looked_at;
        let headers = match response.status().is_success() {
            true => response.headers(),
            false => {
                let mut bare = self.further(Method::HEAD, object());
                self.aim_at_version(&mut bare, version);
                looked_at = self.send(bare).await;
                if !looked_at.status().is_success() {
                    return Err(self.refusal(&looked_at).await);
                }
                looked_at.headers()
            }
        };
        match self.object_grants(headers, &list_in(headers, &OBJECTS_LIST), AclPermission::Read) {
            true => Ok(()),
            false => Err(ACCESS_DENIED.into()),
        }
    }

    /// Whether an object's list grants this. What a link of Swift's leads to in another account is not open to all for
    /// want of an owner.
    fn object_grants(&self, headers: &HeaderMap, list: &AccessControl, permission: AclPermission) -> bool {
        let leads_to = headers.get(CONTENT_LOCATION).and_then(|path| path.to_str().ok());
        let account = vocabulary::names::quote(&self.account().account);
        let leads_away = leads_to.is_some_and(|path| path.split('/').nth(2) != Some(&account));
        self.grants(list, permission) && !(leads_away && list.owner.is_none())
    }

    /// Whether objects may be put into the bucket and deleted there.
    pub(super) fn may_write(&self) -> Result<(), S3Error> {
        match &self.allowed {
            Some(allowed) if !self.grants(&allowed.bucket, AclPermission::Write) => Err(ACCESS_DENIED.into()),
            _ => Ok(()),
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
