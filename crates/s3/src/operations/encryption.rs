//! Server-side encryption with keys of the cluster (SSE-S3) or of clients (SSE-C, `customer_key.rs`): who asks for
//! it, what a bucket asks for, what says that an object is encrypted.
//!
//! Swift's `encryption`, further in, encrypts everything or nothing. So a request that asks for keys of the cluster
//! changes nothing where it is there, and is refused where it is not.
//! Always holds: an answer calls an object encrypted only where `encryption` says that it has encrypted or decrypted
//! its body, and of an object made of parts, all of them; where a request, its upload or its bucket asks for encryption
//! and there is none, nothing is stored.
//! Deliberately absent: keys of a key service, which are refused; the cluster's keys and ciphers, which are the
//! keymaster's.

use super::customer_key::{self, ENCRYPTION, NO_ENCRYPTION, SentKey};
use super::public_access::text_of;
use super::{Done, Operation};
use crate::error::{
    INVALID_ARGUMENT, INVALID_ENCRYPTION_ALGORITHM, MALFORMED_XML, NO_SUCH_ENCRYPTION, NOT_IMPLEMENTED, S3Error,
};
use crate::xml::{Element, XmlWriter};
use http::header::{HeaderMap, HeaderName, HeaderValue};
use peer::message::header_names::{X_CRYPTO_CIPHER, X_SEGMENTS_ENCRYPTED};
use request_pipeline::customer_key_proof;

/// In front of what says more about it: whose keys.
const MORE: &str = "x-amz-server-side-encryption-";
/// Changes nothing where the keys are not those of a key service.
const BUCKET_KEY: &str = "x-amz-server-side-encryption-bucket-key-enabled";
const AES256: &str = "AES256";

/// A bucket's configuration: the algorithm, and [`WITH_BUCKET_KEY`].
const CONFIGURATION: &str = "x-container-sysmeta-s3api-encryption";
/// The same in what the gateway knows of a container.
const CONFIGURATION_KEPT: &str = "s3api-encryption";
const WITH_BUCKET_KEY: &str = "AES256 bucket-key";
/// On the marker of an upload that was begun with encryption.
const UPLOAD_ASKS: HeaderName = HeaderName::from_static("x-object-sysmeta-s3api-encryption");

const TWO_ENCRYPTIONS: &str =
    "Server Side Encryption with Customer provided key is incompatible with the encryption method specified";

/// The side that asks that what is stored be encrypted.
#[derive(Debug, Clone)]
pub(super) enum AskedEncryption {
    /// The request, with a key of the client.
    Customer(SentKey),
    /// The request, with the cluster's keys.
    Request,
    Bucket,
    Nobody,
}

impl AskedEncryption {
    /// The key of the client.
    pub(super) fn key(&self) -> Option<&SentKey> {
        match self {
            Self::Customer(key) => Some(key),
            Self::Request | Self::Bucket | Self::Nobody => None,
        }
    }

    /// Notes it in the headers of an upload's marker.
    pub(super) fn note(&self, marker: &mut HeaderMap) {
        if !matches!(self, Self::Nobody) {
            marker.insert(UPLOAD_ASKS, HeaderValue::from_static(AES256));
        }
    }
}

