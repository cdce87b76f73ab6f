//! AbortMultipartUpload: its parts go, then the upload.
//!
//! The key is locked against completions, the upload's marker says that it is being aborted, and only then do the parts
//! go, the marker last: an abort that is cut off can be repeated, and container-lifecycle finds what no client repeats.
//! Always holds: an upload that is being aborted is not completed any more; parts of an object that was completed stay,
//! also where the gateway that completed it died before it had closed the upload.

use super::super::bucket::empty;
use super::super::conditional::LONG_LEASE;
use super::super::{Done, Operation};
use super::{IS_ABORTED, UPLOAD_OF_OBJECT};
use crate::error::{NO_SUCH_UPLOAD, S3Error, SERVICE_UNAVAILABLE};
use http::{HeaderValue, Method};

/// AbortMultipartUpload.
pub(in super::super) async fn abort(operation: Operation<'_>) -> Done {
    let gate = operation.bare_gate().await;
    gate.pass(LONG_LEASE).await?;
    let upload = operation.upload_to_abort().await?;
    if operation.has_become_an_object(&upload.id).await? {
        operation.close(&upload.id).await?;
        return Err(NO_SUCH_UPLOAD.about("UploadId", upload.id));
    }
    operation.begin_abort(&upload.id).await?;
    // Where the lock was lost meanwhile, a completion may have seen the upload open and have ended. None can after
    // this.
    let was_alone = gate.pass(LONG_LEASE).await?.was_kept;
    if !was_alone && operation.has_become_an_object(&upload.id).await? {
        operation.close(&upload.id).await?;
        return Err(NO_SUCH_UPLOAD.about("UploadId", upload.id));
    }
    drop(gate);
    operation.delete_parts(&upload.id).await?;
    operation.close(&upload.id).await?;
    // A part may have come beside the marker's deletion; none can any more.
    operation.delete_parts(&upload.id).await?;
    Ok(empty(204))
}

impl Operation<'_> {
    /// From here on no completion finds the upload open.
    async fn begin_abort(&self, upload: &str) -> Result<(), S3Error> {
        let mut post = self.further(Method::POST, self.marker(self.key(), upload));
        post.headers.insert(IS_ABORTED, HeaderValue::from_static("true"));
        let response = self.send(post).await;
        match response.status().as_u16() {
            200..=299 => Ok(()),
            // Another abort has ended it.
            404 => Err(NO_SUCH_UPLOAD.about("UploadId", upload)),
            _ => Err(self.refusal(&response).await),
        }
    }

    /// Takes the marker of an upload away.
    pub(super) async fn close(&self, upload: &str) -> Result<(), S3Error> {
        let marker = self.marker(self.key(), upload);
        let response = self.send(self.further(Method::DELETE, marker)).await;
        match response.status().as_u16() {
            200..=299 | 404 => Ok(()),
            _ => Err(self.refusal(&response).await),
        }
    }

    /// Whether the object, or a version of it, was made by this upload.
    async fn has_become_an_object(&self, upload: &str) -> Result<bool, S3Error> {
        let object = self.container().with_object(self.key());
        let response = self.send(self.newest(object.clone())).await;
        match response.status().as_u16() {
            200..=299 | 404 => {}
            _ => return Err(SERVICE_UNAVAILABLE.into()),
        }
        if response
            .headers()
            .get(UPLOAD_OF_OBJECT)
            .is_some_and(|made_by| made_by == upload)
        {
            return Ok(true);
        }
        for version in self.versions_of_key().await? {
            let mut look = self.newest(object.clone());
            self.aim_at_version(&mut look, Some(&version));
            let response = self.send(look).await;
            if response
                .headers()
                .get(UPLOAD_OF_OBJECT)
                .is_some_and(|made_by| made_by == upload)
            {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
