//! ACLs of accounts: `X-Account-Access-Control`, JSON with the lists `admin`, `read-write`, `read-only`.
//!
//! [`AccountAcl::check`] judges what a client sends, in OpenStack's words; [`AccountAcl::parse`] reads
//! what is stored (as system metadata `core-access-control`) and takes malformed text for no ACL.

use crate::user::Identity;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use vocabulary::Fault;

const LISTS: [&str; 3] = ["admin", "read-write", "read-only"];

/// Header by which clients set and see it.
pub const HEADER: &str = "x-account-access-control";
/// Header under which it is stored.
pub const STORED_HEADER: &str = "x-account-sysmeta-core-access-control";

/// The groups that an account's owner lets in, by what they may do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AccountAcl {
    admin: Vec<String>,
    read_write: Vec<String>,
    read_only: Vec<String>,
}

/// What an account ACL grants a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// Nothing.
    None,
    /// GET and HEAD of everything.
    ReadOnly,
    /// And all verbs on containers and objects.
    ReadWrite,
    /// As the owner.
    Admin,
}

impl AccountAcl {
    /// Reads what is stored; whatever is not an object of lists of strings grants nothing.
    pub fn parse(stored: &str) -> Self {
        let json: Value = serde_json::from_str(stored).unwrap_or(Value::Null);
        let list = |name: &str| -> Vec<String> {
            let items = json.get(name).and_then(Value::as_array);
            let texts = items.into_iter().flatten().filter_map(Value::as_str);
            texts.map(Into::into).collect()
        };
        Self {
            admin: list("admin"),
            read_write: list("read-write"),
            read_only: list("read-only"),
        }
    }

    /// What is stored of a client's header: the same in one spelling. The error is the text of the 400.
    pub fn check(value: &str) -> Result<String, Fault> {
        if value.is_empty() {
            return Ok(String::new());
        }
        read(value).map_err(|problem| {
            Fault::caller(format!(
                "X-Account-Access-Control invalid: {problem}\n\nInput: {value}\n"
            ))
        })
    }

    /// The most it grants to any of the user's groups.
    pub fn grants(&self, identity: &Identity) -> Access {
        let any = |list: &[String]| list.iter().any(|group| identity.has(group));
        match () {
            () if any(&self.admin) => Access::Admin,
            () if any(&self.read_write) => Access::ReadWrite,
            () if any(&self.read_only) => Access::ReadOnly,
            () => Access::None,
        }
    }
}

fn read(value: &str) -> Result<String, Fault> {
    let Ok(Value::Object(lists)) = serde_json::from_str(value) else {
        let shown = crate::container_acl::QuotedValue(value.into());
        return Err(Fault::caller(format!("Syntax error in input ({shown})")));
    };
    problem(&lists).map_or_else(|| Ok(print(&lists)), |problem| Err(Fault::caller(problem)))
}

/// The lists in order, without spaces, in ASCII.
fn print(lists: &Map<String, Value>) -> String {
    let sorted: BTreeMap<&String, &Value> = lists.iter().collect();
    let each: Vec<String> = sorted
        .iter()
        .map(|(name, list)| format!("{}:{list}", Value::from(name.as_str())))
        .collect();
    pythonic::json_ascii(&format!("{{{}}}", each.join(",")))
}

fn problem(lists: &Map<String, Value>) -> Option<String> {
    for (key, list) in lists {
        if !LISTS.contains(&key.as_str()) {
            return Some(format!("Key {} not recognized", Value::from(key.as_str())));
        }
        let Value::Array(items) = list else {
            return Some(format!("Value for key {} must be a list", Value::from(key.as_str())));
        };
        if !items.iter().all(Value::is_string) {
            return Some(format!(
                "Elements of {} list must be strings",
                Value::from(key.as_str())
            ));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn refusals_in_openstacks_words() {
        for (value, expected) in [
            ("[]", "Syntax error in input ('[]')"),
            ("bad", "Syntax error in input ('bad')"),
            ("{\"admin\":\"a\"}", "Value for key \"admin\" must be a list"),
            ("{\"x\":[\"a\"]}", "Key \"x\" not recognized"),
            ("{\"admin\":[1]}", "Elements of \"admin\" list must be strings"),
        ] {
            let expected = format!("X-Account-Access-Control invalid: {expected}\n\nInput: {value}\n");
            assert_eq!(AccountAcl::check(value), Err(Fault::caller(expected)));
        }
        for (good, stored) in [
            ("", ""),
            (" {} ", "{}"),
            (
                r#"{"read-only":[ ],"admin":["x"], "admin":["b","a"]}"#,
                r#"{"admin":["b","a"],"read-only":[]}"#,
            ),
            (
                r#"{"admin":["\/\u00e9ü\ud83d\udc26\n\u007f"]}"#,
                r#"{"admin":["/\u00e9\u00fc\ud83d\udc26\n\u007f"]}"#,
            ),
        ] {
            assert_eq!(AccountAcl::check(good).unwrap(), stored);
            assert_eq!(AccountAcl::parse(stored), AccountAcl::parse(good));
        }
    }

    #[test]
    fn the_most_counts() {
        let acl = AccountAcl::parse("{\"admin\":[\"a:b\"],\"read-only\":[\"a\"]}");
        let who = |groups: &[&str]| Identity::new(groups.iter().map(|g| (*g).to_owned()).collect());
        assert_eq!(acl.grants(&who(&["a", "a:b"])), Access::Admin);
        assert_eq!(acl.grants(&who(&["a", "a:c"])), Access::ReadOnly);
        assert_eq!(acl.grants(&who(&["b", "b:b"])), Access::None);
        assert_eq!(AccountAcl::parse("rubbish"), AccountAcl::default());
    }

    proptest! {
        #[test]
        fn never_panics(value in "([{}\":a,\\[\\]]|admin|\\PC)*") {
            let _ = (AccountAcl::parse(&value), AccountAcl::check(&value));
        }
    }
}
