//! DELETES: many DELETE requests to one device in one call.
//!
//! A verb of our own: OpenStack's servers refuse it with 405, and a sender asks first with an empty list. It goes
//! to `/device/0`: each request in it names its own partition. The body is a JSON list of
//! `{"partition": 12, "path": "/account/container/object", "headers": {"x-timestamp": …}}`, all of the policy
//! that the call's own headers name; the answer is 200 with the list of statuses that the requests would have got, in
//! order. `{"check": [ … ]}` changes nothing and asks only what each request would be answered: a list of
//! `[204, "1795197314.12346"]`, the status and the time of the tombstone that would be left, or `null`. Earlier servers
//! refuse that body (400), rather than delete at once.
//! Always holds: any bytes are read or refused; no more than [`MOST_DELETES`] travel together.
//! Deliberately absent: what a DELETE means and which headers it takes (the object server's).

use http::Method;
use serde_json::{Value, json};
use vocabulary::{EntityPath, Partition, Timestamp};

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

/// What a call asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeleteList {
    /// Nothing is to be changed.
    pub only_checks: bool,
    /// The requests.
    pub requests: Vec<OneDelete>,
}

/// What a request that is only checked would come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckedDelete {
    /// Its status.
    pub status: u16,
    /// The time of the tombstone that it would leave.
    pub tombstone: Option<Timestamp>,
}

/// The field of a body that asks only what requests would be answered.
const CHECK: &str = "check";

/// [`DELETES`] as a method.
pub fn method() -> Method {
    // Letters only: always a method.
    Method::from_bytes(DELETES.as_bytes()).unwrap_or_default()
}

/// The body of a call.
pub fn encode<'a>(requests: impl IntoIterator<Item = &'a OneDelete>) -> Vec<u8> {
    listed(requests).to_string().into_bytes()
}

/// The body of a call that changes nothing.
pub fn encode_check<'a>(requests: impl IntoIterator<Item = &'a OneDelete>) -> Vec<u8> {
    json!({CHECK: listed(requests)}).to_string().into_bytes()
}

fn listed<'a>(requests: impl IntoIterator<Item = &'a OneDelete>) -> Value {
    let one = |request: &OneDelete| {
        let headers = request.headers.iter();
        let headers: serde_json::Map<String, Value> = headers.map(|(k, v)| (k.clone(), json!(v))).collect();
        json!({"partition": request.partition.0, "path": request.path.path(), "headers": headers})
    };
    Value::Array(requests.into_iter().map(one).collect())
}

/// What a call asks for; `None` when its body is not of this form.
pub fn decode(body: &[u8]) -> Option<DeleteList> {
    let (only_checks, listed) = match serde_json::from_slice(body).ok()? {
        Value::Array(listed) => (false, listed),
        Value::Object(mut fields) => match fields.remove(CHECK)? {
            Value::Array(listed) => (true, listed),
            _ => return None,
        },
        _ => return None,
    };
    if listed.len() > MOST_DELETES {
        return None;
    }
    let requests = listed.iter().map(one).collect::<Option<_>>()?;
    Some(DeleteList { only_checks, requests })
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

/// The body of an answer to a call that changes nothing.
pub fn encode_checked(checked: &[CheckedDelete]) -> Vec<u8> {
    let one = |one: &CheckedDelete| json!([one.status, one.tombstone.map(|at| at.internal())]);
    Value::Array(checked.iter().map(one).collect()).to_string().into_bytes()
}

/// The same of `count` requests, read.
pub fn decode_checked(body: &[u8], count: usize) -> Option<Vec<CheckedDelete>> {
    let checked: Vec<(u16, Option<String>)> = serde_json::from_slice(body).ok()?;
    let one = |(status, at): &(u16, Option<String>)| {
        let tombstone = at.as_deref().map(str::parse).transpose().ok()?;
        let status = *status;
        Some(CheckedDelete { status, tombstone })
    };
    let checked: Vec<_> = checked.iter().map(one).collect::<Option<_>>()?;
    (checked.len() == count).then_some(checked)
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
        let list = |only_checks, requests| Some(DeleteList { only_checks, requests });
        assert_eq!(decode(&encode_check(&sent)), list(true, sent.clone()));
        assert_eq!(decode(&encode(&sent)), list(false, sent));
        assert_eq!(decode(b"[]"), list(false, vec![]));
        assert_eq!(decode(&encode_check([])), list(true, vec![]));
        assert_eq!(decode_statuses(&encode_statuses(&[204, 404]), 2), Some(vec![204, 404]));
        assert_eq!(decode_statuses(b"[204]", 2), None);
        for wrong in [
            r#"{}"#,
            r#"[1]"#,
            r#"{"check": 1}"#,
            r#"{"check": [1]}"#,
            r#"[{"partition": 1, "path": "/a/c", "headers": {}}]"#,
            r#"[{"partition": -1, "path": "/a/c/o", "headers": {}}]"#,
            r#"[{"partition": 1, "path": "/a/c/o", "headers": {"x": 1}}]"#,
        ] {
            assert_eq!(decode(wrong.as_bytes()), None, "{wrong}");
        }
        assert_eq!(decode(&encode(vec![&delete("a/c/o", &[]); MOST_DELETES + 1])), None);
    }

    #[test]
    fn answers_to_checks_travel() {
        let one = |status, at: Option<&str>| CheckedDelete {
            status,
            tombstone: at.map(|at| at.parse().unwrap()),
        };
        let checked = [one(204, Some("1795197314.12346_0000000000000001")), one(412, None)];
        let body = encode_checked(&checked);
        assert_eq!(decode_checked(&body, 2), Some(checked.to_vec()));
        assert_eq!(decode_checked(&body, 1), None);
        for wrong in ["[204]", r#"[[204, "x"]]"#, "[[204]]", "{}", "[[99999, null]]"] {
            assert_eq!(decode_checked(wrong.as_bytes(), 1), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn anything_is_read_or_refused(body in "\\PC{0,80}") {
            let _ = decode(body.as_bytes());
            let _ = decode_statuses(body.as_bytes(), 1);
            let _ = decode_checked(body.as_bytes(), 1);
        }
    }
}