impl Operation<'_> {
    /// The side that asks that what the request stores be encrypted; refused where that cannot be done.
    pub(super) async fn check_encryption(&self) -> Result<AskedEncryption, S3Error> {
        let asked = match (self.customer_key()?, self.request_asks()?) {
            (Some(key), asks) => {
                if asks {
                    return Err(INVALID_ARGUMENT
                        .saying(TWO_ENCRYPTIONS)
                        .with("ArgumentName", ENCRYPTION));
                }
                AskedEncryption::Customer(key)
            }
            (None, true) => AskedEncryption::Request,
            (None, false) if self.bucket_asks().await => AskedEncryption::Bucket,
            (None, false) => AskedEncryption::Nobody,
        };
        match asked {
            AskedEncryption::Customer(_) | AskedEncryption::Request => self.must_encrypt("The request")?,
            AskedEncryption::Bucket => self.must_encrypt("The configuration of the bucket")?,
            AskedEncryption::Nobody => {}
        }
        Ok(asked)
    }

    /// The same of a part of an upload that was begun before, whose marker has these headers. Returns the key of the
    /// client, with which all parts are encrypted.
    pub(super) async fn check_encryption_of(&self, marker: &HeaderMap) -> Result<Option<SentKey>, S3Error> {
        let key = self.customer_key()?;
        customer_key::check_part(marker, key.as_ref())?;
        self.check_upload(marker).await?;
        Ok(key)
    }

    /// The same of the end of an upload, which nothing of the client's key is needed for.
    pub(super) async fn check_encryption_of_whole(&self, marker: &HeaderMap) -> Result<(), S3Error> {
        if let Some(key) = self.customer_key()? {
            customer_key::check_part(marker, Some(&key))?;
        }
        self.check_upload(marker).await
    }

    async fn check_upload(&self, marker: &HeaderMap) -> Result<(), S3Error> {
        match marker.contains_key(UPLOAD_ASKS) {
            true => {
                self.request_asks()?;
                self.must_encrypt("The upload")
            }
            false => self.check_encryption().await.map(|_| ()),
        }
    }

    /// A signed URL may have the header among its parameters.
    fn request_asks(&self) -> Result<bool, S3Error> {
        let headers = self.request.headers.iter();
        let headers = headers.filter(|(name, _)| name.as_str().starts_with(ENCRYPTION));
        let headers = headers.map(|(name, value)| (name.as_str(), value.to_str().unwrap_or_default()));
        let parameters = self.call.parameters.iter();
        let parameters = parameters.map(|(name, value)| (name.as_str(), value.as_str()));
        asked_by(headers.chain(parameters))
    }

    async fn bucket_asks(&self) -> bool {
        let container = self.bucket_info().await;
        let kept = container.sysmeta.get(CONFIGURATION_KEPT);
        kept.is_some_and(|kept| !kept.is_empty())
    }

    fn must_encrypt(&self, who: &str) -> Result<(), S3Error> {
        match self.service.encrypts {
            true => Ok(()),
            false => Err(NOT_IMPLEMENTED.saying(format!("{who} asks for encryption, and {NO_ENCRYPTION}"))),
        }
    }
}

/// Whether headers ask for encryption; keys of others are refused.
fn asked_by<'a>(headers: impl Iterator<Item = (&'a str, &'a str)>) -> Result<bool, S3Error> {
    let mut asked = false;
    for (name, value) in headers {
        let name = name.to_ascii_lowercase();
        match name.as_str() {
            ENCRYPTION if value == AES256 => asked = true,
            ENCRYPTION => return Err(no_algorithm(value)),
            BUCKET_KEY => {}
            name if name.starts_with(customer_key::OF_OBJECT) => {}
            name if name.starts_with(MORE) => {
                return Err(NOT_IMPLEMENTED
                    .saying(
                        "Objects are encrypted with keys of the cluster (AES256) or of clients, not of a key service.",
                    )
                    .with("Header", name));
            }
            _ => {}
        }
    }
    Ok(asked)
}

fn no_algorithm(value: &str) -> S3Error {
    INVALID_ENCRYPTION_ALGORITHM
        .about("ArgumentName", ENCRYPTION)
        .with("ArgumentValue", value)
}

/// Says in an answer that the object is encrypted whose headers `swift` are, or that was put with this answer.
pub(super) fn show(answer: &mut HeaderMap, swift: &HeaderMap) {
    if !swift.contains_key(X_CRYPTO_CIPHER) || customer_key_proof(swift).is_some() {
        return;
    }
    let is_whole = match swift.contains_key("x-static-large-object") {
        true => swift.contains_key(X_SEGMENTS_ENCRYPTED),
        // What a list of a prefix leads to is known when it is read only.
        false => !swift.contains_key("x-object-manifest"),
    };
    if is_whole {
        show_of_upload(answer);
    }
}

