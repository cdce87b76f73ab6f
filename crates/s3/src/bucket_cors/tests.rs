//! Documents, stored text and what rules allow.

use super::*;

fn read(rules: &str) -> Result<CorsRules, (&'static str, String)> {
    let text =
        format!("<CORSConfiguration xmlns='http://s3.amazonaws.com/doc/2006-03-01/'>{rules}</CORSConfiguration>");
    document::read(text.as_bytes()).map_err(|error| (error.code.name, error.words().to_owned()))
}

const LEAST: &str = "<AllowedOrigin>http://a.b</AllowedOrigin><AllowedMethod>GET</AllowedMethod>";

#[test]
fn documents_are_printed_as_they_were_read() {
    let text = "<CORSRule><ID>one ü</ID><AllowedHeader>x-amz-*</AllowedHeader><AllowedMethod>PUT</AllowedMethod>\
                <AllowedMethod>GET</AllowedMethod><AllowedOrigin>https://*.b</AllowedOrigin>\
                <AllowedOrigin>*</AllowedOrigin><ExposeHeader>ETag</ExposeHeader><MaxAgeSeconds>0</MaxAgeSeconds>\
                </CORSRule>";
    let rules = read(&format!("{text}<CORSRule>{LEAST}</CORSRule>")).unwrap();
    let printed = document::print(&rules).finish();
    assert!(printed.contains(text), "{printed}");
    assert_eq!(document::read(printed.as_bytes()), Ok(rules.clone()));
    let stored = rules.to_text().unwrap();
    assert!(stored.is_ascii() && stored.starts_with(PACKED));
    assert_eq!(CorsRules::of_text(&stored), Ok(rules));
}

#[test]
fn what_is_not_served_is_refused_and_named() {
    let rule = |inside: &str| format!("<CORSRule>{LEAST}{inside}</CORSRule>");
    for (rules, code, named) in [
        (String::new(), "MalformedXML", "1 to 100"),
        (rule("").repeat(101), "MalformedXML", "1 to 100"),
        ("<Rule/>".into(), "MalformedXML", "Rule"),
        (
            "<CORSRule><AllowedMethod>GET</AllowedMethod></CORSRule>".into(),
            "MalformedXML",
            "AllowedOrigin",
        ),
        (rule("<Other/>"), "MalformedXML", "Other"),
        (
            rule("<AllowedOrigin> </AllowedOrigin>"),
            "MalformedXML",
            "AllowedOrigin",
        ),
        (
            rule("<MaxAgeSeconds>-1</MaxAgeSeconds>"),
            "MalformedXML",
            "MaxAgeSeconds",
        ),
        (
            rule("<MaxAgeSeconds>1</MaxAgeSeconds>")
                .replace("</CORSRule>", "<MaxAgeSeconds>1</MaxAgeSeconds></CORSRule>"),
            "MalformedXML",
            "MaxAgeSeconds twice",
        ),
        (
            rule("<AllowedOrigin>http://*.*</AllowedOrigin>"),
            "InvalidRequest",
            "\"http://*.*\"",
        ),
        (rule("<AllowedHeader>**</AllowedHeader>"), "InvalidRequest", "\"**\""),
        (rule("<AllowedMethod>PATCH</AllowedMethod>"), "InvalidRequest", "PATCH"),
        (rule("<AllowedMethod>get</AllowedMethod>"), "InvalidRequest", "is get"),
        (rule("<ExposeHeader>x-*</ExposeHeader>"), "InvalidRequest", "\"x-*\""),
        (rule("<ExposeHeader>a b</ExposeHeader>"), "InvalidRequest", "\"a b\""),
        (rule(&format!("<ID>{}</ID>", "i".repeat(256))), "InvalidArgument", "255"),
    ] {
        let refused = read(&rules).unwrap_err();
        assert!(refused.0 == code && refused.1.contains(named), "{rules}: {refused:?}");
    }
    assert!(read(&rule("").repeat(100)).is_ok());
    assert_eq!(document::read(b"<Other/>").unwrap_err().code.name, "MalformedXML");
    assert_eq!(
        document::read(b"<CORSConfiguration>").unwrap_err().code.name,
        "MalformedXML"
    );
}

