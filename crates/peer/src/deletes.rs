//! DELETES: many DELETE requests to one device in one call.
//!
//! A verb of our own: OpenStack's servers refuse it with 405, and a sender asks first with an empty list. It goes
//! to `/device/0`: each request in it names its own partition. The body is a JSON list of
//! `{"partition": 12, "path": "/account/container/object", "headers": {"x-timestamp": …}}`, all of the policy
//! that the call's own headers name; the answer is 200 with the list of statuses that the requests would have got, in
//! order.
//! Always holds: any bytes are read or refused; no more than [`MOST_DELETES`] travel together.
//! Deliberately absent: what a DELETE means and which headers it takes (the object server's).

use http::Method;
use serde_json::{Value, json};
use vocabulary::{EntityPath, Partition};

/// The verb.
pub const DELETES: &str = "DELETES";
/// The most requests in one call.
pub const MOST_DELETES: usize = 1_000;
/// The most bytes of a call's body: the longest names, and room for headers.
pub const MAX_DELETES: u64 = 8 << 20;
/// The most bytes of an answer.
pub const MAX_STATUSES: u64 = 64 << 10;

/// One of the requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OneDelete {
    /// Of the object, in its policy's ring.
    pub partition: Partition,
    /// The object.
    pub path: EntityPath,
    /// The request's headers.
    pub headers: Vec<(String, String)>,
}

/// [`DELETES`] as a method.
pub fn method() -> Method {
    // Letters only: always a method.
    Method::from_bytes(DELETES.as_bytes()).unwrap_or_default()
}

/// The body of a call.
pub fn encode<'a>(requests: impl IntoIterator<Item = &'a OneDelete>) -> Vec<u8> {
    let one = |request: &OneDelete| {
        let headers = request.headers.iter();
        let headers: serde_json::Map<String, Value> = headers.map(|(k, v)| (k.clone(), json!(v))).collect();
        json!({"partition": request.partition.0, "path": request.path.path(), "headers": headers})
    };
    let listed: Vec<Value> = requests.into_iter().map(one).collect();
    Value::Array(listed).to_string().into_bytes()
}

/// What a call asks for; `None` when its body is not of this form.
pub fn decode(body: &[u8]) -> Option<Vec<OneDelete>> {
    let listed: Vec<Value> = serde_json::from_slice(body).ok()?;
    if listed.len() > MOST_DELETES {
        return None;
    }
    listed.iter().map(one).collect()
}

fn one(item: &Value) -> Option<OneDelete> {
    let path = item.get("path")?.as_str()?.strip_prefix('/')?;
    let path = EntityPath::split(path).ok().filter(|path| path.object.is_some())?;
    let headers = item.get("headers")?.as_object()?.iter();
    let header = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
    Some(OneDelete {
        partition: u32::try_from(item.get("partition")?.as_u64()?).ok()?.into(),
        path,
        headers: headers.map(header).collect::<Option<_>>()?,
    })
}

/// The body of an answer.
pub fn encode_statuses(statuses: &[u16]) -> Vec<u8> {
    json!(statuses).to_string().into_bytes()
}

/// The statuses in an answer to `count` requests; `None` when they are not that many.
pub fn decode_statuses(body: &[u8], count: usize) -> Option<Vec<u16>> {
    let statuses: Vec<u16> = serde_json::from_slice(body).ok()?;
    (statuses.len() == count).then_some(statuses)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn delete(path: &str, headers: &[(&str, &str)]) -> OneDelete {
        OneDelete {
            partition: Partition(12),
            path: EntityPath::split(path).unwrap(),
            headers: headers.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect(),
        }
    }

    #[test]
    fn requests_and_statuses_travel() {
        let sent = vec![
            delete("a/c/o/ü \0\"", &[("x-if-delete-at", "17"), ("x-timestamp", "17.00000")]),
            delete("a/c/o", &[]),
        ];
        assert_eq!(decode(&encode(&sent)), Some(sent));
        assert_eq!(decode(b"[]"), Some(vec![]));
        assert_eq!(decode_statuses(&encode_statuses(&[204, 404]), 2), Some(vec![204, 404]));
        assert_eq!(decode_statuses(b"[204]", 2), None);
        for wrong in [
            r#"{}"#,
            r#"[1]"#,
            r#"[{"partition": 1, "path": "/a/c", "headers": {}}]"#,
            r#"[{"partition": -1, "path": "/a/c/o", "headers": {}}]"#,
            r#"[{"partition": 1, "path": "/a/c/o", "headers": {"x": 1}}]"#,
        ] {
            assert_eq!(decode(wrong.as_bytes()), None, "{wrong}");
        }
        assert_eq!(decode(&encode(vec![&delete("a/c/o", &[]); MOST_DELETES + 1])), None);
    }

    proptest! {
        #[test]
        fn anything_is_read_or_refused(body in "\\PC{0,80}") {
            let _ = decode(body.as_bytes());
            let _ = decode_statuses(body.as_bytes(), 1);
        }
    }
}
