//! Every expected text was printed by OpenStack Swift 2.38.3 for the same rows, but for the characters that XML cannot
//! have, which are U+FFFD here, and carriage returns in text, which are escaped.

use super::*;
use proptest::prelude::*;
use std::time::{Duration, Instant};

const OBJECTS: &str = r#"[{"bytes": 1, "hash": "h", "name": "a\u0001\u0080\ud7ff\ufffe&<>\"'\r\n\t\u00e9",
    "content_type": "te<x>&t/\"", "last_modified": "2020", "symlink_path": "/v1/x"}, {"subdir": "a/<\u0002\"&\n'/"}]"#;

#[test]
fn containers_as_openstack_shows_them() {
    assert_eq!(
        plain(OBJECTS.as_bytes(), false).unwrap(),
        "a\u{1}\u{80}\u{d7ff}\u{fffe}&<>\"'\r\n\té\na/<\u{2}\"&\n'/\n"
    );
    assert_eq!(
        container_xml(OBJECTS.as_bytes(), "c", false).unwrap(),
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<container name=\"c\"><object>\
         <name>a\u{fffd}\u{80}\u{d7ff}\u{fffd}&amp;&lt;&gt;\"'&#13;\n\té</name><hash>h</hash><bytes>1</bytes>\
         <content_type>te&lt;x&gt;&amp;t/\"</content_type><last_modified>2020</last_modified></object>\
         <subdir name=\"a/&lt;\u{fffd}&quot;&amp;&#10;'/\"><name>a/&lt;\u{fffd}\"&amp;\n'/</name></subdir></container>"
    );
    assert_eq!(
        container_xml(b"[]", "b\"<&>\n\t'\ré\u{1}\u{7f}", false).unwrap(),
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <container name=\"b&quot;&lt;&amp;&gt;&#10;&#09;'&#13;é\u{fffd}\u{7f}\" />"
    );
    let odd = br#"[{"name":"x","bytes":1.5,"hash":-1,"content_type":true,"last_modified":""}]"#;
    assert_eq!(
        container_xml(odd, "c", false).unwrap(),
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<container name=\"c\"><object><name>x</name><hash>-1</hash>\
         <bytes>1.5</bytes><content_type>True</content_type><last_modified /></object></container>"
    );
}

#[test]
fn accounts_as_openstack_shows_them() {
    let rows = r#"[{"name": "\u00e9/\u001f\u007f\"\\", "bytes": 1, "count": 3, "last_modified": "l"},
        {"name": "x", "bytes": 0, "count": 0, "last_modified": "", "storage_policy": "gold"},
        {"subdir": "<x\u0001&\"'\n"}]"#;
    assert_eq!(
        account_xml(rows.as_bytes(), "acé\"<'\u{1}\n", false).unwrap(),
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<account name=\"acé&quot;&lt;'\u{fffd}&#10;\">\n\
         <container><name>é/\u{fffd}\u{7f}\"\\</name><count>3</count><bytes>1</bytes><last_modified>l</last_modified></container>\n\
         <container><name>x</name><count>0</count><bytes>0</bytes><last_modified /><storage_policy>gold</storage_policy></container>\n\
         <subdir name=\"&lt;x\u{fffd}&amp;&quot;'&#10;\" />\n</account>"
    );
    let empty = account_xml(b"[]", "a", false).unwrap();
    assert_eq!(
        empty,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<account name=\"a\">\n</account>"
    );
}

#[test]
fn names_of_swifts_own_are_left_out() {
    let rows =
        br#"[{"name": "o\u0000", "bytes": 1}, {"name": "\u0000o"}, {"subdir": "\u0000x"}, {"name": "x", "n": [1]}]"#;
    assert_eq!(plain(rows, false).unwrap(), "x\n");
    assert_eq!(plain(rows, true).unwrap(), "o\0\n\0o\n\0x\nx\n");
    assert_eq!(
        json_without_reserved(rows).unwrap().unwrap(),
        r#"[{"name": "x", "n": [1]}]"#
    );
    assert_eq!(json_without_reserved(br#"[{"name": "x"}]"#), Ok(None));
    let harmless = br#"[{"name": "a\\u0000"}]"#;
    assert_eq!(json_without_reserved(harmless).unwrap().unwrap().as_bytes(), harmless);
}

#[test]
fn other_json_is_refused() {
    for json in [
        "",
        "{}",
        "[1]",
        "[{}]",
        "x",
        "[{\"name\": [1]}]",
        "[{\"name\": \"a\"}",
        "[{\"name\": \"\\ud800\"}]",
    ] {
        assert_eq!(plain(json.as_bytes(), false), Err(NotRows), "{json}");
        assert_eq!(container_xml(json.as_bytes(), "c", false), Err(NotRows), "{json}");
    }
    assert_eq!(container_xml(br#"[{"name": "o"}]"#, "c", false), Err(NotRows));
    assert_eq!(
        account_xml(br#"[{"name": "o", "bytes": 0, "count": 0}]"#, "a", false),
        Err(NotRows)
    );
}

/// A guard against something quadratic, not a measurement: debug builds are slow.
#[test]
fn ten_thousand_rows_take_no_time() {
    let row = |n: usize| {
        format!(
            "{{\"bytes\": {n}, \"hash\": \"d41d8cd98f00b204e9800998ecf8427e\", \"name\": \"photos/2024/{n:08}.jpg\", \
             \"content_type\": \"application/octet-stream\", \"last_modified\": \"2023-11-14T22:13:20.123450\"}}"
        )
    };
    let json = format!("[{}]", (0..10_000).map(row).collect::<Vec<_>>().join(", "));
    let mut fastest = Duration::MAX;
    for _ in 0..10 {
        let began = Instant::now();
        let text = plain(json.as_bytes(), false).unwrap();
        let xml = container_xml(json.as_bytes(), "c", false).unwrap();
        fastest = fastest.min(began.elapsed());
        assert_eq!(text.lines().count(), 10_000);
        assert!(xml.len() > json.len());
        if fastest < Duration::from_secs(2) {
            break; // else the machine may be busy with something else
        }
    }
    assert!(fastest < Duration::from_secs(2), "{fastest:?}");
}

proptest! {
    #[test]
    fn any_bytes_are_rows_or_not(json in "[\\[\\]{}\",:a-z0-9\\\\]{0,60}", name in any::<String>()) {
        let _ = plain(json.as_bytes(), false);
        let _ = account_xml(json.as_bytes(), "a", false);
        let _ = json_without_reserved(json.as_bytes());
        let row = serde_json::json!([{"name": name}]).to_string();
        let listed = plain(row.as_bytes(), true).unwrap();
        prop_assert_eq!(listed, format!("{name}\n"));
    }
}
