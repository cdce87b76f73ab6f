//! `dispersion.conf`: what `dispersion-populate` and `dispersion-report` work with.

use crate::declare::{Options, Scope, options};
use crate::ini::Document;
use crate::kinds::Secret;
use crate::report::SettingsError;
use std::path::{Path, PathBuf};

options! {
    /// `[dispersion]`. The tools need an account that is used for nothing else.
    pub struct DispersionSettings {
        /// Where a token is to be had: TempAuth's address, or Keystone's.
        auth_url: String = "http://localhost:8080/auth/v1.0",
        /// User of the requests: account:user for TempAuth, tenant:user for Keystone 2.0, user for Keystone 3.
        auth_user: String = "",
        /// The password.
        auth_key: Secret = "",
        /// 1.0 (TempAuth), 2.0 or 3 (Keystone).
        auth_version: String = "1.0",
        /// The project, for Keystone 3.
        project_name: String = "",
        /// The project's domain, for Keystone 3.
        project_domain_name: String = "",
        /// The user's domain, for Keystone 3.
        user_domain_name: String = "",
        /// Which of Keystone's endpoints is used.
        endpoint_type: String = "publicURL",
        /// Its region, when there are several.
        region_name: String = "",
        /// Do not verify certificates, Keystone's and the gateway's.
        keystone_api_insecure: bool = "no",
        /// Authorities in PEM that vouch for the certificates of Keystone and the gateway, such as one of your own; the
        /// variables SSL_CERT_FILE and SSL_CERT_DIR, or else the authorities that browsers trust, when empty.
        cafile: Option<PathBuf> = "",
        /// Directory of swift.conf and the rings.
        swift_dir: PathBuf = "/etc/swift",
        /// Share of the partitions that are looked at, in per cent.
        dispersion_coverage: f64 = "1.0",
        /// How often a request that failed is repeated.
        retries: u32 = "5",
        /// Requests under way at the same time.
        concurrency: usize = "25",
        /// Whether dispersion-populate makes containers.
        container_populate: bool = "yes",
        /// Whether it makes objects.
        object_populate: bool = "yes",
        /// Whether dispersion-report looks at containers.
        container_report: bool = "yes",
        /// Whether it looks at objects.
        object_report: bool = "yes",
        /// Report in JSON.
        dump_json: bool = "no",
    }
}

/// The section.
pub const SECTION: &str = "dispersion";
/// The usual name of the file.
pub const FILE: &str = "dispersion.conf";

impl DispersionSettings {
    /// Reads a file. As OpenStack's tools read this one, `%%` is a percent sign in every value; in the others
    /// only where a value names an option too. A single one, which OpenStack's refuse, is one as well.
    pub fn load(path: &Path) -> Result<Self, SettingsError> {
        let mut document = Document::load(path)?;
        let options = document.sections.iter_mut().flat_map(|section| &mut section.options);
        for option in options.filter(|option| !option.value.contains("%(")) {
            option.value = option.value.replace("%%", "%");
        }
        Self::read(&Scope::plain(&document, SECTION)?)
    }
}
