//! `[filter:authtoken]` and `[filter:keystoneauth]`.
//!
//! The first are the names of keystonemiddleware, whose filter OpenStack's proxies use; the second are Swift's,
//! some of them once per reseller prefix.

use crate::declare::{Options, Scope, options};
use crate::kinds::Secret;
use crate::report::SettingsError;
use crate::reseller;
use std::path::PathBuf;
use std::time::Duration;

options! {
    /// `[filter:authtoken]`.
    pub struct AuthTokenSettings {
        /// Where clients get tokens: named in answers that ask for one; auth_url when empty.
        www_authenticate_uri: String = "",
        /// The old name of www_authenticate_uri.
        auth_uri: String = "",
        /// Keystone, with or without /v3.
        auth_url: String = "",
        /// How the gateway itself logs in: password or v3password.
        auth_type: String = "",
        /// The old name of auth_type.
        auth_plugin: String = "",
        /// The gateway's own user.
        username: String = "",
        /// The gateway's own user by id, instead of username.
        user_id: String = "",
        /// The password of the gateway's own user.
        password: Secret = "",
        /// The domain of username.
        user_domain_id: String = "",
        /// The domain of username by name.
        user_domain_name: String = "",
        /// The project in which the gateway's user has its role.
        project_name: String = "",
        /// The project by id, instead of project_name.
        project_id: String = "",
        /// The domain of project_name.
        project_domain_id: String = "",
        /// The domain of project_name by name.
        project_domain_name: String = "",
        /// The domain of user and project where none is named.
        default_domain_id: String = "",
        /// The domain of user and project by name where none is named.
        default_domain_name: String = "",
        /// Leave it to filters and ACLs behind whether a request without a good token may pass. Swift needs true.
        delay_auth_decision: bool = "false",
        /// swift.cache: share validated tokens through the pipeline's cache.
        cache: String = "",
        /// None, MAC or ENCRYPT. With the latter two tokens are not shared: each gateway keeps its own in memory.
        memcache_security_strategy: String = "None",
        /// Must be set with MAC and ENCRYPT.
        memcache_secret_key: Secret = "",
        /// Ask for the service catalogue and hand it on.
        include_service_catalog: bool = "true",
        /// Which of Keystone's endpoints validates tokens: public, internal or admin.
        interface: String = "internal",
        /// The region of that endpoint.
        region_name: String = "",
        /// Do not verify Keystone's certificate.
        insecure: bool = "false",
        /// PEM file of the authorities that Keystone's certificate may come from; the usual ones when empty.
        cafile: Option<PathBuf> = "",
        /// PEM file of the certificate shown to Keystone.
        certfile: Option<PathBuf> = "",
        /// PEM file of the key of certfile; certfile itself when empty.
        keyfile: Option<PathBuf> = "",
        /// Seconds to wait for Keystone.
        http_connect_timeout: Option<Duration> = "",
        /// How often a request that did not reach Keystone is tried again.
        http_request_max_retries: u32 = "3",
        /// Seconds a validated token is believed without asking again; negative asks every time.
        token_cache_time: i64 = "300",
        /// Roles of which a service token must have one.
        service_token_roles: Vec<String> = "service",
        /// Refuse service tokens without such a role.
        service_token_roles_required: bool = "true",
    }
}

/// Names keystonemiddleware knows besides. Memcached is that of the pipeline.
pub const AUTHTOKEN_KNOWN: &[&str] = &[
    "auth_section",
    "auth_version",
    "enforce_token_bind",
    "memcache_pool_conn_get_timeout",
    "memcache_pool_dead_retry",
    "memcache_pool_maxsize",
    "memcache_pool_socket_timeout",
    "memcache_pool_unused_timeout",
    "memcache_servers",
    "memcache_use_advanced_pool",
    "memcached_servers",
    "service_type",
    "signing_dir",
    "tenant_name",
    "trust_id",
];

impl AuthTokenSettings {
    /// What a 401 names: where tokens come from.
    pub fn where_tokens_come_from(&self) -> &str {
        let configured = [&self.www_authenticate_uri, &self.auth_uri, &self.auth_url];
        configured
            .into_iter()
            .find(|uri| !uri.is_empty())
            .map_or("", String::as_str)
    }

