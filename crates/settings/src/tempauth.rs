//! `[filter:tempauth]`: who exists, with which key and groups, and whose accounts are whose.
//!
//! Users are options themselves: `user_<account>_<user> = <key> [group …] [storage_url]`, or
//! `user64_` with both names in base64 when they hold underscores. Prefixes come from
//! `reseller_prefix`, each with its own `<PREFIX>_require_group`.
//! Always holds: keys appear neither in [`fmt::Debug`] nor in messages; prefixes end in `_` or are
//! empty, and there is at least one.

use crate::declare::{Options, Scope, options};
use crate::kinds::UrlScheme;
use crate::report::SettingsError;
use crate::reseller;
use base64::Engine;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use std::fmt;

options! {
    /// Options of TempAuth that are not users.
    pub struct TempAuthOptions {
        /// Path under which tokens are granted.
        auth_prefix: String = "/auth/",
        /// Seconds a token is good for.
        token_life: u64 = "86400",
        /// Filters in front, like tempurl, may authorise a request themselves.
        allow_overrides: bool = "true",
        /// Scheme of the storage URLs that are handed out.
        storage_url_scheme: UrlScheme = "default",
        /// Prefixes of the accounts that TempAuth answers for; '' is the empty one.
        reseller_prefix: String = "AUTH",
        /// Group that every request must have; <PREFIX>_require_group for accounts with one prefix.
        require_group: String = "",
    }
}

/// One prefix of account names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResellerPrefix {
    /// With its underscore: `AUTH_`, or empty.
    pub prefix: String,
    /// A group that every request to such an account must have, from either token.
    pub require_group: Option<String>,
}

/// One user.
#[derive(Clone, PartialEq, Eq)]
pub struct TempAuthUser {
    /// Before the colon.
    pub account: String,
    /// After the colon.
    pub user: String,
    /// The password.
    pub key: String,
    /// `.admin`, `.reseller_admin`, `.reseller_reader` and others, as written.
    pub groups: Vec<String>,
    /// What `X-Storage-Url` shall be; `$HOST` in it stands for scheme and host.
    pub storage_url: Option<String>,
}

impl fmt::Debug for TempAuthUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{} {:?}", self.account, self.user, self.groups)
    }
}

/// The whole of `[filter:tempauth]`.
#[derive(Debug, Clone, PartialEq)]
pub struct TempAuthSettings {
    /// What is not a user.
    pub options: TempAuthOptions,
    /// At least one; the first is that of tokens.
    pub prefixes: Vec<ResellerPrefix>,
    /// In order of account and user.
    pub users: Vec<TempAuthUser>,
}

impl TempAuthSettings {
    /// Reads the filter's options.
    pub fn read(scope: &Scope) -> Result<Self, SettingsError> {
        let options = TempAuthOptions::read(scope)?;
        if let Some((name, _)) = scope.iter().find(|(name, _)| is_fernet(name)) {
            return Err(scope.wrong(name, "no Fernet keys: tokens are kept in memcached; remove the option"));
        }
        let mut users = Vec::new();
        for (name, value) in scope.iter().filter(|(name, _)| is_user(name)) {
            users.push(read_user(name, value).map_err(|expected| scope.wrong(name, expected))?);
        }
        users.sort_by(|a, b| (&a.account, &a.user).cmp(&(&b.account, &b.user)));
        Ok(Self {
            prefixes: prefixes(scope, &options),
            options,
            users,
        })
    }

    /// Whether an option of the section is understood without being in the table.
    pub fn is_free_form(name: &str) -> bool {
        is_user(name) || name.ends_with("require_group")
    }
}

fn is_user(name: &str) -> bool {
    name.starts_with("user_") || name.starts_with("user64_")
}

fn is_fernet(name: &str) -> bool {
    name.starts_with("fernet_key_") || name == "active_fernet_key_id"
}

fn read_user(name: &str, value: &str) -> Result<TempAuthUser, &'static str> {
    let (account, user) = match name.strip_prefix("user64_") {
        Some(names) => {
            let wrong = "user64_<account>_<user> with both names in base64 without `=`";
            let (account, user) = names.split_once('_').ok_or(wrong)?;
            (decode(account).ok_or(wrong)?, decode(user).ok_or(wrong)?)
        }
        None => {
            let wrong = "a name like user_<account>_<user>; names with underscores need user64_";
            let names = name.strip_prefix("user_").and_then(|names| names.split_once('_'));
            let (account, user) = names.filter(|(_, user)| !user.contains('_')).ok_or(wrong)?;
            (account.into(), user.into())
        }
    };
    let mut words = value.split_whitespace().map(str::to_owned);
    let key = words.next().ok_or("a key, then groups, then perhaps a storage URL")?;
    let mut groups: Vec<String> = words.collect();
    let storage_url = match groups.last() {
        Some(last) if last.contains("://") || last.contains("$HOST") => groups.pop(),
        _ => None,
    };
    Ok(TempAuthUser {
        account,
        user,
        key,
        groups,
        storage_url,
    })
}

