//! Why the certificate of a server is refused, and what mends that, in words for operators.

use std::io;
use tokio_rustls::rustls::pki_types::UnixTime;
use tokio_rustls::rustls::{CertificateError, Error};
use vocabulary::Timestamp;

/// What is wrong with the certificate of `host`, when that is why a handshake failed.
pub(crate) fn described(host: &str, error: &io::Error) -> Option<String> {
    let error = error.get_ref()?.downcast_ref::<Error>()?;
    let Error::InvalidCertificate(why) = error else {
        return None;
    };
    Some(match why {
        CertificateError::Expired => ended(None),
        CertificateError::ExpiredContext { not_after, .. } => ended(Some(*not_after)),
        CertificateError::NotValidYet => early(None),
        CertificateError::NotValidYetContext { not_before, .. } => early(Some(*not_before)),
        CertificateError::UnknownIssuer => {
            "no authority that is trusted here vouches for its certificate: name the file \
                                            of its authority (cafile, or the variable SSL_CERT_FILE)"
                .to_owned()
        }
        CertificateError::NotValidForName => format!("its certificate is not for {host}: {RENAME}"),
        CertificateError::NotValidForNameContext { presented, .. } => {
            let names = presented.iter().map(|name| named(name));
            let names = names.collect::<Vec<_>>().join(", ");
            format!("its certificate is for {names}, not for {host}: {RENAME}")
        }
        CertificateError::BadSignature => "its certificate is not signed by the authority of that name: the file of \
                                           authorities may be an old one"
            .to_owned(),
        CertificateError::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => {
            "it shows the certificate of an authority as its own: give the server a certificate that the authority has \
             issued"
                .to_owned()
        }
        other => format!("its certificate is refused: {other}"),
    })
}

const RENAME: &str = "ask it by a name that is in the certificate, or issue one that has this name";

fn ended(at: Option<UnixTime>) -> String {
    let when = day(at).map(|day| format!(" on {day}")).unwrap_or_default();
    format!("its certificate ended{when}: give the server a new one, or set the clock of this machine")
}

fn early(at: Option<UnixTime>) -> String {
    let when = day(at).map(|day| format!(" before {day}")).unwrap_or_default();
    format!("its certificate is not valid yet{when}: compare the clocks of this machine and of its authority")
}

fn day(at: Option<UnixTime>) -> Option<String> {
    let at: Timestamp = at?.as_secs().to_string().parse().ok()?;
    Some(at.last_modified())
}

/// `DnsName("a.example")` → `a.example`.
fn named(name: &str) -> &str {
    let inner = name
        .split_once('(')
        .map_or(name, |(_, rest)| rest.trim_end_matches(')'));
    inner.trim_matches('"')
}