    /// Reads the filter's options; what the gateway cannot log in with is refused.
    pub fn of(scope: &Scope) -> Result<Self, SettingsError> {
        let settings = Self::read(scope)?;
        for name in ["auth_type", "auth_plugin"] {
            if !matches!(scope.text(name).unwrap_or(""), "" | "password" | "v3password") {
                return Err(scope.wrong(name, "password or v3password"));
            }
        }
        let (scheme, rest) = settings.auth_url.split_once("://").unwrap_or_default();
        if !matches!(scheme, "http" | "https") || rest.is_empty() {
            return Err(scope.wrong("auth_url", "the address of Keystone, like http://keystone:5000"));
        }
        if settings.username.is_empty() && settings.user_id.is_empty() {
            return Err(scope.wrong("username", "the user by which tokens are validated"));
        }
        if !matches!(settings.interface.as_str(), "public" | "internal" | "admin") {
            return Err(scope.wrong("interface", "public, internal or admin"));
        }
        let strategy = settings.memcache_security_strategy.to_ascii_lowercase();
        if !matches!(strategy.as_str(), "none" | "mac" | "encrypt") {
            return Err(scope.wrong("memcache_security_strategy", "None, MAC or ENCRYPT"));
        }
        if settings.wants_secured_cache() && settings.memcache_secret_key.0.is_empty() {
            return Err(scope.wrong("memcache_secret_key", "a key, with memcache_security_strategy"));
        }
        Ok(settings)
    }

    /// Whether what is left in memcached is to be signed or encrypted.
    pub fn wants_secured_cache(&self) -> bool {
        !self.memcache_security_strategy.eq_ignore_ascii_case("none")
    }
}

options! {
    /// Options of `[filter:keystoneauth]` as they stand in the section.
    pub struct KeystoneAuthOptions {
        /// Prefixes of the accounts that Keystone's projects have; '' is the empty one.
        reseller_prefix: String = "AUTH",
        /// Roles that own their project's accounts; <PREFIX>_operator_roles for one prefix.
        operator_roles: Vec<String> = "admin, swiftoperator",
        /// Roles that a service token must have as well; <PREFIX>_service_roles for one prefix.
        service_roles: Vec<String> = "",
        /// Roles that may read everything in their project; <PREFIX>_project_reader_roles for one prefix.
        project_reader_roles: Vec<String> = "",
        /// The role that may do anything to any account.
        reseller_admin_role: String = "ResellerAdmin",
        /// Roles that may read every account.
        system_reader_roles: Vec<String> = "",
        /// Filters in front, like tempurl, may authorise a request themselves.
        allow_overrides: bool = "true",
        /// Grant ACLs that name projects and users, where all are in the default domain.
        allow_names_in_acls: bool = "true",
        /// The domain that names in ACLs are of.
        default_domain_id: String = "default",
    }
}

/// What holds for accounts of one prefix. Roles are in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrefixRoles {
    /// With its underscore, or empty.
    pub prefix: String,
    /// Owners.
    pub operators: Vec<String>,
    /// What a service token must bring, if anything.
    pub services: Vec<String>,
    /// Readers.
    pub readers: Vec<String>,
}

/// The whole of `[filter:keystoneauth]`.
#[derive(Debug, Clone, PartialEq)]
pub struct KeystoneAuthSettings {
    /// As they stand; roles for prefixes are in `prefixes`.
    pub options: KeystoneAuthOptions,
    /// At least one.
    pub prefixes: Vec<PrefixRoles>,
}

impl KeystoneAuthSettings {
    /// Reads the filter's options.
    pub fn read(scope: &Scope) -> Result<Self, SettingsError> {
        let mut options = KeystoneAuthOptions::read(scope)?;
        options.reseller_admin_role = options.reseller_admin_role.to_lowercase();
        for role in &mut options.system_reader_roles {
            *role = role.to_lowercase();
        }
        let default = KeystoneAuthOptions::default();
        let roles = |prefix: &str, name: &str, otherwise: &[String]| match reseller::option_of(scope, prefix, name) {
            Some(list) => reseller::words(list).map(str::to_lowercase).collect(),
            None => otherwise.to_vec(),
        };
        let prefixes = reseller::prefixes(&options.reseller_prefix).into_iter();
        Ok(Self {
            prefixes: prefixes
                .map(|prefix| PrefixRoles {
                    operators: roles(&prefix, "operator_roles", &default.operator_roles),
                    services: roles(&prefix, "service_roles", &[]),
                    readers: roles(&prefix, "project_reader_roles", &[]),
                    prefix,
                })
                .collect(),
            options,
        })
    }

