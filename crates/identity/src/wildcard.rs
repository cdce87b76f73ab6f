//! Patterns with `*` (any text, or none) and `?` (one character), as IAM writes them.
//!
//! Always holds: matching takes about as many steps as pattern and text are long together; with `?` between two stars
//! the text's length times a sixty-fourth of the pattern's.

use std::collections::HashMap;

/// Whether a pattern fits a whole text.
pub fn fits(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(rest) = behind(first, text) else {
        return false;
    };
    let Some(last) = pieces.next_back() else {
        return rest.is_empty();
    };
    let Some(mut rest) = before(last, rest) else {
        return false;
    };
    for piece in pieces {
        match end_of(piece, rest) {
            Some(end) => rest = &rest[end..],
            None => return false,
        }
    }
    true
}

/// The text behind a piece that it begins with.
fn behind<'a>(piece: &str, text: &'a str) -> Option<&'a str> {
    let mut rest = text.chars();
    for wanted in piece.chars() {
        rest.next().filter(|found| is_one(wanted, *found))?;
    }
    Some(rest.as_str())
}

/// The text before a piece that it ends with.
fn before<'a>(piece: &str, text: &'a str) -> Option<&'a str> {
    let mut rest = text.chars();
    for wanted in piece.chars().rev() {
        rest.next_back().filter(|found| is_one(wanted, *found))?;
    }
    Some(rest.as_str())
}

fn is_one(wanted: char, found: char) -> bool {
    wanted == '?' || wanted == found
}

/// Where a piece of a pattern first ends in a text.
fn end_of(piece: &str, text: &str) -> Option<usize> {
    if !piece.contains('?') {
        return text.find(piece).map(|at| at + piece.len());
    }
    let length = piece.chars().count();
    if length > text.len() {
        return None;
    }
    let places = Places::of(piece, length);
    // Bit N of these: the last N + 1 characters fit the first N + 1 of the piece ("shift-and").
    let mut fitting = vec![0_u64; length.div_ceil(64)];
    let last = (length - 1) % 64;
    for (at, character) in text.char_indices() {
        let mut carried = 1;
        for (word, places) in fitting.iter_mut().zip(places.of_character(character)) {
            let shifted = *word << 1 | carried;
            carried = *word >> 63;
            *word = shifted & places;
        }
        if fitting.last().is_some_and(|word| word >> last & 1 == 1) {
            return Some(at + character.len_utf8());
        }
    }
    None
}

/// For each character the places of a piece that it fits, as bits.
struct Places {
    of_any: Vec<u64>,
    of: HashMap<char, Vec<u64>>,
}

impl Places {
    fn of(piece: &str, length: usize) -> Self {
        let mut of_any = vec![0; length.div_ceil(64)];
        let places = || piece.chars().enumerate();
        for (place, _) in places().filter(|(_, wanted)| *wanted == '?') {
            of_any[place / 64] |= 1_u64 << (place % 64);
        }
        let mut of = HashMap::new();
        for (place, wanted) in places().filter(|(_, wanted)| *wanted != '?') {
            of.entry(wanted).or_insert_with(|| of_any.clone())[place / 64] |= 1_u64 << (place % 64);
        }
        Self { of_any, of }
    }

    fn of_character(&self, character: char) -> &[u64] {
        self.of.get(&character).unwrap_or(&self.of_any)
    }
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
            ("a", "ab", false),
            ("*a", "ba", true),
            ("ab*ba", "aba", false),
            ("*a?c*", "xabaüc", true),
            ("*a?c*", "xabaüüc", false),
            ("*?b*?b*", "abb", false),
            ("*?b*?b*", "abab", true),
            ("*??*", "ü", false),
            ("?", "ü", true),
        ] {
            assert_eq!(fits(pattern, text), expected, "{pattern} {text}");
        }
    }

    /// As slow and as simple as it can be.
    fn fits_by_definition(pattern: &[u8], text: &[u8]) -> bool {
        match pattern {
            [] => text.is_empty(),
            [b'*', rest @ ..] => (0..=text.len()).any(|taken| fits_by_definition(rest, &text[taken..])),
            [wanted, rest @ ..] => text
                .split_first()
                .is_some_and(|(found, text)| (*wanted == b'?' || wanted == found) && fits_by_definition(rest, text)),
        }
    }

    #[test]
    fn every_short_pattern_fits_what_it_should() {
        let words = |letters: &[u8], longest: usize| {
            let mut words = vec![Vec::new()];
            let mut last = words.clone();
            for _ in 0..longest {
                let longer = |word: &Vec<u8>| -> Vec<Vec<u8>> {
                    letters.iter().map(|letter| [word, &[*letter][..]].concat()).collect()
                };
                last = last.iter().flat_map(longer).collect();
                words.extend(last.clone());
            }
            words
        };
        for pattern in words(b"ab*?", 5) {
            for text in words(b"ab", 5) {
                let (as_text, found) = (str::from_utf8(&pattern).unwrap(), str::from_utf8(&text).unwrap());
                let expected = fits_by_definition(&pattern, &text);
                assert_eq!(fits(as_text, found), expected, "{as_text} {found}");
            }
        }
    }

    #[test]
    fn pieces_longer_than_a_word() {
        let (piece, text) = ("ab?".repeat(50), "abc".repeat(60));
        assert!(fits(&format!("*{piece}*"), &text));
        assert!(fits(&format!("*x*{piece}y*"), &format!("{text}x{text}y")));
        assert!(!fits(&format!("*{piece}y*"), &text));
        assert!(!fits(&format!("*{piece}b*"), &text));
    }

    /// Takes minutes where each place of the text is compared with the whole pattern.
    #[test]
    fn no_pattern_takes_long() {
        assert!(!fits(&"*a".repeat(500), &"a".repeat(499)));
        assert!(!fits(&format!("{}b", "a*".repeat(500)), &"a".repeat(4000)));
        let text = "a".repeat(1_000_000);
        assert!(!fits(&format!("*{}b*", "a".repeat(500_000)), &text));
        assert!(!fits(&format!("*?{}b*", "a".repeat(5_000)), &text));
    }
}