#[test]
fn a_hundred_rules_fit_and_noise_does_not() {
    let rule = |number: usize| CorsRule {
        id: format!("rule-{number}"),
        origins: (0..8)
            .map(|part| format!("https://app-{number}-{part}.example.com"))
            .collect(),
        methods: vec!["GET".into(), "PUT".into()],
        headers: vec!["*".into()],
        exposed: vec!["ETag".into()],
        max_age: Some(3000),
    };
    let many = CorsRules {
        rules: (0..100).map(rule).collect(),
    };
    let text = many.to_text().unwrap();
    let mut headers = HeaderMap::new();
    for (name, piece) in pieces(&text) {
        assert!(piece.len() <= PIECE);
        headers.insert(name, HeaderValue::from_str(piece).unwrap());
    }
    assert_eq!(CorsRules::of_text(&text_in_headers(&headers).unwrap()), Ok(many));
    assert!(pieces("").all(|(_, piece)| piece.is_empty()));

    let mut state = 1_u64;
    let noise = (0..40_000).map(|_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        char::from(b'!' + (state >> 33) as u8 % 90)
    });
    let noisy = CorsRules {
        rules: vec![CorsRule {
            id: noise.collect(),
            ..rule(0)
        }],
    };
    assert_eq!(noisy.to_text(), Err(StoredCorsError::TooLong));
    for damaged in ["z", "zAAAA", "[{}]", "x"] {
        assert_eq!(CorsRules::of_text(damaged), Err(StoredCorsError::Damaged), "{damaged}");
    }
}

#[test]
fn the_first_rule_that_fits_counts() {
    let rules = CorsRules::of_text(
        r#"[{"id":"a","o":["http://a.b","https://*.c"],"m":["PUT"],"h":["X-Amz-*","content-type"]},
            {"id":"b","o":["*"],"m":["GET","PUT"]}]"#,
    )
    .unwrap();
    let found = |origin, method, headers: &[&str]| {
        let headers: Vec<String> = headers.iter().map(|name| (*name).to_owned()).collect();
        rules.find(origin, method, &headers).map(|rule| rule.id.as_str())
    };
    for (origin, method, headers, expected) in [
        ("http://a.b", "PUT", &[][..], Some("a")),
        ("http://A.b", "PUT", &[], Some("b")),
        ("https://x.y.c", "PUT", &["x-amz-date", "content-type"], Some("a")),
        ("https://.c", "PUT", &["x-amz-date"], Some("a")),
        ("https://c", "PUT", &["x-amz-date"], None),
        ("http://a.b", "PUT", &["authorization"], None),
        ("http://a.b", "GET", &[], Some("b")),
        ("http://a.b", "DELETE", &[], None),
        ("http://a.b", "put", &[], None),
    ] {
        assert_eq!(
            found(origin, method, headers),
            expected,
            "{origin} {method} {headers:?}"
        );
    }
    let many = |count| vec!["x-amz-date"; count];
    assert_eq!(found("http://a.b", "PUT", &many(100)), Some("a"));
    assert_eq!(found("http://a.b", "PUT", &many(101)), None);
    assert!(!fits("ab*ba", "aba") && fits("ab*ba", "abba"));
}

#[test]
fn answers_say_what_the_rule_allows() {
    let rule = CorsRule {
        id: String::new(),
        origins: vec!["http://a.b".into(), "*".into()],
        methods: vec!["GET".into(), "PUT".into()],
        headers: vec!["*".into()],
        exposed: vec!["ETag".into(), "x-a".into()],
        max_age: Some(9),
    };
    let shown = |origin: &'static str, asked: &[String]| {
        let mut headers = HeaderMap::new();
        rule.show(&mut headers, &HeaderValue::from_static(origin), asked);
        vary(&mut headers);
        let mut shown: Vec<String> = headers
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect();
        shown.sort();
        shown.join("; ").replace("access-control-", "ac-")
    };
    assert_eq!(
        shown("http://a.b", &["x-b".to_owned(), "x-c".to_owned()]),
        "ac-allow-credentials: true; ac-allow-headers: x-b, x-c; ac-allow-methods: GET, PUT; ac-allow-origin: http://a.b; \
         ac-expose-headers: ETag, x-a; ac-max-age: 9; vary: Origin, Access-Control-Request-Headers, ac-request-method"
    );
    assert_eq!(
        shown("http://c", &[]),
        "ac-allow-methods: GET, PUT; ac-allow-origin: *; ac-expose-headers: ETag, x-a; ac-max-age: 9; \
         vary: Origin, Access-Control-Request-Headers, ac-request-method"
    );
}
