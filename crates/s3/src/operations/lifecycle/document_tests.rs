use super::*;

fn of_rule(rule: &str) -> Result<LifecycleRules, S3Error> {
    read(format!("<LifecycleConfiguration><Rule>{rule}</Rule></LifecycleConfiguration>").as_bytes())
}

const PLAIN: &str = "<Filter/><Status>Enabled</Status>";

#[test]
fn rules_are_read_back_as_they_were_put() {
    for rule in [
        "<ID>a</ID><Filter><Prefix>logs/ </Prefix></Filter><Status>Enabled</Status><Expiration><Days>30</Days></Expiration>",
        "<ID>b</ID><Prefix></Prefix><Status>Disabled</Status><Expiration><Date>2030-01-31T00:00:00.000Z</Date></Expiration>",
        "<ID>c</ID><Filter><And><Prefix>x</Prefix><Tag><Key>k</Key><Value>v</Value></Tag><Tag><Key>l</Key><Value/></Tag>\
         <ObjectSizeGreaterThan>0</ObjectSizeGreaterThan><ObjectSizeLessThan>5</ObjectSizeLessThan></And></Filter>\
         <Status>Enabled</Status><NoncurrentVersionExpiration><NoncurrentDays>3</NoncurrentDays>\
         <NewerNoncurrentVersions>100</NewerNoncurrentVersions></NoncurrentVersionExpiration>",
        "<ID>d</ID><Filter/><Status>Enabled</Status>\
         <Expiration><ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker></Expiration>\
         <AbortIncompleteMultipartUpload><DaysAfterInitiation>7</DaysAfterInitiation></AbortIncompleteMultipartUpload>",
        "<ID>e</ID><Filter><ObjectSizeLessThan>1</ObjectSizeLessThan></Filter><Status>Enabled</Status>\
         <Expiration><Days>1</Days></Expiration>",
    ] {
        let rules = of_rule(rule).unwrap();
        assert_eq!(read(print(&rules).finish().as_bytes()), Ok(rules), "{rule}");
    }
}

#[test]
fn dates_are_midnights() {
    for text in [
        "2030-01-31",
        "2030-01-31T00:00:00Z",
        "2030-01-31T00:00:00.000Z",
        "2030-01-31T00:00:00+00:00",
    ] {
        assert_eq!(date(text), Ok(1_896_048_000), "{text}");
    }
    for (text, code) in [
        ("2030-01-31T00:00:01Z", "InvalidArgument"),
        ("2030-01-31T00:00:00.001Z", "InvalidArgument"),
        ("2030-01-31T00:00:00+01:00", "MalformedXML"),
        ("2030-02-31", "MalformedXML"),
        ("soon", "MalformedXML"),
    ] {
        assert_eq!(date(text).map_err(|error| error.code.name), Err(code), "{text}");
    }
}

