//! PutBucketCors, GetBucketCors, DeleteBucketCors.
//!
//! What the rules mean is in `bucket_cors/`, how answers apply them in `cross_origin.rs`.
//! Always holds: rules whose storing was acknowledged are whole, and preflights find them; requests of Swift's API do
//! not see them.

use super::bucket::empty;
use super::{Done, Operation, not_implemented};
use crate::bucket_cors::index::CorsIndexUnavailable;
use crate::bucket_cors::{CorsRules, document, pieces, text_in_headers};
use crate::error::{INTERNAL_ERROR, INVALID_REQUEST, NO_SUCH_CORS, S3Error, SERVICE_UNAVAILABLE};
use crate::payload::collect;
use http::{HeaderMap, Method};

/// Any of the three.
pub(super) async fn run(operation: Operation<'_>) -> Done {
    match operation.request.method {
        Method::GET => get(operation).await,
        Method::PUT => put(operation).await,
        Method::DELETE => delete(operation).await,
        _ => Err(not_implemented("cors")),
    }
}

/// PutBucketCors.
async fn put(mut operation: Operation<'_>) -> Done {
    let signed = operation.signed_body();
    let body = collect(&mut operation.request, signed.as_deref(), document::LARGEST_DOCUMENT).await?;
    let text = document::read(&body)?.to_text();
    let text = text.map_err(|error| INVALID_REQUEST.saying(format!("Too long: {error}.")))?;
    operation.store_cors(&text).await?;
    operation.enter_cors().await?;
    Ok(empty(200))
}

/// DeleteBucketCors.
async fn delete(operation: Operation<'_>) -> Done {
    operation.store_cors("").await?;
    let (index, container) = (&operation.service.cors_index, operation.container());
    if let Err(error) = index.remove(&operation.request, &operation.next, &container).await {
        // It leads to a bucket without rules.
        tracing::debug!("an entry of CORS rules stays: {error}");
    }
    // Rules that were put meanwhile need the entry, which may have been taken away after it was made for them.
    if text_in_headers(&operation.newest_metadata().await?).is_some() {
        operation.enter_cors().await?;
    }
    Ok(empty(204))
}

/// GetBucketCors.
async fn get(operation: Operation<'_>) -> Done {
    let bucket = operation.metadata_of_bucket().await?;
    let text = text_in_headers(&bucket).ok_or_else(|| NO_SUCH_CORS.about("BucketName", operation.bucket()))?;
    let rules = CorsRules::of_text(&text).map_err(|error| {
        tracing::warn!("bucket {}: {error}", operation.bucket());
        S3Error::from(INTERNAL_ERROR)
    })?;
    Ok(super::document(document::print(&rules)))
}

impl Operation<'_> {
    async fn store_cors(&self, text: &str) -> Result<(), S3Error> {
        let mut post = self.further(Method::POST, self.container());
        for (header, piece) in pieces(text) {
            post.set_header(header, piece);
        }
        let response = self.send(post).await;
        match response.status().is_success() {
            true => Ok(()),
            false => Err(self.bucket_refusal(&response)),
        }
    }

    /// Has preflights find the rules.
    async fn enter_cors(&self) -> Result<(), S3Error> {
        let index = &self.service.cors_index;
        let entered = index.enter(&self.request, &self.next, &self.container()).await;
        entered.map_err(|error: CorsIndexUnavailable| {
            tracing::warn!("preflights do not find the rules of bucket {}: {error}", self.bucket());
            S3Error::from(SERVICE_UNAVAILABLE)
        })
    }

    async fn newest_metadata(&self) -> Result<HeaderMap, S3Error> {
        let mut head = self.further(Method::HEAD, self.container());
        head.set_header("x-newest", "true");
        let response = self.send(head).await;
        match response.status().is_success() {
            true => Ok(response.into_parts().0.headers),
            false => Err(self.bucket_refusal(&response)),
        }
    }
}
