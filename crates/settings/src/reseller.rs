//! Reseller prefixes: which accounts an authenticator answers for, and options that differ between them.
//!
//! `reseller_prefix = AUTH, SERVICE` makes accounts `AUTH_…` and `SERVICE_…`; `SERVICE_require_group = x` then
//! holds for the second only, `require_group = x` for all that have none of their own.
//! Always holds: there is at least one prefix; each is empty or ends in `_`; none comes twice.

use crate::declare::Scope;

/// The prefixes a list names, in order. `''` is the empty one, as is an empty list.
pub fn prefixes(list: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for word in list.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        let prefix = match word {
            "''" => String::new(),
            word if word.ends_with('_') => word.into(),
            word => format!("{word}_"),
        };
        if !found.contains(&prefix) {
            found.push(prefix);
        }
    }
    if found.is_empty() {
        found.push(String::new());
    }
    found
}

/// What holds of an option for accounts with a prefix; an empty value says nothing.
pub fn option_of<'a>(scope: &'a Scope, prefix: &str, option: &str) -> Option<&'a str> {
    let own = match prefix {
        "" => format!("''{option}"),
        prefix => format!("{prefix}{option}"),
    };
    let value = |name: &str| scope.text(name).map(str::trim).filter(|value| !value.is_empty());
    value(&own).or_else(|| value(option))
}

/// The words of a list.
pub fn words(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_as_openstack_reads_them() {
        for (list, expected) in [
            ("", &[""][..]),
            ("AUTH, SERVICE", &["AUTH_", "SERVICE_"]),
            ("AUTH,AUTH_,B", &["AUTH_", "B_"]),
            (", A", &["A_"]),
            ("'', A_", &["", "A_"]),
        ] {
            assert_eq!(prefixes(list), expected, "{list}");
        }
    }
}
