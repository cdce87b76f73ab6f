//! What S3 answers when it refuses: a code, a status, words, and an XML document with them.
//!
//! Always holds: the document is well-formed whatever a client sent; an answer to HEAD has no body (the server side of
//! HTTP sees to it).
//! Source: AWS, "Error responses" of the S3 API; statuses and words as OpenStack Swift's s3api sends them.

use crate::xml::XmlWriter;
use http::header::{CONTENT_TYPE, HeaderValue};
use request_pipeline::{NoRoom, Response, reply};

/// A code of S3, its status and its usual words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorCode {
    /// `NoSuchKey`.
    pub name: &'static str,
    /// 404.
    pub status: u16,
    /// What the code says by itself.
    pub message: &'static str,
}

/// In what is signed, in front of a key that a client has sent with it (SSE-C): in a header, or in a URL's parameters.
const KEYS_OF_CLIENTS: [&str; 2] = [
    "server-side-encryption-customer-key:",
    "server-side-encryption-customer-key=",
];

/// Bytes of what is signed that an error shows: no client's developer reads more.
const LONGEST_SHOWN: usize = 16 * 1024;

macro_rules! codes {
    ($($constant:ident = $name:literal, $status:literal, $message:literal;)+) => {
        $(
            #[doc = $message]
            pub const $constant: ErrorCode = ErrorCode { name: $name, status: $status, message: $message };
        )+
    };
}

