//! Every expectation is what OpenStack's keymaster answered to the same.

use super::*;
use proptest::prelude::*;
use serde_json::json;
use settings::declare::Scope;
use std::path::Path;

/// The root secret is 32 `r`; the one called `new`, which is active, 32 `s`.
pub(crate) fn secrets(version: u8, text: &str) -> RootSecrets {
    let text = format!(
        "[filter:k]\nencryption_root_secret = cnJycnJycnJycnJycnJycnJycnJycnJycnJycnJycnI=\nmeta_version_to_write = {version}\n{text}"
    );
    let document = settings::Document::parse(Path::new("p.conf"), &text).unwrap();
    let scope = Scope::paste(&document, "filter:k").unwrap();
    RootSecrets::new(KeymasterSettings::read(&scope).unwrap())
}

const NEW: &str =
    "encryption_root_secret_new = c3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3M=\nactive_root_secret_id = new\n";

fn entity(path: &str) -> EntityPath {
    EntityPath::split(path).unwrap()
}

/// The first bytes of a key.
fn start(key: &Key) -> String {
    vocabulary::hex::encode(&key.bytes()[..4])
}

fn shown(keys: Result<EncryptionKeys, KeyError>) -> String {
    match keys {
        Ok(keys) => {
            let object = keys.object.as_ref().map_or("-".into(), start);
            format!("{} {object} {}", start(&keys.container), keys.id.print())
        }
        Err(error) => error.to_string(),
    }
}