    /// Whether an option of the section is understood without being in the table.
    pub fn is_free_form(name: &str) -> bool {
        ["operator_roles", "service_roles", "project_reader_roles"]
            .iter()
            .any(|option| name.ends_with(option))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ini::Document;
    use std::path::Path;

    fn scope(body: &str) -> Scope {
        let document = Document::parse(Path::new("p.conf"), &format!("[filter:k]\n{body}\n")).unwrap();
        Scope::paste(&document, "filter:k").unwrap()
    }

    #[test]
    fn roles_per_prefix() {
        let settings = KeystoneAuthSettings::read(&scope(
            "reseller_prefix = AUTH, SERVICE\noperator_roles = Boss\nSERVICE_service_roles = service, Image\n\
             AUTH_project_reader_roles = r",
        ))
        .unwrap();
        let shown: Vec<_> = settings
            .prefixes
            .iter()
            .map(|p| format!("{} {:?} {:?} {:?}", p.prefix, p.operators, p.services, p.readers))
            .collect();
        assert_eq!(
            shown,
            [
                "AUTH_ [\"boss\"] [] [\"r\"]",
                "SERVICE_ [\"boss\"] [\"service\", \"image\"] []"
            ]
        );
        assert_eq!(settings.options.reseller_admin_role, "reselleradmin");
        let usual = KeystoneAuthSettings::read(&scope("operator_roles =")).unwrap();
        assert_eq!(usual.prefixes[0].operators, ["admin", "swiftoperator"]);
    }

    #[test]
    fn how_the_cache_is_secured() {
        let good = "auth_url = http://k:5000\nusername = swift\n";
        for (more, expected) in [
            ("", Ok(false)),
            ("memcache_security_strategy = none", Ok(false)),
            ("memcache_security_strategy = Mac\nmemcache_secret_key = hush", Ok(true)),
            (
                "memcache_security_strategy = ENCRYPT\nmemcache_secret_key = hush",
                Ok(true),
            ),
            ("memcache_secret_key = hush", Ok(false)),
            ("memcache_security_strategy = MAC", Err("memcache_secret_key")),
            ("memcache_security_strategy =", Err("memcache_security_strategy")),
            (
                "memcache_security_strategy = SIGN\nmemcache_secret_key = hush",
                Err("memcache_security_strategy"),
            ),
        ] {
            let found = AuthTokenSettings::of(&scope(&format!("{good}{more}")));
            let found = found.map(|settings| settings.wants_secured_cache());
            match (found, expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{more}"),
                (Err(error), Err(named)) => assert!(error.to_string().contains(named), "{error}"),
                (found, _) => panic!("{more}: {found:?}"),
            }
        }
    }

    #[test]
    fn what_cannot_log_in_is_refused() {
        let good = "auth_url = http://k:5000\nusername = swift\npassword = hush";
        let settings = AuthTokenSettings::of(&scope(good)).unwrap();
        assert_eq!(settings.where_tokens_come_from(), "http://k:5000");
        assert!(!format!("{settings:?}").contains("hush"));
        for (more, named) in [
            ("auth_type = v3kerberos", "auth_type"),
            ("interface = x", "interface"),
            ("auth_url = k:5000", "auth_url"),
            ("username =", "username"),
        ] {
            let name = more.split(' ').next().unwrap();
            let body: String = good
                .lines()
                .filter(|line| !line.starts_with(name))
                .collect::<Vec<_>>()
                .join("\n");
            let error = AuthTokenSettings::of(&scope(&format!("{body}\n{more}")))
                .unwrap_err()
                .to_string();
            assert!(error.contains(named) && !error.contains("hush"), "{error}");
        }
    }
}