codes! {
    ACCESS_FORBIDDEN = "AccessForbidden", 403, "CORSResponse: This CORS request is not allowed. This is usually because the evalution of Origin, request method / Access-Control-Request-Method or Access-Control-Request-Headers are not whitelisted by the resource's CORS spec.";
    ACCESS_DENIED = "AccessDenied", 403, "Access Denied.";
    AUTHORIZATION_HEADER_MALFORMED = "AuthorizationHeaderMalformed", 400, "The authorization header is malformed; the authorization header requires three components: Credential, SignedHeaders, and Signature.";
    AUTHORIZATION_QUERY_PARAMETERS = "AuthorizationQueryParametersError", 400, "Error parsing the X-Amz-Credential parameter; the Credential is mal-formed; expecting \"<YOUR-AKID>/YYYYMMDD/REGION/SERVICE/aws4_request\".";
    BAD_DIGEST = "BadDigest", 400, "The Content-MD5 you specified did not match what we received.";
    BAD_REQUEST = "BadRequest", 400, "Bad Request";
    BROKEN_MPU = "BrokenMPU", 409, "Multipart upload has broken segment data.";
    BUCKET_ALREADY_EXISTS = "BucketAlreadyExists", 409, "The requested bucket name is not available. The bucket namespace is shared by all users of the system. Please select a different name and try again.";
    BUCKET_ALREADY_OWNED = "BucketAlreadyOwnedByYou", 409, "Your previous request to create the named bucket succeeded and you already own it.";
    BUCKET_NOT_EMPTY = "BucketNotEmpty", 409, "The bucket you tried to delete is not empty.";
    CONDITIONAL_REQUEST_CONFLICT = "ConditionalRequestConflict", 409, "The conditional request cannot succeed due to a conflicting operation against this resource. Try again.";
    CONTENT_SHA256_MISMATCH = "XAmzContentSHA256Mismatch", 400, "The provided 'x-amz-content-sha256' header does not match what was computed.";
    ENTITY_TOO_LARGE = "EntityTooLarge", 400, "Your proposed upload exceeds the maximum allowed object size.";
    ENTITY_TOO_SMALL = "EntityTooSmall", 400, "Your proposed upload is smaller than the minimum allowed object size.";
    EXPIRED_TOKEN = "ExpiredToken", 400, "The provided token has expired.";
    INCOMPLETE_BODY = "IncompleteBody", 400, "The request body terminated unexpectedly";
    INTERNAL_ERROR = "InternalError", 500, "We encountered an internal error. Please try again.";
    INVALID_ACCESS_KEY = "InvalidAccessKeyId", 403, "The access key is disabled, at its end, or its user is gone.";
    INVALID_ACTION = "InvalidAction", 400, "The action is not served.";
    INVALID_ARGUMENT = "InvalidArgument", 400, "Invalid Argument.";
    INVALID_BUCKET_NAME = "InvalidBucketName", 400, "The specified bucket is not valid.";
    INVALID_BUCKET_STATE = "InvalidBucketState", 409, "The request is not valid with the current state of the bucket.";
    INVALID_CHUNK_SIZE = "InvalidChunkSizeError", 403, "Only the last chunk is allowed to have a size less than 8192 bytes";
    INVALID_DIGEST = "InvalidDigest", 400, "The Content-MD5 you specified was invalid.";
    INVALID_ENCRYPTION_ALGORITHM = "InvalidEncryptionAlgorithmError", 400, "The encryption request that you specified is not valid. The valid value is AES256.";
    INVALID_LOCATION = "InvalidLocationConstraint", 400, "The specified location constraint is not valid.";
    INVALID_PART = "InvalidPart", 400, "One or more of the specified parts could not be found.  The part may not have been uploaded, or the specified entity tag may not match the part's entity tag.";
    INVALID_PART_ORDER = "InvalidPartOrder", 400, "The list of parts was not in ascending order.Parts list must specified in order by part number.";
    INVALID_PART_NUMBER = "InvalidPartNumber", 416, "The requested partnumber is not satisfiable";
    INVALID_POLICY_DOCUMENT = "InvalidPolicyDocument", 400, "The content of the form does not meet the conditions specified in the policy document.";
    INVALID_RANGE = "InvalidRange", 416, "The requested range cannot be satisfied.";
    INVALID_REQUEST = "InvalidRequest", 400, "Invalid Request.";
    INVALID_RETENTION_PERIOD = "InvalidRetentionPeriod", 400, "The retention period is not valid.";
    INVALID_STORAGE_CLASS = "InvalidStorageClass", 400, "The storage class you specified is not valid.";
    INVALID_TARGET_BUCKET = "InvalidTargetBucketForLogging", 400, "The target bucket for logging does not exist, is not owned by you, or does not have the appropriate grants for the log-delivery group.";
    INVALID_TAG = "InvalidTag", 400, "The tag provided was not a valid tag.";
    INVALID_TOKEN = "InvalidToken", 400, "The provided token is malformed or otherwise not valid.";
    INVALID_URI = "InvalidURI", 400, "Could not parse the specified URI";
    KEY_TOO_LONG = "KeyTooLongError", 400, "Your key is too long.";
    MALFORMED_POLICY = "MalformedPolicy", 400, "Policy has invalid content.";
    MALFORMED_ACL = "MalformedACLError", 400, "The XML you provided was not well-formed or did not validate against our published schema.";
    MALFORMED_POST_REQUEST = "MalformedPOSTRequest", 400, "The body of your POST request is not well-formed multipart/form-data.";
    MALFORMED_QUERY = "MalformedQueryString", 400, "The query string contains a syntax error.";
    MALFORMED_TRAILER = "MalformedTrailerError", 400, "The request contained trailing data that was not well-formed or did not conform to our published schema.";
    MALFORMED_XML = "MalformedXML", 400, "The XML you provided was not well-formed or did not validate against our published schema";
    METADATA_TOO_LARGE = "MetadataTooLarge", 400, "Your metadata headers exceed the maximum allowed metadata size.";
    METHOD_NOT_ALLOWED = "MethodNotAllowed", 405, "The specified method is not allowed against this resource.";
    MISSING_CONTENT_LENGTH = "MissingContentLength", 411, "You must provide the Content-Length HTTP header.";
    MISSING_SECURITY_HEADER = "MissingSecurityHeader", 400, "Your request was missing a required header.";
    NO_SUCH_BUCKET = "NoSuchBucket", 404, "The specified bucket does not exist.";
    NO_SUCH_BUCKET_POLICY = "NoSuchBucketPolicy", 404, "The bucket policy does not exist";
    NO_SUCH_CORS = "NoSuchCORSConfiguration", 404, "The CORS configuration does not exist";
    NO_SUCH_ENCRYPTION = "ServerSideEncryptionConfigurationNotFoundError", 404, "The server side encryption configuration was not found";
    NO_SUCH_KEY = "NoSuchKey", 404, "The specified key does not exist.";
    NO_SUCH_LIFECYCLE = "NoSuchLifecycleConfiguration", 404, "The lifecycle configuration does not exist";
    NO_SUCH_LOCK_CONFIGURATION = "ObjectLockConfigurationNotFoundError", 404, "Object Lock configuration does not exist for this bucket";
    NO_SUCH_OBJECT_LOCK = "NoSuchObjectLockConfiguration", 404, "The specified object does not have a ObjectLock configuration";
    NO_SUCH_OWNERSHIP = "OwnershipControlsNotFoundError", 404, "The bucket ownership controls were not found";
    NO_SUCH_PUBLIC_ACCESS_BLOCK = "NoSuchPublicAccessBlockConfiguration", 404, "The public access block configuration was not found";
    NO_SUCH_UPLOAD = "NoSuchUpload", 404, "The specified multipart upload does not exist. The upload ID might be invalid, or the multipart upload might have been aborted or completed.";
    NO_SUCH_VERSION = "NoSuchVersion", 404, "The specified version does not exist.";
    NOT_IMPLEMENTED = "NotImplemented", 501, "A header you provided implies functionality that is not implemented.";
    NOT_MODIFIED = "NotModified", 304, "Not Modified";
    OPERATION_ABORTED = "OperationAborted", 409, "A conflicting conditional operation is currently in progress against this resource. Try again.";
    PRECONDITION_FAILED = "PreconditionFailed", 412, "At least one of the preconditions you specified did not hold.";
    REQUEST_HEADERS_TOO_LARGE = "RequestHeaderSectionTooLarge", 400, "Your request header section exceeds the maximum allowed request header section size.";
    REQUEST_TIMEOUT = "RequestTimeout", 400, "Your socket connection to the server was not read from or written to within the timeout period.";
    REQUEST_TIME_TOO_SKEWED = "RequestTimeTooSkewed", 403, "The difference between the request time and the current time is too large.";
    SERVICE_UNAVAILABLE = "ServiceUnavailable", 503, "Please reduce your request rate.";
    SIGNATURE_DOES_NOT_MATCH = "SignatureDoesNotMatch", 403, "The request signature we calculated does not match the signature you provided. Check your key and signing method.";
    SLOW_DOWN = "SlowDown", 503, "Please reduce your request rate.";
    UNEXPECTED_CONTENT = "UnexpectedContent", 400, "This request does not support content.";
    USER_KEY_MUST_BE_SPECIFIED = "UserKeyMustBeSpecified", 400, "The bucket POST must contain the specified field name. If it is specified, please check the order of the fields.";
    VALIDATION_ERROR = "ValidationError", 400, "The input does not satisfy the constraints.";
}

