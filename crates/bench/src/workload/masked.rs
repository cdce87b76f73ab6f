//! The text of a workload without its secrets, as reports hold it.
//!
//! Always holds: what stands after the name of a secret and `=` is masked, in COSBench's lists of parameters as in the
//! own format; all else stays as it was read.

use regex::Regex;
use std::sync::LazyLock;

/// The name of a secret with `=`, then its value: in quotes, or up to the next `;`, quote or tag. An entity of XML
/// has a `;` of its own.
static SECRET: LazyLock<Regex> = LazyLock::new(|| {
    let value = r#""(?:[^"\\]|\\.)*"|'[^']*'|(?:&[#\w]+;|[^;"'<&\n])+"#;
    let name = r"\b(?:password|secretkey|token)\s*=\s*";
    // A constant that the tests below compile.
    Regex::new(&format!("(?i)({name})(?:{value})")).expect("the expression is well-formed")
});

/// `source` with `***` in place of passwords, secret keys and tokens.
pub fn without_secrets(source: &str) -> String {
    let masked = |found: &regex::Captures<'_>| {
        let value = &found[0][found[1].len()..];
        let quote = value.chars().next().filter(|first| matches!(first, '"' | '\''));
        let quote = quote.map(String::from).unwrap_or_default();
        format!("{}{quote}***{quote}", &found[1])
    };
    SECRET.replace_all(source, masked).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked_and_nothing_else_is() {
        for (source, masked) in [
            (
                r#"<auth config="username=a;password=b&amp;c;auth_url=http://d" />"#,
                r#"<auth config="username=a;password=***;auth_url=http://d" />"#,
            ),
            (
                r#"<storage type="s3" config="accesskey=a;secretkey = b=c" />"#,
                r#"<storage type="s3" config="accesskey=a;secretkey = ***" />"#,
            ),
            ("password = \"a\\\"b\" # c", "password = \"***\" # c"),
            (
                "storage = { token = 'a', timeout = 3 }",
                "storage = { token = '***', timeout = 3 }",
            ),
            ("cprefix = \"password\"\nkey = 1", "cprefix = \"password\"\nkey = 1"),
        ] {
            assert_eq!(without_secrets(source), masked);
        }
    }
}
