//! Which role may ask what of which server: one table.
//!
//! | role | account server | container server | object server |
//! |---|---|---|---|
//! | proxy | read, change, delete, rows | read, change, delete, rows | read, change, delete |
//! | upkeep | everything | everything | everything |
//! | account | read, replicate | read, delete | look, delete |
//! | container | read, rows | read, rows, replicate | read |
//! | object | – | read, rows | read, replicate |
//!
//! A certificate with several roles may what any of them may. What monitors ask (`/healthcheck`, `/recon`, `/metrics`,
//! OPTIONS) every role may. *Look* is HEAD, *read* GET and HEAD. *Change* is PUT and POST of an account, a container or
//! an object, and LOCK of an object, *delete* their DELETE (many at once: DELETES), *rows* are changes of listing rows:
//! PUT, POST and DELETE one level below what the server owns, and UPDATE; *replicate* is REPLICATE and SSYNC. An
//! unknown verb is passed on to the server for upkeep alone.
//!
//! Why a role needs what its own verbs do not show: the reaper (account) empties containers and deletes objects, once
//! it has looked whether an object lock holds them; the auditor and the updater (object) read and write container rows;
//! container sync (container) reads objects as a gateway does, which looks at account and container first.

use super::roles::{ClusterRole, ClusterRoles};
use crate::address::Address;
use crate::message::ServerKind;
use http::Method;

/// What a request asks of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Monitor,
    /// HEAD.
    Look,
    Read,
    Change,
    Delete,
    Rows,
    Replicate,
    Unknown,
}

/// The roles of who is at the other end, and the server that is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RoleGuard {
    pub(crate) roles: ClusterRoles,
    pub(crate) server: ServerKind,
}

impl RoleGuard {
    /// Whether this request may be served. A path that cannot be read is for the server to refuse.
    pub(crate) fn allows(self, method: &Method, path: &str) -> bool {
        let Ok(address) = Address::parse(method, path) else {
            return true;
        };
        let action = action(self.server, method, &address);
        self.roles.iter().any(|role| may(role, self.server, action))
    }
}

fn action(server: ServerKind, method: &Method, address: &Address) -> Action {
    let path = match address {
        Address::Plain(_) => return Action::Monitor,
        Address::Partition(_) if matches!(method.as_str(), "REPLICATE" | "SSYNC") => return Action::Replicate,
        Address::Partition(_) => return Action::Delete,
        Address::Entity(target) => &target.path,
    };
    let is_row = match server {
        ServerKind::Account => path.container.is_some(),
        ServerKind::Container => path.object.is_some(),
        ServerKind::Object => false,
    };
    match method.as_str() {
        "GET" => Action::Read,
        "HEAD" => Action::Look,
        "PUT" | "POST" | "DELETE" if is_row => Action::Rows,
        "UPDATE" => Action::Rows,
        "PUT" | "POST" => Action::Change,
        "LOCK" if server == ServerKind::Object => Action::Change,
        "DELETE" => Action::Delete,
        _ => Action::Unknown,
    }
}

