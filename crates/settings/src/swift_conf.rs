//! `swift.conf`: what all nodes of a cluster must agree on.
//!
//! Sections: `[swift-hash]` (secrets of placement), `[swift-constraints]` (limits),
//! `[storage-policy:N]`. Always holds: a [`SwiftConf`] has hash secrets and consistent policies.

use crate::declare::{OptionDecl, Options, Scope, options};
use crate::ini::Document;
use crate::report::{SettingsError, Warning};
use std::path::Path;
use vocabulary::{HashPrefix, Limits, Policies, Policy, PolicyIndex, PolicyKind};

options! {
    /// `[swift-hash]`.
    pub struct HashOptions {
        /// Secret put in front of every path before it is hashed. Never change it once data exists.
        swift_hash_path_prefix: String = "",
        /// Secret put behind every path before it is hashed. Never change it once data exists.
        swift_hash_path_suffix: String = "",
    }
}

options! {
    /// `[swift-constraints]`.
    pub struct Constraints {
        /// Largest object in bytes.
        max_file_size: u64 = "5368709122",
        /// Longest name of a metadata item in bytes.
        max_meta_name_length: usize = "128",
        /// Longest value of a metadata item in bytes.
        max_meta_value_length: usize = "256",
        /// Metadata items of one account, container or object.
        max_meta_count: usize = "90",
        /// Bytes of all metadata of one account, container or object.
        max_meta_overall_size: usize = "4096",
        /// Longest header in bytes.
        max_header_size: usize = "8192",
        /// Longest request line in bytes.
        max_request_line: usize = "8192",
        /// Headers a request may have besides those the limits on metadata imply.
        extra_header_count: usize = "0",
        /// Longest name of an object in bytes.
        max_object_name_length: usize = "1024",
        /// Most entries of a container listing, and how many are listed when none are asked for.
        container_listing_limit: usize = "10000",
        /// Most entries of an account listing, and how many are listed when none are asked for.
        account_listing_limit: usize = "10000",
        /// Longest name of an account in bytes.
        max_account_name_length: usize = "256",
        /// Longest name of a container in bytes.
        max_container_name_length: usize = "256",
        /// First segments of paths that are served.
        valid_api_versions: Vec<String> = "v1,v1.0",
        /// First character of accounts that Swift makes for itself.
        auto_create_account_prefix: String = ".",
    }
}

options! {
    /// `[storage-policy:N]`, what Martlet serves of it.
    pub struct PolicyOptions {
        /// Its name for clients: letters, digits and dashes.
        name: String = "",
        /// Further names, separated by commas.
        aliases: Vec<String> = "",
        /// Used by containers that ask for no policy.
        default: bool = "no",
        /// No new containers may use it.
        deprecated: bool = "no",
        /// replication or erasure_coding.
        policy_type: String = "replication",
        /// How objects lie on disks.
        diskfile_module: String = "",
    }
}

/// Options of erasure-coding policies: accepted, not served yet.
const ERASURE_OPTIONS: &[&str] = &[
    "ec_type",
    "ec_num_data_fragments",
    "ec_num_parity_fragments",
    "ec_object_segment_size",
    "ec_duplication_factor",
];

/// What `swift.conf` says.
#[derive(Debug, Clone)]
pub struct SwiftConf {
    /// The secrets of placement.
    pub hash: HashPrefix,
    /// How long and how many.
    pub limits: Limits,
    /// The storage policies.
    pub policies: Policies,
    /// First character of accounts that Swift makes for itself: `.`.
    pub auto_create_account_prefix: String,
    /// What is ignored, for the log.
    pub warnings: Vec<Warning>,
}

impl SwiftConf {
    /// Reads `swift.conf` (or a `swift.conf` directory).
    pub fn load(path: &Path) -> Result<Self, SettingsError> {
        Self::from_document(&Document::load(path)?)
    }

    /// Reads `swift.conf` of a server's `swift_dir`.
    pub fn load_from_dir(swift_dir: &Path) -> Result<Self, SettingsError> {
        Self::load(&swift_dir.join("swift.conf"))
    }

    /// Makes sense of a document.
    pub fn from_document(document: &Document) -> Result<Self, SettingsError> {
        let constraints = Constraints::read(&Scope::plain(document, "swift-constraints")?)?;
        Ok(Self {
            hash: hash(document)?,
            policies: policies(document)?,
            auto_create_account_prefix: constraints.auto_create_account_prefix.clone(),
            limits: limits(constraints),
            warnings: warnings(document),
        })
    }
}