/// A refusal: a code, perhaps with words and fields of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct S3Error {
    /// Which.
    pub code: ErrorCode,
    /// Words in place of the code's.
    pub message: Option<String>,
    /// Further elements of the document, in order.
    pub fields: Vec<(&'static str, String)>,
}

impl From<NoRoom> for S3Error {
    fn from(_: NoRoom) -> Self {
        SLOW_DOWN.saying(NoRoom::TEXT)
    }
}

impl From<ErrorCode> for S3Error {
    fn from(code: ErrorCode) -> Self {
        Self {
            code,
            message: None,
            fields: Vec::new(),
        }
    }
}

impl ErrorCode {
    /// This code with these words.
    pub fn saying(self, message: impl Into<String>) -> S3Error {
        S3Error {
            message: Some(message.into()),
            ..self.into()
        }
    }

    /// This code about something of the request.
    pub fn about(self, field: &'static str, value: impl Into<String>) -> S3Error {
        S3Error::from(self).with(field, value)
    }
}

impl S3Error {
    /// With one more element in the document.
    pub fn with(mut self, field: &'static str, value: impl Into<String>) -> Self {
        self.fields.push((field, value.into()));
        self
    }

    /// A body of another length than it should have.
    pub fn wrong_length(provided: u64, expected: u64) -> Self {
        INCOMPLETE_BODY
            .saying("You did not provide the number of bytes specified by the Content-Length HTTP header")
            .with("NumberBytesExpected", expected.to_string())
            .with("NumberBytesProvided", provided.to_string())
    }

