//! Warnings about options that no component reads.
//!
//! Comes in: a section, the names Martlet reads there, the names OpenStack would. Goes out: warnings
//! that tell an option not served from one misspelt.

use crate::ini::{Document, Section};
use crate::interpolate;
use crate::report::{Severity, Warning};

/// Adds a warning for every option of `section` that is not `supported`.
pub fn options(
    document: &Document,
    section: &Section,
    supported: &[&str],
    known: &[&str],
    warnings: &mut Vec<Warning>,
) {
    let referenced = interpolate::references(document);
    for option in &section.options {
        let name = option.name.strip_prefix("set ").map_or(option.name.as_str(), str::trim);
        if supported.contains(&name) || referenced.contains(&name) {
            continue;
        }
        let place = format!("option {name} in [{}] of {}", section.name, option.file.display());
        let (severity, message) = if known.contains(&name) {
            let message = format!("{place} is not supported by Martlet and is ignored");
            (Severity::Ignored, message)
        } else {
            let all = supported.iter().chain(known).copied();
            let hint = nearest(name, all).map_or_else(String::new, |n| format!("; did you mean {n}?"));
            let message = format!("{place} is ignored: it is not an option of OpenStack Swift 2.38 either{hint}");
            (Severity::Unknown, message)
        };
        warnings.push(Warning {
            file: option.file.clone(),
            section: section.name.clone(),
            subject: name.into(),
            severity,
            message,
        });
    }
}

/// Adds a warning for every section that neither a server nor a daemon reads.
pub fn sections(document: &Document, known: &[&str], warnings: &mut Vec<Warning>) {
    for section in &document.sections {
        if known
            .iter()
            .any(|k| section.name == *k || (k.ends_with(':') && section.name.starts_with(k)))
        {
            continue;
        }
        let hint = nearest(&section.name, known.iter().copied());
        let hint = hint.map_or_else(String::new, |n| format!("; did you mean [{n}]?"));
        warnings.push(Warning {
            file: document.path.clone(),
            section: section.name.clone(),
            subject: section.name.clone(),
            severity: Severity::Unknown,
            message: format!(
                "section [{}] of {} is ignored: OpenStack Swift 2.38 does not know it either{hint}",
                section.name,
                document.path.display()
            ),
        });
    }
}

/// Adds a warning for options of an app or filter that `[DEFAULT]` overrides, which surprises.
pub fn overridden(document: &Document, section: &Section, warnings: &mut Vec<Warning>) {
    let Some(defaults) = document.section(crate::ini::DEFAULT) else {
        return;
    };
    for option in &section.options {
        let name = &option.name;
        if defaults.get(name).is_none_or(|d| d.value == option.value) {
            continue;
        }
        warnings.push(Warning {
            file: option.file.clone(),
            section: section.name.clone(),
            subject: name.clone(),
            severity: Severity::Ignored,
            message: format!(
                "option {name} in [{}] of {} has no effect, because [DEFAULT] sets it too; write `set {name} = …`",
                section.name,
                option.file.display()
            ),
        });
    }
}

/// The name most like `wanted`, if any is close enough to be what was meant.
pub fn nearest<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let limit = 1 + wanted.chars().count() / 5;
    let scored = names.map(|name| (distance(wanted, name), name));
    scored
        .filter(|(d, _)| *d <= limit)
        .min_by_key(|(d, _)| *d)
        .map(|(_, name)| name)
}

/// How many letters must be changed, added or removed.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn three_kinds_of_options() {
        let text = "[DEFAULT]\nhome = /srv\nbindport = 1\nsplice = no\nbind_port = 1\nzzz = %(home)s\n[app:x]\nbind_port = 2\n";
        let document = Document::parse(Path::new("o.conf"), text).unwrap();
        let mut warnings = Vec::new();
        options(
            &document,
            &document.sections[0],
            &["bind_port"],
            &["splice"],
            &mut warnings,
        );
        overridden(&document, &document.sections[1], &mut warnings);
        let messages: Vec<_> = warnings.iter().map(ToString::to_string).collect();
        assert_eq!(
            messages,
            [
                "option bindport in [DEFAULT] of o.conf is ignored: it is not an option of OpenStack Swift 2.38 either; did you mean bind_port?",
                "option splice in [DEFAULT] of o.conf is not supported by Martlet and is ignored",
                "option zzz in [DEFAULT] of o.conf is ignored: it is not an option of OpenStack Swift 2.38 either",
                "option bind_port in [app:x] of o.conf has no effect, because [DEFAULT] sets it too; write `set bind_port = …`",
            ]
        );
    }

    #[test]
    fn unknown_sections() {
        let document = Document::parse(Path::new("o.conf"), "[DEFAULT]\n[filter:x]\n[DEFALT]\n").unwrap();
        let mut warnings = Vec::new();
        sections(&document, &["DEFAULT", "filter:"], &mut warnings);
        assert_eq!(warnings.len(), 1);
        assert!(
            warnings[0].message.ends_with("did you mean [DEFAULT]?"),
            "{}",
            warnings[0]
        );
    }

    #[test]
    fn distances() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "ab"), 2);
        assert_eq!(nearest("nothing", ["alike"].into_iter()), None);
    }
}
