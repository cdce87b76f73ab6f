//! An authority's list of certificates that it has revoked: a CRL (RFC 5280).
//!
//! Always holds: a certificate that is on the list stays on it; each list has a greater number than the one before.

use super::validity::Validity;
use rcgen::{
    CertificateRevocationList, CertificateRevocationListParams, Issuer, KeyIdMethod, RevokedCertParams, SerialNumber,
    SigningKey,
};
use std::time::Duration;
use vocabulary::Fault;
use x509_parser::pem::Pem;
use x509_parser::prelude::FromDer;
use x509_parser::revocation_list::CertificateRevocationList as ReadList;

/// See the module's header.
#[derive(Debug, Default)]
pub(super) struct RevocationList {
    /// How often it has been made.
    number: u64,
    revoked: Vec<RevokedCertificate>,
}

#[derive(Debug, PartialEq, Eq)]
struct RevokedCertificate {
    serial: Vec<u8>,
    /// In seconds since 1970.
    at: u64,
}

impl RevocationList {
    /// A list in PEM.
    pub(super) fn read(text: &str) -> Result<Self, Fault> {
        let broken = |why: &dyn std::fmt::Display| Fault::data(format!("no list of revoked certificates: {why}"));
        let found = Pem::iter_from_buffer(text.as_bytes()).next();
        let found = found
            .ok_or_else(|| broken(&"it is no PEM"))?
            .map_err(|error| broken(&error))?;
        let (_, list) = ReadList::from_der(&found.contents).map_err(|error| broken(&error))?;
        let number = list.crl_number().and_then(|number| u64::try_from(number).ok());
        let revoked = list.iter_revoked_certificates().map(|revoked| RevokedCertificate {
            serial: revoked.raw_serial().to_vec(),
            at: u64::try_from(revoked.revocation_date.timestamp()).unwrap_or(0),
        });
        Ok(Self {
            number: number.ok_or_else(|| broken(&"it has no number"))?,
            revoked: revoked.collect(),
        })
    }

    /// Whether it was not on it before.
    pub(super) fn add(&mut self, serial: &[u8], now: u64) -> bool {
        let is_new = self.revoked.iter().all(|revoked| revoked.serial != serial);
        if is_new {
            self.number += 1;
            self.revoked.push(RevokedCertificate {
                serial: serial.to_vec(),
                at: now,
            });
        }
        is_new
    }

    pub(super) fn signed_by(
        &self,
        issuer: &Issuer<'_, impl SigningKey>,
        validity: Validity,
    ) -> Result<CertificateRevocationList, rcgen::Error> {
        let since = rcgen::date_time_ymd(1970, 1, 1);
        let time = |seconds| since + Duration::from_secs(seconds);
        let revoked = self.revoked.iter().map(|revoked| RevokedCertParams {
            serial_number: SerialNumber::from_slice(&revoked.serial),
            revocation_time: time(revoked.at),
            reason_code: None,
            invalidity_date: None,
        });
        let params = CertificateRevocationListParams {
            this_update: time(validity.from),
            next_update: time(validity.until),
            crl_number: SerialNumber::from(self.number),
            issuing_distribution_point: None,
            revoked_certs: revoked.collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        params.signed_by(issuer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

    #[test]
    fn a_list_is_read_as_it_was_made() {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let validity = Validity {
            from: 1_700_000_000,
            until: 1_800_000_000,
        };
        let mut list = RevocationList::default();
        let serials = [&[0x00, 0x80, 1][..], &[0x7f], &[1; 20]];
        for (at, serial) in serials.into_iter().enumerate() {
            assert!(list.add(serial, 1_700_000_000 + at as u64));
            assert!(!list.add(serial, 5));
            let text = list.signed_by(&issuer, validity).unwrap().pem().unwrap();
            let again = RevocationList::read(&text).unwrap();
            assert_eq!(again.revoked, list.revoked);
            assert_eq!(again.number, at as u64 + 1);
        }
        for bad in [
            "",
            "nonsense",
            "-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n",
            issuer.pem().as_str(),
        ] {
            assert!(RevocationList::read(bad).is_err(), "{bad}");
        }
    }
}
