//! AWS's own examples ("Examples: Signature Calculations in AWS Signature Version 4").

use super::*;
use http::{HeaderValue, Method};
use request_pipeline::ClientRequest;
use settings::declare::{Options, Scope};

const SECRET: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
/// 24 May 2013, midnight.
const NOW: u64 = 1_369_353_600;

fn settings() -> S3ApiSettings {
    S3ApiSettings::read(&Scope::empty()).unwrap()
}

fn request(method: Method, target: &str, headers: &[(&'static str, &str)]) -> ClientRequest {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let decoded = vocabulary::names::unquote(path).unwrap();
    let mut request = Request::new(method, path.into(), decoded.into());
    request.query = query.into();
    request
        .headers
        .insert("host", HeaderValue::from_static("examplebucket.s3.amazonaws.com"));
    for (name, value) in headers {
        request.headers.append(*name, HeaderValue::from_str(value).unwrap());
    }
    request
}

fn authorization(headers: &str, signature: &str) -> String {
    format!(
        "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,SignedHeaders={headers},\
         Signature={signature}"
    )
}

fn read(request: &Request, now: u64) -> Result<S3Signature, S3Error> {
    Ok(super::super::read(request, None, &settings(), now)?.unwrap())
}

#[test]
fn objects_read() {
    let header = authorization(
        "host;range;x-amz-content-sha256;x-amz-date",
        "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
    );
    let request = request(
        Method::GET,
        "/test.txt",
        &[
            ("authorization", &header),
            ("range", "bytes=0-9"),
            ("x-amz-content-sha256", EMPTY),
            ("x-amz-date", "20130524T000000Z"),
        ],
    );
    let signature = read(&request, NOW).unwrap();
    assert!(signature.signed.is_signed_with(SECRET));
    assert_eq!(signature.payload, PayloadHash::Sha256(EMPTY.into()));
}

#[test]
fn buckets_listed() {
    let header = authorization(
        "host;x-amz-content-sha256;x-amz-date",
        "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
    );
    let headers = [
        ("authorization", header.as_str()),
        ("x-amz-content-sha256", EMPTY),
        ("x-amz-date", "20130524T000000Z"),
    ];
    let signature = read(&request(Method::GET, "/?max-keys=2&prefix=J", &headers), NOW).unwrap();
    assert!(signature.signed.is_signed_with(SECRET));
    let other = read(&request(Method::GET, "/?max-keys=2&prefix=K", &headers), NOW).unwrap();
    assert!(!other.signed.is_signed_with(SECRET));
}

#[test]
fn presigned() {
    let target = |expires: &str| {
        format!(
            "/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2F\
             s3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires={expires}&X-Amz-SignedHeaders=host&\
             X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"
        )
    };
    let good = request(Method::GET, &target("86400"), &[]);
    let signature = read(&good, NOW + 86_000).unwrap();
    assert!(signature.signed.is_signed_with(SECRET));
    assert_eq!(read(&good, NOW + 86_401).unwrap_err().words(), "Request has expired");
    for bad in ["-1", "604801", "x"] {
        let refusal = read(&request(Method::GET, &target(bad), &[]), NOW).unwrap_err();
        assert_eq!(refusal.code, AUTHORIZATION_QUERY_PARAMETERS, "{bad}");
    }
}

#[test]
fn what_is_wrong_is_named() {
    let date = ("x-amz-date", "20130524T000000Z");
    let sha = ("x-amz-content-sha256", EMPTY);
    let all = "host;x-amz-content-sha256;x-amz-date";
    let of = |header: &str, more: &[(&'static str, &str)], now| {
        let mut headers = vec![("authorization", header)];
        headers.extend(more);
        read(&request(Method::GET, "/", &headers), now).unwrap_err().code.name
    };
    let good = authorization(all, "00");
    assert_eq!(of(&good, &[date], NOW), "InvalidRequest");
    assert_eq!(of(&good, &[sha], NOW), "AccessDenied");
    assert_eq!(of(&good, &[date, sha], NOW + 901), "RequestTimeTooSkewed");
    assert_eq!(of(&good, &[date, sha, ("x-amz-acl", "private")], NOW), "AccessDenied");
    assert_eq!(
        of(&authorization("x-amz-date", "00"), &[date, sha], NOW),
        "AccessDenied"
    );
    assert_eq!(
        of("AWS4-HMAC-SHA256 Credential=x", &[date, sha], NOW),
        "AuthorizationHeaderMalformed"
    );
    for (from, to) in [
        ("us-east-1", "mars"),
        ("/s3/", "/ec2/"),
        ("20130524", "20130525"),
        ("aws4_request", "x"),
    ] {
        assert_eq!(
            of(&good.replace(from, to), &[date, sha], NOW),
            "AuthorizationHeaderMalformed",
            "{to}"
        );
    }
}

#[test]
fn a_header_that_is_named_twice_is_refused() {
    let headers = [("x-amz-date", "20130524T000000Z"), ("x-amz-content-sha256", EMPTY)];
    for twice in ["host;a;a", "host;a;A", "host;host", "host;;"] {
        let header = authorization(&format!("{twice};x-amz-content-sha256;x-amz-date"), "00");
        let headers = [&[("authorization", header.as_str()), ("a", "x")], &headers[..]].concat();
        let refusal = read(&request(Method::GET, "/", &headers), NOW).unwrap_err();
        assert_eq!(refusal.code, AUTHORIZATION_HEADER_MALFORMED, "{twice}");
    }
}

#[test]
fn times() {
    assert_eq!(seconds("20130524T000000Z"), Some(NOW));
    assert_eq!(long_form(NOW + 1), "20130524T000001Z");
    for bad in ["20130524T000000", "20131324T000000Z", "2013052äT00000Z", ""] {
        assert_eq!(seconds(bad), None, "{bad}");
    }
}