#[test]
fn new_data_is_encrypted_with_the_active_secret() {
    for (version, path, expected) in [
        (
            1,
            "a/c/o",
            r#"1083d8bd 8df587bb {"path": "/a/c/o", "secret_id": "new", "v": "1"}"#,
        ),
        (2, "a/c", r#"1083d8bd - {"path": "/a/c", "secret_id": "new", "v": "2"}"#),
        (
            1,
            "a/c/ü",
            r#"1083d8bd 0110930f {"path": "/a/c/\u00c3\u00bc", "secret_id": "new", "v": "1"}"#,
        ),
        (
            2,
            "a/c/ü",
            r#"1083d8bd 0110930f {"path": "/a/c/\u00c3\u00bc", "secret_id": "new", "v": "2"}"#,
        ),
        (
            3,
            "a/c/ü",
            r#"1083d8bd 0110930f {"path": "/a/c/\u00fc", "secret_id": "new", "v": "3"}"#,
        ),
        (
            1,
            "a/c//o",
            r#"1083d8bd 42797721 {"path": "/o", "secret_id": "new", "v": "1"}"#,
        ),
        (
            2,
            "a/c//o",
            r#"1083d8bd 59a3b43b {"path": "/a/c//o", "secret_id": "new", "v": "2"}"#,
        ),
        (
            1,
            "ü/c//o/",
            r#"2d1b3720 f402f82b {"path": "/o/", "secret_id": "new", "v": "1"}"#,
        ),
        (
            3,
            "ü/c//o/",
            r#"2d1b3720 39f23555 {"path": "/\u00fc/c//o/", "secret_id": "new", "v": "3"}"#,
        ),
    ] {
        assert_eq!(shown(secrets(version, NEW).current(&entity(path))), expected);
    }
    let keys = secrets(2, "").current(&entity("a/c/o"));
    assert_eq!(shown(keys), r#"175f452a 626eaacb {"path": "/a/c/o", "v": "2"}"#);
}

#[test]
fn old_data_is_decrypted_with_what_its_id_names() {
    let secrets = secrets(2, NEW);
    let named = |path: &str, id: Value| shown(secrets.named(&entity(path), &id));
    let starts = |path: &str, id: Value| named(path, id)[..17].to_owned();
    for (path, id, expected) in [
        ("a/c/o", json!({"v": "1", "path": "/a/c/o"}), "175f452a 626eaacb"),
        (
            "a/c/o",
            json!({"v": "2", "path": "/a/c/o", "secret_id": "new"}),
            "1083d8bd 8df587bb",
        ),
        (
            "a/c/o",
            json!({"v": "2", "path": "/a/c/o", "secret_id": null}),
            "175f452a 626eaacb",
        ),
        ("a/c/o", json!({}), "1083d8bd 8df587bb"),
        ("a/c/o", json!({"v": "1", "path": "/o"}), "175f452a a4111b19"),
        ("a/c/o", json!({"v": "1", "path": "/a/c//o"}), "175f452a a4111b19"),
        ("a/c//o", json!({"v": "1", "path": "/p"}), "175f452a c7af9ac0"),
        ("a/c/o", json!({"v": "2", "path": "/a/c//o"}), "175f452a 6f2861e8"),
        (
            "a/c/o",
            json!({"v": "2", "path": "/b/d/o", "x": "y"}),
            "e7a1e342 094143ef",
        ),
        ("a/c/ü", json!({"v": "3", "path": "/a/c/ü"}), "175f452a eeec35f0"),
        ("a/c/ü", json!({"v": "2", "path": "/a/c/Ã¼"}), "175f452a eeec35f0"),
        ("a/c/ü", json!({"v": "2", "path": "/a/c/ü"}), "175f452a eeec35f0"),
        ("x/y//a/c/o", json!({"v": "1", "path": "/a/c/o"}), "8549fc5f 626eaacb"),
        (
            "x/y//a/c/o",
            json!({"v": "1", "path": "/x/y//a/c/o"}),
            "8549fc5f 626eaacb",
        ),
        ("x/y/o", json!({"v": "1", "path": "/x/y/"}), "8549fc5f 91dc17c3"),
        ("x/y/o", json!({"v": "1", "path": "o"}), "8549fc5f a2ea503c"),
        ("x/y/o", json!({"v": "2", "path": "/x/y/o/"}), "8549fc5f 1e106cd0"),
        ("x/y", json!({"v": "1", "path": "/q"}), "8549fc5f - {\"path"),
        ("x/y", json!({"v": "2", "path": "/x/y/o"}), "8549fc5f - {\"path"),
    ] {
        assert_eq!(starts(path, id.clone())[..expected.len()], *expected, "{path} {id}");
    }
    for id in [
        json!({"v": "2", "path": "/q"}),
        json!({"v": "2", "path": "/a/c"}),
        json!({"v": "2", "path": "a/c/o"}),
        json!({"v": "2", "path": "/a//o"}),
        json!({"v": "1", "path": "/a/c"}),
        json!({"v": "9", "path": "/a/c/o"}),
        json!({"v": 2, "path": "/a/c/o"}),
        json!({"path": "/a/c/o"}),
        json!({"v": "2"}),
        json!("x"),
    ] {
        assert!(named("a/c/o", id.clone()).ends_with("is no key id"), "{id}");
    }
    let gone = named("a/c/o", json!({"v": "2", "path": "/a/c/o", "secret_id": "gone"}));
    assert_eq!(gone, "no root secret encryption_root_secret_gone is configured");
}

#[test]
fn conditions_are_compared_under_every_secret() {
    let secrets = secrets(2, NEW);
    let object = entity("a/c/o");
    let keys: Vec<String> = secrets.object_keys(&object).map(|key| start(&key)).collect();
    assert_eq!(keys, ["8df587bb", "626eaacb"]);
    let keys: Vec<String> = secrets.object_keys(&entity("a/c//o")).map(|key| start(&key)).collect();
    assert_eq!(keys, ["59a3b43b", "42797721", "6f2861e8", "a4111b19"]);
    assert_eq!(format!("{secrets:?}"), "RootSecrets([Some(\"new\"), None])");
    assert!(!format!("{:?}", secrets.object_keys(&object).next()).contains("141"));
}

#[test]
fn an_object_called_as_its_containers_path_is_has_its_key_in_version_1() {
    let (secrets, object) = (secrets(1, NEW), entity("a/c//a/c"));
    let current = secrets.current(&object).unwrap();
    let id: Value = serde_json::from_str(&current.id.print()).unwrap();
    assert_eq!(id["path"], "/a/c");
    let again = secrets.named(&object, &id).unwrap();
    assert!(again.object.is_some() && again.object == current.object);
}

proptest! {
    #[test]
    fn any_id_names_keys_or_none(version in "[0-4]", path in "(/|[a-cü\u{80}-\u{ff}]){0,8}", own in "[ac]/[ac](/[ac/]{1,3})?") {
        let _ = secrets(2, "").named(&entity(&own), &json!({"v": version, "path": path}));
    }

    #[test]
    fn what_is_printed_names_the_same_keys(version in 1u8..4, path in "[acü]/[ac]/[aü\u{1f426}/]{1,4}") {
        let secrets = secrets(version, NEW);
        let current = secrets.current(&entity(&path)).unwrap();
        let id: Value = serde_json::from_str(&current.id.print()).unwrap();
        let again = secrets.named(&entity(&path), &id).unwrap();
        prop_assert!(again.object == current.object && again.container == current.container && again.id == current.id);
    }
}
