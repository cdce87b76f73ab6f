//! How much an account may hold, in all and per storage policy, as a reseller has said.
//!
//! Swift's `account_quotas`. `X-Account-Quota-Bytes`, `-Count` and both with `-Policy-NAME` are kept as system
//! metadata (by policy index) and shown under their public names; `X-Account-Meta-Quota-Bytes` of old counts
//! where nothing newer is said.
//! Always holds: only reseller administrators set quotas, and quotas do not hold them up; what would exceed
//! one is refused, but only reported to those who may write there. While no server can tell the account's, none counts:
//! figures are late anyway, and accounts without quotas go on.

use crate::access::authorised;
use crate::limits::container_quotas::{EXCEEDED, announced, limit};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use request_pipeline::{AccountInfo, ClientRequest, Feature, Next, Response, StoredAgain, reply};
use serde_json::{Value, json};
use vocabulary::{Policies, PolicyIndex};

const OF_OLD: &str = "x-account-meta-quota-bytes";
const REMOVE_OF_OLD: &str = "x-remove-account-meta-quota-bytes";

/// Swift's `account_quotas`.
pub struct AccountQuotas {
    quotas: Vec<Quota>,
}

/// One of the quotas there are, by its header names.
struct Quota {
    public: HeaderName,
    remove: HeaderName,
    stored: HeaderName,
}

impl AccountQuotas {
    /// For these policies.
    pub fn new(policies: &Policies) -> Self {
        let mut quotas = Vec::new();
        for kind in ["bytes", "count"] {
            quotas.extend(Quota::new(kind, kind));
            for policy in policies.iter() {
                let index = format!("{kind}-policy-{}", policy.index);
                for name in policy.names() {
                    quotas.extend(Quota::new(&format!("{kind}-policy-{}", name.to_lowercase()), &index));
                }
            }
        }
        Self { quotas }
    }

    /// Turns quotas that are being set into what is stored.
    fn take(&self, request: &mut ClientRequest) -> Result<(), Response> {
        self.take_of_old(&mut request.headers);
        let (mut wrong, mut wanted) = (false, Vec::new());
        for quota in &self.quotas {
            let removed = request
                .headers
                .get(&quota.remove)
                .is_some_and(|value| !value.is_empty());
            let value = match (request.headers.get(&quota.public), removed) {
                (_, true) => HeaderValue::from_static(""),
                (Some(value), false) => value.clone(),
                (None, false) => continue,
            };
            wrong |= !value.as_bytes().trim_ascii().iter().all(u8::is_ascii_digit);
            wanted.push((quota.stored.clone(), value));
        }
        if !wanted.is_empty() && !request.is_reseller_admin {
            return Err(reply::status(403));
        }
        if wrong {
            return Err(reply::status(400));
        }
        request.headers.extend(wanted);
        Ok(())
    }

    /// The quota of old says what the newer one says, if that says nothing.
    fn take_of_old(&self, headers: &mut HeaderMap) {
        for (old, new) in [
            (OF_OLD, "x-account-quota-bytes"),
            (REMOVE_OF_OLD, "x-remove-account-quota-bytes"),
        ] {
            if let Some(value) = headers.get(old).cloned()
                && !headers.contains_key(new)
            {
                headers.insert(HeaderName::from_static(new), value);
            }
        }
    }

    fn show(&self, headers: &mut HeaderMap) {
        for quota in &self.quotas {
            if let Some(value) = headers.get(&quota.stored).filter(|value| !value.is_empty()).cloned() {
                headers.insert(quota.public.clone(), value);
            }
        }
    }
}

impl Quota {
    /// `None` for a policy whose name can stand in no header.
    fn new(name: &str, stored: &str) -> Option<Self> {
        Some(Self {
            public: format!("x-account-quota-{name}").parse().ok()?,
            remove: format!("x-remove-account-quota-{name}").parse().ok()?,
            stored: format!("x-account-sysmeta-quota-{stored}").parse().ok()?,
        })
    }
}

