//! Whether a `Referer` header satisfies the `.r:` rules of an ACL.
//!
//! Rules are tried in order and the last that fits decides; `-` in front forbids. A rule is `*`, a
//! host, or a domain with a leading dot, which its subdomains fit. A missing or odd header counts as
//! the host `unknown`.

/// Whether the rules allow a request with this header.
pub fn allowed(referer: Option<&str>, rules: &[&str]) -> bool {
    let host = referer.and_then(host_of).unwrap_or_else(|| "unknown".into());
    let mut allow = false;
    for rule in rules {
        match rule.strip_prefix('-') {
            Some(forbidden) if fits(&host, forbidden) => allow = false,
            Some(_) => {}
            None if *rule == "*" || fits(&host, rule) => allow = true,
            None => {}
        }
    }
    allow
}

fn fits(host: &str, rule: &str) -> bool {
    host == rule || (rule.starts_with('.') && host.ends_with(rule))
}

/// The host of a URL, in lower case, without user, port and brackets.
fn host_of(url: &str) -> Option<String> {
    let rest = match url.find("//") {
        Some(0) => &url[2..],
        Some(at) if url[..at].ends_with(':') && is_scheme(&url[..at - 1]) => &url[at + 2..],
        _ => return None,
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = match host.strip_prefix('[') {
        Some(bracketed) => bracketed.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    (!host.is_empty()).then(|| host.to_lowercase())
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hosts() {
        for (url, host) in [
            ("http://www.example.com/x", Some("www.example.com")),
            ("http://user:pw@WWW.example.com:80/", Some("www.example.com")),
            ("//www.example.com/", Some("www.example.com")),
            ("http://[::1]:8/", Some("::1")),
            ("www.example.com", None),
            ("http://", None),
            ("", None),
        ] {
            assert_eq!(host_of(url).as_deref(), host, "{url}");
        }
    }

    #[test]
    fn the_last_rule_that_fits_decides() {
        let www = Some("http://www.example.com/");
        assert!(allowed(www, &["*", "-www.example.com", "www.example.com"]));
        assert!(!allowed(www, &["*", "-.example.com"]));
        assert!(allowed(www, &["-.example.com", "*"]));
        assert!(!allowed(Some("http://example.com/"), &[".example.com"]));
        assert!(allowed(None, &["unknown"]));
        assert!(!allowed(None, &[]));
    }

    proptest! {
        #[test]
        fn never_panics(referer in "\\PC*", url in "[a-z:/@\\[\\]?#ü]*") {
            let _ = allowed(Some(&referer), &["*"]);
            let _ = host_of(&url);
        }
    }
}
