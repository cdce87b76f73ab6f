//! In front of authentication: a request of S3 is recognised, its signature read, its answer given S3's form.
//!
//! Comes in: a client's request. Goes out: the same, aimed at `/v1/ACCESS_KEY/bucket/key`, with a
//! [`SignedRequest`] for the authenticator, which puts the key's account in the access key's place, and an [`S3Call`]
//! for [`crate::operations`] behind it.
//! Always holds: a request that is not S3's passes as it came; nothing of a request of S3 that is refused here reaches
//! a server; an answer has the transaction's id as `x-amz-request-id`.

use crate::bucket_cors;
use crate::bucket_cors::index::CorsIndex;
use crate::call::{S3Call, bucket_of_host, is_bucket_name};
use crate::cross_origin;
use crate::error::{
    ACCESS_DENIED, INTERNAL_ERROR, INVALID_BUCKET_NAME, NOT_IMPLEMENTED, S3Error, SERVICE_UNAVAILABLE,
    SIGNATURE_DOES_NOT_MATCH, SLOW_DOWN,
};
use crate::payload::SignedBody;
use crate::post_form::{PostForm, is_form};
use crate::signature;
use crate::sts;
use http::Method;
use http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue};
use identity::{SignatureRefusal, SignedRequest};
use peer::Body;
use request_pipeline::{ClientRequest, Feature, Next, Response};
use serde_json::{Value, json};
use settings::S3ApiSettings;
use std::sync::Arc;
use vocabulary::EntityPath;
use world::Clock;

/// The account in the path of a request without a signature: no authenticator has it.
const ANONYMOUS: &str = "anonymous";

/// Both are the transaction's id.
static ID_2: HeaderName = HeaderName::from_static("x-amz-id-2");
static REQUEST_ID: HeaderName = HeaderName::from_static("x-amz-request-id");

/// An answer in S3's own form: [`crate::operations`] gave it.
#[derive(Clone, Copy)]
pub(crate) struct InS3sForm;

/// With a request that a form was: it became a PUT.
#[derive(Clone, Copy)]
pub(crate) struct FormPosted;

/// Swift's `s3api`, the half in front of authentication.
pub struct S3Front {
    settings: Arc<S3ApiSettings>,
    clock: Arc<dyn Clock>,
    /// Where preflights look for buckets with rules.
    cors_index: CorsIndex,
}

impl S3Front {
    /// As configured; `hidden_prefix` is what accounts begin with that the cluster itself makes.
    pub fn new(settings: Arc<S3ApiSettings>, hidden_prefix: &str, clock: Arc<dyn Clock>) -> Self {
        let cors_index = CorsIndex::new(hidden_prefix);
        Self {
            settings,
            clock,
            cors_index,
        }
    }

    /// Reads the call and its signature, and aims the request at what it is about.
    fn prepare(
        &self,
        request: &mut ClientRequest,
        form: Option<&mut PostForm>,
    ) -> Result<Option<Arc<SignedRequest>>, S3Error> {
        let mut call = S3Call::read(request, &self.settings.storage_domain)?;
        if let Some(name) = &call.bucket
            && !is_bucket_name(name, self.settings.dns_compliant_bucket_names)
        {
            return Err(INVALID_BUCKET_NAME.about("BucketName", name));
        }
        if let Some(name) = call.unknown_of_write(&request.method) {
            return Err(NOT_IMPLEMENTED
                .saying("A parameter of the request asks for what is not implemented.")
                .with("ArgumentName", name));
        }
        let bucket = bucket_of_host(request, &self.settings.storage_domain);
        let now = self.clock.now().seconds();
        let signature = match form {
            None => signature::read(request, bucket.as_deref(), &self.settings, now)?,
            Some(form) => {
                form.check_policy(call.bucket.as_deref().unwrap_or_default(), now)?;
                form.limit(request);
                request.extensions.insert(FormPosted);
                call.key = Some(form.key.clone());
                signature::of_form(form, &self.settings)?
            }
        };
        request.headers.remove(AUTHORIZATION);
        let signed = signature.map(|signature| {
            let signed = Arc::new(signature.signed);
            request.extensions.insert(SignedBody {
                payload: signature.payload,
                time: signature.time,
                signed: signed.clone(),
                signing_key: None,
            });
            request.extensions.insert(signed.clone());
            signed
        });
        let account = signed
            .as_ref()
            .map_or(ANONYMOUS, |signed| &signed.access_key)
            .to_owned();
        request.query.clear();
        request.api_version = "v1".into();
        request.aim_at(EntityPath {
            account,
            container: call.bucket.clone(),
            object: call.key.clone(),
        });
        request.extensions.insert(Arc::new(call));
        Ok(signed)
    }
}