#[test]
fn what_is_wrong_is_refused_by_its_name() {
    let days = "<Expiration><Days>1</Days></Expiration>";
    let abort =
        "<AbortIncompleteMultipartUpload><DaysAfterInitiation>1</DaysAfterInitiation></AbortIncompleteMultipartUpload>";
    let marker = "<Expiration><ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker></Expiration>";
    let tagged = "<Filter><Tag><Key>k</Key><Value>v</Value></Tag></Filter><Status>Enabled</Status>";
    let sized = "<Filter><ObjectSizeLessThan>9</ObjectSizeLessThan></Filter><Status>Enabled</Status>";
    let refusal = |rule: &str| of_rule(rule).map_err(|error| (error.code.name, error.words().to_owned()));
    for (rule, code, words) in [
        (PLAIN.to_owned(), "InvalidRequest", "At least one action"),
        (
            format!("{PLAIN}<Transition><Days>1</Days></Transition>"),
            "NotImplemented",
            "Transition",
        ),
        (
            format!("{PLAIN}{days}<NoncurrentVersionTransition/>"),
            "NotImplemented",
            "NoncurrentVersionTransition",
        ),
        (format!("{PLAIN}{days}<Sweep/>"), "MalformedXML", "Sweep"),
        (format!("{PLAIN}{days}{days}"), "MalformedXML", "Expiration twice"),
        (
            format!("<Status>Enabled</Status>{days}"),
            "MalformedXML",
            "Filter or Prefix",
        ),
        (format!("<Prefix/>{PLAIN}{days}"), "MalformedXML", "Filter or Prefix"),
        (format!("<Filter/>{days}"), "MalformedXML", "Status"),
        (
            format!("<Filter/><Status>enabled</Status>{days}"),
            "MalformedXML",
            "Status",
        ),
        (
            format!("<ID>{}</ID>{PLAIN}{days}", "x".repeat(256)),
            "InvalidArgument",
            "255",
        ),
        (format!("{PLAIN}<Expiration/>"), "MalformedXML", "one of Days"),
        (
            format!("{PLAIN}<Expiration><Days>0</Days></Expiration>"),
            "InvalidArgument",
            "'Days' for Expiration",
        ),
        (
            format!("{PLAIN}<Expiration><Days>-1</Days></Expiration>"),
            "InvalidArgument",
            "positive",
        ),
        (
            format!("{PLAIN}<Expiration><Days>1.5</Days></Expiration>"),
            "MalformedXML",
            "whole number",
        ),
        (
            format!("{PLAIN}<Expiration><Days>1</Days><Date>2030-01-31</Date></Expiration>"),
            "MalformedXML",
            "one of Days",
        ),
        (
            format!("{PLAIN}<NoncurrentVersionExpiration/>"),
            "MalformedXML",
            "NoncurrentDays",
        ),
        (
            format!(
                "{PLAIN}<NoncurrentVersionExpiration><NoncurrentDays>1</NoncurrentDays>\
                 <NewerNoncurrentVersions>101</NewerNoncurrentVersions></NoncurrentVersionExpiration>"
            ),
            "InvalidArgument",
            "between 1 and 100",
        ),
        (
            format!("{tagged}{abort}"),
            "InvalidRequest",
            "AbortIncompleteMultipartUpload cannot be specified with Tags",
        ),
        (
            format!("{tagged}{marker}"),
            "InvalidRequest",
            "ExpiredObjectDeleteMarker cannot be specified with Tags",
        ),
        (format!("{sized}{abort}"), "InvalidRequest", "object sizes"),
        (
            format!(
                "<Filter><Prefix>a</Prefix><ObjectSizeLessThan>9</ObjectSizeLessThan></Filter><Status>Enabled</Status>{days}"
            ),
            "MalformedXML",
            "And",
        ),
        (
            format!("<Filter><And><Prefix>a</Prefix></And></Filter><Status>Enabled</Status>{days}"),
            "MalformedXML",
            "And",
        ),
        (
            format!("<Filter><ObjectSizeLessThan>0</ObjectSizeLessThan></Filter><Status>Enabled</Status>{days}"),
            "InvalidArgument",
            "ObjectSizeLessThan",
        ),
        (
            format!(
                "<Filter><And><ObjectSizeGreaterThan>5</ObjectSizeGreaterThan><ObjectSizeLessThan>5</ObjectSizeLessThan>\
                 </And></Filter><Status>Enabled</Status>{days}"
            ),
            "InvalidRequest",
            "smaller",
        ),
    ] {
        let (found, message) = refusal(&rule).unwrap_err();
        assert_eq!(found, code, "{rule}");
        assert!(message.contains(words), "{rule}: {message}");
    }
}

#[test]
fn a_configuration_has_few_rules_with_names_of_their_own() {
    let rule = |id: &str| format!("<Rule><ID>{id}</ID>{PLAIN}<Expiration><Days>1</Days></Expiration></Rule>");
    let code = |rules: String| {
        let read = read(format!("<LifecycleConfiguration>{rules}</LifecycleConfiguration>").as_bytes());
        read.map(|rules| rules.rules.len()).map_err(|error| error.code.name)
    };
    let many = |count: usize| (0..count).map(|number| rule(&format!("r{number}"))).collect::<String>();
    assert_eq!(code(many(1000)), Ok(1000));
    assert_eq!(code(many(1001)), Err("MalformedXML"));
    assert_eq!(code(String::new()), Err("MalformedXML"));
    assert_eq!(code(rule("a") + &rule("a")), Err("InvalidArgument"));
    assert_eq!(code(rule("") + &rule("")), Ok(2));
    assert_eq!(read(b"<Other/>").unwrap_err().code.name, "MalformedXML");
}
