//! Text inside XML and HTML, escaped.
//!
//! Always holds: whatever the text, the document around it stays well-formed. XML 1.0 ([Characters]) has no form at all
//! for most control characters, for U+FFFE and U+FFFF: each becomes U+FFFD, the replacement character.
//!
//! [Characters]: https://www.w3.org/TR/xml/#charsets

/// Appends `text` as character data; a carriage return is escaped, for parsers read a bare one as a line feed.
pub fn push_text(out: &mut String, text: &str) {
    push_with(out, text, |byte| match byte {
        b'&' => Some("&amp;"),
        b'<' => Some("&lt;"),
        b'>' => Some("&gt;"),
        b'\r' => Some("&#13;"),
        _ => None,
    });
}

/// Appends `text` as the inside of an attribute in double quotes.
pub fn push_attribute(out: &mut String, text: &str) {
    push_with(out, text, |byte| match byte {
        b'&' => Some("&amp;"),
        b'<' => Some("&lt;"),
        b'>' => Some("&gt;"),
        b'"' => Some("&quot;"),
        b'\r' => Some("&#13;"),
        b'\n' => Some("&#10;"),
        b'\t' => Some("&#09;"),
        _ => None,
    });
}

/// `text` as character data.
pub fn text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    push_text(&mut out, text);
    out
}

/// Copies runs of bytes that stand for themselves.
fn push_with(out: &mut String, text: &str, escape: impl Fn(u8) -> Option<&'static str>) {
    let bytes = text.as_bytes();
    let (mut copied, mut at) = (0, 0);
    while at < bytes.len() {
        let (replacement, length) = match bytes[at] {
            b'\t' | b'\n' | b'\r' | 0x20.. => match (escape(bytes[at]), &bytes[at..]) {
                (Some(replacement), _) => (replacement, 1),
                // U+FFFE and U+FFFF.
                (None, [0xEF, 0xBF, 0xBE | 0xBF, ..]) => ("\u{FFFD}", 3),
                (None, _) => {
                    at += 1;
                    continue;
                }
            },
            _ => ("\u{FFFD}", 1),
        };
        // Whole characters are replaced, so both ends are between characters.
        out.push_str(&text[copied..at]);
        out.push_str(replacement);
        at += length;
        copied = at;
    }
    out.push_str(&text[copied..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What an XML parser makes of it, as far as this module escapes.
    fn parsed(escaped: &str) -> String {
        let mut text = escaped.to_owned();
        for (reference, c) in [("&#13;", "\r"), ("&#10;", "\n"), ("&#09;", "\t"), ("&quot;", "\"")] {
            text = text.replace(reference, c);
        }
        text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    }

    fn is_char(c: char) -> bool {
        matches!(c, '\t' | '\n' | '\r' | '\u{20}'..='\u{FFFD}' | '\u{10000}'..)
    }

    #[test]
    fn what_xml_cannot_express_is_replaced() {
        assert_eq!(
            text("a\0\u{1}\u{1f}\u{7f}\u{fffe}\u{ffff}\u{fffd}é"),
            "a\u{fffd}\u{fffd}\u{fffd}\u{7f}\u{fffd}\u{fffd}\u{fffd}é"
        );
        assert_eq!(text("<&>\"\r\n"), "&lt;&amp;&gt;\"&#13;\n");
    }

    proptest! {
        #[test]
        fn a_parser_reads_back_every_other_character(name in any::<String>(), in_attribute: bool) {
            let mut escaped = String::new();
            match in_attribute {
                true => push_attribute(&mut escaped, &name),
                false => push_text(&mut escaped, &name),
            }
            prop_assert!(escaped.chars().all(is_char) && !escaped.contains('<'));
            let expected: String = name.chars().map(|c| if is_char(c) { c } else { '\u{FFFD}' }).collect();
            prop_assert_eq!(parsed(&escaped), expected);
        }
    }
}
