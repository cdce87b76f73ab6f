//! `Accept` headers of listings: which of four forms the client likes best.
//!
//! Always holds: reading takes time linear in the header's length, whatever it says (an attacker's
//! header must not keep a gateway busy); what is no `Accept` header is refused, not guessed.
//! Source: asking OpenStack Swift 2.38.3 with some two hundred headers; where it reads numbers as
//! Python does, so does this file.

/// The forms a listing comes in, best known first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// One name per line.
    Plain,
    /// JSON.
    Json,
    /// XML.
    Xml,
    /// XML under its older name.
    TextXml,
}

const FORMS: [Form; 4] = [Form::Plain, Form::Json, Form::Xml, Form::TextXml];

impl Form {
    /// The media type, without charset.
    pub fn media_type(self) -> &'static str {
        match self {
            Form::Plain => "text/plain",
            Form::Json => "application/json",
            Form::Xml => "application/xml",
            Form::TextXml => "text/xml",
        }
    }
}

/// The header is not what HTTP calls `Accept`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidAccept;

/// The form that suits best; `None` when none does.
pub fn choose(accept: &[u8]) -> Result<Option<Form>, InvalidAccept> {
    choose_among(accept, &FORMS)
}

/// The best of these forms.
pub fn choose_among(accept: &[u8], forms: &[Form]) -> Result<Option<Form>, InvalidAccept> {
    let mut best: Option<(Rank, Form)> = None;
    for text in accept.split(|b| *b == b',') {
        let range = read_range(text)?;
        let Some(form) = forms.iter().copied().find(|form| range.suits(*form)) else {
            continue;
        };
        if best.as_ref().is_none_or(|(rank, _)| range.rank.beats(rank)) {
            best = Some((range.rank, form));
        }
    }
    Ok(best.map(|(_, form)| form))
}

/// Whether JSON is among what suits.
pub fn only_json(accept: &[u8]) -> Result<bool, InvalidAccept> {
    let mut suits = false;
    for text in accept.split(|b| *b == b',') {
        suits |= read_range(text)?.suits(Form::Json);
    }
    Ok(suits)
}

struct Rank {
    quality: f64,
    /// Neither part of it is `*`.
    exact: bool,
}

impl Rank {
    /// Of equals the earlier wins, and so does the earlier where a quality is not a number.
    fn beats(&self, other: &Rank) -> bool {
        self.quality > other.quality || (self.quality == other.quality && self.exact && !other.exact)
    }
}

struct Range<'a> {
    kind: &'a [u8],
    subtype: &'a [u8],
    rank: Rank,
}

impl Range<'_> {
    fn suits(&self, form: Form) -> bool {
        let (kind, subtype) = form.media_type().split_once('/').unwrap_or_default();
        let matches = |part: &[u8], word: &str| part == b"*" || part == word.as_bytes();
        matches(self.kind, kind) && matches(self.subtype, subtype)
    }
}

fn read_range(text: &[u8]) -> Result<Range<'_>, InvalidAccept> {
    let mut parts = text.split(|b| *b == b';');
    let name = parts.next().unwrap_or_default().trim_ascii();
    let slash = name.iter().position(|b| *b == b'/').ok_or(InvalidAccept)?;
    let (kind, subtype) = (&name[..slash], &name[slash + 1..]);
    if !is_token(kind) || !is_token(subtype) {
        return Err(InvalidAccept);
    }
    let mut quality = None;
    for part in parts {
        let (name, value) = read_parameter(part)?;
        if name == b"q" && quality.replace(read_number(value)?).is_some() {
            return Err(InvalidAccept);
        }
    }
    let exact = kind != b"*" && subtype != b"*";
    let quality = quality.unwrap_or(1.0);
    let rank = Rank { quality, exact };
    Ok(Range { kind, subtype, rank })
}

fn read_parameter(text: &[u8]) -> Result<(&[u8], &[u8]), InvalidAccept> {
    let equals = text.iter().position(|b| *b == b'=').ok_or(InvalidAccept)?;
    let (name, value) = (text[..equals].trim_ascii(), text[equals + 1..].trim_ascii());
    match is_token(name) && (is_token(value) || is_quoted(value)) {
        true => Ok((name, value)),
        false => Err(InvalidAccept),
    }
}

/// Anything but controls, spaces and HTTP's separators.
fn is_token(text: &[u8]) -> bool {
    let is_part = |b: &u8| *b > b' ' && *b != 0x7f && !b"()<>@,;:\\\"/[]?={}".contains(b);
    !text.is_empty() && text.iter().all(is_part)
}

/// `"…"` with `\` before quotes and itself.
fn is_quoted(text: &[u8]) -> bool {
    let Some(inner) = text.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")) else {
        return false;
    };
    let mut escaped = false;
    for byte in inner {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return false,
            _ => {}
        }
    }
    !escaped
}

