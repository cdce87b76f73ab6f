//! What is in the certificates of a cluster.
//!
//! | | authority | node |
//! |---|---|---|
//! | key | ECDSA on P-256 | ECDSA on P-256 |
//! | subject | `CN=NAME authority N` | `CN=HOST` |
//! | alternative names | – | the host, its addresses, a URI `martlet-role:…` for each role |
//! | used for | signing certificates, not authorities | TLS as a client; for roles of servers also as a server |
//!
//! Both begin an hour before they are made, so that nodes whose clocks are a little behind take them at once.

use super::CaFailure;
use super::revocation::RevocationList;
use super::validity::{CLOCKS_BEHIND, Validity};
use peer::{ClusterRole, ClusterRoles};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    SanType,
};
use std::net::IpAddr;

/// An authority that can issue.
pub(super) struct Authority {
    /// PEM.
    pub(super) certificate: String,
    key: KeyPair,
}

/// What a node's certificate says.
pub(super) struct WantedCertificate<'a> {
    pub(super) name: &'a str,
    pub(super) roles: ClusterRoles,
    pub(super) addresses: &'a [IpAddr],
    pub(super) validity: Validity,
}

impl Authority {
    /// A new one of a cluster.
    pub(super) fn make(cluster: &str, number: u32, validity: Validity) -> Result<Self, CaFailure> {
        let mut params = CertificateParams::default();
        params
            .distinguished_name
            .push(DnType::CommonName, format!("{cluster}{NAMED}{number}"));
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        validity.set(&mut params);
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?.pem();
        Ok(Self { certificate, key })
    }

    /// One that was made before.
    pub(super) fn read(certificate: String, key: &str) -> Result<Self, rcgen::Error> {
        let key = KeyPair::from_pem(key)?;
        Ok(Self { certificate, key })
    }

    /// Its public key, the bits as certificates have them.
    pub(super) fn public_key(&self) -> &[u8] {
        self.key.public_key_raw()
    }

    /// The key in PEM.
    pub(super) fn key(&self) -> String {
        self.key.serialize_pem()
    }

    /// A node's certificate and a new key for it, in PEM.
    pub(super) fn issue(&self, wanted: &WantedCertificate<'_>) -> Result<String, CaFailure> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, wanted.name);
        let names = &mut params.subject_alt_names;
        names.push(SanType::DnsName(wanted.name.try_into()?));
        names.extend(wanted.addresses.iter().copied().map(SanType::IpAddress));
        for role in wanted.roles.iter() {
            names.push(SanType::URI(role.uri().try_into()?));
        }
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        if wanted.roles.iter().any(ClusterRole::is_server) {
            params.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth);
        }
        params.use_authority_key_identifier_extension = true;
        wanted.validity.set(&mut params);
        let key = KeyPair::generate()?;
        let issuer = Issuer::from_ca_cert_pem(&self.certificate, &self.key)?;
        let certificate = params.signed_by(&key, &issuer)?;
        Ok(certificate.pem() + &key.serialize_pem())
    }
}

impl Authority {
    /// Its list in PEM; it holds until the authority ends.
    pub(super) fn sign_list(&self, list: &RevocationList, now: u64, ends: u64) -> Result<String, CaFailure> {
        let issuer = Issuer::from_ca_cert_pem(&self.certificate, &self.key)?;
        let validity = Validity {
            from: now.saturating_sub(CLOCKS_BEHIND),
            until: ends,
        };
        Ok(list.signed_by(&issuer, validity)?.pem()?)
    }
}

/// Between the cluster's name and the number of its authority.
const NAMED: &str = " authority ";

/// The cluster's name in an authority's.
pub(super) fn cluster_of(authority: &str) -> &str {
    authority.rsplit_once(NAMED).map_or(authority, |(cluster, _)| cluster)
}
