//! Deleting many things of one account, a few at a time.
//!
//! For `?bulk-delete` and for `?multipart-manifest=delete` of large objects.
//! Always holds: at most `concurrency` requests are under way; each is authorised and logged by itself; a
//! container that is not empty yet is tried again as often as configured; results are in the order given.
//! Source: `doc/source/api/bulk-delete.rst` and OpenStack Swift's answers.

use crate::bulk::report::Report;
use futures_util::StreamExt;
use futures_util::stream::FuturesOrdered;
use http::header::USER_AGENT;
use http::{HeaderValue, Method};
use percent_encoding::percent_encode;
use request_pipeline::{ClientRequest, Next, reply};
use std::sync::Arc;
use std::time::Duration;
use vocabulary::names::QUOTED;
use world::Clock;

/// How things are deleted.
#[derive(Clone)]
pub struct Deleter {
    /// In the access log: `BD`, `SLO`.
    pub source: &'static str,
    /// Added to the client's `User-Agent`.
    pub agent: &'static str,
    /// Requests at the same time.
    pub concurrency: usize,
    /// Failures after which nothing more is tried.
    pub max_failures: usize,
    /// How often a container that is not empty is tried again.
    pub container_retries: u32,
    /// For the pauses between tries.
    pub clock: Arc<dyn Clock>,
}

/// Something to delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeleteTarget {
    /// `container/object` or `container`, decoded, perhaps with slashes in front; need not be UTF-8.
    pub name: Vec<u8>,
    /// It is known already that it cannot be deleted: the code, and the words of the report. 404 is counted.
    pub refused: Option<(u16, String)>,
}

impl DeleteTarget {
    /// To be deleted if it can.
    pub fn new(name: impl Into<Vec<u8>>) -> Self {
        Self {
            name: name.into(),
            refused: None,
        }
    }
}

/// What became of them.
#[derive(Debug, Default)]
pub struct BulkTally {
    /// Gone now.
    pub deleted: u64,
    /// Not there before.
    pub not_found: u64,
    /// Still there: the name, percent-encoded, and the status.
    pub failures: Vec<(String, String)>,
    /// A server failed with at least one of them.
    pub is_servers_fault: bool,
    /// Ended early, because too many failed.
    pub has_given_up: bool,
}

impl Deleter {
    /// Deletes `targets` of `account` on behalf of `request`.
    pub async fn delete(
        &self,
        request: &ClientRequest,
        next: &Next,
        account: &str,
        targets: Vec<DeleteTarget>,
    ) -> BulkTally {
        let mut tally = BulkTally::default();
        let mut targets = targets.into_iter();
        let mut under_way = FuturesOrdered::new();
        loop {
            while under_way.len() < self.concurrency.max(1)
                && let Some(target) = targets.next()
            {
                under_way.push_back(self.delete_one(request, next, account, target));
            }
            let Some((target, code, words)) = under_way.next().await else {
                break;
            };
            tally.count(&target.name, code, words);
            if tally.failures.len() >= self.max_failures {
                tally.has_given_up = true;
                break;
            }
        }
        tally
    }

    async fn delete_one(
        &self,
        request: &ClientRequest,
        next: &Next,
        account: &str,
        target: DeleteTarget,
    ) -> (DeleteTarget, u16, String) {
        if let Some((code, words)) = target.refused.clone() {
            return (target, code, words);
        }
        let code = match path_of(request, account, &target.name) {
            Some(path) => self.delete_path(request, next, &path).await,
            None => 412,
        };
        (target, code, reply::status_line(code))
    }

    async fn delete_path(&self, request: &ClientRequest, next: &Next, path: &str) -> u16 {
        let mut tries = 0;
        loop {
            let code = self.ask(request, next, path).await;
            if code != 409 || tries >= self.container_retries {
                return code;
            }
            tries += 1;
            let pause = 1.5_f64.powi(i32::try_from(tries).unwrap_or(i32::MAX)).min(3600.0);
            self.clock.sleep(Duration::from_secs_f64(pause)).await;
        }
    }

    async fn ask(&self, request: &ClientRequest, next: &Next, path: &str) -> u16 {
        let Some(mut asked) = subrequest(request, Method::DELETE, path, self.source) else {
            return 404;
        };
        add_agent(&mut asked, self.agent);
        next.clone().run(asked).await.status().as_u16()
    }
}

/// `/v1/account/name`; `None` for what no path can be.
fn path_of(request: &ClientRequest, account: &str, name: &[u8]) -> Option<String> {
    let name = std::str::from_utf8(name).ok().filter(|name| !name.contains('\0'))?;
    let version = match request.api_version.as_str() {
        "" => "v1",
        version => version,
    };
    Some(format!("/{version}/{account}/{}", name.trim_start_matches('/')))
}

/// A request of a feature for what a path names.
pub(super) fn subrequest(
    request: &ClientRequest,
    method: Method,
    path: &str,
    source: &'static str,
) -> Option<ClientRequest> {
    let entity = request.entity.as_deref().cloned()?;
    let mut asked = request.subrequest(method, entity, source);
    asked.aim_at_path(path).then_some(asked)
}

/// Says in `User-Agent` which feature asks.
pub(crate) fn add_agent(request: &mut ClientRequest, agent: &str) {
    let own = request.headers.get(USER_AGENT).map(HeaderValue::as_bytes);
    let both = [own.unwrap_or_default(), agent.as_bytes()].join(&b' ');
    if let Ok(value) = HeaderValue::from_bytes(both.trim_ascii()) {
        request.headers.insert(USER_AGENT, value);
    }
}