    /// A signature that was not made with the secret of its access key: with what was signed here, so that a client's
    /// developer finds where it differs. What has a key of a client in it is left out, as all would see it who see the
    /// error, and so is what is very long. Version 2 signs headers as they are, version 4 a digest of the canonical
    /// request.
    pub fn wrong_signature(access_key: &str, string_to_sign: &str, provided: &str, canonical: Option<&str>) -> Self {
        let bytes = |text: &str| {
            let mut digits = String::with_capacity(3 * text.len());
            for byte in text.bytes() {
                vocabulary::hex::push(&mut digits, [byte]);
                digits.push(' ');
            }
            digits.pop();
            digits
        };
        let is_shown = |text: &&str| {
            let lower = text.to_ascii_lowercase();
            text.len() <= LONGEST_SHOWN && !KEYS_OF_CLIENTS.iter().any(|key| lower.contains(key))
        };
        let mut error = SIGNATURE_DOES_NOT_MATCH.about("AWSAccessKeyId", access_key);
        let to_sign = Some(string_to_sign).filter(is_shown);
        if let Some(to_sign) = to_sign {
            error = error.with("StringToSign", to_sign);
        }
        error = error.with("SignatureProvided", provided);
        if let Some(to_sign) = to_sign {
            error = error.with("StringToSignBytes", bytes(to_sign));
        }
        if let Some(canonical) = canonical.filter(is_shown) {
            error = error
                .with("CanonicalRequest", canonical)
                .with("CanonicalRequestBytes", bytes(canonical));
        }
        error
    }

    /// With the usual words of its code or its own.
    pub fn words(&self) -> &str {
        self.message.as_deref().unwrap_or(self.code.message)
    }

    /// The answer; `request_id` is the transaction's.
    pub fn answer(&self, request_id: &str) -> Response {
        if self.code.status == NOT_MODIFIED.status {
            return reply::html(304, String::new());
        }
        let mut xml = XmlWriter::plain("Error");
        xml.text("Code", self.code.name);
        xml.text("Message", self.words());
        for (field, value) in &self.fields {
            xml.text(field, value);
        }
        xml.text("RequestId", request_id);
        let mut response = reply::with_body(
            self.code.status,
            HeaderValue::from_static("application/xml"),
            xml.finish(),
        );
        response
            .headers_mut()
            .insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_very_long_is_in_no_error() {
        let error = S3Error::wrong_signature("k", "a\nb", "p", Some(&"x".repeat(LONGEST_SHOWN + 1)));
        let names: Vec<&str> = error.fields.iter().map(|(name, _)| *name).collect();
        assert_eq!(
            names,
            [
                "AWSAccessKeyId",
                "StringToSign",
                "SignatureProvided",
                "StringToSignBytes"
            ]
        );
        assert_eq!(error.fields[3].1, "61 0a 62");
    }

    #[test]
    fn keys_of_clients_are_in_no_error() {
        let of = |to_sign: &str, canonical: Option<&str>| {
            let error = S3Error::wrong_signature("k", to_sign, "p", canonical);
            format!("{:?}", error.fields)
        };
        let plain = of("AWS4\nd", Some("PUT\nhost:h"));
        assert!(plain.contains("CanonicalRequest") && plain.contains("StringToSign"));
        for with_key in [
            "PUT\nx-amz-copy-source-server-side-encryption-customer-key:c2VjcmV0\n",
            "GET\n/b/k\nX-Amz-Server-Side-Encryption-Customer-Key=c2VjcmV0&x=y\n",
        ] {
            let shown = of("AWS4\nd", Some(with_key));
            assert!(
                !shown.contains("Canonical") && shown.contains("StringToSign"),
                "{shown}"
            );
            // What version 2 signs has the headers themselves.
            let shown = of(with_key, None);
            assert!(
                !shown.contains("StringToSign") && shown.contains("SignatureProvided"),
                "{shown}"
            );
        }
    }

    #[test]
    fn documents_stay_well_formed() {
        let response = NO_SUCH_KEY.about("Key", "a<b>&\u{1}").answer("tx1");
        assert_eq!(response.status(), 404);
        let body = response.body().as_whole().unwrap();
        assert_eq!(
            std::str::from_utf8(&body).unwrap(),
            "<?xml version='1.0' encoding='UTF-8'?>\n<Error><Code>NoSuchKey</Code><Message>The specified key does not \
             exist.</Message><Key>a&lt;b&gt;&amp;\u{FFFD}</Key><RequestId>tx1</RequestId></Error>"
        );
    }
}