/// The same of an object whose list of parts was put with this answer.
pub(super) fn show_of_parts(answer: &mut HeaderMap, swift: &HeaderMap) {
    if swift.contains_key(X_SEGMENTS_ENCRYPTED) {
        show(answer, swift);
    }
}

/// Says that what is uploaded from now on is encrypted.
pub(super) fn show_of_upload(answer: &mut HeaderMap) {
    answer.insert(ENCRYPTION, HeaderValue::from_static(AES256));
}

/// PutBucketEncryption.
pub(super) async fn put(mut operation: Operation<'_>) -> Done {
    let document = operation.document_named("ServerSideEncryptionConfiguration").await?;
    let stored = read(&document)?;
    operation.must_encrypt("The configuration")?;
    operation.store(CONFIGURATION, stored, 200).await
}

/// GetBucketEncryption.
pub(super) async fn get(operation: Operation<'_>) -> Done {
    let bucket = operation.metadata_of_bucket().await?;
    let stored = text_of(&bucket, CONFIGURATION);
    if stored.is_empty() {
        return Err(NO_SUCH_ENCRYPTION.about("BucketName", operation.bucket()));
    }
    let mut xml = XmlWriter::document("ServerSideEncryptionConfiguration");
    xml.open("Rule");
    xml.open("ApplyServerSideEncryptionByDefault");
    xml.text("SSEAlgorithm", AES256);
    xml.close();
    let has_bucket_key = stored == WITH_BUCKET_KEY;
    xml.text("BucketKeyEnabled", if has_bucket_key { "true" } else { "false" });
    Ok(super::document(xml))
}

/// DeleteBucketEncryption.
pub(super) async fn delete(operation: Operation<'_>) -> Done {
    operation.store(CONFIGURATION, "", 204).await
}

