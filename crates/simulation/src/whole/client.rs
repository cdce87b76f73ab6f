//! Clients of a whole cluster: they send requests to a gateway and report the replies to the run.

use super::names::{ACCOUNT, body, container, object};
use super::plan::WholeRequest;
use crate::client::set;
use crate::cluster::SimCluster;
use crate::sent_times::NUMBER;
use crate::topology::POLICIES;
use http::Method;
use http::header::{CONTENT_LENGTH, HeaderName, HeaderValue};
use parking_lot::Mutex;
use peer::message::header_names::X_DELETE_AFTER;
use peer::{Body, HttpService};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

const STORAGE_POLICY: HeaderName = HeaderName::from_static("x-storage-policy");

/// Number of the write, status.
pub(super) type WholeReplies = Arc<Mutex<Vec<(usize, u16)>>>;

/// Begins a request, unless the gateway is dead.
pub(super) fn ask(
    cluster: &SimCluster,
    node: usize,
    number: usize,
    (of, ask): (usize, WholeRequest),
    replies: &WholeReplies,
) {
    let Some(process) = &cluster.nodes[node].process else {
        return;
    };
    let (gateway, replies) = (process.gateway.clone(), replies.clone());
    let request = request(number, of, ask);
    let asking = async move {
        let from = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        let response = gateway.serve(request, from).await;
        replies.lock().push((number, response.status().as_u16()));
    };
    cluster.executor.spawn(process.home, Box::pin(asking));
}

fn request(number: usize, of: usize, ask: WholeRequest) -> http::Request<Body> {
    let name = match ask {
        WholeRequest::Put { name, .. } | WholeRequest::Delete { name } => format!("/{}", object(name)),
        _ => String::new(),
    };
    let content = match ask {
        WholeRequest::Put { .. } => body(number),
        _ => String::new(),
    };
    let length = content.len();
    let mut request = http::Request::new(match length {
        0 => Body::empty(),
        _ => Body::whole(content),
    });
    *request.method_mut() = match ask {
        WholeRequest::Put { .. } | WholeRequest::MakeContainer { .. } => Method::PUT,
        WholeRequest::Delete { .. } | WholeRequest::DeleteContainer => Method::DELETE,
    };
    // Letters, digits and slashes only: always a path.
    *request.uri_mut() = format!("/v1/{ACCOUNT}/{}{name}", container(of))
        .parse()
        .unwrap_or_default();
    let headers = request.headers_mut();
    headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    match ask {
        WholeRequest::MakeContainer { policy } => set(headers, STORAGE_POLICY, POLICIES[policy]),
        WholeRequest::DeleteContainer => {}
        WholeRequest::Put { expires, .. } => {
            set(headers, HeaderName::from_static(NUMBER), &number.to_string());
            if let Some(seconds) = expires {
                set(headers, X_DELETE_AFTER, &seconds.to_string());
            }
        }
        WholeRequest::Delete { .. } => set(headers, HeaderName::from_static(NUMBER), &number.to_string()),
    }
    request
}
