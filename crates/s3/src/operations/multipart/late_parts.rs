//! Parts whose upload ends while they are being stored.
//!
//! UploadPart and UploadPartCopy look at the marker of their upload three times: before the body is read (`part.rs`),
//! when all of it but the last piece has been let go, and when the part is stored. The second look keeps a part whose
//! upload has ended from being stored at all, also over one that the object names. The third finds what ended between:
//! that part is deleted, unless the object names its number. Each costs a HEAD of three replicas, beside a part of
//! 5 MiB or more.
//! Always holds: a part that is answered with 200 was stored before its upload ended, so that what ends the upload, and
//! lists its parts behind that, finds it; no part that an object names is deleted from here.
//! Deliberately absent: a lock. Between the second look and the storing, some milliseconds, a part of a number that a
//! completion names may still come over the one that it has looked at.

use super::super::{Done, Operation};
use super::{HAS_ENDED, numbers_of};
use crate::error::{NO_SUCH_BUCKET, NO_SUCH_UPLOAD, S3Error, SERVICE_UNAVAILABLE};
use crate::payload::{Verdict, released_by};
use http::{HeaderMap, Method};
use peer::Body;
use request_pipeline::ClientRequest;
use vocabulary::EntityPath;

/// Where a part goes.
pub(in super::super) struct PartPlace {
    pub(super) upload: String,
    pub(super) number: u32,
    pub(in super::super) path: EntityPath,
}

impl Operation<'_> {
    pub(super) fn place_of_part(&self, upload: &str, number: u32) -> PartPlace {
        PartPlace {
            upload: upload.to_owned(),
            number,
            path: self.part(upload, number),
        }
    }

    /// The body of a part, the end of it only if the upload is open then; why not is in the verdict.
    pub(in super::super) fn held_while_open(&self, place: &PartPlace, body: Body, verdict: &Verdict) -> Body {
        let look = self.look_at_marker(&place.upload);
        let (next, upload) = (self.next.clone(), place.upload.clone());
        released_by(body, verdict.clone(), async move {
            let marker = next.run(look).await;
            match marker.status().as_u16() {
                200..=299 if !marker.headers().contains_key(HAS_ENDED) => Ok(()),
                200..=299 | 404 => Err(NO_SUCH_UPLOAD.about("UploadId", upload)),
                _ => Err(SERVICE_UNAVAILABLE.into()),
            }
        })
    }

    fn look_at_marker(&self, upload: &str) -> ClientRequest {
        self.newest(self.marker(self.key(), upload))
    }

    /// The answer to a part that has been sent to storage, and taken or not. Where the upload has ended meanwhile, the
    /// part goes again. A look that tells nothing changes nothing.
    pub(super) async fn resolve(&self, place: &PartPlace, done: Done) -> Done {
        // What was refused for its own sake is stored nowhere; what failed may be on one server.
        if matches!(&done, Err(refusal) if refusal.code.status < 500) {
            return done;
        }
        match self.surely_open_upload().await {
            Err(ended) if [NO_SUCH_UPLOAD, NO_SUCH_BUCKET].contains(&ended.code) => {
                if self.remove_late(place).await.is_err() {
                    let (number, path) = (place.number, place.path.path());
                    tracing::warn!(
                        "part {number} came when its upload had ended, and could not be deleted: delete {path}"
                    );
                }
                Err(ended)
            }
            _ => done,
        }
    }

    /// Deletes a part of an upload that has ended, unless the object that this has made names it.
    async fn remove_late(&self, place: &PartPlace) -> Result<(), S3Error> {
        let object = self.object_made_since(&place.upload, None).await?;
        if object.is_some_and(|object| may_name(&object, place.number)) {
            return Ok(());
        }
        let response = self.send(self.further(Method::DELETE, place.path.clone())).await;
        match response.status().as_u16() {
            200..=299 | 404 => Ok(()),
            _ => Err(self.refusal(&response).await),
        }
    }
}

/// Whether an object that the upload has made may be of the part with this number, too: one that OpenStack's gateway
/// has completed does not say.
fn may_name(object: &HeaderMap, number: u32) -> bool {
    numbers_of(object).is_none_or(|numbers| numbers.contain(number))
}

#[cfg(test)]
mod tests {
    use super::super::NUMBERS_OF_OBJECT;
    use super::*;
    use http::HeaderValue;

    #[test]
    fn a_part_stays_that_its_object_may_name() {
        let of = |numbers| HeaderMap::from_iter([(NUMBERS_OF_OBJECT, HeaderValue::from_static(numbers))]);
        for (object, named, others) in [
            (of("1-3,7"), &[1, 2, 3, 7][..], &[4, 6, 8][..]),
            (of("bits:jg"), &[1, 2, 3, 7], &[4, 6, 8]),
            (HeaderMap::new(), &[1, 4], &[]),
            (of("what a later version says"), &[1, 4], &[]),
        ] {
            assert!(named.iter().all(|number| may_name(&object, *number)), "{object:?}");
            assert!(!others.iter().any(|number| may_name(&object, *number)), "{object:?}");
        }
    }
}
