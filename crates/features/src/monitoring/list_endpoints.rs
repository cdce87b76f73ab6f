//! `/endpoints/…`: where accounts, containers and objects lie, for programs that compute next to the data.
//!
//! Swift's `list_endpoints`; `/endpoints/v2/…` sends the headers too that storage servers need. Clients are not
//! authenticated here: it must not stand in a pipeline that strangers can reach. Always holds: only rings and
//! the cached description of a container are looked at.

use http::Method;
use http::header::{ALLOW, HeaderValue};
use peer::message::header_names::X_POLICY_INDEX;
use request_pipeline::{ClientRequest, EntityLocation, Feature, InfoSource, Next, Response, reply};
use serde_json::{Value, json};
use settings::gateway_filters::ListEndpointsSettings;
use vocabulary::header_name::title;
use vocabulary::names::quote;
use vocabulary::{EntityPath, PolicyIndex};

/// Swift's `list_endpoints`.
pub struct ListEndpoints {
    prefix: String,
}

impl ListEndpoints {
    /// With its configuration.
    pub fn new(settings: &ListEndpointsSettings) -> Self {
        let inner = settings.list_endpoints_path.trim_matches('/');
        Self {
            prefix: format!("/{inner}/"),
        }
    }
}

/// What an asking path means: which form of answer, about what, in which words.
#[derive(Debug, PartialEq)]
struct Asked<'a> {
    with_headers: bool,
    entity: EntityPath,
    /// As it will be asked of a server, with its last slash.
    path: &'a str,
}

/// Reads what follows the prefix. `Err` says what is wrong.
fn asked(rest: &str) -> Result<Asked<'_>, String> {
    let (first, behind) = rest.split_once('/').unwrap_or((rest, ""));
    let (with_headers, path) = match first {
        "v1" | "v1.0" => (false, behind),
        "v2" | "v2.0" => (true, behind),
        other if other.starts_with('v') => return Err(format!("Unsupported version '{other}'")),
        _ => (false, rest),
    };
    let entity = EntityPath::split(path).map_err(|_| "No account specified".to_owned())?;
    Ok(Asked {
        with_headers,
        entity,
        path,
    })
}

fn urls(location: &EntityLocation, path: &str) -> Vec<String> {
    let url = |(ip, port, device): &(String, u16, String)| {
        let host = if ip.contains(':') {
            format!("[{ip}]")
        } else {
            ip.clone()
        };
        format!("http://{host}:{port}/{device}/{}/{}", location.partition, quote(path))
    };
    location.places.iter().map(url).collect()
}

async fn answer(asked: &Asked<'_>, info: &dyn InfoSource) -> Value {
    let entity = &asked.entity;
    let mut policy = None;
    if let (Some(container), Some(_)) = (&entity.container, &entity.object) {
        policy = Some(info.container(&entity.account, container).await.policy);
    }
    let location = info.location(entity, policy.unwrap_or(PolicyIndex(0)));
    let urls = urls(&location, asked.path);
    if !asked.with_headers {
        return json!(urls);
    }
    let headers = match policy {
        Some(policy) => json!({title(X_POLICY_INDEX.as_str()): policy.to_string()}),
        None => json!({}),
    };
    json!({"endpoints": urls, "headers": headers})
}

#[async_trait::async_trait]
impl Feature for ListEndpoints {
    fn name(&self) -> &'static str {
        "list_endpoints"
    }

    async fn handle(&self, request: ClientRequest, next: Next) -> Response {
        let Some(rest) = request.path.strip_prefix(&self.prefix) else {
            return next.run(request).await;
        };
        if request.method != Method::GET {
            let mut response = reply::status_for(&request.method, 405);
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET"));
            return response;
        }
        match asked(rest) {
            Err(complaint) => reply::html(400, complaint),
            Ok(asked) => {
                let json = pythonic::json(&answer(&asked, next.info()).await);
                reply::with_body(200, HeaderValue::from_static("application/json"), json)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn paths_mean_what_openstack_takes_them_for() {
        for (rest, expected) in [
            ("a", Ok((false, "/a", "a"))),
            ("a/c/", Ok((false, "/a/c", "a/c/"))),
            ("v1/a/c/o/p", Ok((false, "/a/c/o/p", "a/c/o/p"))),
            ("v2/a/c/o", Ok((true, "/a/c/o", "a/c/o"))),
            ("v1/v2/c", Ok((false, "/v2/c", "v2/c"))),
            ("", Err("No account specified")),
            ("v1", Err("No account specified")),
            ("a//o", Err("No account specified")),
            ("v3/a", Err("Unsupported version 'v3'")),
            ("v/a", Err("Unsupported version 'v'")),
        ] {
            let got = asked(rest).map(|asked| (asked.with_headers, asked.entity.path(), asked.path));
            let expected = expected.map(|(headers, entity, path)| (headers, entity.to_owned(), path));
            assert_eq!(got, expected.map_err(str::to_owned), "{rest}");
        }
    }

    #[test]
    fn urls_are_as_rings_spell_addresses() {
        let location = EntityLocation {
            partition: vocabulary::Partition(7),
            places: vec![
                ("10.0.0.1".into(), 6200, "sda".into()),
                ("::1".into(), 6201, "sdb".into()),
            ],
        };
        assert_eq!(
            urls(&location, "a/c/ü x"),
            [
                "http://10.0.0.1:6200/sda/7/a/c/%C3%BC%20x",
                "http://[::1]:6201/sdb/7/a/c/%C3%BC%20x"
            ]
        );
    }

    proptest! {
        #[test]
        fn any_path_is_read_or_refused(rest in "\\PC{0,20}") {
            let _ = asked(&rest);
        }
    }
}
