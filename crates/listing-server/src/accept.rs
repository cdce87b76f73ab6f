//! In which form a listing is wanted: `format=` or `Accept`.
//!
//! Always holds: parsing never fails but by refusal (400 for what is no `Accept`, 406 for what
//! we do not have).

use http::StatusCode;
use storage_shell::Refusal;
use vocabulary::names::query_value;

/// A form of listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListingFormat {
    Plain,
    Json,
    /// `application/xml`.
    Xml,
    /// The same under its older name `text/xml`.
    TextXml,
}

/// In the order of preference between equals.
const OFFERED: [ListingFormat; 4] = [
    ListingFormat::Plain,
    ListingFormat::Json,
    ListingFormat::Xml,
    ListingFormat::TextXml,
];

impl ListingFormat {
    fn media_type(self) -> (&'static str, &'static str) {
        match self {
            ListingFormat::Plain => ("text", "plain"),
            ListingFormat::Json => ("application", "json"),
            ListingFormat::Xml => ("application", "xml"),
            ListingFormat::TextXml => ("text", "xml"),
        }
    }

    /// The header of the answer.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            ListingFormat::Plain => "text/plain; charset=utf-8",
            ListingFormat::Json => "application/json; charset=utf-8",
            ListingFormat::Xml => "application/xml; charset=utf-8",
            ListingFormat::TextXml => "text/xml; charset=utf-8",
        }
    }
}

/// What the request wants.
pub(crate) fn format(query: &str, accept: Option<&str>) -> Result<ListingFormat, Refusal> {
    if let Some(Ok(format)) = query_value(query, "format")
        && !format.is_empty()
    {
        return Ok(match format.to_ascii_lowercase().as_str() {
            "json" => ListingFormat::Json,
            "xml" => ListingFormat::Xml,
            _ => ListingFormat::Plain,
        });
    }
    let Some(accept) = accept.filter(|a| !a.trim().is_empty()) else {
        return Ok(ListingFormat::Plain);
    };
    let ranges = accept
        .split(',')
        .map(parse_range)
        .collect::<Option<Vec<MediaRange<'_>>>>()
        .ok_or_else(|| Refusal::labelled_bad_request("Invalid Accept header"))?;
    best(&ranges).ok_or(Refusal::Page(StatusCode::NOT_ACCEPTABLE))
}

struct MediaRange<'a> {
    main: &'a str,
    sub: &'a str,
    quality: f64,
}

fn parse_range(text: &str) -> Option<MediaRange<'_>> {
    let mut parts = text.split(';').map(str::trim);
    let (main, sub) = parts.next()?.split_once('/')?;
    let is_token = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_graphic() && b != b'/');
    if !is_token(main) || !is_token(sub) {
        return None;
    }
    let mut quality = 1.0;
    for parameter in parts {
        if let Some(("q", value)) = parameter.split_once('=').map(|(k, v)| (k.trim(), v.trim())) {
            quality = value.parse().ok().filter(|q: &f64| (0.0..=1.0).contains(q))?;
        }
    }
    Some(MediaRange { main, sub, quality })
}

/// The best of what we offer; between equals the first of the request's ranges, then of our order.
fn best(ranges: &[MediaRange<'_>]) -> Option<ListingFormat> {
    let mut found: Option<(f64, u8, ListingFormat)> = None;
    for range in ranges.iter().filter(|range| range.quality > 0.0) {
        for format in OFFERED {
            let (main, sub) = format.media_type();
            let specific = match (range.main, range.sub) {
                ("*", "*") => 0,
                (m, "*") if m == main => 1,
                (m, s) if m == main && s == sub => 2,
                _ => continue,
            };
            let better = found.is_none_or(|(quality, depth, _)| (range.quality, specific) > (quality, depth));
            if better {
                found = Some((range.quality, specific, format));
            }
        }
    }
    found.map(|(_, _, format)| format)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_row_per_decision() {
        let table = [
            ("format=json", Some("text/plain"), Some(ListingFormat::Json)),
            ("format=XML", None, Some(ListingFormat::Xml)),
            ("format=foo", Some("image/png"), Some(ListingFormat::Plain)),
            ("", None, Some(ListingFormat::Plain)),
            ("", Some("*/*"), Some(ListingFormat::Plain)),
            ("", Some("text/*"), Some(ListingFormat::Plain)),
            ("", Some("text/xml"), Some(ListingFormat::TextXml)),
            (
                "",
                Some("application/xml;q=0.5, text/plain;q=0.1"),
                Some(ListingFormat::Xml),
            ),
            ("", Some("application/json"), Some(ListingFormat::Json)),
            ("", Some("image/png"), None),
            ("", Some("rubbish"), None),
        ];
        for (query, accept, expected) in table {
            assert_eq!(format(query, accept).ok(), expected, "{query:?} {accept:?}");
        }
    }

    proptest! {
        #[test]
        fn any_header_is_read_or_refused(accept in "[a-z*/;=q0-9., ]*", other in "\\PC*") {
            let _ = format("", Some(&accept));
            let _ = format(&other, Some(&other));
        }
    }
}
