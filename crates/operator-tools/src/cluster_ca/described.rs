//! What a certificate says, for people.

use crate::text::shown;
use peer::ClusterRoles;
use std::net::IpAddr;
use vocabulary::{Fault, Timestamp};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::pem::Pem;

const DAY: u64 = 24 * 3600;

/// One certificate.
#[derive(Debug, Clone)]
pub(super) struct DescribedCertificate {
    /// Its common name.
    pub(super) name: String,
    issuer: String,
    is_authority: bool,
    roles: ClusterRoles,
    addresses: Vec<String>,
    /// In seconds since 1970.
    pub(super) from: u64,
    /// Its last second.
    pub(super) until: u64,
    /// Its number, the bytes as they stand there.
    pub(super) serial: Vec<u8>,
    /// Its public key, the bits as they stand there.
    public_key: Vec<u8>,
}

impl DescribedCertificate {
    /// All of a file; why it cannot be read.
    pub(super) fn read_all(pem: &[u8]) -> Result<Vec<Self>, Fault> {
        let mut all = Vec::new();
        for found in Pem::iter_from_buffer(pem) {
            let found = found.map_err(|error| Fault::data(format!("no PEM: {error}")))?;
            if found.label == "CERTIFICATE" {
                let certificate = found
                    .parse_x509()
                    .map_err(|error| Fault::data(format!("no certificate: {error}")))?;
                all.push(Self::of(&certificate, &found.contents));
            }
        }
        match all.is_empty() {
            true => Err(Fault::data("there is no certificate in it")),
            false => Ok(all),
        }
    }

    fn of(certificate: &X509Certificate<'_>, der: &[u8]) -> Self {
        let common_name = |name: &x509_parser::x509::X509Name<'_>| {
            let first = name.iter_common_name().next();
            first.map_or_else(|| name.to_string(), |found| shown(found.as_slice()))
        };
        let names = certificate.subject_alternative_name().ok().flatten();
        let names = names.map_or(&[][..], |found| &found.value.general_names);
        let addresses = names.iter().filter_map(|name| match name {
            GeneralName::IPAddress(bytes) => address(bytes).map(|found| found.to_string()),
            GeneralName::DNSName(name) => Some(shown(name.as_bytes())),
            _ => None,
        });
        let seconds = |time: x509_parser::time::ASN1Time| u64::try_from(time.timestamp()).unwrap_or(0);
        Self {
            name: common_name(certificate.subject()),
            issuer: common_name(certificate.issuer()),
            is_authority: certificate.is_ca(),
            roles: ClusterRoles::of_certificate(&der.into()),
            addresses: addresses.collect(),
            from: seconds(certificate.validity().not_before),
            until: seconds(certificate.validity().not_after),
            serial: certificate.raw_serial().to_vec(),
            public_key: certificate.public_key().subject_public_key.data.to_vec(),
        }
    }

    /// Its number in hexadecimal, as OpenSSL prints it.
    pub(super) fn serial(&self) -> String {
        self.serial.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Whether it was made for that public key.
    pub(super) fn is_for(&self, public_key: &[u8]) -> bool {
        self.public_key == public_key
    }

    /// Whether both were made for one key.
    pub(super) fn has_key_of(&self, other: &Self) -> bool {
        self.is_for(&other.public_key)
    }

    /// Whether that is the authority that issued it.
    pub(super) fn is_issued_by(&self, authority: &Self) -> bool {
        self.issuer == authority.name
    }

    /// All of it.
    pub(super) fn line(&self, now: u64) -> String {
        let end = match self.until.checked_sub(now) {
            None => format!("ended on {}", day(self.until)),
            Some(left) => format!("until {} ({} days)", day(self.until), left.div_ceil(DAY)),
        };
        let Self { name, issuer, .. } = self;
        match self.is_authority {
            true => format!("authority {name:?}, {end}"),
            false => format!(
                "{name}, role {}, {}, by {issuer:?}, {end}",
                self.roles,
                self.addresses.join(" ")
            ),
        }
    }
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}

/// The day of a time, as `2026-11-24`.
pub(super) fn day(seconds: u64) -> String {
    let mut text = second(seconds);
    text.truncate("2026-11-24".len());
    text
}

/// A time, as `2026-11-24T09:30:00`.
pub(super) fn second(seconds: u64) -> String {
    let mut text = Timestamp::from_seconds(seconds).iso();
    text.truncate("2026-11-24T09:30:00".len());
    text
}
