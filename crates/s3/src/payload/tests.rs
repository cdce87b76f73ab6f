//! Bodies that are what was promised, and others.

use super::*;
use crate::checksum::sha256_hex;
use futures_util::StreamExt;
use http::Method;
use request_pipeline::ClientRequest;

fn upload(body: &'static [u8], headers: &[(&'static str, &'static str)]) -> ClientRequest {
    let mut request = Request::new(Method::PUT, "/b/k".into(), "/b/k".into());
    let chunks = body.chunks(4).map(|chunk| Ok(Bytes::from_static(chunk)));
    request.body = Body::stream(futures_util::stream::iter(chunks), Some(body.len() as u64));
    request.headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
    for (name, value) in headers {
        request.headers.insert(*name, HeaderValue::from_static(value));
    }
    request
}

/// For a client without a key.
fn room_of(room: MemoryRoom) -> DocumentRoom {
    DocumentRoom::new(&room, [10, 0, 0, 1].into(), None)
}

fn signed(payload: &str) -> SignedBody {
    SignedBody {
        payload: PayloadHash::parse(payload),
        time: String::new(),
        signed: Arc::new(SignedRequest {
            access_key: String::new(),
            signature: String::new(),
            string_to_sign: String::new(),
            alternative: None,
            canonical_request: None,
            scope: None,
            session_token: None,
        }),
        signing_key: None,
    }
}

/// The bytes that passed, and why the body was refused.
async fn pass(mut request: ClientRequest, payload: &str) -> (Vec<u8>, Option<&'static str>) {
    let verdict = match check_body(&mut request, Some(&signed(payload))) {
        Ok(verdict) => verdict,
        Err(error) => return (Vec::new(), Some(error.code.name)),
    };
    let mut passed = Vec::new();
    while let Some(Ok(chunk)) = request.body.next().await {
        passed.extend_from_slice(&chunk);
    }
    (passed, verdict.refusal().map(|error| error.code.name))
}

#[tokio::test]
async fn the_last_bytes_wait_for_the_checksum() {
    let good = sha256_hex(b"hello world").leak();
    let other = sha256_hex(b"other").leak();
    assert_eq!(
        pass(upload(b"hello world", &[]), good).await,
        (b"hello world".to_vec(), None)
    );
    assert_eq!(
        pass(upload(b"hello world", &[]), other).await,
        (b"hello wo".to_vec(), Some("XAmzContentSHA256Mismatch"))
    );
    let crc = [("x-amz-checksum-crc32", "DUoRhQ==")];
    assert_eq!(
        pass(upload(b"hello world", &crc), "UNSIGNED-PAYLOAD").await,
        (b"hello world".to_vec(), None)
    );
    assert_eq!(
        pass(upload(b"hello w0rld", &crc), "UNSIGNED-PAYLOAD").await.1,
        Some("BadDigest")
    );
    assert_eq!(
        pass(upload(b"x", &[]), "nonsense").await.1,
        Some("XAmzContentSHA256Mismatch")
    );
}

#[tokio::test]
async fn checksums_behind_the_body() {
    let headers = [
        ("x-amz-trailer", "x-amz-checksum-crc32"),
        ("x-amz-decoded-content-length", "11"),
        ("content-encoding", "aws-chunked,gzip"),
    ];
    let kind = "STREAMING-UNSIGNED-PAYLOAD-TRAILER";
    let good = upload(
        b"b\r\nhello world\r\n0\r\nx-amz-checksum-crc32:DUoRhQ==\r\n\r\n",
        &headers,
    );
    assert_eq!(pass(good, kind).await, (b"hello world".to_vec(), None));
    let wrong = upload(
        b"b\r\nhello w0rld\r\n0\r\nx-amz-checksum-crc32:DUoRhQ==\r\n\r\n",
        &headers,
    );
    assert_eq!(pass(wrong, kind).await.1, Some("BadDigest"));
    let missing = upload(b"b\r\nhello world\r\n0\r\n\r\n", &headers);
    assert_eq!(pass(missing, kind).await.1, Some("MalformedTrailerError"));
    let unannounced = upload(b"b\r\nhello world\r\n0\r\n\r\n", &headers[..1]);
    assert_eq!(pass(unannounced, kind).await.1, Some("MissingContentLength"));
    let mut request = upload(b"b\r\nhello world\r\n0\r\n\r\n", &headers);
    check_body(&mut request, Some(&signed(kind))).unwrap();
    assert_eq!(request.header("content-encoding"), Some("gzip"));
    assert_eq!(request.header("content-length"), Some("11"));
}

