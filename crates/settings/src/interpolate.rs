//! `%(name)s` in values, as OpenStack Swift expands it.
//!
//! A value without `%(` stays as it is, so `100%%` keeps both signs; in one that has it, `%%` becomes
//! `%` and `%(name)s` the value of that option in the same section or `[DEFAULT]`, expanded in turn.
//! `%(here)s` is the directory of the file and `%(__file__)s` the file itself.
//! Always holds: expansion ends (ten levels, one mebibyte).

use crate::ini::{Document, RawOption};
use crate::report::SettingsError;
use vocabulary::Fault;

const DEEPEST: usize = 10;
const LONGEST: usize = 1 << 20;

/// Expands an option found in `section`.
pub fn expand(document: &Document, section: &str, option: &RawOption) -> Result<String, SettingsError> {
    if !option.value.contains("%(") {
        return Ok(option.value.clone());
    }
    let mut out = String::new();
    append(document, section, &option.value, DEEPEST, &mut out).map_err(|fault| SettingsError::Value {
        file: option.file.clone(),
        section: section.into(),
        option: option.name.clone(),
        value: option.value.clone(),
        expected: fault.what,
    })?;
    Ok(out)
}

/// The names that values of this document refer to; such options exist for others' sake.
pub fn references(document: &Document) -> Vec<&str> {
    let options = document.sections.iter().flat_map(|s| &s.options);
    options.flat_map(|o| names_in(&o.value)).collect()
}

fn names_in(value: &str) -> impl Iterator<Item = &str> {
    value
        .split("%(")
        .skip(1)
        .filter_map(|rest| rest.split_once(")s").map(|(name, _)| name))
}

fn append(document: &Document, section: &str, value: &str, depth: usize, out: &mut String) -> Result<(), Fault> {
    let mut rest = value;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(tail) = rest.strip_prefix('%') {
            out.push('%');
            rest = tail;
        } else if let Some((name, tail)) = rest.strip_prefix('(').and_then(|r| r.split_once(")s")) {
            append_named(document, section, name, depth, out)?;
            rest = tail;
        } else {
            return Err(Fault::caller(
                "`%` to be followed by `%` or `(name)s` in a value that uses `%(name)s`",
            ));
        }
        if out.len() > LONGEST {
            return Err(Fault::caller("a value that expands to less than 1 MiB"));
        }
    }
    out.push_str(rest);
    Ok(())
}

fn append_named(document: &Document, section: &str, name: &str, depth: usize, out: &mut String) -> Result<(), Fault> {
    let deeper = depth
        .checked_sub(1)
        .ok_or_else(|| Fault::caller(format!("`%({name})s` not to refer to itself")))?;
    if let Some(option) = document.lookup(section, name) {
        return append(document, section, &option.value, deeper, out);
    }
    match name {
        "__file__" => out.push_str(&document.path.to_string_lossy()),
        "here" => out.push_str(&document.path.parent().unwrap_or(&document.path).to_string_lossy()),
        _ => {
            return Err(Fault::caller(format!(
                "`%({name})s` to name an option of [{section}] or [DEFAULT]; set `{name}` there"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::path::Path;

    fn expanded(text: &str) -> Result<String, String> {
        let document = Document::parse(Path::new("/etc/swift/x.conf"), text).unwrap();
        let option = document.lookup("a", "x").unwrap();
        expand(&document, "a", option).map_err(|e| e.to_string())
    }

    #[test]
    fn expands_as_swift_does() {
        for (text, expected) in [
            ("[a]\nx=%\n", "%"),
            ("[a]\nx=100%%\n", "100%%"),
            ("[a]\nx=%(y)s%%\ny=%(z)s\nz=1\n", "1%"),
            ("[DEFAULT]\nhome=/srv\n[a]\nx=%(home)s/node\n", "/srv/node"),
            ("[a]\nx=%(here)s %(__file__)s\n", "/etc/swift /etc/swift/x.conf"),
        ] {
            assert_eq!(expanded(text).unwrap(), expected);
        }
        for (text, expected) in [
            ("[a]\nx=%(y)s\n", "set `y` there"),
            ("[a]\nx=%(x)s\n", "not to refer to itself"),
            ("[a]\nx=%(y)s %q\ny=1\n", "to be followed by"),
            ("[a]\nx=%(y\n", "to be followed by"),
        ] {
            let message = expanded(text).unwrap_err();
            assert!(message.contains(expected), "{message}");
        }
    }

    #[test]
    fn growth_is_bounded() {
        let mut text = String::from("[a]\nx=%(n1)s\n");
        for n in 1..9 {
            text.push_str(&format!("n{n}={}\n", format!("%(n{})s", n + 1).repeat(50)));
        }
        text.push_str("n9=0123456789\n");
        assert!(expanded(&text).unwrap_err().contains("1 MiB"));
    }

    proptest! {
        #[test]
        fn never_panics(x in "[%()sxy]*", y in "[%()sxy]*") {
            let _ = expanded(&format!("[a]\nx={x}\ny={y}\n"));
        }
    }
}