fn hash(document: &Document) -> Result<HashPrefix, SettingsError> {
    let options = HashOptions::read(&Scope::plain(document, "swift-hash")?)?;
    let (prefix, suffix) = (options.swift_hash_path_prefix, options.swift_hash_path_suffix);
    HashPrefix::new(prefix, suffix).ok_or_else(|| SettingsError::MissingOption {
        file: document.path.clone(),
        section: "swift-hash".into(),
        option: "swift_hash_path_suffix".into(),
        remedy: "set it, or swift_hash_path_prefix, to the secret that all nodes of the cluster share".into(),
    })
}

fn limits(c: Constraints) -> Limits {
    Limits {
        max_file_size: c.max_file_size,
        max_meta_name_length: c.max_meta_name_length,
        max_meta_value_length: c.max_meta_value_length,
        max_meta_count: c.max_meta_count,
        max_meta_overall_size: c.max_meta_overall_size,
        max_header_size: c.max_header_size,
        max_request_line: c.max_request_line,
        extra_header_count: c.extra_header_count,
        max_object_name_length: c.max_object_name_length,
        container_listing_limit: c.container_listing_limit,
        account_listing_limit: c.account_listing_limit,
        max_account_name_length: c.max_account_name_length,
        max_container_name_length: c.max_container_name_length,
        valid_api_versions: c.valid_api_versions,
    }
}

fn policies(document: &Document) -> Result<Policies, SettingsError> {
    let mut list = Vec::new();
    let mut default = None;
    for section in &document.sections {
        let Some(number) = section.name.strip_prefix("storage-policy:") else {
            continue;
        };
        let index = number
            .trim()
            .parse()
            .map(PolicyIndex)
            .map_err(|_| SettingsError::Policies {
                file: document.path.clone(),
                message: format!("[{}]: expected a number after the colon", section.name),
            })?;
        let scope = Scope::plain(document, &section.name)?;
        let options = PolicyOptions::read(&scope)?;
        if options.default
            && let Some(other) = default.replace(index)
        {
            return Err(SettingsError::Policies {
                file: document.path.clone(),
                message: format!(
                    "[storage-policy:{other}] and [storage-policy:{index}] both say `default = yes`; keep one"
                ),
            });
        }
        list.push(policy(index, options, &scope)?);
    }
    let error = |e: vocabulary::policy::PolicyError| SettingsError::Policies {
        file: document.path.clone(),
        message: e.to_string(),
    };
    Policies::new(list, default).map_err(error)
}

fn policy(index: PolicyIndex, options: PolicyOptions, scope: &Scope) -> Result<Policy, SettingsError> {
    if options.name.is_empty() {
        return Err(scope.wrong("name", "the policy's name: letters, digits and dashes"));
    }
    if index != PolicyIndex::LEGACY && options.name.eq_ignore_ascii_case("Policy-0") {
        return Err(scope.wrong("name", "another name: Policy-0 is reserved for [storage-policy:0]"));
    }
    let (kind, module) = match options.policy_type.as_str() {
        "replication" => (PolicyKind::Replication, "egg:swift#replication.fs"),
        "erasure_coding" => (PolicyKind::ErasureCoding, "egg:swift#erasure_coding.fs"),
        _ => return Err(scope.wrong("policy_type", "replication or erasure_coding")),
    };
    if !options.diskfile_module.is_empty() && options.diskfile_module != module {
        let expected = format!("{module}; other layouts are not served");
        return Err(scope.wrong("diskfile_module", &expected));
    }
    if kind == PolicyKind::ErasureCoding {
        check_fragments(scope)?;
    }
    Ok(Policy {
        index,
        name: options.name,
        aliases: options.aliases,
        deprecated: options.deprecated,
        kind,
    })
}

fn check_fragments(scope: &Scope) -> Result<(), SettingsError> {
    for name in ["ec_num_data_fragments", "ec_num_parity_fragments"] {
        if scope.value::<usize>(name, "0")? == 0 {
            return Err(scope.wrong(name, "a whole number, one or more"));
        }
    }
    match scope.text("ec_type") {
        Some(text) if !text.is_empty() => Ok(()),
        _ => Err(scope.wrong("ec_type", "a scheme like liberasurecode_rs_vand")),
    }
}

