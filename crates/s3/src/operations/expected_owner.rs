//! `x-amz-expected-bucket-owner` and `x-amz-source-expected-bucket-owner`: a client says whose bucket it means.
//!
//! A bucket's owner is the name that answers give as the owner's ID, or its account: with `s3_acl` the owner in the
//! bucket's list; without, the client itself, which every answer calls the owner.
//! Always holds: nothing is done to a bucket, nor read from the source of a copy, that has another owner than the
//! client expects.
//! Source: AWS, "Verifying bucket ownership with bucket owner condition".

use super::{COPY_SOURCE, Operation, copy};
use crate::error::{ACCESS_DENIED, S3Error};
use http::HeaderName;

static OF_BUCKET: HeaderName = HeaderName::from_static("x-amz-expected-bucket-owner");
static OF_SOURCE: HeaderName = HeaderName::from_static("x-amz-source-expected-bucket-owner");

impl Operation<'_> {
    /// Refuses buckets of another owner than the client expects.
    pub(super) async fn check_owners(&self) -> Result<(), S3Error> {
        if let (Some(expected), Some(bucket)) = (self.expected(&OF_BUCKET), self.call.bucket.as_deref()) {
            self.check_owner(bucket, expected).await?;
        }
        match (
            self.expected(&OF_SOURCE),
            self.request.headers.contains_key(&COPY_SOURCE),
        ) {
            (Some(expected), true) => self.check_owner(copy::source(self)?.bucket(), expected).await,
            _ => Ok(()),
        }
    }

    /// What a header says; a signed URL may have it among its parameters.
    fn expected(&self, name: &HeaderName) -> Option<&str> {
        let mut parameters = self.call.parameters.iter();
        let sent = self.request.headers.get(name);
        let sent = sent.and_then(|value| std::str::from_utf8(value.as_bytes()).ok());
        sent.or_else(|| {
            let found = parameters.find(|(parameter, _)| parameter.eq_ignore_ascii_case(name.as_str()));
            found.map(|(_, value)| value.as_str())
        })
    }

    async fn check_owner(&self, bucket: &str, expected: &str) -> Result<(), S3Error> {
        if expected == self.account().account {
            return Ok(());
        }
        let owner = match self.service.settings.s3_acl {
            true => self.list_of_bucket(bucket).await?.owner,
            false => Some(self.user()),
        };
        match owner.as_deref() == Some(expected) {
            true => Ok(()),
            false => Err(ACCESS_DENIED
                .saying("The bucket has another owner than the request expects.")
                .with("BucketName", bucket)),
        }
    }
}
