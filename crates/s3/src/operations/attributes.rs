//! GetObjectAttributes: what is known of an object without its bytes.

use super::multipart::{MadeOfParts, UPLOAD_OF_OBJECT};
use super::{Done, Operation, customer_key, document, headers, versions};
use crate::checksum_of_parts::StoredChecksum;
use crate::error::{INVALID_ARGUMENT, S3Error};
use crate::xml::XmlWriter;
use http::header::{CONTENT_LENGTH, LAST_MODIFIED};
use http::{HeaderMap, Method};

/// What can be asked for.
const ATTRIBUTES: [&str; 5] = ["ETag", "Checksum", "ObjectParts", "StorageClass", "ObjectSize"];
/// Parts in one answer.
const MOST_PARTS: u64 = 1000;

/// GetObjectAttributes.
pub(super) async fn get(operation: Operation<'_>) -> Done {
    let wanted = wanted(&operation.request.headers)?;
    let wants = |name: &str| wanted.iter().any(|wanted| wanted == name);
    let (most, marker) = page(&operation.request.headers)?;
    let call = operation.call.clone();
    let version = call.parameter("versionId");
    let key = operation.customer_key()?;
    let mut head = operation.further(Method::HEAD, operation.container().with_object(operation.key()));
    operation.aim_at_version(&mut head, version);
    let response = operation.send(head).await;
    if !response.status().is_success() {
        return match version {
            Some(version) => Err(operation.version_refusal(&response, version).await),
            None => Err(operation.refusal(&response).await),
        };
    }
    let found = response.headers();
    customer_key::check(found, key.as_ref())?;
    let text = |name| {
        found
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    };
    let mut xml = XmlWriter::document("GetObjectAttributesResponse");
    if wants("ETag") {
        let etag = headers::etag(found);
        let etag = etag.as_ref().and_then(|etag| etag.to_str().ok()).unwrap_or_default();
        xml.text("ETag", etag.trim_matches('"'));
    }
    if wants("Checksum")
        && let Some(checksum) = StoredChecksum::read(found)
    {
        xml.open("Checksum");
        xml.text(checksum.algorithm.element(), &checksum.value);
        xml.text("ChecksumType", checksum.kind().name());
        xml.close();
    }
    if wants("ObjectParts") && found.contains_key(UPLOAD_OF_OBJECT) {
        let parts = operation.made_of(version).await?;
        print_parts(&mut xml, &operation, &parts, most, marker).await?;
    }
    if wants("StorageClass") {
        xml.text("StorageClass", "STANDARD");
    }
    if wants("ObjectSize") {
        xml.text("ObjectSize", text(CONTENT_LENGTH));
    }
    let mut answer = document(xml);
    if let Some(time) = found.get(LAST_MODIFIED) {
        answer.headers_mut().insert(LAST_MODIFIED, time.clone());
    }
    versions::show(answer.headers_mut(), found);
    customer_key::show(answer.headers_mut(), key.as_ref());
    Ok(answer)
}

/// `x-amz-object-attributes`, which may come several times.
fn wanted(headers: &HeaderMap) -> Result<Vec<String>, S3Error> {
    const NAME: &str = "x-amz-object-attributes";
    let refuse = || {
        INVALID_ARGUMENT
            .saying("Invalid attribute name specified.")
            .with("ArgumentName", NAME)
    };
    let mut found = Vec::new();
    for value in headers.get_all(NAME) {
        let names = value.to_str().map_err(|_| refuse())?.split(',').map(str::trim);
        for name in names.filter(|name| !name.is_empty()) {
            let known = ATTRIBUTES.into_iter().find(|known| *known == name);
            found.push(known.ok_or_else(|| refuse().with("ArgumentValue", name))?.to_owned());
        }
    }
    match found.is_empty() {
        true => Err(refuse()),
        false => Ok(found),
    }
}

/// How many parts, and behind which number.
fn page(headers: &HeaderMap) -> Result<(usize, u32), S3Error> {
    let number = |name: &'static str| {
        let value = headers.get(name).map(|value| value.to_str().ok());
        let number = value.map(|text| text.and_then(|text| text.parse::<u32>().ok()));
        match number {
            Some(None) => Err(INVALID_ARGUMENT.about("ArgumentName", name)),
            number => Ok(number.flatten()),
        }
    };
    let most = number("x-amz-max-parts")?.map_or(MOST_PARTS, |most| u64::from(most).min(MOST_PARTS));
    Ok((most as usize, number("x-amz-part-number-marker")?.unwrap_or_default()))
}

async fn print_parts(
    xml: &mut XmlWriter,
    operation: &Operation<'_>,
    made_of: &MadeOfParts,
    most: usize,
    marker: u32,
) -> Result<(), S3Error> {
    let mut page: Vec<(u32, u64)> = made_of.parts.clone();
    page.retain(|(number, _)| *number > marker);
    let is_truncated = page.len() > most;
    page.truncate(most);
    let numbers = page.iter().map(|(number, _)| *number).collect();
    let checksums = operation.part_checksums(&made_of.upload, numbers).await?;
    xml.open("ObjectParts");
    xml.number("PartsCount", made_of.parts.len() as u64);
    xml.number("PartNumberMarker", marker.into());
    if let Some((last, _)) = page.last() {
        xml.number("NextPartNumberMarker", (*last).into());
    }
    xml.number("MaxParts", most as u64);
    xml.text("IsTruncated", if is_truncated { "true" } else { "false" });
    for ((number, size), (checksum, _)) in page.iter().zip(&checksums) {
        xml.open("Part");
        xml.number("PartNumber", (*number).into());
        xml.number("Size", *size);
        if let Some(checksum) = checksum {
            xml.text(checksum.algorithm.element(), &checksum.value);
        }
        xml.close();
    }
    xml.close();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn attributes_are_those_of_s3() {
        let of = |values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append("x-amz-object-attributes", HeaderValue::from_static(value));
            }
            wanted(&headers).map_err(|error| error.code.name)
        };
        assert_eq!(
            of(&["ETag, ObjectSize", "Checksum"]).unwrap(),
            ["ETag", "ObjectSize", "Checksum"]
        );
        assert_eq!(of(&["ETag,Owner"]), Err("InvalidArgument"));
        assert_eq!(of(&[]), Err("InvalidArgument"));
    }
}
