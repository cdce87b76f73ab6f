//! Bucket policies: read, kept as text, asked about one action on one resource.
//!
//! Comes in: the JSON that a client sends, or that a container's system metadata holds. Goes out: a policy whose every
//! word is understood, or the word that is not; of a request its statements that are about it, and from them whether
//! an action is denied, allowed, or not spoken of.
//! Always holds: a policy with a field, action, principal, operator or key that is not served is refused whole, so that
//! no statement is read as less than it says; a denial wins over an allowance; who asks, and under which conditions, is
//! compared once in a request, however many keys it names.
//! Source: AWS, "Policies and permissions in Amazon S3", "IAM JSON policy elements reference".

mod conditions;

use self::conditions::ConditionTest;
use super::actions::{Need, is_known};
use identity::wildcard;
use serde_json::{Map, Value};
use std::net::IpAddr;

/// Bytes of a policy as it is stored; AWS takes as many.
pub const LARGEST_POLICY: usize = 20 * 1024;
/// What resources begin with.
const RESOURCES: &str = "arn:aws:s3:::";
/// What users of IAM begin with.
const USERS: &str = "arn:aws:iam::";

/// A policy.
#[derive(Debug, Clone, PartialEq)]
pub struct BucketPolicy {
    statements: Vec<PolicyStatement>,
    text: String,
}

/// The statements of a policy that are about a request.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyOfRequest {
    statements: Vec<PolicyStatement>,
}

/// One of its statements.
#[derive(Debug, Clone, PartialEq)]
struct PolicyStatement {
    is_denial: bool,
    principals: Vec<Principal>,
    /// In lower case.
    actions: Vec<String>,
    /// The statement is about all actions but those.
    all_but: bool,
    /// `bucket` or `bucket/key`, with `*` and `?`.
    resources: Vec<String>,
    conditions: Vec<ConditionTest>,
}

/// Users that a statement is about.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Principal {
    Everybody,
    /// `account:user`.
    User(String),
    /// All users of an account.
    Account(String),
}

/// What a policy says of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyVerdict {
    /// It is denied.
    Denied,
    /// It is allowed.
    Allowed,
    /// Nothing.
    Silent,
}

/// The request that a policy is asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyFacts {
    /// `account:user`; absent without a signature.
    pub principal: Option<String>,
    /// Where it comes from.
    pub source: IpAddr,
    /// Whether it came by TLS.
    pub is_secure: bool,
    /// Seconds since 1970.
    pub now: u64,
    /// Names of condition keys in lower case, and their values.
    pub texts: Vec<(&'static str, String)>,
}

/// The first thing of a policy that is not served, for the client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PolicyProblem(String);

fn problem(text: impl Into<String>) -> PolicyProblem {
    PolicyProblem(text.into())
}

impl BucketPolicy {
    /// Reads a policy of this bucket.
    pub fn read(text: &[u8], bucket: &str) -> Result<Self, PolicyProblem> {
        if text.len() > LARGEST_POLICY {
            return Err(problem(format!(
                "Policy exceeds the maximum allowed size of {LARGEST_POLICY} bytes."
            )));
        }
        let value: Value = serde_json::from_slice(text).map_err(|_| problem("Policies must be valid JSON."))?;
        let policy = object(&value, "The policy")?;
        only(policy, &["Version", "Id", "Statement"], "the policy")?;
        match policy.get("Version").map(Value::as_str) {
            None | Some(Some("2012-10-17" | "2008-10-17")) => {}
            Some(_) => return Err(problem("Version: expected 2012-10-17 or 2008-10-17.")),
        }
        if policy.get("Id").is_some_and(|id| !id.is_string()) {
            return Err(problem("Id: expected a text."));
        }
        let statements = match policy.get("Statement") {
            Some(Value::Array(statements)) if !statements.is_empty() => statements.iter().collect(),
            Some(one @ Value::Object(_)) => vec![one],
            _ => return Err(problem("Missing required field Statement.")),
        };
        let statements = statements
            .into_iter()
            .map(|statement| read_statement(statement, bucket));
        let policy = Self {
            statements: statements.collect::<Result<_, _>>()?,
            text: in_ascii(&value.to_string()),
        };
        match policy.text.len() <= LARGEST_POLICY {
            true => Ok(policy),
            false => Err(problem(format!(
                "Policy exceeds the maximum allowed size of {LARGEST_POLICY} bytes."
            ))),
        }
    }