/// Why an object of `length` bytes in `policy` is one too many.
fn exceeded(info: &AccountInfo, policy: Option<PolicyIndex>, length: u64) -> Option<&'static str> {
    let more = info.bytes_used.saturating_add(length);
    let bytes = info.sysmeta.get("quota-bytes").or_else(|| info.meta.get("quota-bytes"));
    let over = |quota: Option<u64>, then: u64| quota.is_some_and(|most| then > most);
    if over(limit(bytes), more)
        || over(
            limit(info.sysmeta.get("quota-count")),
            info.object_count.saturating_add(1),
        )
    {
        return Some(EXCEEDED);
    }
    let policy = policy?;
    let of_policy = info.policies.get(&policy).copied().unwrap_or_default();
    let quota = |kind: &str| limit(info.sysmeta.get(&format!("quota-{kind}-policy-{policy}")));
    let over_bytes = over(quota("bytes"), of_policy.bytes_used.saturating_add(length));
    let over_count = over(quota("count"), of_policy.object_count.saturating_add(1));
    (over_bytes || over_count).then_some("Upload exceeds policy quota.")
}

#[async_trait::async_trait]
impl Feature for AccountQuotas {
    fn name(&self) -> &'static str {
        "account_quotas"
    }

    fn info(&self) -> Vec<(&'static str, Value)> {
        vec![("account_quotas", json!({}))]
    }

    fn wants(&self, request: &ClientRequest) -> bool {
        !request.reads_object()
    }

    async fn handle(&self, mut request: ClientRequest, next: Next) -> Response {
        let entity = request.entity.clone();
        let Some(entity) = entity.filter(|_| request.extensions.get::<StoredAgain>().is_none()) else {
            return next.run(request).await;
        };
        match (&entity.container, &entity.object) {
            (None, _) if request.method == Method::POST || request.method == Method::PUT => {
                if let Err(refusal) = self.take(&mut request) {
                    return refusal;
                }
            }
            (None, _) if request.method == Method::GET || request.method == Method::HEAD => {
                let mut response = next.run(request).await;
                self.show(response.headers_mut());
                return response;
            }
            (Some(container), Some(_)) if request.method == Method::PUT && !request.is_reseller_admin => {
                let info = next.info().account(&entity.account).await;
                if info.exists()
                    && (info.sysmeta.keys().any(|key| key.starts_with("quota-"))
                        || info.meta.contains_key("quota-bytes"))
                {
                    let container = next.info().container(&entity.account, container).await;
                    let policy = container.exists().then_some(container.policy);
                    if let Some(complaint) = exceeded(&info, policy, announced(&request)) {
                        let refusal = reply::html(413, complaint.into());
                        return authorised::refuse_write(&request, next.info(), refusal).await;
                    }
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
    use crate::testing::{Answer, ask, request, shown_headers, with_headers};
    use request_pipeline::PolicyUse;
    use vocabulary::Policy;

    fn quotas() -> AccountQuotas {
        let policies = vec![Policy::replication(0, "Nulo"), Policy::replication(1, "unu")];
        AccountQuotas::new(&Policies::new(policies, Some(PolicyIndex(0))).unwrap())
    }

    async fn set(reseller: bool, headers: &[(&'static str, &str)]) -> (u16, String) {
        let mut asked = with_headers(request("POST", "/v1/a"), headers);
        asked.is_reseller_admin = reseller;
        let core = Answer::new(|request| {
            let stored = request
                .headers
                .iter()
                .filter(|(name, _)| name.as_str().contains("sysmeta"));
            let stored: Vec<String> = stored.map(|(n, v)| format!("{n}={}", v.to_str().unwrap())).collect();
            reply::html(204, stored.join(" "))
        });
        let answer = ask(quotas(), asked, core).await;
        let body = answer.body().as_whole().unwrap();
        (answer.status().as_u16(), String::from_utf8_lossy(&body).into_owned())
    }

    #[tokio::test]
    async fn resellers_set_quotas() {
        for (header, value, expected) in [
            ("x-account-quota-bytes", "100", "x-account-sysmeta-quota-bytes=100"),
            ("x-account-meta-quota-bytes", "100", "x-account-sysmeta-quota-bytes=100"),
            (
                "x-account-quota-bytes-policy-nulo",
                "100",
                "x-account-sysmeta-quota-bytes-policy-0=100",
            ),
            (
                "x-account-quota-count-policy-unu",
                "",
                "x-account-sysmeta-quota-count-policy-1=",
            ),
            ("x-remove-account-quota-bytes", "x", "x-account-sysmeta-quota-bytes="),
            (
                "x-remove-account-meta-quota-bytes",
                "x",
                "x-account-sysmeta-quota-bytes=",
            ),
        ] {
            assert_eq!(set(true, &[(header, value)]).await, (204, expected.into()));
            assert_eq!(set(false, &[(header, value)]).await.0, 403, "{header}");
        }
        assert_eq!(set(true, &[("x-account-quota-count", "abc")]).await.0, 400);
        assert_eq!(
            set(false, &[("x-account-quota-bytes-policy-nope", "abc")]).await,
            (204, String::new())
        );
        let both = [("x-account-quota-bytes", "1"), ("x-account-meta-quota-bytes", "2")];
        assert_eq!(set(true, &both).await.1, "x-account-sysmeta-quota-bytes=1");
    }

    #[tokio::test]
    async fn quotas_are_shown_by_their_public_names() {
        let core = Answer::new(|_| {
            let mut response = reply::html(204, String::new());
            for (name, value) in [("count", "7"), ("bytes", ""), ("bytes-policy-1", "8")] {
                let name: HeaderName = format!("x-account-sysmeta-quota-{name}").parse().unwrap();
                response.headers_mut().insert(name, value.parse().unwrap());
            }
            response
        });
        let shown = shown_headers(&ask(quotas(), request("HEAD", "/v1/a"), core).await);
        let shown: Vec<_> = shown
            .iter()
            .filter(|line| line.starts_with("x-account-quota"))
            .collect();
        assert_eq!(
            shown,
            ["x-account-quota-bytes-policy-unu: 8", "x-account-quota-count: 7"]
        );
    }

    #[test]
    fn quotas_hold() {
        let info = |meta: &[(&str, &str)], sysmeta: &[(&str, &str)]| AccountInfo {
            bytes_used: 1000,
            object_count: 10,
            policies: [(
                PolicyIndex(1),
                PolicyUse {
                    bytes_used: 100,
                    object_count: 5,
                    ..PolicyUse::default()
                },
            )]
            .into(),
            meta: meta.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
            sysmeta: sysmeta
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect(),
            ..AccountInfo::default()
        };
        let verdict = |info: &AccountInfo| exceeded(info, Some(PolicyIndex(1)), 50);
        for (name, most, complaint) in [
            ("quota-bytes", 1050, EXCEEDED),
            ("quota-count", 11, EXCEEDED),
            ("quota-bytes-policy-1", 150, "Upload exceeds policy quota."),
            ("quota-count-policy-1", 6, "Upload exceeds policy quota."),
        ] {
            assert_eq!(verdict(&info(&[], &[(name, &most.to_string())])), None, "{name}");
            assert_eq!(
                verdict(&info(&[], &[(name, &(most - 1).to_string())])),
                Some(complaint),
                "{name}"
            );
        }
        assert_eq!(verdict(&info(&[("quota-bytes", "0")], &[])), Some(EXCEEDED));
        assert_eq!(
            verdict(&info(&[("quota-bytes", "0")], &[("quota-bytes", "9999")])),
            None
        );
        assert_eq!(
            verdict(&info(&[], &[("quota-bytes", "rubbish"), ("quota-count-policy-0", "0")])),
            None
        );
    }
}
