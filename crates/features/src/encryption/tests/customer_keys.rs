//! Bodies that are encrypted with a key of the client as well.

use super::*;
use peer::message::header_names::X_CUSTOMER_KEY_PROOF;
use request_pipeline::{CUSTOMER_KEY_BYTES, CustomerKey};
use zeroize::Zeroizing;

fn key(byte: u8) -> CustomerKey {
    CustomerKey::new(Zeroizing::new([byte; CUSTOMER_KEY_BYTES]))
}

/// A PUT with the key and its proof.
fn put_with(key: &CustomerKey) -> ClientRequest {
    let mut put = put(TEXT, &[("x-object-meta-foo", "bar")]);
    put.headers.insert(X_CUSTOMER_KEY_PROOF, key.proof(&OsRandom).unwrap());
    put.extensions.insert(key.clone());
    put
}

fn read(method: &str, key: Option<&CustomerKey>) -> ClientRequest {
    let mut read = request(method, "/v1/a/c/o");
    if let Some(key) = key {
        read.extensions.insert(key.clone());
    }
    read
}

async fn sealed() -> (Arc<Disk>, Pipeline) {
    let disk = Arc::new(Disk::default());
    let pipeline = pipeline(&disk, Some(ONE), "");
    let (status, headers, _) = text(pipeline.run(put_with(&key(1))).await).await;
    assert_eq!((status, header(&headers, "etag")), (201, MD5));
    (disk, pipeline)
}

#[tokio::test]
async fn only_the_clients_key_opens_what_it_has_closed() {
    let (disk, pipeline) = sealed().await;
    let cipher = header(&disk.headers.lock(), BODY_META.as_str()).to_owned();
    assert!(cipher.contains("AES_CTR_256_CUSTOMER_KEY"), "{cipher}");
    assert!(!disk.body.lock().starts_with(b"hello"));
    let (status, headers, body) = text(pipeline.run(read("GET", Some(&key(1)))).await).await;
    assert_eq!((status, body.as_str(), header(&headers, "etag")), (200, TEXT, MD5));
    let mut part = read("GET", Some(&key(1)));
    part.set_header("range", "bytes=17-20");
    assert_eq!(text(pipeline.run(part).await).await.2, &TEXT[17..=20]);
    for (sent, expected, refusal) in [
        (None, 400, CustomerKeyRefusal::Missing),
        (Some(key(2)), 403, CustomerKeyRefusal::Wrong),
    ] {
        let response = pipeline.run(read("GET", sent.as_ref())).await;
        assert_eq!(response.extensions().get(), Some(&refusal));
        let (status, _, body) = text(response).await;
        assert_eq!((status, body), (expected, refusal.to_string()));
        // What the keymaster alone opens is known without the key.
        let (status, headers, _) = text(pipeline.run(read("HEAD", sent.as_ref())).await).await;
        assert_eq!((status, header(&headers, "etag")), (200, MD5));
        assert_eq!(header(&headers, "x-object-meta-foo"), "bar");
    }
    disk.headers.lock().remove(X_CUSTOMER_KEY_PROOF);
    let (status, _, body) = text(pipeline.run(read("GET", Some(&key(1)))).await).await;
    assert_eq!((status, body.as_str()), (500, "Error decrypting object"));
}

#[tokio::test]
async fn a_key_is_for_the_object_that_has_its_proof() {
    let disk = Arc::new(Disk::default());
    let pipeline = pipeline(&disk, Some(ONE), "");
    // What a feature writes besides inherits the key.
    let mut other = put(TEXT, &[]);
    other.extensions.insert(key(1));
    assert_eq!(pipeline.run(other).await.status().as_u16(), 201);
    assert_eq!(get(&pipeline, &[]).await.2, TEXT);
    // The list of an object's parts has a proof and no key.
    let mut list = put_with(&key(1));
    list.extensions.remove::<CustomerKey>();
    assert_eq!(pipeline.run(list).await.status().as_u16(), 201);
    assert_eq!(get(&pipeline, &[]).await.2, TEXT);
    let mut wrong = put_with(&key(1));
    wrong.extensions.insert(key(2));
    assert_eq!(pipeline.run(wrong).await.status().as_u16(), 403);
}

