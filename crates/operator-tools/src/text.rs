//! Foreign text on a terminal.
//!
//! Metadata are whatever clients sent. OpenStack's programs print them as they are, or end with a traceback where they
//! are no UTF-8; here what could command a terminal, and what is no text, is spelled `\x1b`. So it is with what servers
//! answer and what files say.

/// Bytes as text that is safe to print: all of UTF-8 but control characters.
pub(crate) fn shown(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c.is_control() {
                true => c.to_string().bytes().for_each(|byte| escape(byte, &mut out)),
                false => out.push(c),
            }
        }
        chunk.invalid().iter().for_each(|byte| escape(*byte, &mut out));
    }
    out
}

/// Text of several lines that is safe to print: line feeds and tabs stay, which command nothing.
pub(crate) fn shown_lines(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for part in text.split_inclusive(['\n', '\t']) {
        let line = part.trim_end_matches(['\n', '\t']);
        out.push_str(&shown(line.as_bytes()));
        out.push_str(&part[line.len()..]);
    }
    out
}

fn escape(byte: u8, out: &mut String) {
    out.push_str(&format!("\\x{byte:02x}"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_could_command_a_terminal_is_spelled() {
        assert_eq!(shown("ö b/j?".as_bytes()), "ö b/j?");
        assert_eq!(shown(b"a\nb\x1b[31m\xff"), "a\\x0ab\\x1b[31m\\xff");
        assert_eq!(shown("\u{9b}31m".as_bytes()), "\\xc2\\x9b31m");
        assert_eq!(shown_lines("ö\n\tb\r\n\x1b[31m"), "ö\n\tb\\x0d\n\\x1b[31m");
    }

    proptest! {
        #[test]
        fn lines_keep_their_ends_and_no_other_control_character(text in "(\\PC|\\pC|[\n\t])*") {
            let ends = |text: &str| text.matches(['\n', '\t']).collect::<String>();
            let lines = shown_lines(&text);
            prop_assert_eq!(ends(&lines), ends(&text));
            prop_assert!(!lines.replace(['\n', '\t'], "").chars().any(char::is_control));
        }

        #[test]
        fn nothing_shown_is_a_control_character(bytes: Vec<u8>) {
            prop_assert!(!shown(&bytes).chars().any(char::is_control));
        }
    }
}
