use super::*;
use crate::authority::actions::deletion;

fn facts(principal: &str) -> PolicyFacts {
    PolicyFacts {
        principal: Some(principal.into()),
        source: [10, 1, 2, 3].into(),
        is_secure: false,
        now: 1_800_000_000,
        texts: vec![("s3:prefix", "home/a".into())],
    }
}

/// A policy of bucket `b` with one statement, of which these fields replace the usual ones.
fn policy(fields: &str) -> Result<BucketPolicy, PolicyProblem> {
    let mut statement = serde_json::json!({"Effect": "Allow", "Principal": "*", "Action": "s3:DeleteObject",
        "Resource": "arn:aws:s3:::b/*"});
    let changed: Value = serde_json::from_str(&format!("{{{fields}}}")).unwrap();
    for (key, value) in changed.as_object().unwrap() {
        match value {
            Value::Null => drop(statement.as_object_mut().unwrap().remove(key)),
            value => statement[key] = value.clone(),
        }
    }
    let text = serde_json::json!({"Version": "2012-10-17", "Statement": [statement]}).to_string();
    BucketPolicy::read(text.as_bytes(), "b")
}

fn verdict(fields: &str, user: &str, key: &str) -> PolicyVerdict {
    policy(fields)
        .unwrap()
        .about(&facts(user), false)
        .verdict(&deletion("b", key, None))
}

