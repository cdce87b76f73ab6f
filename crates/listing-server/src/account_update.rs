//! The rows that an account gets of a container that came, changed or went.
//!
//! Sent to the account servers that the gateway names, each once. What they do not take is made up
//! for by the container updater, for the container remembers what it last reported.

use crate::request::ListingRequest;
use crate::state::ListingServerState;
use futures_util::future::join_all;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use listing_engine::Info;
use peer::{RawCall, Target, Timeouts};
use std::sync::Arc;
use storage_shell::Refusal;
use vocabulary::{PolicyIndex, Timestamp};

/// What the account keeps of a container.
pub(crate) struct ContainerFigures {
    put: Timestamp,
    delete: Timestamp,
    objects: u64,
    bytes: u64,
    pub(crate) policy: PolicyIndex,
}

impl ContainerFigures {
    pub(crate) fn of(info: &Info) -> Self {
        Self {
            put: info.put_timestamp,
            delete: info.delete_timestamp,
            objects: info.object_count,
            bytes: info.bytes_used,
            policy: info.policy,
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
struct AccountNode {
    ip: String,
    port: u16,
    device: String,
}

/// The account servers that get the row.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AccountUpdate {
    nodes: Vec<AccountNode>,
    partition: u32,
}

impl AccountUpdate {
    /// The gateway's `X-Account-Host`, `-Device` and `-Partition`; none when they are missing.
    pub(crate) fn from_request(request: &ListingRequest) -> Result<Self, Refusal> {
        let text = |name| request.text(name).unwrap_or_default();
        Self::new(
            text("x-account-host"),
            text("x-account-device"),
            text("x-account-partition"),
        )
        .ok_or(Refusal::Page(StatusCode::BAD_REQUEST))
    }

    fn new(hosts: &str, devices: &str, partition: &str) -> Option<Self> {
        let none = Self {
            nodes: Vec::new(),
            partition: 0,
        };
        if hosts.is_empty() || partition.is_empty() {
            return Some(none);
        }
        let hosts: Vec<&str> = hosts.split(',').map(str::trim).collect();
        let devices: Vec<&str> = devices.split(',').map(str::trim).collect();
        if hosts.len() != devices.len() {
            tracing::error!("{} account hosts but {} devices", hosts.len(), devices.len());
            return None;
        }
        let node = |(host, device): (&&str, &&str)| {
            let (ip, port) = host.rsplit_once(':')?;
            Some(AccountNode {
                ip: ip.to_owned(),
                port: port.parse().ok()?,
                device: (!device.is_empty()).then(|| (*device).to_owned())?,
            })
        };
        Some(Self {
            nodes: hosts.iter().zip(&devices).map(node).collect::<Option<_>>()?,
            partition: partition.trim().parse().ok()?,
        })
    }

    /// Sends it to all at once; 404 when every one of them answers that there is no such account.
    pub(crate) async fn send(
        self,
        state: &ListingServerState,
        request: &ListingRequest,
        figures: &ContainerFigures,
    ) -> Result<(), Refusal> {
        let Some(peers) = state.peers.get().filter(|_| !self.nodes.is_empty()) else {
            return Ok(());
        };
        let timeouts = Timeouts {
            connect: state.options.conn_timeout,
            response: state.options.node_timeout,
        };
        let path = Arc::new(vocabulary::EntityPath::account(request.account()).with_container(request.container()));
        let headers = headers(request, figures);
        let calls = self.nodes.iter().map(|node| {
            let target = Target {
                device: node.device.as_str().into(),
                partition: vocabulary::Partition(self.partition),
                path: path.clone(),
            };
            let call = RawCall::new(Method::PUT, target, headers.clone());
            async move {
                let answer = peers.send(&node.ip, node.port, call, timeouts).await;
                let error = match &answer {
                    Ok(response) if response.status().is_success() => return StatusCode::OK,
                    Ok(response) => response.status().to_string(),
                    Err(error) => error.to_string(),
                };
                tracing::warn!(
                    "account server {}:{}/{} did not take the update of {}: {error}; the updater will try again",
                    node.ip,
                    node.port,
                    node.device,
                    request.path.path()
                );
                answer.map_or(StatusCode::SERVICE_UNAVAILABLE, |response| response.status())
            }
        });
        let statuses = join_all(calls).await;
        match statuses.iter().all(|status| *status == StatusCode::NOT_FOUND) {
            true => Err(Refusal::not_found(None)),
            false => Ok(()),
        }
    }
}

fn headers(request: &ListingRequest, figures: &ContainerFigures) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(10);
    let mut set = |name: &'static str, value: &str| {
        if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
            headers.insert(HeaderName::from_static(name), value);
        }
    };
    let spell = |time: Timestamp| match time == Timestamp::ZERO {
        true => "0".to_owned(),
        false => time.internal(),
    };
    let host = request.text("host").unwrap_or("localhost");
    set("x-put-timestamp", &spell(figures.put));
    set("x-delete-timestamp", &spell(figures.delete));
    set("x-object-count", &figures.objects.to_string());
    set("x-bytes-used", &figures.bytes.to_string());
    set("x-backend-storage-policy-index", &figures.policy.to_string());
    set("x-trans-id", request.text("x-trans-id").unwrap_or("-"));
    set("user-agent", &format!("container-server {}", std::process::id()));
    set(
        "referer",
        &format!("{} http://{host}{}", request.method, request.url_path()),
    );
    // An account server of ours or of OpenStack's needs a timestamp only to create what is missing.
    if let Some(timestamp) = request.text("x-timestamp") {
        set("x-timestamp", timestamp);
    }
    if request
        .text("x-account-override-deleted")
        .is_some_and(|v| v.eq_ignore_ascii_case("yes"))
    {
        set("x-account-override-deleted", "yes");
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lists_belong_together() {
        let two = AccountUpdate::new("10.0.0.1:6202, fe80::1:6202", "sda,sdb", "7").unwrap();
        assert_eq!(
            (two.nodes.len(), two.nodes[1].ip.as_str(), two.partition),
            (2, "fe80::1", 7)
        );
        assert!(AccountUpdate::new("", "", "").unwrap().nodes.is_empty());
        for (hosts, devices, partition) in [("a:1,b:1", "sda", "1"), ("rubbish", "sda", "1"), ("a:1", "sda", "x")] {
            assert_eq!(
                AccountUpdate::new(hosts, devices, partition),
                None,
                "{hosts} {devices} {partition}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_lists_are_read_or_refused(hosts in "[\\PC,:]{0,40}", devices in "[\\PC,]{0,40}", partition in "\\PC{0,12}") {
            let _ = AccountUpdate::new(&hosts, &devices, &partition);
        }
    }
}
