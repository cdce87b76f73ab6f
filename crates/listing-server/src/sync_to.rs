//! Where a container may be synced to (`X-Container-Sync-To`): the hosts an operator allows.

use std::collections::BTreeMap;
use storage_shell::Refusal;
use vocabulary::names::is_path_of_container;

/// Refuses a target that container-sync must not send to.
pub(crate) fn check(
    value: Option<&str>,
    allowed_hosts: &[String],
    realms: impl FnOnce() -> BTreeMap<String, Vec<String>>,
) -> Result<(), Refusal> {
    let Some(value) = value.map(str::trim_end).filter(|v| !v.is_empty()) else {
        return Ok(());
    };
    if let Some(realm_path) = value.strip_prefix("//") {
        let parts: Vec<&str> = realm_path.split('/').collect();
        let [realm, cluster, _, _] = parts[..] else {
            return Err(Refusal::labelled_bad_request(format!(
                "Invalid X-Container-Sync-To format '{value}'"
            )));
        };
        return match realms().get(&realm.to_uppercase()) {
            None => Err(Refusal::labelled_bad_request(format!("No realm key for '{realm}'"))),
            Some(clusters) if clusters.contains(&cluster.to_uppercase()) => Ok(()),
            Some(_) => Err(Refusal::labelled_bad_request(format!(
                "No cluster endpoint for '{realm}' '{cluster}'"
            ))),
        };
    }
    check_url(value, allowed_hosts)
}

fn check_url(url: &str, allowed_hosts: &[String]) -> Result<(), Refusal> {
    let (scheme, rest) = url.split_once("://").unwrap_or_else(|| match url.split_once(':') {
        Some((scheme, _)) if scheme.bytes().all(|b| b.is_ascii_alphanumeric()) => (scheme, ""),
        _ => ("", url),
    });
    let scheme = scheme.to_ascii_lowercase();
    if scheme != "http" && scheme != "https" {
        return Err(Refusal::labelled_bad_request(format!(
            "Invalid scheme '{scheme}' in X-Container-Sync-To, must be \"//\", \"http\", or \"https\"."
        )));
    }
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    if !path.starts_with('/') {
        return Err(Refusal::labelled_bad_request("Path required in X-Container-Sync-To"));
    }
    if path.contains(['?', '#', ';']) {
        let why = "Params, queries, and fragments not allowed in X-Container-Sync-To";
        return Err(Refusal::labelled_bad_request(why));
    }
    let host = host_of(authority);
    if !allowed_hosts.contains(&host) {
        return Err(Refusal::labelled_bad_request(format!(
            "Invalid host '{host}' in X-Container-Sync-To"
        )));
    }
    // Other paths lead to storage servers, which ask for no password.
    match is_path_of_container(path.trim_end_matches('/')) {
        true => Ok(()),
        false => Err(Refusal::labelled_bad_request(format!(
            "Path '{path}' in X-Container-Sync-To is not /v1/ACCOUNT/CONTAINER"
        ))),
    }
}

/// Without user, password and port, in lower case.
fn host_of(authority: &str) -> String {
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = match host.strip_prefix('[') {
        Some(bracketed) => bracketed.split_once(']').map_or(bracketed, |(host, _)| host),
        None => host.split_once(':').map_or(host, |(host, _)| host),
    };
    host.to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_allowed_hosts_by_http() {
        let allowed = ["127.0.0.1".to_owned(), "::1".to_owned()];
        let realms = || [("US".to_owned(), vec!["DFW1".to_owned()])].into();
        let table = [
            ("", true),
            ("http://127.0.0.1/v1/a/c", true),
            ("https://u:p@127.0.0.1:8080/v1/a/c", true),
            ("http://[::1]:80/v1/a/c", true),
            ("http://127.0.0.1", false),
            ("http://127.0.0.1/v1/a/c?x", false),
            ("http://1.2.3.4/v1/a/c", false),
            ("http://127.0.0.1:6200/sda1", false),
            ("ftp://127.0.0.1/v1/a/c", false),
            ("//realm/cluster/a/c", false),
            ("//us/DFW1/a/c", true),
            ("//US/other/a/c", false),
            ("//us/dfw1/a", false),
            ("//x/y", false),
            ("127.0.0.1/v1", false),
        ];
        for (value, fine) in table {
            assert_eq!(check(Some(value), &allowed, realms).is_ok(), fine, "{value}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(value in "\\PC*") {
            let _ = check(Some(&value), &[], BTreeMap::new);
        }
    }
}
