//! `/metrics`: who may see it, and where.
//!
//! Always holds: a client without access to the page gets what it would get if there were none.

use super::ProcessMetricsPage;
use features::access::tempurl::ip_range;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use peer::http_server::{plain, serve};
use peer::{Body, HttpService, Response, ServerOptions};
use settings::server::ServerCommon;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use telemetry::metrics::MetricsFormat;
use tokio::sync::watch;
use world::{Listener, World};

/// Where the page is.
const PATH: &str = "/metrics";
/// Clients of a port for monitors alone.
const CLIENTS: usize = 16;
/// How long until a port that was taken is tried again: a successor waits for its predecessor.
const TRY_AGAIN: Duration = Duration::from_secs(5);
/// How long a predecessor may take to let go of the port.
const PREDECESSOR: Duration = Duration::from_secs(10);
/// Headers of those that pass on what others ask.
const PASSED_ON: [&str; 3] = ["x-forwarded-for", "x-cluster-client-ip", "forwarded"];

/// The clients that may see the page.
#[derive(Debug, Clone)]
pub enum MetricsAccess {
    /// Every client that reaches the port.
    Anybody,
    /// Clients in these networks, unless a proxy asks on behalf of another.
    From(Vec<String>),
}

impl MetricsAccess {
    fn may_see(&self, request: &http::Request<Body>, from: SocketAddr) -> bool {
        match self {
            MetricsAccess::Anybody => true,
            MetricsAccess::From(networks) => {
                let passed_on = PASSED_ON.iter().any(|name| request.headers().contains_key(*name));
                !passed_on && networks.iter().any(|network| ip_range::contains(network, from.ip()))
            }
        }
    }
}

/// A server with the page at [`PATH`].
pub struct MetricsDoor {
    /// The page itself.
    pub page: Arc<ProcessMetricsPage>,
    /// To whom.
    pub who: MetricsAccess,
    /// Answers everything else.
    pub service: Arc<dyn HttpService>,
}

#[async_trait::async_trait]
impl HttpService for MetricsDoor {
    async fn serve(&self, request: http::Request<Body>, from: SocketAddr) -> Response {
        match self.is_answered(&request, from) {
            true => answer(&self.page, format(request.headers())).await,
            false => self.service.serve(request, from).await,
        }
    }

    fn is_for_monitors(&self, request: &http::Request<Body>, from: SocketAddr) -> bool {
        self.is_answered(request, from) || self.service.is_for_monitors(request, from)
    }
}

impl MetricsDoor {
    /// Whether the page is what is asked for, by a client that may see it.
    fn is_answered(&self, request: &http::Request<Body>, from: SocketAddr) -> bool {
        let asked = request.uri().path() == PATH && matches!(*request.method(), Method::GET | Method::HEAD);
        asked && self.who.may_see(request, from)
    }
}

fn format(headers: &HeaderMap) -> MetricsFormat {
    let accept = headers.get_all(header::ACCEPT).iter();
    MetricsFormat::accepted(accept.filter_map(|value| value.to_str().ok()))
}

async fn answer(page: &Arc<ProcessMetricsPage>, format: MetricsFormat) -> Response {
    match page.page(format).await {
        Ok(page) => {
            let mut response = Response::new(Body::whole(page));
            let headers = response.headers_mut();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(format.content_type()));
            response
        }
        Err(why) => {
            tracing::error!("metrics: {why}");
            plain(
                StatusCode::SERVICE_UNAVAILABLE,
                "no figures in time; the log says more\n",
            )
        }
    }
}

/// Nothing but the page.
struct Nothing;

#[async_trait::async_trait]
impl HttpService for Nothing {
    async fn serve(&self, request: http::Request<Body>, _from: SocketAddr) -> Response {
        match request.uri().path() {
            "/healthcheck" => plain(StatusCode::OK, "OK"),
            _ => plain(StatusCode::NOT_FOUND, "the figures are at /metrics\n"),
        }
    }
}

/// Serves the page at `metrics_port`, where the configuration has one, until `shutdown` begins.
pub fn own_port(world: &World, common: &ServerCommon, page: &Arc<ProcessMetricsPage>, shutdown: watch::Receiver<bool>) {
    let Some(port) = common.metrics_port else { return };
    let (its, ip, backlog) = (world.clone(), common.metrics_ip.clone(), common.backlog);
    let door = Arc::new(MetricsDoor {
        page: page.clone(),
        who: MetricsAccess::Anybody,
        service: Arc::new(Nothing),
    });
    world.spawn(async move {
        let Some(listener) = listen(&its, &ip, port, backlog, shutdown.clone()).await else {
            return;
        };
        let options = ServerOptions {
            max_clients: CLIENTS,
            max_connections: 4 * CLIENTS,
            ..ServerOptions::default()
        };
        serve(its, listener, door, options, shutdown).await;
    });
}

/// Listens as soon as it can be done; says once what is in the way, unless it is gone after a while, as the worker
/// before this one is. `None` when the process ends first.
async fn listen(
    world: &World,
    ip: &str,
    port: u16,
    backlog: u32,
    mut shutdown: watch::Receiver<bool>,
) -> Option<Box<dyn Listener>> {
    let (began, mut reported) = (world.clock.elapsed(), false);
    loop {
        match world.network.listen(ip, port, backlog) {
            Ok(listener) => return Some(listener),
            Err(error) if !reported && world.clock.elapsed().saturating_sub(began) >= PREDECESSOR => {
                tracing::warn!("metrics_port: cannot listen on {ip}:{port} yet, and goes on trying: {error}");
                reported = true;
            }
            Err(_) => {}
        }
        let begun = async { drop(shutdown.wait_for(|begun| *begun).await) };
        if world.timeout(TRY_AGAIN, begun).await.is_ok() {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_those_named_see_the_page_and_only_for_themselves() {
        let who = MetricsAccess::From(vec!["127.0.0.1".into(), "10.1.0.0/16".into(), "::1".into()]);
        let request = |header: Option<&'static str>| {
            let mut request = http::Request::new(Body::empty());
            if let Some(header) = header {
                request
                    .headers_mut()
                    .insert(header, HeaderValue::from_static("1.2.3.4"));
            }
            request
        };
        for (from, header, may) in [
            ("127.0.0.1:1", None, true),
            ("10.1.2.3:1", None, true),
            ("[::1]:1", None, true),
            ("[::ffff:127.0.0.1]:1", None, true),
            ("10.2.0.1:1", None, false),
            ("127.0.0.1:1", Some("x-forwarded-for"), false),
            ("127.0.0.1:1", Some("x-cluster-client-ip"), false),
            ("127.0.0.1:1", Some("forwarded"), false),
        ] {
            assert_eq!(
                who.may_see(&request(header), from.parse().unwrap()),
                may,
                "{from} {header:?}"
            );
        }
        assert!(MetricsAccess::Anybody.may_see(&request(Some("forwarded")), "1.2.3.4:5".parse().unwrap()));
    }
}