/// A number as Python reads one: signs, exponents, `inf`, `nan` and single underscores between digits.
fn read_number(text: &[u8]) -> Result<f64, InvalidAccept> {
    let text = std::str::from_utf8(text).map_err(|_| InvalidAccept)?;
    let bytes = text.as_bytes();
    let is_digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
    let stray = |at: usize| bytes[at] == b'_' && !(is_digit(at.checked_sub(1)) && is_digit(Some(at + 1)));
    if (0..bytes.len()).any(stray) {
        return Err(InvalidAccept);
    }
    text.replace('_', "").parse().map_err(|_| InvalidAccept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Instant;

    fn chosen(accept: &str) -> &'static str {
        match choose(accept.as_bytes()) {
            Err(InvalidAccept) => "400",
            Ok(None) => "406",
            Ok(Some(form)) => form.media_type(),
        }
    }

    /// Each row was answered so by OpenStack Swift.
    #[test]
    fn as_openstack_chooses() {
        for (expected, headers) in [
            (
                "text/plain",
                "text/plain|*/*;q=0|text/*|*/plain|text/*, application/*|text/plain;q=0.5, */*|text/html, */*;q=0.1\
                 |text/plain;x=\"a\\\"b\"|text/plain;x=\"\"|text/plain;q=inf, text/xml;q=5|text/plain;q=nan, text/xml;q=0.5\
                 |text/plain;q=-1, text/xml;q=-2|text/plain;q=1_0|text/plain;q=+.5|text/plain;x=é|*/*, */json\
                 |text/plain;q=1.5e+3|text/plain;q=1.|text/xml;q=0.1;Q=0.9, text/plain;q=0.5",
            ),
            (
                "application/json",
                "application/json;q=0|application/json ; q = 0.5|text/plain;q=0, application/json;q=0.1|*/json, */*\
                 |application/json;level=1;q=0.3|application/*, text/*|text/*, application/json|application/json;q=2",
            ),
            (
                "application/xml",
                "*/xml|*/*, application/xml|text/*;q=0.9,application/xml;q=0.9|application/xml, text/xml\
                 |application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8|*/xml, text/*",
            ),
            (
                "text/xml",
                "text/xml|text/xml, text/plain|*/*;q=0.5, text/xml;q=0.5|text/plain;q=0.3333333, text/xml;q=0.3333334\
                 |text/plain;q=0.5, text/xml;Q=0.1|text/xml;q=0.5, text/plain;q=nan|text/plain;q=1e-1, text/xml;q=0.2",
            ),
            (
                "406",
                "TEXT/PLAIN|image/png|text/x-plain|application/json+x|t*/plain|text/**|image/png;q=0|text/é",
            ),
            (
                "400",
                "rubbish|,|text/plain,|,text/plain|text/plain;|;|*|text/|/plain|text/plain/x|text/ plain|a b| |text/plain;q=\
                 |text/plain;q=abc|text/plain;q=1.0.0|text/plain;q=1;q=1|text/plain;q=\"0.5\"|text/plain;q=0x1|text/plain;q=_1\
                 |text/plain;q=1__0|text/plain;q=.|text/plain;x|text/plain;=x|text/plain;a b|text/plain;x=\"a;b\"\
                 |text/plain;x=\"a,b\"|text/plain;x=\"\\\"|text/plain;x=\"a\"b\"|text/plain;x=a=b|text/plain;x={y}\
                 |text/plain(comment)|\"text/plain\"|text/plain;q=0.5 0|text/plain; ;q=1|text/plain;q=1e|text/plain;q=²",
            ),
        ] {
            for header in headers.split('|') {
                assert_eq!(chosen(header), expected, "{header}");
            }
        }
    }

    /// CVE-2026-71190: such headers kept OpenStack's parser busy for seconds.
    #[test]
    fn hostile_headers_cost_nothing() {
        let n = 1 << 20;
        for header in [
            format!("text/plain;x=\"{}", "\\\"".repeat(n)),
            format!("text/plain{}", ";q=\"".repeat(n)),
            format!("text/plain;{}", " ".repeat(n)),
            "a/b;x=y ".repeat(n / 8),
            "a/b,".repeat(n / 4),
            "_1".repeat(n),
        ] {
            // One of a few tries: the machine may be busy with something else.
            let quick = (0..10).any(|_| {
                let began = Instant::now();
                assert_eq!(chosen(&header), "400");
                began.elapsed().as_millis() < 1000
            });
            assert!(quick, "a debug build reads two megabytes in a fraction of this");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..60), text in "[ */;,=q0-9.\"\\\\a]{0,40}") {
            let _ = choose(&bytes);
            let _ = choose(text.as_bytes());
        }
    }
}