impl BulkTally {
    /// Counts an answer: its code, and the words for the report.
    pub(crate) fn count(&mut self, name: &[u8], code: u16, words: String) {
        match code {
            200..300 => self.deleted += 1,
            404 => self.not_found += 1,
            _ => {
                self.is_servers_fault |= code >= 500;
                self.failures.push((quote(name), words));
            }
        }
    }

    /// As a bulk delete reports it.
    pub fn report(self) -> Report {
        let (status, body) = self.verdict();
        report(&status, body, (self.deleted, self.not_found), self.failures)
    }

    fn verdict(&self) -> (String, &'static str) {
        let nothing = self.deleted == 0 && self.not_found == 0;
        match () {
            () if self.has_given_up => (reply::status_line(400), "Max delete failures exceeded"),
            () if self.is_servers_fault => (reply::status_line(502), ""),
            () if !self.failures.is_empty() => (reply::status_line(400), ""),
            () if nothing => (reply::status_line(400), "Invalid bulk delete."),
            () => (reply::status_line(200), ""),
        }
    }
}

/// The report of a delete that came to nothing.
pub fn refusal(code: u16, reason: &str) -> Report {
    report(&reply::status_line(code), reason, (0, 0), Vec::new())
}

fn report(status: &str, body: &str, (deleted, not_found): (u64, u64), errors: Vec<(String, String)>) -> Report {
    let mut report = Report::new()
        .with("Response Status", status)
        .with("Response Body", body)
        .with("Number Deleted", deleted)
        .with("Number Not Found", not_found);
    report.errors = errors;
    report
}

/// Percent-encodes a name that need not be UTF-8.
pub(super) fn quote(name: &[u8]) -> String {
    percent_encode(name, QUOTED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listings::listing_accept::Form;
    use crate::testing::{Answer, ask, request, with_headers};
    use parking_lot::Mutex;
    use request_pipeline::{Feature, Response};
    use world::clock::RealClock;

    /// Deletes what it is made of.
    struct Deletes(Deleter, Vec<DeleteTarget>);

    #[async_trait::async_trait]
    impl Feature for Deletes {
        fn name(&self) -> &'static str {
            "deletes"
        }

        async fn handle(&self, request: ClientRequest, next: Next) -> Response {
            let tally = self.0.delete(&request, &next, "a", self.1.clone()).await;
            reply::plain(200, tally.report().print(Form::Plain, "delete"))
        }
    }

    fn deleter(max_failures: usize) -> Deleter {
        Deleter {
            source: "BD",
            agent: "BulkDelete",
            concurrency: 2,
            max_failures,
            container_retries: 1,
            clock: Arc::new(RealClock::new()),
        }
    }

    async fn report_of(deleter: Deleter, names: &[&str]) -> (String, Vec<String>) {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let asked = seen.clone();
        let core = Answer::new(move |request| {
            let agent = request.header("user-agent").unwrap_or_default().to_owned();
            asked
                .lock()
                .push(format!("{} {} {agent}", request.method, request.path));
            let code = request.path.rsplit('/').next().unwrap().parse().unwrap_or(204);
            reply::status(code)
        });
        let targets = names.iter().map(|name| DeleteTarget::new(*name)).collect();
        let client = with_headers(request("POST", "/v1/a?bulk-delete"), &[("user-agent", "me")]);
        let response = ask(Deletes(deleter, targets), client, core).await;
        let text = response.body().as_whole().unwrap();
        let seen = seen.lock().clone();
        (String::from_utf8_lossy(&text).into_owned(), seen)
    }

    #[tokio::test]
    async fn results_are_counted() {
        let (text, seen) = report_of(deleter(10), &["/c/o", "c/404", "c/401", "c/x\0", "//c"]).await;
        assert_eq!(
            text,
            "Number Deleted: 2\nNumber Not Found: 1\nResponse Body: \nResponse Status: 400 Bad Request\nErrors:\n\
             c/401, 401 Unauthorized\nc/x%00, 412 Precondition Failed\n"
        );
        assert_eq!(seen[0], "DELETE /v1/a/c/o me BulkDelete");
        assert_eq!(seen.len(), 4);
        let (text, _) = report_of(deleter(10), &["c/507", "c/401"]).await;
        assert!(text.contains("Response Status: 502 Bad Gateway"), "{text}");
        let (text, _) = report_of(deleter(10), &[]).await;
        assert!(text.contains("Response Body: Invalid bulk delete."), "{text}");
    }

    #[tokio::test]
    async fn too_many_failures_end_it() {
        let (text, seen) = report_of(deleter(2), &["c/401", "c/401", "c/1", "c/2", "c/3", "c/4"]).await;
        assert!(
            text.contains("Response Body: Max delete failures exceeded\nResponse Status: 400 Bad Request"),
            "{text}"
        );
        assert!(seen.len() < 5, "{seen:?}");
    }

    #[tokio::test]
    async fn containers_are_tried_again() {
        let began = std::time::Instant::now();
        let (text, seen) = report_of(deleter(2), &["409"]).await;
        assert!(text.contains("409, 409 Conflict"), "{text}");
        assert_eq!(seen.len(), 2);
        assert!(began.elapsed() >= Duration::from_millis(1500));
    }
}
