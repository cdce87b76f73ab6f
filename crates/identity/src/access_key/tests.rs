use super::*;
use crate::signed_request::SigningScope;

fn record() -> KeyRecord {
    KeyRecord {
        id: new_id("AUTH_a", [7; 16]),
        account: "AUTH_a".into(),
        holder: KeyHolder {
            user: "a:u".into(),
            keystone: None,
        },
        secret: new_secret([[1; 16], [2; 16]]),
        former: None,
        enabled: true,
        expires: None,
        limits: KeyLimits::default(),
        description: String::new(),
        created: 0,
        secret_since: 0,
    }
}

/// A request that a client with these words has signed.
fn signed(access_key: &str, secret: &str, token: Option<&str>) -> SignedRequest {
    let scope = SigningScope {
        date: "20261124".into(),
        region: "us-east-1".into(),
        service: "s3".into(),
    };
    let signature = vocabulary::hex::encode(sha256(&scope.signing_key(secret), b"text"));
    SignedRequest {
        access_key: access_key.into(),
        signature,
        string_to_sign: "text".into(),
        alternative: None,
        canonical_request: None,
        scope: Some(scope),
        session_token: token.map(str::to_owned),
    }
}

#[test]
fn ids_tell_their_account_and_kind() {
    let id = new_id("AUTH_a", [0xff; 16]);
    assert!(is_key_id(&id), "{id}");
    assert_eq!((id.len(), tag_of_id(&id)), (20, tag("AUTH_a").as_str()));
    assert_ne!(tag("AUTH_a"), tag("AUTH_b"));
    for other in [
        "test:tester",
        "",
        "MRTK",
        "AKIAIOSFODNN7EXAMPLE",
        "MRTKaaaaaaaaaaaaaaaa",
        "MRTK/AAAAAAAAAAAAAAA",
    ] {
        assert!(!is_key_id(other), "{other}");
        assert!(stored_key_of(&signed(other, "s", None)).is_none());
    }
    assert_eq!(base32(b"foobar"), "MZXW6YTBOI"[..9].to_owned());
    assert_eq!(new_secret([[0; 16]; 2]).len(), 40);
}

#[test]
fn a_key_is_good_with_its_secret_only() {
    let mut key = record();
    let (id, secret) = (key.id.clone(), key.secret.clone());
    assert_eq!(
        key.verify(&signed(&id, &secret, None), 10).as_deref(),
        Ok(secret.as_str())
    );
    let verify = |key: &KeyRecord, secret: &str, now| key.verify(&signed(&id, secret, None), now).err();
    assert_eq!(verify(&key, "wrong", 10), Some(SignatureRefusal::WrongSignature));
    let with_token = key.verify(&signed(&id, &secret, Some("t")), 10);
    assert_eq!(with_token.err(), Some(SignatureRefusal::InvalidToken));
    key.expires = Some(20);
    assert_eq!(verify(&key, &secret, 19), None);
    assert_eq!(verify(&key, &secret, 20), Some(SignatureRefusal::InactiveKey));
    // A key's state is not shown to clients that do not know its secret.
    assert_eq!(verify(&key, "wrong", 20), Some(SignatureRefusal::WrongSignature));
    key.expires = None;
    key.enabled = false;
    assert_eq!(verify(&key, &secret, 10), Some(SignatureRefusal::InactiveKey));
}

#[test]
fn a_former_secret_is_good_for_its_time() {
    let mut key = record();
    let (id, old) = (key.id.clone(), key.secret.clone());
    key.rotate("new".into(), 100, 10);
    for (secret, now, expected) in [
        ("new", 100, true),
        (&old, 109, true),
        (&old, 110, false),
        ("new", 110, true),
    ] {
        assert_eq!(key.verify(&signed(&id, secret, None), now).is_ok(), expected, "{now}");
    }
    key.rotate("newer".into(), 105, 0);
    assert!(key.verify(&signed(&id, "new", None), 105).is_err());
    assert!(key.verify(&signed(&id, &old, None), 105).is_err());
}

#[test]
fn temporary_keys_are_good_with_their_token_until_their_end() {
    let mut key = record();
    let session = key.session(1000, [9; 16]);
    let ask = |key: &KeyRecord, id: &str, token: Option<&str>, now| {
        key.verify(&signed(id, &session.secret, token), now).map(drop)
    };
    let token = Some(session.token.as_str());
    assert_eq!(ask(&key, &session.id, token, 999), Ok(()));
    assert_eq!(ask(&key, &session.id, token, 1000), Err(SignatureRefusal::ExpiredToken));
    assert_eq!(ask(&key, &session.id, None, 10), Err(SignatureRefusal::InvalidToken));
    assert_eq!(
        stored_key_of(&signed(&session.id, "s", token)),
        Some(Ok(key.id.clone()))
    );
    assert_eq!(
        stored_key_of(&signed(&session.id, "s", None)),
        Some(Err(SignatureRefusal::InvalidToken))
    );
    // Of another temporary key, and with a later end.
    let other = key.session(5000, [8; 16]);
    assert_eq!(
        ask(&key, &session.id, Some(&other.token), 10),
        Err(SignatureRefusal::InvalidToken)
    );
    let (text, mac) = session.token.split_once('.').unwrap();
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(text).unwrap()).unwrap();
    let longer = format!("{}.{mac}", URL_SAFE_NO_PAD.encode(text.replace("1000", "9000")));
    assert_eq!(
        ask(&key, &session.id, Some(&longer), 10),
        Err(SignatureRefusal::InvalidToken)
    );
    let wrong = key.verify(&signed(&session.id, &key.secret, token), 10);
    assert_eq!(wrong.err(), Some(SignatureRefusal::WrongSignature));
    // It ends with its key, and with its key's secret.
    key.enabled = false;
    assert_eq!(ask(&key, &session.id, token, 10), Err(SignatureRefusal::InactiveKey));
    key.enabled = true;
    key.rotate("new".into(), 10, 5);
    assert_eq!(ask(&key, &session.id, token, 14), Ok(()));
    assert_eq!(ask(&key, &session.id, token, 15), Err(SignatureRefusal::InvalidToken));
    key.expires = Some(50);
    assert_eq!(key.session(1000, [9; 16]).expires, 50);
}

#[test]
fn limits_name_buckets_and_actions() {
    let limits = |buckets: &[&str], actions: &[&str]| KeyLimits {
        buckets: buckets.iter().map(|bucket| (*bucket).to_owned()).collect(),
        actions: actions.iter().map(|action| (*action).to_owned()).collect(),
    };
    assert!(limits(&[], &[]).allow_bucket("b") && limits(&[], &[]).allow_action("s3:GetObject", None));
    assert!(limits(&["a", "log-*"], &[]).allow_bucket("log-1"));
    assert!(!limits(&["a", "log-*"], &[]).allow_bucket("log"));
    let read = limits(&[], &["read", "s3:put*tagging"]);
    assert!(read.allow_action("s3:GetObject", Some("read")));
    assert!(read.allow_action("s3:PutObjectTagging", Some("write")));
    assert!(!read.allow_action("s3:PutObject", Some("write")));
    assert!(!limits(&[], &["write"]).allow_action("s3:PutBucketPolicy", None));
}
