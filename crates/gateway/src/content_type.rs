//! The content type of an upload that declares none, or asks to have it guessed.
//!
//! A large object's manifest carries its true size in the type (`;swift_bytes=`), for the listing.
//! Guessed from the name's extension, for a compressed file (`.tar.gz`) from the one before, as
//! Python's `mimetypes` does. Always holds: what reaches storage has a content type of valid UTF-8
//! without Swift's private parameters.

use http::header::HeaderValue;
use request_pipeline::constraints::{PRIVATE_PARAMETER, has_private_parameter};
use request_pipeline::{ClientRequest, Response, reply};

const DEFAULT: HeaderValue = HeaderValue::from_static("application/octet-stream");
/// Extensions that say how a file is compressed, not what it is.
const ENCODINGS: [&str; 7] = [".gz", ".bz2", ".xz", ".Z", ".br", ".zst", ".lz"];
/// What Python's `mimetypes` knows and the library here does not, or tells differently.
const PYTHONS: &[(&str, &str)] = &[
    ("3g2", "audio/3gpp2"),
    ("3gp", "audio/3gpp"),
    ("3gpp", "audio/3gpp"),
    ("3gpp2", "audio/3gpp2"),
    ("a", "application/octet-stream"),
    ("aif", "audio/x-aiff"),
    ("aifc", "audio/x-aiff"),
    ("aiff", "audio/x-aiff"),
    ("ass", "audio/aac"),
    ("bat", "text/plain"),
    ("cdf", "application/x-netcdf"),
    ("dll", "application/octet-stream"),
    ("h5", "application/x-hdf5"),
    ("ico", "image/vnd.microsoft.icon"),
    ("js", "application/javascript"),
    ("ksh", "text/plain"),
    ("loas", "audio/aac"),
    ("m3u", "application/vnd.apple.mpegurl"),
    ("m3u8", "application/vnd.apple.mpegurl"),
    ("mif", "application/x-mif"),
    ("mjs", "text/javascript"),
    ("o", "application/octet-stream"),
    ("obj", "application/octet-stream"),
    ("opus", "audio/opus"),
    ("pl", "text/plain"),
    ("py", "text/x-python"),
    ("pyc", "application/x-python-code"),
    ("pyo", "application/x-python-code"),
    ("ram", "application/x-pn-realaudio"),
    ("rdf", "application/xml"),
    ("sgm", "text/x-sgml"),
    ("sgml", "text/x-sgml"),
    ("srt", "text/plain"),
    ("svgz", "image/svg+xml"),
    ("taz", "application/x-tar"),
    ("tbz2", "application/x-tar"),
    ("tgz", "application/x-tar"),
    ("txz", "application/x-tar"),
    ("tz", "application/x-tar"),
    ("wav", "audio/x-wav"),
    ("wsdl", "application/xml"),
    ("xlb", "application/vnd.ms-excel"),
    ("xml", "text/xml"),
    ("xpdl", "application/xml"),
    ("xsl", "application/xml"),
];

/// Where a feature that stores a manifest says how large the whole is; clients cannot.
const WHOLE_SIZE: &str = "x-object-sysmeta-slo-size";
const SIZE_PARAMETER: &str = "swift_bytes";

/// Makes sure that the request has one.
pub(crate) fn resolve(request: &mut ClientRequest, object: &str) -> Result<(), Response> {
    let is_clients = !request.own_content_type;
    let Some(size) = request.header(WHOLE_SIZE).filter(|size| !size.is_empty()) else {
        return resolve_declared(request, object, is_clients);
    };
    let size = size.to_owned();
    resolve_declared(request, object, false)?;
    let declared = request.header("content-type").unwrap_or_default();
    let parameter = format!("{SIZE_PARAMETER}={size}");
    if declared.rsplit(';').next().is_some_and(|last| last.trim() == parameter) {
        return Ok(());
    }
    let whole = HeaderValue::from_bytes(format!("{declared};{parameter}").as_bytes());
    // Text that was a header value, and digits.
    request.headers.insert("content-type", whole.unwrap_or(DEFAULT));
    Ok(())
}

fn is_size(parameter: &str) -> bool {
    parameter
        .trim()
        .strip_prefix(SIZE_PARAMETER)
        .is_some_and(|rest| rest.trim_start().starts_with('='))
}

/// Takes the size off a type that is shown to a client. It stands last.
pub(crate) fn show(headers: &mut http::HeaderMap) {
    let Some(declared) = headers.get("content-type").map(HeaderValue::as_bytes) else {
        return;
    };
    let Some(at) = declared.iter().rposition(|byte| *byte == b';') else {
        return;
    };
    if std::str::from_utf8(&declared[at + 1..]).is_ok_and(is_size)
        && let Ok(shown) = HeaderValue::from_bytes(&declared[..at])
    {
        headers.insert("content-type", shown);
    }
}

fn resolve_declared(request: &mut ClientRequest, object: &str, is_clients: bool) -> Result<(), Response> {
    let detect = request.headers.remove("x-detect-content-type");
    let detect = detect
        .as_ref()
        .and_then(|v| v.to_str().ok())
        .is_some_and(request_pipeline::is_true);
    let declared = request.headers.get("content-type").filter(|value| !value.is_empty());
    let Some(declared) = declared.filter(|_| !detect) else {
        let guessed = guess(object).and_then(|guess| HeaderValue::from_str(guess).ok());
        request.headers.insert("content-type", guessed.unwrap_or(DEFAULT));
        return Ok(());
    };
    let Ok(text) = std::str::from_utf8(declared.as_bytes()) else {
        return Err(reply::plain(400, "Invalid Content-Type"));
    };
    match is_clients && has_private_parameter(text) {
        true => Err(reply::html(400, PRIVATE_PARAMETER.into())),
        false => Ok(()),
    }
}

fn guess(object: &str) -> Option<&'static str> {
    let name = object.rsplit('/').next().unwrap_or(object);
    let plain = ENCODINGS
        .iter()
        .find_map(|encoding| name.strip_suffix(encoding))
        .unwrap_or(name);
    let extension = plain.rsplit_once('.').filter(|(stem, _)| !stem.is_empty())?.1;
    let extension = extension.to_ascii_lowercase();
    match PYTHONS.iter().find(|(known, _)| *known == extension) {
        Some((_, guessed)) => Some(guessed),
        None => mime_guess::from_ext(&extension).first_raw(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_the_whole_is_listed_and_not_shown() {
        let mut headers = http::HeaderMap::new();
        for (stored, shown) in [
            ("a/b; c=d;swift_bytes=12", "a/b; c=d"),
            ("a/b", "a/b"),
            ("a/b;swift_bytes=1;c=d", "a/b;swift_bytes=1;c=d"),
            ("a/b; swift_bytes = 1", "a/b"),
        ] {
            headers.insert("content-type", HeaderValue::from_static(stored));
            show(&mut headers);
            assert_eq!(headers["content-type"], shown);
        }
    }

    /// As OpenStack 2.38.3 answered for the same names.
    #[test]
    fn names_say_what_is_inside() {
        for (name, expected) in [
            ("a/p.jpg", Some("image/jpeg")),
            ("p.html", Some("text/html")),
            ("p.tar.gz", Some("application/x-tar")),
            ("p.json", Some("application/json")),
            ("p.WAV", Some("audio/x-wav")),
            ("p.unknown", None),
            ("plain", None),
            (".jpg", None),
        ] {
            assert_eq!(guess(name), expected, "{name}");
        }
        assert!(has_private_parameter("x/y; Swift_bytes=3"));
        assert!(!has_private_parameter("x/y; charset=swift_"));
    }
}
