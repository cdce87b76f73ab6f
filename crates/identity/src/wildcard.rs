//! Patterns with `*` (any text, or none) and `?` (one character), as IAM writes them.
//!
//! Always holds: matching takes at most pattern times text steps, whatever the pattern.

/// Whether a pattern fits a whole text.
pub fn fits(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut read) = (0, 0);
    // Behind the last `*`, and where the text goes on if that took one character more.
    let mut retry: Option<(usize, usize)> = None;
    while read < text.len() {
        match pattern.get(at) {
            Some('*') => {
                retry = Some((at + 1, read));
                at += 1;
            }
            Some(wanted) if *wanted == '?' || *wanted == text[read] => {
                at += 1;
                read += 1;
            }
            _ => {
                let Some((behind, from)) = retry else {
                    return false;
                };
                at = behind;
                read = from + 1;
                retry = Some((behind, from + 1));
            }
        }
    }
    pattern[at..].iter().all(|rest| *rest == '*')
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn patterns_fit_whole_texts() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("*", "", true),
            ("a*", "abc", true),
            ("a*c", "abcbc", true),
            ("a*c", "abcb", false),
            ("a?c", "aüc", true),
            ("a?", "a", false),
            ("A", "a", false),
            ("*b*", "abc", true),
            ("**?", "", false),
        ] {
            assert_eq!(fits(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn many_stars_take_no_long_time() {
        assert!(!fits(&"*a".repeat(500), &"a".repeat(499)));
        assert!(!fits(&format!("{}b", "a*".repeat(500)), &"a".repeat(4000)));
    }
}