    /// The policy as JSON in printable ASCII on one line.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The statements about a request. Where `is_restricted`, allowances for everybody count for nothing.
    pub fn about(self, facts: &PolicyFacts, is_restricted: bool) -> PolicyOfRequest {
        let mut statements = self.statements;
        statements.retain(|statement| statement.is_about(facts, is_restricted));
        PolicyOfRequest { statements }
    }

    /// Whether it allows something to everybody, from anywhere.
    pub fn is_public(&self) -> bool {
        self.statements.iter().any(|statement| {
            !statement.is_denial
                && statement.principals.contains(&Principal::Everybody)
                && !statement.conditions.iter().any(ConditionTest::names_few_addresses)
        })
    }

    /// How many statements it has.
    pub fn statements(&self) -> usize {
        self.statements.len()
    }
}

impl PolicyOfRequest {
    /// What they say of an action.
    pub fn verdict(&self, need: &Need) -> PolicyVerdict {
        let mut verdict = PolicyVerdict::Silent;
        for statement in self.statements.iter().filter(|statement| statement.covers(need)) {
            if statement.is_denial {
                return PolicyVerdict::Denied;
            }
            verdict = PolicyVerdict::Allowed;
        }
        verdict
    }
}

impl PolicyStatement {
    /// Whether it is about a request, whatever that does.
    fn is_about(&self, facts: &PolicyFacts, is_restricted: bool) -> bool {
        let fits = |principal: &Principal| match principal {
            Principal::Everybody => !is_restricted || self.is_denial,
            Principal::User(user) => facts.principal.as_ref() == Some(user),
            Principal::Account(account) => facts
                .principal
                .as_ref()
                .is_some_and(|user| user.split(':').next() == Some(account)),
        };
        self.principals.iter().any(fits)
            && self
                .conditions
                .iter()
                .all(|condition| condition.holds(facts, self.is_denial))
    }

    /// Whether it is about an action on its resource.
    fn covers(&self, need: &Need) -> bool {
        let action = need.action.name.to_ascii_lowercase();
        let names_action = self.actions.iter().any(|pattern| wildcard::fits(pattern, &action));
        let resource = match (&need.bucket, &need.key) {
            (Some(bucket), Some(key)) => format!("{bucket}/{key}"),
            (Some(bucket), None) => bucket.clone(),
            _ => return false,
        };
        names_action != self.all_but && self.resources.iter().any(|pattern| wildcard::fits(pattern, &resource))
    }
}

fn read_statement(value: &Value, bucket: &str) -> Result<PolicyStatement, PolicyProblem> {
    let statement = object(value, "Statement")?;
    let known = [
        "Sid",
        "Effect",
        "Principal",
        "Action",
        "NotAction",
        "Resource",
        "Condition",
    ];
    only(statement, &known, "a statement")?;
    if statement.get("Sid").is_some_and(|sid| !sid.is_string()) {
        return Err(problem("Sid: expected a text."));
    }
    let is_denial = match statement.get("Effect").and_then(Value::as_str) {
        Some("Allow") => false,
        Some("Deny") => true,
        _ => return Err(problem("Effect: expected Allow or Deny.")),
    };
    let (named, all_but) = match (statement.get("Action"), statement.get("NotAction")) {
        (Some(actions), None) => (actions, false),
        (None, Some(actions)) => (actions, true),
        _ => return Err(problem("A statement needs either Action or NotAction.")),
    };
    let actions = texts(named, "Action")?;
    if let Some(unknown) = actions.iter().find(|action| !is_known(action)) {
        return Err(problem(format!("Policy has invalid action: {unknown} is not served.")));
    }
    let resources = texts(statement.get("Resource").unwrap_or(&Value::Null), "Resource")?;
    let resources = resources.into_iter().map(|resource| read_resource(&resource, bucket));
    Ok(PolicyStatement {
        is_denial,
        principals: read_principals(statement.get("Principal").unwrap_or(&Value::Null))?,
        actions: actions.iter().map(|action| action.to_ascii_lowercase()).collect(),
        all_but,
        resources: resources.collect::<Result<_, _>>()?,
        conditions: conditions::read(statement.get("Condition"))?,
    })
}