#[tokio::test]
async fn what_is_moved_stays_closed() {
    let (disk, first) = sealed().await;
    for keymaster in [ONE, ROTATED] {
        let mut get = read("GET", Some(&key(2)));
        read_sealed(&mut get);
        let (head, body) = first.run(get).await.into_parts();
        assert_eq!((head.status.as_u16(), header(&head.headers, "etag")), (200, MD5));
        let body = body.collect(1 << 20).await.unwrap();
        assert_eq!(body, *disk.body.lock());
        let before = disk.headers.lock().clone();

        let disk = Arc::new(Disk::default());
        // Where new objects are stored in the clear, too.
        let pipeline = pipeline(&disk, Some(keymaster), "disable_encryption = true");
        let mut put = put_with(&key(2));
        put.aim_at(EntityPath::split("a/versions/o").unwrap());
        for (name, value) in &head.headers {
            put.headers.insert(name, value.clone());
        }
        carry(&head.extensions, &mut put);
        put.body = Body::whole(body.clone());
        let answer = pipeline.run(put).await;
        assert_eq!((answer.status().as_u16(), header(answer.headers(), "etag")), (201, MD5));
        assert_eq!(*disk.body.lock(), body);
        let after = disk.headers.lock().clone();
        assert_eq!(after[BODY_META], before[BODY_META]);
        assert_ne!(after[ETAG_MAC], before[ETAG_MAC]);
        assert_ne!(after[LISTED_ETAG], before[LISTED_ETAG]);

        for (sent, status) in [(Some(key(1)), 200), (None, 400), (Some(key(2)), 403)] {
            let mut get = read("GET", sent.as_ref());
            get.aim_at(EntityPath::split("a/versions/o").unwrap());
            let (found, headers, body) = text(pipeline.run(get).await).await;
            assert_eq!((found, body == TEXT), (status, status == 200));
            if status == 200 {
                assert_eq!(header(&headers, "etag"), MD5);
                assert_eq!(header(&headers, LISTED_ETAG.as_str()), MD5);
                assert_eq!(header(&headers, "x-object-meta-foo"), "bar");
            }
        }
    }
}

#[tokio::test]
async fn upkeep_moves_what_is_stored() {
    let (disk, pipeline) = sealed().await;
    let before = (disk.headers.lock().clone(), disk.body.lock().clone());
    let mut get = read("GET", None);
    get.headers.insert(X_CRYPTO_AS_STORED, HeaderValue::from_static("true"));
    let (head, body) = pipeline.run(get).await.into_parts();
    let mut put = put("", &[]);
    put.headers = head.headers;
    put.headers.insert(X_CRYPTO_AS_STORED, HeaderValue::from_static("true"));
    put.body = body;
    assert_eq!(pipeline.run(put).await.status().as_u16(), 201);
    disk.headers.lock().remove(X_CRYPTO_AS_STORED);
    assert_eq!((disk.headers.lock().clone(), disk.body.lock().clone()), before);
    assert_eq!(text(pipeline.run(read("GET", Some(&key(1)))).await).await.2, TEXT);
}

#[tokio::test]
async fn other_objects_are_moved_as_ever() {
    let disk = stored(ONE, &[]).await;
    let pipeline = pipeline(&disk, Some(ONE), "");
    let mut get = read("GET", Some(&key(1)));
    read_sealed(&mut get);
    let (head, body) = pipeline.run(get).await.into_parts();
    assert_eq!(body.collect(1 << 20).await.unwrap(), TEXT);
    let mut put = put_with(&key(1));
    carry(&head.extensions, &mut put);
    put.headers.remove(X_CUSTOMER_KEY_PROOF);
    assert_eq!(pipeline.run(put).await.status().as_u16(), 201);
    assert_eq!(super::get(&pipeline, &[]).await.2, TEXT);
}
