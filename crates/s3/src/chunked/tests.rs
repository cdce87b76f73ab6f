//! AWS's own example of a signed upload in chunks, cut in every way.

use super::*;
use futures_util::stream;
use identity::SigningScope;

const SEED: &str = "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9";
const LENGTH: u64 = 66_560;

fn upload() -> Vec<u8> {
    let mut out = Vec::new();
    for (size, signature) in [
        (
            65_536,
            "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648",
        ),
        (1024, "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497"),
        (0, "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9"),
    ] {
        out.extend_from_slice(format!("{size:x};chunk-signature={signature}\r\n").as_bytes());
        out.extend_from_slice(&vec![b'a'; size]);
        out.extend_from_slice(b"\r\n");
    }
    out
}

fn signing() -> ChunkSigning {
    let scope = SigningScope {
        date: "20130524".into(),
        region: "us-east-1".into(),
        service: "s3".into(),
    };
    let key = scope.signing_key("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY");
    let head = SignedRequest {
        access_key: "AKIAIOSFODNN7EXAMPLE".into(),
        signature: SEED.into(),
        string_to_sign: String::new(),
        alternative: None,
        canonical_request: None,
        scope: Some(scope),
        session_token: None,
    };
    ChunkSigning::new(key, "20130524T000000Z", Arc::new(head))
}

fn cut(bytes: &[u8], size: usize) -> Body {
    let chunks: Vec<_> = bytes
        .chunks(size)
        .map(|chunk| Ok(Bytes::copy_from_slice(chunk)))
        .collect();
    Body::stream(stream::iter(chunks), None)
}

async fn all(mut body: ChunkedBody) -> Result<Vec<u8>, Option<&'static str>> {
    let mut out = Vec::new();
    while let Some(chunk) = body.next().await {
        match chunk {
            Ok(bytes) => out.extend_from_slice(&bytes),
            Err(error) => return Err(error.map(|error| error.code.name)),
        }
    }
    Ok(out)
}

#[tokio::test]
async fn signed_chunks() {
    for size in [1, 7, 4096, 100_000] {
        let body = ChunkedBody::new(cut(&upload(), size), Some(signing()), false, LENGTH, Trailer::default());
        assert_eq!(all(body).await, Ok(vec![b'a'; 66_560]), "{size}");
    }
}

#[tokio::test]
async fn whatever_is_changed_is_found() {
    let good = upload();
    let mut bytes = good.clone();
    bytes[100] = b'b';
    let mut signature = good.clone();
    let second = good.len() - 1024 - 100;
    signature[second] ^= 1;
    let mut last = good.clone();
    let at = good.len() - 10;
    last[at] = b'0';
    for (case, bad, expected) in [
        ("bytes", bytes, "SignatureDoesNotMatch"),
        ("last signature", last, "SignatureDoesNotMatch"),
        ("unsigned", b"5\r\nhello\r\n0\r\n\r\n".to_vec(), "IncompleteBody"),
    ] {
        let length = if case == "unsigned" { 5 } else { LENGTH };
        let body = ChunkedBody::new(cut(&bad, 1000), Some(signing()), false, length, Trailer::default());
        assert_eq!(all(body).await, Err(Some(expected)), "{case}");
    }
    for end in [10, 70_000, good.len() - 10] {
        let body = ChunkedBody::new(
            cut(&good[..end.min(good.len() - 3)], 1000),
            Some(signing()),
            false,
            LENGTH,
            Trailer::default(),
        );
        assert!(all(body).await.is_err(), "{end}");
    }
}

#[tokio::test]
async fn unsigned_chunks_with_a_trailer() {
    let text = b"5\r\nhello\r\n1\r\n!\r\n0\r\nx-amz-checksum-crc32:AAAA\r\n\r\n";
    for size in [1, 3, 100] {
        let body = ChunkedBody::new(cut(text, size), None, true, 6, Trailer::default());
        assert_eq!(all(body).await, Ok(b"hello!".to_vec()), "{size}");
    }
    let refused = |text: &'static [u8], length: u64, has_trailer: bool| {
        all(ChunkedBody::new(
            cut(text, 4),
            None,
            has_trailer,
            length,
            Trailer::default(),
        ))
    };
    assert_eq!(refused(text, 5, true).await, Err(Some("IncompleteBody")));
    assert_eq!(refused(text, 7, true).await, Err(Some("IncompleteBody")));
    assert_eq!(refused(text, 6, false).await, Err(Some("MalformedTrailerError")));
    assert_eq!(refused(b"x\r\n", 6, false).await, Err(Some("IncompleteBody")));
    assert_eq!(refused(b"5\r\nhelloo\r\n", 6, false).await, Err(Some("IncompleteBody")));
    assert_eq!(
        refused(b"fffffffffffffffff\r\n", 6, false).await,
        Err(Some("IncompleteBody"))
    );
    assert_eq!(refused(b"5\r\nhel", 5, false).await, Err(Some("IncompleteBody")));
}

#[tokio::test]
async fn lines_without_an_end_are_not_kept() {
    let long = vec![b'1'; 100_000];
    let body = ChunkedBody::new(cut(&long, 100), None, false, 6, Trailer::default());
    assert_eq!(all(body).await, Err(Some("IncompleteBody")));
}
