//! `known.txt`: the findings that are accepted for now, as a count per rule and file.
//!
//! Always holds: the count of a rule never grows. A file may move, with its findings, because the total of the rule
//! stays the same. Lines that a merge doubled count once, with the smaller number.

use crate::finding::Finding;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// How many findings are accepted, by rule and file.
pub type Counts = BTreeMap<(String, String), usize>;

/// Reads the text of `known.txt`; comments and marks of a merge are passed over.
pub fn parse(text: &str) -> Counts {
    let mut counts = Counts::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        if let (Some(rule), Some(file), Some(Ok(count)), None) =
            (words.next(), words.next(), words.next().map(str::parse), words.next())
        {
            let key = (rule.to_owned(), file.to_owned());
            let least = counts.get(&key).map_or(count, |&other: &usize| other.min(count));
            counts.insert(key, least);
        }
    }
    counts
}

/// Counts `findings` by rule and file.
pub fn count(findings: &[Finding]) -> Counts {
    let mut counts = Counts::new();
    for finding in findings {
        *counts
            .entry((finding.rule.to_owned(), finding.file.clone()))
            .or_default() += 1;
    }
    counts
}

/// What `known.txt` may say after an update from `known` to `found`.
pub fn shrink(rules: &[&str], known: &Counts, found: &Counts) -> Counts {
    let mut result = Counts::new();
    for rule in rules {
        let of_rule = |counts: &Counts| -> Vec<((String, String), usize)> {
            let of_rule = counts.iter().filter(|((name, _), _)| name == rule);
            of_rule.map(|(key, count)| (key.clone(), *count)).collect()
        };
        let (before, after) = (of_rule(known), of_rule(found));
        let total = |counts: &[(_, usize)]| -> usize { counts.iter().map(|(_, count)| count).sum() };
        if total(&after) <= total(&before) {
            result.extend(after);
        } else {
            let both = before
                .into_iter()
                .filter_map(|(key, count)| Some((found.get(&key)?, key, count)));
            result.extend(both.map(|(now, key, count)| (key, count.min(*now))));
        }
    }
    result
}

/// The text of `known.txt` for `counts`.
pub fn text(rules: &[&str], counts: &Counts) -> String {
    let mut text = String::from(
        "# Findings of `cargo xtask tidy` that are accepted for now: rule, file, count. It may only shrink:\n\
         # after a clean-up, run `cargo xtask tidy --update`. After a conflict in this file, run it too.\n",
    );
    for rule in rules {
        let of_rule = counts.iter().filter(|((name, _), _)| name == rule);
        let (files, sum) = of_rule.fold((0, 0), |(files, sum), (_, count)| (files + 1, sum + count));
        let _ = writeln!(text, "# {}: {sum} in {files} files", rule);
    }
    for ((rule, file), count) in counts {
        let _ = writeln!(text, "{rule} {file} {count}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: &[&str] = &["width", "words"];

    fn counts(entries: &[(&str, &str, usize)]) -> Counts {
        entries
            .iter()
            .map(|(rule, file, count)| (((*rule).to_owned(), (*file).to_owned()), *count))
            .collect()
    }

    #[test]
    fn the_file_survives_a_round_and_a_merge() {
        let known = counts(&[("width", "a.rs", 2), ("words", "b.rs", 1)]);
        assert_eq!(parse(&text(RULES, &known)), known);
        assert_eq!(
            parse("<<<<<<< HEAD\nwidth a.rs 3\n=======\nwidth a.rs 2\n>>>>>>> x\n"),
            counts(&[("width", "a.rs", 2)])
        );
    }

    #[test]
    fn counts_shrink_and_never_grow() {
        let known = counts(&[("width", "a.rs", 2)]);
        assert_eq!(
            shrink(RULES, &known, &counts(&[("width", "a.rs", 1)])),
            counts(&[("width", "a.rs", 1)])
        );
        assert_eq!(shrink(RULES, &known, &counts(&[("width", "a.rs", 3)])), known);
        assert_eq!(shrink(RULES, &known, &counts(&[])), counts(&[]));
    }

    #[test]
    fn a_file_moves_with_its_findings() {
        let known = counts(&[("width", "a.rs", 2)]);
        assert_eq!(
            shrink(RULES, &known, &counts(&[("width", "b.rs", 2)])),
            counts(&[("width", "b.rs", 2)])
        );
    }
}