#[test]
fn statements_are_about_users_actions_and_resources() {
    use PolicyVerdict::{Allowed, Denied, Silent};
    for (fields, user, key, expected) in [
        ("", "t:u", "k", Allowed),
        (r#""Effect": "Deny""#, "t:u", "k", Denied),
        (r#""Principal": {"AWS": "*"}"#, "t:u", "k", Allowed),
        (r#""Principal": {"AWS": ["x:y", "t:u"]}"#, "t:u", "k", Allowed),
        (r#""Principal": {"AWS": "t:u"}"#, "t:u2", "k", Silent),
        (r#""Principal": {"AWS": "arn:aws:iam::t:user/u"}"#, "t:u", "k", Allowed),
        (r#""Principal": {"AWS": "arn:aws:iam::t:root"}"#, "t:any", "k", Allowed),
        (r#""Principal": {"AWS": "arn:aws:iam::t:root"}"#, "t2:any", "k", Silent),
        (r#""Action": ["s3:GetObject", "s3:del*"]"#, "t:u", "k", Allowed),
        (r#""Action": "s3:GetObject""#, "t:u", "k", Silent),
        (r#""Action": null, "NotAction": "s3:GetObject""#, "t:u", "k", Allowed),
        (r#""Action": null, "NotAction": "s3:*""#, "t:u", "k", Silent),
        (r#""Resource": "arn:aws:s3:::b""#, "t:u", "k", Silent),
        (r#""Resource": "arn:aws:s3:::b/a?/*""#, "t:u", "ab/c/d", Allowed),
        (r#""Resource": "arn:aws:s3:::b/a?/*""#, "t:u", "a/b", Silent),
    ] {
        assert_eq!(verdict(fields, user, key), expected, "{fields}");
    }
}

#[test]
fn conditions_hold_or_not() {
    let holds =
        |condition: &str| verdict(&format!("\"Condition\": {{{condition}}}"), "t:u", "k") == PolicyVerdict::Allowed;
    for (condition, expected) in [
        (r#""IpAddress": {"aws:SourceIp": "10.0.0.0/8"}"#, true),
        (r#""IpAddress": {"aws:SourceIp": ["10.1.2.4", "10.1.2.3"]}"#, true),
        (r#""IpAddress": {"aws:SourceIp": "0.0.0.0/0"}"#, true),
        (r#""IpAddress": {"aws:SourceIp": "::/0"}"#, false),
        (r#""NotIpAddress": {"aws:sourceip": "10.1.2.0/24"}"#, false),
        (r#""StringEquals": {"s3:prefix": ["", "home/a"]}"#, true),
        (r#""StringEquals": {"s3:prefix": "home/*"}"#, false),
        (r#""StringLike": {"s3:prefix": "home/*"}"#, true),
        (r#""StringNotLike": {"s3:prefix": "home/*"}"#, false),
        (r#""StringEquals": {"s3:delimiter": "/"}"#, false),
        (r#""StringNotEquals": {"s3:delimiter": "/"}"#, true),
        (r#""Bool": {"aws:SecureTransport": "false"}"#, true),
        (r#""Bool": {"aws:SecureTransport": true}"#, false),
        (r#""DateLessThan": {"aws:CurrentTime": "2030-01-01T00:00:00Z"}"#, true),
        (r#""DateGreaterThan": {"aws:CurrentTime": "2030-01-01"}"#, false),
        (
            r#""DateLessThanEquals": {"aws:CurrentTime": "2027-01-15T08:00:00Z"}"#,
            true,
        ),
        (r#""DateLessThan": {"aws:CurrentTime": "2027-01-15T08:00:00Z"}"#, false),
        (
            r#""Bool": {"aws:SecureTransport": "false"}, "StringLike": {"s3:prefix": "x"}"#,
            false,
        ),
    ] {
        assert_eq!(holds(condition), expected, "{condition}");
    }
}

#[test]
fn a_text_too_long_to_be_compared_opens_nothing() {
    use PolicyVerdict::{Denied, Silent};
    let mut facts = facts("t:u");
    facts.texts = vec![("aws:referer", "a".repeat(2049))];
    for operator in ["StringLike", "StringNotLike", "StringEquals", "StringNotEquals"] {
        for (effect, expected) in [("Allow", Silent), ("Deny", Denied)] {
            let fields = format!(r#""Effect": "{effect}", "Condition": {{"{operator}": {{"aws:Referer": "*a*"}}}}"#);
            let policy = policy(&fields).unwrap().about(&facts, false);
            assert_eq!(policy.verdict(&deletion("b", "k", None)), expected, "{fields}");
        }
    }
}

#[test]
fn what_is_not_served_is_named() {
    for (fields, named) in [
        (r#""NotPrincipal": "*""#, "NotPrincipal"),
        (r#""NotResource": "*""#, "NotResource"),
        (r#""Effect": "Maybe""#, "Effect"),
        (r#""Action": "s3:GetObjekt""#, "s3:GetObjekt"),
        (r#""Action": []"#, "Action"),
        (r#""NotAction": "s3:*""#, "NotAction"),
        (r#""Resource": "arn:aws:s3:::bb/*""#, "arn:aws:s3:::bb/*"),
        (r#""Resource": "*""#, "*"),
        (r#""Resource": "arn:aws:s3:::b/${aws:username}""#, "${aws:username}"),
        (r#""Resource": null"#, "Resource"),
        (r#""Principal": null"#, "principal"),
        (r#""Principal": {"Service": "x"}"#, "Service"),
        (r#""Principal": {"AWS": "123456789012"}"#, "123456789012"),
        (r#""Principal": {"AWS": "t:*"}"#, "t:*"),
        (r#""Principal": {"AWS": "arn:aws:iam::t:role/r"}"#, "role/r"),
        (
            r#""Condition": {"NumericLessThan": {"s3:max-keys": "1"}}"#,
            "NumericLessThan",
        ),
        (
            r#""Condition": {"StringEquals": {"aws:PrincipalOrgID": "o"}}"#,
            "aws:PrincipalOrgID",
        ),
        (
            r#""Condition": {"IpAddress": {"aws:SourceIp": "10.0.0.0/33"}}"#,
            "10.0.0.0/33",
        ),
        (r#""Condition": {"Bool": {"aws:SecureTransport": "maybe"}}"#, "maybe"),
        (r#""Condition": {"DateLessThan": {"aws:CurrentTime": "soon"}}"#, "soon"),
    ] {
        let refused = policy(fields).unwrap_err().to_string();
        assert!(refused.contains(named), "{fields}: {refused}");
    }
    for text in [
        "",
        "[]",
        "{}",
        r#"{"Statement": []}"#,
        r#"{"Version": "1", "Statement": {}}"#,
    ] {
        assert!(BucketPolicy::read(text.as_bytes(), "b").is_err(), "{text}");
    }
}

#[test]
fn public_is_what_anyone_may_do() {
    for (fields, expected) in [
        ("", true),
        (r#""Effect": "Deny""#, false),
        (r#""Principal": {"AWS": "t:u"}"#, false),
        (r#""Condition": {"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}}"#, false),
        (r#""Condition": {"IpAddress": {"aws:SourceIp": "0.0.0.0/1"}}"#, true),
        (r#""Condition": {"NotIpAddress": {"aws:SourceIp": "10.0.0.0/8"}}"#, true),
        (r#""Condition": {"StringLike": {"aws:Referer": "*"}}"#, true),
    ] {
        assert_eq!(policy(fields).unwrap().is_public(), expected, "{fields}");
    }
    let restricted = policy("")
        .unwrap()
        .about(&facts("t:u"), true)
        .verdict(&deletion("b", "k", None));
    assert_eq!(restricted, PolicyVerdict::Silent);
}

#[test]
fn a_stored_policy_is_the_one_that_was_sent() {
    let sent =
        policy("\"Sid\": \"\u{fc} \u{1F426} \\u0000\\n\u{7f}\", \"Resource\": \"arn:aws:s3:::b/\u{fc}*\"").unwrap();
    assert!(sent.text().bytes().all(|byte| (b' '..=b'~').contains(&byte)));
    assert_eq!(BucketPolicy::read(sent.text().as_bytes(), "b").unwrap(), sent);
    assert_eq!(
        sent.about(&facts("t:u"), false)
            .verdict(&deletion("b", "\u{fc}k", None)),
        PolicyVerdict::Allowed
    );
    let large = format!("\"Sid\": \"{}\"", "\u{fc}".repeat(9000));
    assert!(policy(&large).is_err());
}