#[tokio::test]
async fn signed_chunks_need_a_key() {
    let headers = [("x-amz-decoded-content-length", "1")];
    let request = upload(b"1\r\nx\r\n0\r\n\r\n", &headers);
    assert_eq!(
        pass(request, "STREAMING-AWS4-HMAC-SHA256-PAYLOAD").await.1,
        Some("InvalidRequest")
    );
}

#[tokio::test]
async fn documents_beyond_the_room_of_all_are_refused() {
    let room = MemoryRoom::default();
    let read = async |body: &'static [u8], room: &MemoryRoom| {
        let mut request = upload(body, &[]);
        request.extensions.insert(room_of(room.clone()));
        let outcome = collect(&mut request, None, 8 << 20)
            .await
            .map_err(|error| error.code.name);
        (outcome, request)
    };
    let take = |room: &MemoryRoom| {
        let mut seat = room.enter("10.0.0.1");
        seat.grow(16 << 20).ok().map(|()| seat)
    };
    let taken: Vec<_> = std::iter::from_fn(|| take(&room)).collect();
    assert_eq!(taken.len(), 8);
    assert_eq!(read(b"<a/>", &room).await.0, Err("SlowDown"));
    drop(taken);
    // What a request has taken it keeps until it has been answered.
    let (outcome, request) = read(b"<a/>", &room).await;
    assert_eq!(outcome, Ok(Bytes::from_static(b"<a/>")));
    let all = |room: &MemoryRoom| std::iter::from_fn(|| take(room)).collect::<Vec<_>>().len();
    assert_eq!(all(&room), 7);
    drop(request);
    assert_eq!(all(&room), 8);
}

/// A hundred clients that promise large documents, or do not say how large, and send a byte.
#[tokio::test]
async fn slow_documents_take_the_room_of_what_has_come() {
    let room = MemoryRoom::default();
    let mut waiting = Vec::new();
    for length in [None, Some(8 << 20)].repeat(50) {
        let mut request = upload(b"", &[]);
        let first = futures_util::stream::iter([Ok(Bytes::from_static(b"<"))]);
        request.body = Body::stream(first.chain(futures_util::stream::pending()), length);
        request.extensions.insert(room_of(room.clone()));
        let mut reading = Box::pin(async move { collect(&mut request, None, 8 << 20).await });
        assert!(futures_util::poll!(&mut reading).is_pending());
        waiting.push(reading);
    }
    let mut request = upload(b"<a/>", &[]);
    request.extensions.insert(room_of(room));
    assert_eq!(
        collect(&mut request, None, 8 << 20).await,
        Ok(Bytes::from_static(b"<a/>"))
    );
}

#[tokio::test]
async fn elements_take_room_before_they_are_made() {
    // A hundred empty elements take as much as sixteen thousand bytes of text.
    let read = async |room: u64| {
        let mut request = upload(b"", &[]);
        request.body = Body::whole("<a/>".repeat(100));
        request.extensions.insert(room_of(MemoryRoom::of(2 * room)));
        collect(&mut request, None, 8 << 20).await.map(|bytes| bytes.len())
    };
    assert_eq!(read(800 + 100 * ELEMENT).await, Ok(400));
    assert_eq!(
        read(799 + 100 * ELEMENT).await.map_err(|error| error.code.name),
        Err("SlowDown")
    );
    // One document of the largest kind always fits.
    let mut seat = MemoryRoom::default().enter("a");
    seat.grow(16 << 20).unwrap();
    assert_eq!(seat.grow(elements_of(&b"<a/>".repeat(2 << 20))), Ok(()));
}