fn warnings(document: &Document) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let known = ["DEFAULT", "swift-hash", "swift-constraints", "storage-policy:"];
    crate::check::sections(document, &known, &mut warnings);
    for section in &document.sections {
        let (table, known): (&[OptionDecl], &[&str]) = match section.name.as_str() {
            "swift-hash" => (HashOptions::TABLE, &[]),
            "swift-constraints" => (Constraints::TABLE, &[]),
            name if name.starts_with("storage-policy:") => (PolicyOptions::TABLE, ERASURE_OPTIONS),
            _ => continue,
        };
        let supported: Vec<&str> = table.iter().map(|o| o.name).collect();
        crate::check::options(document, section, &supported, known, &mut warnings);
        if section.get("policy_type").is_some_and(|o| o.value == "erasure_coding") {
            warnings.push(Warning {
                file: document.path.clone(),
                section: section.name.clone(),
                subject: "policy_type".into(),
                severity: crate::report::Severity::Ignored,
                message: format!(
                    "erasure coding of [{}] in {} is not served yet; requests to its containers' objects fail",
                    section.name,
                    document.path.display()
                ),
            });
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "[swift-hash]\nswift_hash_path_suffix = s\n";

    fn read(body: &str) -> Result<SwiftConf, String> {
        let document = Document::parse(Path::new("swift.conf"), &format!("{HASH}{body}")).unwrap();
        SwiftConf::from_document(&document).map_err(|e| e.to_string())
    }

    #[test]
    fn defaults_are_the_vocabularys() {
        let conf = read("").unwrap();
        assert_eq!(conf.limits, Limits::default());
        assert_eq!(conf.policies, Policies::default());
        assert_eq!(conf.auto_create_account_prefix, ".");
    }

    #[test]
    fn limits_and_policies() {
        let conf = read(
            "[swift-constraints]\nmax_file_size = 7\nvalid_api_versions = v0,v1\nmax_fil_size = 3\n\
             [storage-policy:0]\nname = gold\ndefault = yes\naliases = yellow, orange\n\
             [storage-policy:2]\nname = ec\npolicy_type = erasure_coding\nec_type = x\n\
             ec_num_data_fragments = 4\nec_num_parity_fragments = 2\n",
        )
        .unwrap();
        assert_eq!(conf.limits.max_file_size, 7);
        assert_eq!(conf.limits.valid_api_versions, ["v0", "v1"]);
        assert_eq!(conf.policies.by_name("ORANGE").unwrap().index, PolicyIndex(0));
        assert_eq!(
            conf.policies.get(PolicyIndex(2)).unwrap().kind,
            PolicyKind::ErasureCoding
        );
        let messages: Vec<_> = conf.warnings.iter().map(ToString::to_string).collect();
        assert!(messages[0].contains("did you mean max_file_size"), "{messages:?}");
        assert!(messages.last().unwrap().contains("not served yet"), "{messages:?}");
    }

    #[test]
    fn refusals_name_the_section() {
        for (body, expected) in [
            (
                "[swift-constraints]\nmax_file_size = x\n",
                "[swift-constraints] max_file_size = \"x\"",
            ),
            ("[storage-policy:0]\n", "[storage-policy:0] name"),
            ("[storage-policy:1]\nname=a\n", "[storage-policy:0]"),
            ("[storage-policy:x]\nname=a\n", "[storage-policy:x]: expected a number"),
            (
                "[storage-policy:0]\nname=a\n[storage-policy:1]\nname=Policy-0\n",
                "reserved",
            ),
            (
                "[storage-policy:0]\nname=a\npolicy_type=zz\n",
                "replication or erasure_coding",
            ),
            (
                "[storage-policy:0]\nname=a\npolicy_type=erasure_coding\n",
                "ec_num_data_fragments",
            ),
            (
                "[storage-policy:0]\nname=a\ndiskfile_module=egg:x#y\n",
                "egg:swift#replication.fs",
            ),
            (
                "[storage-policy:0]\nname=a\ndefault=yes\n[storage-policy:1]\nname=b\ndefault=yes\n",
                "both say",
            ),
        ] {
            let message = read(body).unwrap_err();
            assert!(message.contains(expected), "{message}");
        }
        let none = Document::parse(Path::new("swift.conf"), "[swift-hash]\nswift_hash_path_suffix =\n").unwrap();
        let message = SwiftConf::from_document(&none).unwrap_err().to_string();
        assert!(message.contains("all nodes of the cluster share"), "{message}");
    }
}