/// What is stored of a configuration: one rule, with the one algorithm there is.
fn read(configuration: &Element) -> Result<&'static str, S3Error> {
    let [rule] = configuration.children.as_slice() else {
        return Err(MALFORMED_XML.into());
    };
    let algorithm = rule.child("ApplyServerSideEncryptionByDefault");
    let algorithm = algorithm.filter(|_| rule.name == "Rule").ok_or(MALFORMED_XML)?;
    for element in rule.children.iter().chain(&algorithm.children) {
        match element.name.as_str() {
            "ApplyServerSideEncryptionByDefault" | "BucketKeyEnabled" | "SSEAlgorithm" | "KMSMasterKeyID" => {}
            other => return Err(NOT_IMPLEMENTED.about("Element", other)),
        }
    }
    match algorithm.text_of("SSEAlgorithm") {
        Some(AES256) => {}
        Some(named) if named.starts_with("aws:") => return Err(no_algorithm(named)),
        _ => return Err(MALFORMED_XML.into()),
    }
    if algorithm.child("KMSMasterKeyID").is_some() {
        return Err(INVALID_ARGUMENT
            .saying("a KMSMasterKeyID is not applicable if the default sse algorithm is not aws:kms")
            .with("ArgumentName", "KMSMasterKeyID"));
    }
    match rule.text_of("BucketKeyEnabled").map(str::to_ascii_lowercase).as_deref() {
        Some("true") => Ok(WITH_BUCKET_KEY),
        None | Some("false") => Ok(AES256),
        Some(_) => Err(MALFORMED_XML.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(inside: &str, beside: &str) -> Result<&'static str, &'static str> {
        let text = format!(
            "<ServerSideEncryptionConfiguration><Rule><ApplyServerSideEncryptionByDefault>{inside}\
             </ApplyServerSideEncryptionByDefault>{beside}</Rule></ServerSideEncryptionConfiguration>"
        );
        let element = Element::parse(text.as_bytes()).unwrap();
        read(&element).map_err(|error| error.code.name)
    }

    #[test]
    fn configurations_name_the_one_algorithm() {
        const AES: &str = "<SSEAlgorithm>AES256</SSEAlgorithm>";
        const KEY: &str = "<KMSMasterKeyID>k</KMSMasterKeyID>";
        for (inside, beside, expected) in [
            (AES, "", Ok("AES256")),
            (AES, "<BucketKeyEnabled>false</BucketKeyEnabled>", Ok("AES256")),
            (
                AES,
                "<BucketKeyEnabled>true</BucketKeyEnabled>",
                Ok("AES256 bucket-key"),
            ),
            (AES, "<BucketKeyEnabled>x</BucketKeyEnabled>", Err("MalformedXML")),
            (
                "<SSEAlgorithm>aws:kms</SSEAlgorithm>",
                "",
                Err("InvalidEncryptionAlgorithmError"),
            ),
            ("<SSEAlgorithm>AES</SSEAlgorithm>", "", Err("MalformedXML")),
            ("", "", Err("MalformedXML")),
            (&format!("{AES}{KEY}"), "", Err("InvalidArgument")),
            (AES, "<BlockedEncryptionTypes/>", Err("NotImplemented")),
        ] {
            assert_eq!(rule(inside, beside), expected, "{inside} {beside}");
        }
        for bare in ["<C/>", "<C><Rule/></C>", "<C><Rule/><Rule/></C>"] {
            let element = Element::parse(bare.as_bytes()).unwrap();
            assert_eq!(read(&element).unwrap_err().code, MALFORMED_XML, "{bare}");
        }
    }

    #[test]
    fn keys_of_others_are_refused() {
        let asked =
            |pairs: &[(&'static str, &'static str)]| asked_by(pairs.iter().copied()).map_err(|error| error.code.name);
        assert_eq!(asked(&[("x-amz-meta-a", "AES256")]), Ok(false));
        assert_eq!(asked(&[(BUCKET_KEY, "true")]), Ok(false));
        assert_eq!(asked(&[("X-Amz-Server-Side-Encryption", AES256)]), Ok(true));
        for value in ["aws:kms", "aws:kms:dsse", "aes256", ""] {
            assert_eq!(
                asked(&[(ENCRYPTION, value)]),
                Err("InvalidEncryptionAlgorithmError"),
                "{value}"
            );
        }
        assert_eq!(asked(&[(customer_key::OF_OBJECT, "x")]), Ok(false));
        for more in ["aws-kms-key-id", "context"] {
            let name = format!("{MORE}{more}");
            let refused = asked_by([(name.as_str(), "x")].into_iter());
            assert_eq!(refused.unwrap_err().code, NOT_IMPLEMENTED, "{more}");
        }
    }

    #[test]
    fn only_what_is_encrypted_says_so() {
        const CIPHER: (&str, &str) = ("x-backend-crypto-cipher", "AES_CTR_256");
        const LARGE: (&str, &str) = ("x-static-large-object", "True");
        const ALL: (&str, &str) = ("x-object-sysmeta-slo-segments-encrypted", "true");
        const CUSTOMERS: (&str, &str) = ("x-object-sysmeta-s3api-customer-key", "salt:mac");
        for (swift, is_shown, is_shown_of_parts) in [
            (&[][..], false, false),
            (&[CIPHER], true, false),
            (&[CIPHER, LARGE], false, false),
            (&[CIPHER, LARGE, ALL], true, true),
            (&[LARGE, ALL], false, false),
            (&[CIPHER, ALL], true, true),
            (&[CIPHER, LARGE, ALL, CUSTOMERS], false, false),
            (&[CIPHER, ("x-object-manifest", "c/p")], false, false),
        ] {
            let headers: HeaderMap = swift
                .iter()
                .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
                .collect();
            let (mut of_object, mut of_parts) = (HeaderMap::new(), HeaderMap::new());
            show(&mut of_object, &headers);
            show_of_parts(&mut of_parts, &headers);
            assert_eq!(
                (of_object.contains_key(ENCRYPTION), of_parts.contains_key(ENCRYPTION)),
                (is_shown, is_shown_of_parts),
                "{swift:?}"
            );
        }
    }
}
