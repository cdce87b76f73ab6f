//! AbortMultipartUpload: its parts go, then the upload.
//!
//! The key is locked against completions, the upload's marker says that it is being aborted, and only then do the parts
//! go, the marker last: an abort that is cut off can be repeated, and container-lifecycle finds what no client repeats.
//! Always holds: an upload that is being aborted is not completed any more; parts of an object that was completed stay,
//! also where the gateway that completed it died before it had closed the upload. Those that such an object does not
//! name go.

use super::super::bucket::empty;
use super::super::conditional::LONG_LEASE;
use super::super::{Done, Operation};
use super::{HAS_ENDED, UPLOAD_OF_OBJECT, numbers_of};
use crate::error::{NO_SUCH_UPLOAD, S3Error, SERVICE_UNAVAILABLE};
use http::{HeaderMap, HeaderValue, Method};
use vocabulary::Timestamp;

/// AbortMultipartUpload.
pub(in super::super) async fn abort(operation: Operation<'_>) -> Done {
    let gate = operation.bare_gate().await;
    gate.pass(LONG_LEASE).await?;
    let upload = operation.upload_to_end().await?;
    if let Some(object) = operation.object_of(&upload.id).await? {
        return operation.end_completed(&upload.id, &object).await;
    }
    operation.begin_end(&upload.id).await?;
    // Where the lock was lost meanwhile, a completion may have seen the upload open and have ended. None can after
    // this.
    let was_alone = gate.pass(LONG_LEASE).await?.was_kept;
    if !was_alone && let Some(object) = operation.object_of(&upload.id).await? {
        return operation.end_completed(&upload.id, &object).await;
    }
    drop(gate);
    operation.delete_parts(&upload.id).await?;
    operation.close(&upload.id).await?;
    // A part may have come beside the marker's deletion; one that comes later goes by itself (`late_parts.rs`).
    operation.delete_parts(&upload.id).await?;
    Ok(empty(204))
}

impl Operation<'_> {
    /// The answer to an abort of what has become an object: what was cut off is done, the object stays.
    async fn end_completed(&self, upload: &str, object: &HeaderMap) -> Done {
        self.end_of_object(upload, object).await?;
        Err(NO_SUCH_UPLOAD.about("UploadId", upload))
    }

    /// Does what a completion has left to do that was cut off behind the object with these headers.
    pub(super) async fn end_of_object(&self, upload: &str, object: &HeaderMap) -> Result<(), S3Error> {
        let numbers = numbers_of(object);
        if numbers.is_some() {
            match self.begin_end(upload).await {
                // Another request has done it.
                Err(error) if error.code == NO_SUCH_UPLOAD => return Ok(()),
                begun => begun?,
            }
        }
        self.finish(upload, numbers.as_ref()).await
    }

    /// From here on no completion finds the upload open.
    pub(super) async fn begin_end(&self, upload: &str) -> Result<(), S3Error> {
        let mut post = self.further(Method::POST, self.marker(self.key(), upload));
        post.headers.insert(HAS_ENDED, HeaderValue::from_static("true"));
        let response = self.send(post).await;
        match response.status().as_u16() {
            200..=299 => Ok(()),
            // Another request has ended it.
            404 => Err(NO_SUCH_UPLOAD.about("UploadId", upload)),
            // Or is just doing so, and the servers have not agreed on what came first.
            _ => match self.upload_to_end().await {
                Err(ended) if ended.code == NO_SUCH_UPLOAD => Err(ended),
                _ => Err(self.refusal(&response).await),
            },
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

    /// The headers of the object, or of the version of it, that this upload has made.
    async fn object_of(&self, upload: &str) -> Result<Option<HeaderMap>, S3Error> {
        self.object_made_since(upload, None).await
    }

    /// The same, where no version counts that is older than this.
    pub(super) async fn object_made_since(
        &self,
        upload: &str,
        since: Option<Timestamp>,
    ) -> Result<Option<HeaderMap>, S3Error> {
        let object = self.container().with_object(self.key());
        let response = self.send(self.newest(object.clone())).await;
        match response.status().as_u16() {
            200..=299 | 404 => {}
            _ => return Err(SERVICE_UNAVAILABLE.into()),
        }
        if is_made_by(response.headers(), upload) {
            return Ok(Some(response.headers().clone()));
        }
        let is_older = |version: &String| version.parse::<Timestamp>().is_ok_and(|time| Some(time) < since);
        for version in self
            .versions_of_key()
            .await?
            .into_iter()
            .filter(|version| !is_older(version))
        {
            let mut look = self.newest(object.clone());
            self.aim_at_version(&mut look, Some(&version));
            let response = self.send(look).await;
            // A version that cannot be looked at may be the one whose parts must stay.
            if !matches!(response.status().as_u16(), 200..=299 | 404 | 405) {
                return Err(SERVICE_UNAVAILABLE.into());
            }
            if is_made_by(response.headers(), upload) {
                return Ok(Some(response.headers().clone()));
            }
        }
        Ok(None)
    }
}

fn is_made_by(object: &HeaderMap, upload: &str) -> bool {
    object.get(UPLOAD_OF_OBJECT).is_some_and(|made_by| made_by == upload)
}