/// The table.
fn may(role: ClusterRole, server: ServerKind, action: Action) -> bool {
    use Action::{Change, Delete, Look, Monitor, Read, Replicate, Rows};
    let allowed: &[Action] = match (role, server) {
        (ClusterRole::Upkeep, _) => return true,
        (ClusterRole::Proxy, ServerKind::Object) => &[Read, Change, Delete],
        (ClusterRole::Proxy, _) => &[Read, Change, Delete, Rows],
        (ClusterRole::Account, ServerKind::Account) => &[Read, Replicate],
        (ClusterRole::Account, ServerKind::Container) => &[Read, Delete],
        (ClusterRole::Account, ServerKind::Object) => &[Look, Delete],
        (ClusterRole::Container, ServerKind::Account) => &[Read, Rows],
        (ClusterRole::Container, ServerKind::Container) => &[Read, Rows, Replicate],
        (ClusterRole::Container, ServerKind::Object) => &[Read],
        (ClusterRole::Object, ServerKind::Account) => &[],
        (ClusterRole::Object, ServerKind::Container) => &[Read, Rows],
        (ClusterRole::Object, ServerKind::Object) => &[Read, Replicate],
    };
    let looks = action == Look && allowed.contains(&Read);
    action == Monitor || looks || allowed.contains(&action)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVERS: [ServerKind; 3] = [ServerKind::Account, ServerKind::Container, ServerKind::Object];

    /// Requests that stand for all, by what they are called below.
    const REQUESTS: [(&str, &str, &str); 24] = [
        ("health", "GET", "/healthcheck"),
        ("recon", "GET", "/recon/async"),
        ("options", "OPTIONS", "/d/1/a"),
        ("get-a", "GET", "/d/1/a"),
        ("head-c", "HEAD", "/d/1/a/c"),
        ("get-o", "GET", "/d/1/a/c/o"),
        ("head-o", "HEAD", "/d/1/a/c/o"),
        ("put-a", "PUT", "/d/1/a"),
        ("post-a", "POST", "/d/1/a"),
        ("delete-a", "DELETE", "/d/1/a"),
        ("put-c", "PUT", "/d/1/a/c"),
        ("post-c", "POST", "/d/1/a/c"),
        ("delete-c", "DELETE", "/d/1/a/c"),
        ("update-c", "UPDATE", "/d/1/a/c"),
        ("put-o", "PUT", "/d/1/a/c/o"),
        ("put-o-quoted", "PUT", "/d/1/a%2Fc%2Fo"),
        ("post-o", "POST", "/d/1/a/c/o"),
        ("delete-o", "DELETE", "/d/1/a/c/o"),
        ("replicate", "REPLICATE", "/d/1/abc"),
        ("ssync", "SSYNC", "/d/1"),
        ("deletes", "DELETES", "/d/0"),
        ("lock-o", "LOCK", "/d/1/a/c/o"),
        ("patch", "PATCH", "/d/1/a/c/o"),
        ("bad-path", "PUT", "/d"),
    ];

    /// Everything that is refused, of all roles, servers and requests. What is not here is allowed.
    fn refused(role: ClusterRole, server: ServerKind) -> &'static [&'static str] {
        match (role, server) {
            (ClusterRole::Upkeep, _) => &[],
            (ClusterRole::Proxy, ServerKind::Object) => &["update-c", "replicate", "ssync", "patch"],
            (ClusterRole::Proxy, _) => &["replicate", "ssync", "lock-o", "patch"],
            (ClusterRole::Account, ServerKind::Account) => &[
                "put-a",
                "post-a",
                "delete-a",
                "put-c",
                "post-c",
                "delete-c",
                "update-c",
                "put-o",
                "put-o-quoted",
                "post-o",
                "delete-o",
                "deletes",
                "lock-o",
                "patch",
            ],
            (ClusterRole::Account, ServerKind::Container) => &[
                "put-a",
                "post-a",
                "put-c",
                "post-c",
                "update-c",
                "put-o",
                "put-o-quoted",
                "post-o",
                "delete-o",
                "replicate",
                "ssync",
                "lock-o",
                "patch",
            ],
            (ClusterRole::Account, ServerKind::Object) => &[
                "get-a",
                "get-o",
                "put-a",
                "post-a",
                "put-c",
                "post-c",
                "update-c",
                "put-o",
                "put-o-quoted",
                "post-o",
                "replicate",
                "ssync",
                "lock-o",
                "patch",
            ],
            (ClusterRole::Container, ServerKind::Account) => &[
                "put-a",
                "post-a",
                "delete-a",
                "replicate",
                "ssync",
                "deletes",
                "lock-o",
                "patch",
            ],
            (ClusterRole::Container, ServerKind::Container) => &[
                "put-a", "post-a", "delete-a", "put-c", "post-c", "delete-c", "deletes", "lock-o", "patch",
            ],
            (ClusterRole::Container, ServerKind::Object) => &[
                "put-a",
                "post-a",
                "delete-a",
                "put-c",
                "post-c",
                "delete-c",
                "update-c",
                "put-o",
                "put-o-quoted",
                "post-o",
                "delete-o",
                "replicate",
                "ssync",
                "deletes",
                "lock-o",
                "patch",
            ],
            (ClusterRole::Object, ServerKind::Account) => &[
                "get-a",
                "head-c",
                "get-o",
                "head-o",
                "put-a",
                "post-a",
                "delete-a",
                "put-c",
                "post-c",
                "delete-c",
                "update-c",
                "put-o",
                "put-o-quoted",
                "post-o",
                "delete-o",
                "replicate",
                "ssync",
                "deletes",
                "lock-o",
                "patch",
            ],
            (ClusterRole::Object, ServerKind::Container) => &[
                "put-a",
                "post-a",
                "delete-a",
                "put-c",
                "post-c",
                "delete-c",
                "replicate",
                "ssync",
                "deletes",
                "lock-o",
                "patch",
            ],
            (ClusterRole::Object, ServerKind::Object) => &[
                "put-a",
                "post-a",
                "delete-a",
                "put-c",
                "post-c",
                "delete-c",
                "update-c",
                "put-o",
                "put-o-quoted",
                "post-o",
                "delete-o",
                "deletes",
                "lock-o",
                "patch",
            ],
        }
    }

    fn allows(roles: ClusterRoles, server: ServerKind, (_, method, path): (&str, &str, &str)) -> bool {
        RoleGuard { roles, server }.allows(&Method::from_bytes(method.as_bytes()).unwrap(), path)
    }

    #[test]
    fn every_role_server_and_request() {
        for role in ClusterRole::ALL {
            for server in SERVERS {
                let roles = [role].into_iter().collect();
                let found: Vec<&str> = REQUESTS
                    .into_iter()
                    .filter(|request| !allows(roles, server, *request))
                    .map(|(name, ..)| name)
                    .collect();
                assert_eq!(found, refused(role, server), "{role:?} at {server:?}");
            }
        }
    }

    #[test]
    fn several_roles_may_what_any_of_them_may() {
        for bits in 0..(1u32 << ClusterRole::ALL.len()) {
            let chosen = || {
                let all = ClusterRole::ALL.into_iter().enumerate();
                all.filter(move |(index, _)| bits & (1 << index) != 0)
                    .map(|(_, role)| role)
            };
            for server in SERVERS {
                for request in REQUESTS {
                    let any = chosen().any(|role| allows([role].into_iter().collect(), server, request));
                    let expected = any || request.0 == "bad-path";
                    assert_eq!(allows(chosen().collect(), server, request), expected, "{request:?}");
                }
            }
        }
    }
}