/// Base64 with or without padding, of either alphabet.
fn decode(text: &str) -> Option<String> {
    let config = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let bytes = [STANDARD, URL_SAFE]
        .iter()
        .find_map(|alphabet| GeneralPurpose::new(alphabet, config).decode(text).ok())?;
    String::from_utf8(bytes).ok()
}

fn prefixes(scope: &Scope, options: &TempAuthOptions) -> Vec<ResellerPrefix> {
    let prefixes = reseller::prefixes(&options.reseller_prefix).into_iter();
    prefixes
        .map(|prefix| ResellerPrefix {
            require_group: reseller::option_of(scope, &prefix, "require_group").map(Into::into),
            prefix,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ini::Document;
    use proptest::prelude::*;
    use std::path::Path;

    fn read(body: &str) -> Result<TempAuthSettings, SettingsError> {
        let text = format!("[filter:tempauth]\nuse = egg:swift#tempauth\n{body}\n");
        let document = Document::parse(Path::new("p.conf"), &text)?;
        TempAuthSettings::read(&Scope::paste(&document, "filter:tempauth")?)
    }

    #[test]
    fn users_as_openstack_reads_them() {
        let settings = read(
            "user_a_b = k\nuser_test_tester = testing .admin x http://x/v1/AUTH_z\n\
             user64_YV9j_dT1z = k .admin\nuser64_YWI_w7w = k\nuser__b = k http://x .admin",
        )
        .unwrap();
        let shown: Vec<_> = settings
            .users
            .iter()
            .map(|u| format!("{u:?} {:?}", u.storage_url))
            .collect();
        assert_eq!(
            shown,
            [
                ":b [\"http://x\", \".admin\"] None",
                "a:b [] None",
                "a_c:u=s [\".admin\"] None",
                "ab:ü [] None",
                "test:tester [\".admin\", \"x\"] Some(\"http://x/v1/AUTH_z\")",
            ]
        );
        assert_eq!(settings.users[1].key, "k");
    }

    #[test]
    fn refused_users_are_named_without_their_keys() {
        for body in [
            "user_a_b_c = hush",
            "user_a = hush",
            "user_ = hush",
            "user64_!_YQ = hush",
            "user_a_b =",
        ] {
            let message = read(body).unwrap_err().to_string();
            assert!(message.contains(body.split(' ').next().unwrap()), "{message}");
            assert!(!message.contains("hush"), "{message}");
        }
        assert!(
            read("fernet_key_a = x")
                .unwrap_err()
                .to_string()
                .contains("fernet_key_a")
        );
    }

    #[test]
    fn prefixes_and_their_groups() {
        let all = |body: &str| -> Vec<(String, Option<String>)> {
            let prefixes = read(body).unwrap().prefixes;
            prefixes.into_iter().map(|p| (p.prefix, p.require_group)).collect()
        };
        let pair = |p: &str, g: &str| (p.to_owned(), (!g.is_empty()).then(|| g.to_owned()));
        assert_eq!(all(""), [pair("AUTH_", "")]);
        assert_eq!(all("reseller_prefix ="), [pair("", "")]);
        assert_eq!(all("reseller_prefix = AUTH_, AUTH"), [pair("AUTH_", "")]);
        assert_eq!(
            all("reseller_prefix = AUTH, SERVICE\nSERVICE_require_group = .service\nrequire_group = x"),
            [pair("AUTH_", "x"), pair("SERVICE_", ".service")]
        );
        assert_eq!(
            all("reseller_prefix = AUTH, SERVICE\nrequire_group = x"),
            [pair("AUTH_", "x"), pair("SERVICE_", "x")]
        );
        assert_eq!(
            all("reseller_prefix = '', AUTH\n''require_group = q\nAUTH_require_group = z"),
            [pair("", "q"), pair("AUTH_", "z")]
        );
    }

    proptest! {
        #[test]
        fn never_panics(name in "(user_|user64_)[a-zA-Z0-9_+/=-]*", value in "\\PC*") {
            let _ = read_user(&name, &value);
        }
    }
}
