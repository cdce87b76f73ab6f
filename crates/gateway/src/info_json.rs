//! Account and container descriptions as OpenStack's proxies keep them in memcached.
//!
//! Observed values, e.g. `{"status": 204, "read_acl": null, …, "object_count": "3", "storage_policy": "1",
//! "cors": {…}, "meta": {…}, "sysmeta": {…}, "sharding_state": "unsharded"}`: numbers come as text or
//! as numbers. Always holds: a value that lacks the status, has one that proxies do not keep, or is no object, is
//! rubbish and ignored.

use crate::backend::header;
use http::HeaderMap;
use peer::message::header_names::{
    X_BACKEND_DELETE_TIMESTAMP, X_BACKEND_PUT_TIMESTAMP, X_BACKEND_TIMESTAMP, X_STATUS_CHANGED_AT,
};
use request_pipeline::{AccountInfo, ContainerInfo, PolicyUse};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use vocabulary::PolicyIndex;

/// Reads what any proxy stored for an account.
pub(crate) fn account_from(value: &Value) -> Option<AccountInfo> {
    let map = value.as_object()?;
    // OpenStack's proxies answer for an account that does not exist yet as if it did, and note that this way.
    let is_made_up = map.get("account_really_exists") == Some(&Value::Bool(false));
    let status = status(map)?;
    Some(AccountInfo {
        status: match is_made_up && (200..300).contains(&status) {
            true => 404,
            false => status,
        },
        object_count: number(map, "total_object_count"),
        container_count: number(map, "container_count"),
        bytes_used: number(map, "bytes"),
        policies: policies(map),
        meta: texts(map, "meta"),
        sysmeta: texts(map, "sysmeta"),
    })
}

fn policies(map: &Map<String, Value>) -> BTreeMap<PolicyIndex, PolicyUse> {
    let listed = map.get("storage_policies").and_then(Value::as_object);
    let read = |(index, value): (&String, &Value)| {
        let counts = value.as_object()?;
        let of_policy = PolicyUse {
            container_count: number(counts, "container_count"),
            object_count: number(counts, "object_count"),
            bytes_used: number(counts, "bytes"),
        };
        Some((PolicyIndex(index.parse().ok()?), of_policy))
    };
    listed.into_iter().flatten().filter_map(read).collect()
}

/// What proxies of both kinds read for an account.
pub(crate) fn account_to(info: &AccountInfo) -> Value {
    let policies: Map<String, Value> = (info.policies.iter())
        .map(|(index, of_policy)| {
            let counts = json!({
                "container_count": of_policy.container_count,
                "object_count": of_policy.object_count,
                "bytes": of_policy.bytes_used,
            });
            (index.to_string(), counts)
        })
        .collect();
    json!({
        "status": info.status,
        "container_count": info.container_count.to_string(),
        "total_object_count": info.object_count.to_string(),
        "bytes": info.bytes_used.to_string(),
        "storage_policies": policies,
        "meta": info.meta,
        "sysmeta": info.sysmeta,
        "account_really_exists": info.exists(),
    })
}

/// Reads what any proxy stored for a container.
pub(crate) fn container_from(value: &Value) -> Option<ContainerInfo> {
    let map = value.as_object()?;
    let text = |key: &str| map.get(key).and_then(Value::as_str).map(str::to_owned);
    Some(ContainerInfo {
        status: status(map)?,
        is_of_gone_account: false,
        read_acl: text("read_acl"),
        write_acl: text("write_acl"),
        policy: PolicyIndex(u32::try_from(number(map, "storage_policy")).ok()?),
        object_count: number(map, "object_count"),
        bytes_used: number(map, "bytes"),
        sync_to: text("sync_to"),
        sync_key: text("sync_key"),
        versions: text("versions"),
        sharding_state: text("sharding_state"),
        meta: texts(map, "meta"),
        sysmeta: texts(map, "sysmeta"),
    })
}

