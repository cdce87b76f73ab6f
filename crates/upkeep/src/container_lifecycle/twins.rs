//! Versions of a key that are made of the same parts.
//!
//! A manifest that is stored again (what had no version and was kept as one, a version whose ACL was changed) names the
//! parts of the upload that made the first one.
//! Always holds: of a version that has such a twin no parts are deleted; a version that cannot be looked at, and
//! servers that do not list the same ones (`listed_alike.rs`), are an error, so that its parts stay.

use super::remove::DueObject;
use super::remover::{DueUpload, Remover, RuledBucket, UPLOAD_OF_OBJECT, VERSION_ID};
use super::rows::{BucketRow, NULL, PageMarker};
use crate::internal_client::UnexpectedStatus;
use http::{HeaderMap, HeaderValue};
use vocabulary::names::quote;

impl Remover {
    /// Whether another version of the key, or what has none, was made by the same upload.
    pub(super) async fn has_twin(
        &self,
        bucket: &RuledBucket,
        due: &DueObject,
        upload: &DueUpload,
    ) -> Result<bool, UnexpectedStatus> {
        let mut behind = PageMarker::default();
        loop {
            let query = behind.query(&upload.key, self.page, true);
            let is_behind = |rows: &[BucketRow]| rows.last().is_none_or(|last| behind.is_before(last, true));
            let rows: Vec<BucketRow> = self.client.listing(&bucket.path, query, is_behind).await?;
            for row in rows.iter().filter(|row| may_be_twin(row, due)) {
                let query = format!("version-id={}", quote(row.version_id()));
                let found = self.look_at(bucket, upload, query).await?;
                if is_made_by(found.headers(), upload) {
                    return Ok(true);
                }
            }
            let Some(last) = rows.last().filter(|last| last.name() == upload.key) else {
                break;
            };
            behind = PageMarker {
                name: last.name().to_owned(),
                version: last.version_id().to_owned(),
            };
        }
        let shown = self.look_at(bucket, upload, String::new()).await?;
        if is_other(shown.headers(), due) && is_made_by(shown.headers(), upload) {
            return Ok(true);
        }
        self.check_listed_alike(bucket, &upload.key, None).await?;
        Ok(false)
    }
}

fn is_made_by(found: &HeaderMap, upload: &DueUpload) -> bool {
    let made_by = found.get(UPLOAD_OF_OBJECT);
    made_by.is_some_and(|made_by| made_by.as_bytes() == upload.id.as_bytes())
}

/// Whether what the key shows is not the version that is due.
fn is_other(shown: &HeaderMap, due: &DueObject) -> bool {
    let id = shown.get(VERSION_ID).map_or(NULL.as_bytes(), HeaderValue::as_bytes);
    id != due.version_id.as_bytes()
}

fn may_be_twin(row: &BucketRow, due: &DueObject) -> bool {
    let size = row.listed(true).map(|version| version.size);
    row.name() == due.placed.version.key
        && row.version_id() != due.version_id
        && row.may_be_large()
        && size == Some(due.placed.version.size)
}