/// `arn:aws:s3:::bucket/key`, of this bucket.
fn read_resource(text: &str, bucket: &str) -> Result<String, PolicyProblem> {
    let rest = text.strip_prefix(RESOURCES);
    let is_here = |rest: &&str| {
        rest.strip_prefix(bucket)
            .is_some_and(|key| key.is_empty() || key.starts_with('/'))
    };
    let is_plain = |rest: &&str| !rest.contains("${");
    let rest = rest.filter(is_here).filter(is_plain);
    rest.map(str::to_owned).ok_or_else(|| {
        problem(format!(
            "Policy has invalid resource: {text} (expected {RESOURCES}{bucket}, or /keys of it)."
        ))
    })
}

/// `"*"`, or `{"AWS": …}` with users.
fn read_principals(value: &Value) -> Result<Vec<Principal>, PolicyProblem> {
    if value.as_str() == Some("*") {
        return Ok(vec![Principal::Everybody]);
    }
    let invalid = |what: &str| problem(format!("Invalid principal in policy: {what}."));
    let users = value
        .as_object()
        .ok_or_else(|| invalid("expected \"*\" or {\"AWS\": …}"))?;
    if let Some(other) = users.keys().find(|kind| *kind != "AWS") {
        return Err(invalid(&format!("{other} is not served")));
    }
    let users = texts(users.get("AWS").unwrap_or(&Value::Null), "Principal")?;
    let read = |text: String| {
        if text == "*" {
            return Ok(Principal::Everybody);
        }
        let (account, user) = match text.strip_prefix(USERS) {
            Some(rest) => rest.split_once(':').map(|(account, user)| {
                (
                    account,
                    user.strip_prefix("user/").or_else(|| (user == "root").then_some("*")),
                )
            }),
            None => text.split_once(':').map(|(account, user)| (account, Some(user))),
        }
        .ok_or_else(|| invalid(&text))?;
        match user {
            Some("*") if !account.is_empty() && text.starts_with(USERS) => Ok(Principal::Account(account.to_owned())),
            Some(user) if !account.is_empty() && !user.is_empty() && !text.contains(['*', '?']) => {
                Ok(Principal::User(format!("{account}:{user}")))
            }
            _ => Err(invalid(&text)),
        }
    };
    users.into_iter().map(read).collect()
}

fn object<'a>(value: &'a Value, what: &str) -> Result<&'a Map<String, Value>, PolicyProblem> {
    value
        .as_object()
        .ok_or_else(|| problem(format!("{what}: expected an object.")))
}

fn only(object: &Map<String, Value>, known: &[&str], what: &str) -> Result<(), PolicyProblem> {
    match object.keys().find(|key| !known.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) => Err(problem(format!("Unknown field {key} in {what}."))),
    }
}

/// A text, or several.
fn texts(value: &Value, what: &str) -> Result<Vec<String>, PolicyProblem> {
    let texts: Option<Vec<String>> = match value {
        Value::String(text) => Some(vec![text.clone()]),
        Value::Array(values) => values.iter().map(|value| value.as_str().map(str::to_owned)).collect(),
        _ => None,
    };
    texts
        .filter(|texts| !texts.is_empty())
        .ok_or_else(|| problem(format!("{what}: expected a text, or a list of them.")))
}

/// JSON without characters that headers cannot carry.
fn in_ascii(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            ' '..='~' => out.push(character),
            _ => {
                let mut units = [0; 2];
                for unit in character.encode_utf16(&mut units) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }
    out
}

#[cfg(test)]
mod tests;