/// What proxies of both kinds read for a container; `headers` are its server's.
pub(crate) fn container_to(info: &ContainerInfo, headers: &HeaderMap) -> Value {
    let cors = |key: &str| info.meta.get(&format!("access-control-{key}")).cloned();
    let sent = |name: &str| header(headers, name).map(str::to_owned);
    json!({
        "status": info.status,
        "read_acl": info.read_acl,
        "write_acl": info.write_acl,
        "sync_to": info.sync_to,
        "sync_key": info.sync_key,
        "object_count": info.object_count.to_string(),
        "bytes": info.bytes_used.to_string(),
        "versions": info.versions,
        "storage_policy": info.policy.to_string(),
        "cors": {
            "allow_origin": cors("allow-origin"),
            "expose_headers": cors("expose-headers"),
            "max_age": cors("max-age"),
        },
        "meta": info.meta,
        "sysmeta": info.sysmeta,
        "sharding_state": info.sharding_state.as_deref().unwrap_or("unsharded"),
        "created_at": sent(X_BACKEND_TIMESTAMP.as_str()),
        "put_timestamp": sent(X_BACKEND_PUT_TIMESTAMP.as_str()),
        "delete_timestamp": sent(X_BACKEND_DELETE_TIMESTAMP.as_str()),
        "status_changed_at": sent(X_STATUS_CHANGED_AT.as_str()),
    })
}

fn status(map: &Map<String, Value>) -> Option<u16> {
    map.get("status")?
        .as_u64()
        .and_then(|status| u16::try_from(status).ok())
        .filter(|status| matches!(status, 200..=299 | 404 | 410))
}

fn number(map: &Map<String, Value>, key: &str) -> u64 {
    match map.get(key) {
        Some(Value::Number(number)) => number.as_u64().unwrap_or(0),
        Some(Value::String(text)) => text.parse().unwrap_or(0),
        _ => 0,
    }
}

fn texts(map: &Map<String, Value>, key: &str) -> BTreeMap<String, String> {
    let pairs = map.get(key).and_then(Value::as_object).into_iter().flatten();
    pairs
        .filter_map(|(k, v)| Some((k.to_lowercase(), v.as_str()?.to_owned())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an OpenStack 2.38.3 proxy stored.
    #[test]
    fn openstacks_values_are_read() {
        let value: Value = serde_json::from_str(
            r#"{"status": 204, "read_acl": ".r:*", "write_acl": null, "sync_to": "//r/c/a/b", "sync_key": "k",
            "object_count": "3", "bytes": "10", "versions": "v", "storage_policy": "1", "cors": {"allow_origin": "*"},
            "meta": {"foo": "bar"}, "sysmeta": {"versions-enabled": "x"}, "sharding_state": "unsharded"}"#,
        )
        .unwrap();
        let info = container_from(&value).unwrap();
        assert_eq!(
            (info.policy, info.object_count, info.read_acl.as_deref()),
            (PolicyIndex(1), 3, Some(".r:*"))
        );
        assert_eq!(container_from(&container_to(&info, &HeaderMap::new())), Some(info));
    }

    /// What an OpenStack 2.38.3 proxy stored after HEAD of an account without containers.
    #[test]
    fn an_account_that_openstack_answers_for_does_not_exist_yet() {
        let stored = |exists: bool| {
            json!({"status": 204, "container_count": "0", "total_object_count": "0", "bytes": "0",
                   "storage_policies": {}, "meta": {}, "sysmeta": {}, "account_really_exists": exists})
        };
        let exists = |value: &Value| account_from(value).map(|info| info.exists());
        assert_eq!(
            (exists(&stored(false)), exists(&stored(true))),
            (Some(false), Some(true))
        );
    }

    #[test]
    fn rubbish_is_ignored() {
        for rubbish in [
            "null",
            "[]",
            "7",
            "{}",
            r#"{"status": "x"}"#,
            r#"{"status": 7}"#,
            r#"{"status": 301}"#,
            r#"{"status": 503}"#,
            r#"{"status": 204, "storage_policy": 99999999999}"#,
        ] {
            let value: Value = serde_json::from_str(rubbish).unwrap();
            assert_eq!(container_from(&value), None, "{rubbish}");
        }
    }
}