#[async_trait::async_trait]
impl Feature for S3Front {
    fn name(&self) -> &'static str {
        "s3api"
    }

    fn info(&self) -> Vec<(&'static str, Value)> {
        let info = json!({
            "max_bucket_listing": self.settings.max_bucket_listing,
            "max_multi_delete_objects": self.settings.max_multi_delete_objects,
            "s3_acl": self.settings.s3_acl,
            "allow_multipart_uploads": true,
            "max_parts_listing": self.settings.max_parts_listing,
            "max_upload_part_num": self.settings.max_upload_part_num,
            "min_segment_size": self.settings.min_segment_size,
        });
        vec![("s3api", info)]
    }

    fn wants(&self, request: &ClientRequest) -> bool {
        let bucket = bucket_of_host(request, &self.settings.storage_domain);
        signature::is_signed(request)
            || bucket.is_some()
            || cross_origin::is_preflight(request, false)
            || is_form(request, false)
    }

    async fn handle(&self, mut request: ClientRequest, next: Next) -> Response {
        let has_bucket = bucket_of_host(&request, &self.settings.storage_domain).is_some();
        if cross_origin::is_preflight(&request, has_bucket) {
            return cross_origin::preflight(request, next, &self.settings, &self.cors_index).await;
        }
        if sts::is_call(&request) {
            return Box::pin(sts::answer(request, next, &self.settings, self.clock.now().seconds())).await;
        }
        let (trans_id, is_head) = (request.trans_id.clone(), request.method == Method::HEAD);
        let mut response = match is_form(&request, has_bucket) && !signature::is_signed(&request) {
            true => Box::pin(self.take_form(request, next)).await,
            false => match self.prepare(&mut request, None) {
                Ok(signed) => self.in_s3s_form(next.run(request).await, signed.as_deref(), &trans_id),
                Err(error) => error.answer(&trans_id),
            },
        };
        if is_head && response.status().as_u16() >= 400 {
            *response.body_mut() = Body::empty();
            response
                .headers_mut()
                .insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        if let Ok(id) = HeaderValue::from_str(&trans_id) {
            response.headers_mut().insert(&ID_2, id.clone());
            response.headers_mut().insert(&REQUEST_ID, id);
        }
        response
    }
}

impl S3Front {
    /// A form's file is put as any other object.
    async fn take_form(&self, mut request: ClientRequest, next: Next) -> Response {
        let trans_id = request.trans_id.clone();
        let base = format!("{}://{}", request.scheme, request.header("host").unwrap_or_default());
        let opened = PostForm::open(&mut request, self.clock.clone()).await;
        let prepared = opened.and_then(|mut form| {
            let signed = self.prepare(&mut request, Some(&mut form))?;
            Ok((form, signed))
        });
        let (form, signed) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => return error.answer(&trans_id),
        };
        let bucket = request.entity.as_ref().and_then(|entity| entity.container.clone());
        let response = self.in_s3s_form(next.run(request).await, signed.as_deref(), &trans_id);
        match response.status().is_success() {
            true => {
                let stored = response.headers().clone();
                let mut answer = form.answer(&bucket.unwrap_or_default(), response, &base);
                bucket_cors::carry(&stored, answer.headers_mut());
                answer
            }
            false => response,
        }
    }

    /// What features in between have answered becomes a document of S3.
    fn in_s3s_form(&self, response: Response, signed: Option<&SignedRequest>, trans_id: &str) -> Response {
        if response.extensions().get::<InS3sForm>().is_some()
            || response.headers().get(CONTENT_TYPE) == Some(&HeaderValue::from_static("application/xml"))
        {
            return response;
        }
        let error: S3Error = match response.status().as_u16() {
            200..=399 => return response,
            _ if signature::refusal(&response).code == SIGNATURE_DOES_NOT_MATCH => signed.map_or(
                SIGNATURE_DOES_NOT_MATCH.into(),
                |SignedRequest {
                     access_key,
                     string_to_sign,
                     signature,
                     canonical_request,
                     ..
                 }| {
                    S3Error::wrong_signature(access_key, string_to_sign, signature, canonical_request.as_deref())
                },
            ),
            _ if response.extensions().get::<SignatureRefusal>().is_some() => signature::refusal(&response),
            401 | 403 => ACCESS_DENIED.into(),
            429 | 498 => self.slow_down(),
            503 => SERVICE_UNAVAILABLE.into(),
            _ => INTERNAL_ERROR.into(),
        };
        error.answer(trans_id)
    }

    fn slow_down(&self) -> S3Error {
        let mut error = S3Error::from(SLOW_DOWN);
        if self.settings.ratelimit_as_client_error {
            error.code.status = 429;
        }
        error
    }
}
