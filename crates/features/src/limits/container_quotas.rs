//! How much a container may hold, as its owner has said: `X-Container-Meta-Quota-Bytes` and `-Count`.
//!
//! Swift's `container_quotas`. Always holds: a quota that is set is a number; an object that would exceed one
//! is refused, but only reported to those who may write there. The container's figures are as fresh as the
//! cache of descriptions; a body without a length counts as empty until it is stored.

use crate::access::authorised;
use http::Method;
use request_pipeline::{ClientRequest, Feature, Next, Response, StoredAgain, reply};
use serde_json::{Value, json};
use vocabulary::EntityPath;

const BYTES: &str = "x-container-meta-quota-bytes";
const COUNT: &str = "x-container-meta-quota-count";
/// What both kinds of quotas say.
pub(crate) const EXCEEDED: &str = "Upload exceeds quota.";

/// Swift's `container_quotas`.
pub struct ContainerQuotas;

/// A quota's number; what is none limits nothing.
pub(crate) fn limit(text: Option<&String>) -> Option<u64> {
    let text = text?.trim();
    let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u64::MAX))
}

/// Bytes that the client says it will send.
pub(crate) fn announced(request: &ClientRequest) -> u64 {
    let length = request.header("content-length").and_then(|length| length.parse().ok());
    length.unwrap_or(0)
}

/// Bytes in a container whose objects have versions, those included: the rest of the pipeline knows.
async fn used_with_versions(request: &ClientRequest, entity: &EntityPath, next: &Next) -> Option<u64> {
    let container = entity.container.as_deref()?;
    let entity = EntityPath::account(&entity.account).with_container(container);
    let look = request.subrequest(Method::HEAD, entity, "CQ").preauthorised();
    let found = next.clone().run(look).await;
    let used = found.headers().get("x-container-bytes-used")?;
    used.to_str().ok()?.parse().ok()
}

/// The complaint about a quota that is being set and is no number.
fn complaint(request: &ClientRequest) -> Option<&'static str> {
    let is_wrong = |name: &str| {
        let value = request.headers.get(name).map(|value| value.as_bytes().trim_ascii());
        value.is_some_and(|value| !value.iter().all(u8::is_ascii_digit))
    };
    if is_wrong(BYTES) {
        return Some("Invalid bytes quota.");
    }
    is_wrong(COUNT).then_some("Invalid count quota.")
}

#[async_trait::async_trait]
impl Feature for ContainerQuotas {
    fn name(&self) -> &'static str {
        "container_quotas"
    }

    fn info(&self) -> Vec<(&'static str, Value)> {
        vec![("container_quotas", json!({}))]
    }

    fn wants(&self, request: &ClientRequest) -> bool {
        matches!(request.method.as_str(), "PUT" | "POST")
    }

    async fn handle(&self, request: ClientRequest, next: Next) -> Response {
        if request.extensions.get::<StoredAgain>().is_some() {
            return next.run(request).await;
        }
        let puts = request.method == Method::PUT;
        if !puts && request.method != Method::POST {
            return next.run(request).await;
        }
        let Some(entity) = request.entity.clone() else {
            return next.run(request).await;
        };
        match (&entity.container, &entity.object) {
            (Some(_), None) => {
                if let Some(complaint) = complaint(&request) {
                    return reply::html(400, complaint.into());
                }
            }
            (Some(container), Some(_)) if puts => {
                let info = next.info().container(&entity.account, container).await;
                let bytes = limit(info.meta.get("quota-bytes"));
                let count = limit(info.meta.get("quota-count"));
                let used = match bytes {
                    Some(_) if info.sysmeta.contains_key("versions-container") => {
                        used_with_versions(&request, &entity, &next).await
                    }
                    _ => None,
                };
                let used = used.unwrap_or(info.bytes_used);
                let more = used.saturating_add(announced(&request));
                let exceeded =
                    bytes.is_some_and(|most| more > most) || count.is_some_and(|most| info.object_count >= most);
                if info.exists() && exceeded {
                    let refusal = reply::html(413, EXCEEDED.into());
                    return authorised::refuse_write(&request, next.info(), refusal).await;
                }
            }
            _ => {}
        }
        next.run(request).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Answer, ask, request, with_headers};
    use request_pipeline::ContainerInfo;
    use std::sync::Arc;

    async fn put(method: &str, path: &str, quota: (&str, &str), headers: &[(&'static str, &str)]) -> (u16, String) {
        let core = Answer::new(|_| reply::html(201, String::new()));
        *core.container.lock().unwrap() = Arc::new(ContainerInfo {
            status: 204,
            object_count: 1,
            bytes_used: 90,
            meta: [(quota.0.to_owned(), quota.1.to_owned())].into(),
            ..ContainerInfo::default()
        });
        let answer = ask(ContainerQuotas, with_headers(request(method, path), headers), core).await;
        let body = answer.body().as_whole().unwrap();
        (answer.status().as_u16(), String::from_utf8_lossy(&body).into_owned())
    }

    #[tokio::test]
    async fn quotas_hold() {
        for (quota, length, expected) in [
            (("quota-bytes", "100"), "10", 201),
            (("quota-bytes", "100"), "11", 413),
            (("quota-bytes", "nonsense"), "11", 201),
            (("quota-bytes", "99999999999999999999999"), "11", 201),
            (("quota-count", "1"), "0", 413),
            (("quota-count", "2"), "0", 201),
        ] {
            let headers = [("content-length", length)];
            assert_eq!(put("PUT", "/v1/a/c/o", quota, &headers).await.0, expected, "{quota:?}");
            assert_eq!(put("POST", "/v1/a/c/o", quota, &headers).await.0, 201);
        }
    }

    #[tokio::test]
    async fn quotas_are_numbers() {
        for (name, value, expected) in [
            (BYTES, "abc", (400, "Invalid bytes quota.")),
            (BYTES, "-1", (400, "Invalid bytes quota.")),
            (COUNT, "1.5", (400, "Invalid count quota.")),
            (COUNT, "", (201, "")),
            (BYTES, "12", (201, "")),
        ] {
            let (status, body) = put("POST", "/v1/a/c", ("", ""), &[(name, value)]).await;
            assert_eq!((status, body.as_str()), expected, "{name} {value}");
        }
    }
}
