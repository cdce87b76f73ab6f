//! The folder of a cluster's authority.
//!
//! ```text
//! authority-1.key   0600   its key; authority-2.key of the one that replaces it, and so on
//! authority-1.pem          its certificate
//! authority-1.crl          its list of revoked certificates, once there are any
//! authorities.pem          those that nodes trust: one, or two during an exchange, the newest last; then their lists
//! issued/NAME.pem   0600   a node's certificate and key
//! replaced/NAME-SERIAL.pem what it had before, without the key
//! replaced/NAME.damaged-1  0600   what it was before, when that could not be read; then 2, and so on
//! ```

use super::CaFailure;
use super::authority::{Authority, cluster_of};
use super::described::{DescribedCertificate, day, second};
use super::revocation::RevocationList;
use durable_fs::{Locked, StorageDevice, write_file_atomically, write_private_file_atomically};
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;
use world::World;

const BUNDLE: &str = "authorities.pem";
const ISSUED: &str = "issued";
const REPLACED: &str = "replaced";
/// No file of the folder is larger.
const LARGEST: u64 = 1 << 20;
/// How long one waits for another that changes the folder.
const PATIENCE: Duration = Duration::from_secs(10);

/// See the module's header.
pub(super) struct CaFolder<'w> {
    world: &'w World,
    path: PathBuf,
}

/// An authority that nodes trust.
pub(super) struct TrustedAuthority {
    pub(super) number: u32,
    pub(super) path: PathBuf,
    pub(super) described: DescribedCertificate,
    /// In seconds since 1970.
    pub(super) ends: u64,
    pem: String,
}

impl TrustedAuthority {
    /// The name of its cluster.
    pub(super) fn cluster_name(&self) -> String {
        cluster_of(&self.described.name).to_owned()
    }

    /// What it issues before it begins or when it has ended, nothing trusts.
    pub(super) fn refuse_out_of_force(&self, now: u64, folder: &Path) -> Result<(), CaFailure> {
        let (path, from) = (self.path.display(), self.described.from);
        if now < from {
            return Err(CaFailure::Refused(format!(
                "{path} begins at {} UTC, and now it is {}: check this machine's clock",
                second(from),
                second(now)
            )));
        }
        if self.ends <= now {
            return Err(CaFailure::Refused(format!(
                "{path} ended on {}; `martlet cluster-ca rotate {}` makes another authority",
                day(self.ends),
                folder.display()
            )));
        }
        Ok(())
    }
}

/// What stands below `issued`.
#[derive(Default)]
pub(super) struct Issued {
    pub(super) certificates: Vec<(PathBuf, DescribedCertificate)>,
    /// Files that cannot be read, and why.
    pub(super) unread: Vec<(PathBuf, CaFailure)>,
}

/// What is kept of a node's file that another one takes the place of.
pub(super) enum Kept {
    /// Its certificate, without the key.
    Certificate(PathBuf),
    /// All of it, since it cannot be read.
    Damaged { path: PathBuf, reason: String },
}

/// The files of an authority.
pub(super) struct AuthorityFiles {
    pub(super) key: PathBuf,
    pub(super) certificate: PathBuf,
    revoked: PathBuf,
}

impl<'w> CaFolder<'w> {
    /// An existing one.
    pub(super) fn open(world: &'w World, path: &Path) -> Result<Self, CaFailure> {
        let folder = Self {
            world,
            path: path.to_owned(),
        };
        match folder.exists(&folder.bundle())? {
            true => Ok(folder),
            false => Err(CaFailure::Refused(format!(
                "{} is no authority's folder; `martlet cluster-ca make` makes one",
                path.display()
            ))),
        }
    }

    /// One that may not be there yet.
    pub(super) fn make(world: &'w World, path: &Path) -> Result<Self, CaFailure> {
        let folder = Self {
            world,
            path: path.to_owned(),
        };
        if !folder.exists(path)? {
            let path = match path.is_relative() {
                true => &Path::new(".").join(path),
                false => path,
            };
            let above = path.parent().unwrap_or(path);
            folder.device(above).provide_directories(path)?;
        }
        Ok(folder)
    }

    fn device(&self, root: &Path) -> std::sync::Arc<StorageDevice> {
        StorageDevice::new(self.world.files.clone(), self.world.random.clone(), root)
    }

    /// Keeps others from changing it.
    pub(super) fn lock(&self) -> Result<Locked, CaFailure> {
        Ok(self.device(&self.path).lock(&self.path, PATIENCE)?)
    }

    /// Where the authorities are that nodes trust.
    pub(super) fn bundle(&self) -> PathBuf {
        self.path.join(BUNDLE)
    }

    fn files(&self, number: u32) -> AuthorityFiles {
        AuthorityFiles {
            key: self.path.join(format!("authority-{number}.key")),
            certificate: self.path.join(format!("authority-{number}.pem")),
            revoked: self.path.join(format!("authority-{number}.crl")),
        }
    }

    fn exists(&self, path: &Path) -> Result<bool, CaFailure> {
        match self.world.files.info_of_name(path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(io("look at", path, error)),
        }
    }

    /// Whether there is an authority in it.
    pub(super) fn is_made(&self) -> Result<bool, CaFailure> {
        self.exists(&self.bundle())
    }

    /// The numbers of the authorities that are there, trusted or not, in their order.
    fn numbers(&self) -> Result<BTreeSet<u32>, CaFailure> {
        let names = names(self.world, &self.path)?;
        let number = |name: &String| {
            let spelled = name.strip_prefix("authority-")?.strip_suffix(".pem")?;
            let number = spelled.parse::<u32>().ok()?;
            (number > 0 && number.to_string() == spelled).then_some(number)
        };
        Ok(names.iter().filter_map(number).collect())
    }

    /// Writes an authority and trusts it besides those that are trusted.
    pub(super) fn add(&self, number: u32, made: &Authority) -> Result<AuthorityFiles, CaFailure> {
        let files = self.files(number);
        for path in [&files.key, &files.certificate, &files.revoked] {
            self.refuse_existing(path)?;
        }
        let trusted = match self.exists(&self.bundle())? {
            true => self.trusted()?,
            false => vec![],
        };
        self.write_private(&files.key, made.key())?;
        self.write(&files.certificate, &made.certificate)?;
        // Last: an authority that is not trusted yet issues nothing.
        let certificates = trusted.iter().map(|known| known.pem.as_str());
        let certificates = certificates.chain([made.certificate.as_str()]);
        self.write_bundle(certificates.collect(), &trusted)?;
        Ok(files)
    }

    /// All that nodes trust, the newest last.
    pub(super) fn trusted(&self) -> Result<Vec<TrustedAuthority>, CaFailure> {
        let bundle = certificates(self.world, &self.bundle())?;
        let mut all = Vec::new();
        for number in self.numbers()? {
            let path = self.files(number).certificate;
            let pem = read(self.world, &path)?;
            let Some(described) = certificates(self.world, &path)?.into_iter().next() else {
                continue;
            };
            let Some(trusted) = bundle.iter().find(|trusted| trusted.name == described.name) else {
                continue;
            };
            if !trusted.has_key_of(&described) {
                let reason = format!("{BUNDLE} holds another certificate of this name; restore the one there");
                return Err(CaFailure::Damaged { path, reason });
            }
            all.push(TrustedAuthority {
                number,
                path,
                ends: described.until,
                described,
                pem,
            });
        }
        Ok(all)
    }

    /// The authority that issues: the newest that is trusted.
    pub(super) fn issuing(&self) -> Result<(TrustedAuthority, Authority), CaFailure> {
        let newest = self.trusted()?.pop();
        let newest = newest.ok_or_else(|| CaFailure::Damaged {
            path: self.bundle(),
            reason: "it holds none of the authorities beside it".into(),
        })?;
        let authority = self.with_key(&newest)?;
        Ok((newest, authority))
    }

    fn with_key(&self, known: &TrustedAuthority) -> Result<Authority, CaFailure> {
        let key = self.files(known.number).key;
        let authority = Authority::read(known.pem.clone(), &read(self.world, &key)?);
        // The library's words might quote what it read.
        let authority = authority.map_err(|_| CaFailure::Damaged {
            path: key.clone(),
            reason: "it is no private key in PEM".into(),
        })?;
        match known.described.is_for(authority.public_key()) {
            true => Ok(authority),
            false => Err(CaFailure::Refused(format!(
                "{} is not the key of {}; restore the one made with it",
                key.display(),
                known.path.display()
            ))),
        }
    }

    /// Trusts these alone from now on, apart from what they have revoked.
    pub(super) fn trust(&self, authorities: &[TrustedAuthority]) -> Result<(), CaFailure> {
        let certificates = authorities.iter().map(|known| known.pem.as_str()).collect();
        self.write_bundle(certificates, authorities)
    }

    fn write_bundle(&self, certificates: Vec<&str>, revoking: &[TrustedAuthority]) -> Result<(), CaFailure> {
        let mut text = certificates.concat();
        for authority in revoking {
            let list = self.files(authority.number).revoked;
            if self.exists(&list)? {
                text.push_str(&read(self.world, &list)?);
            }
        }
        self.write(&self.bundle(), &text)
    }

    /// Puts a certificate on the list of the authority that issued it; false when it is there already. The list
    /// reaches nodes with the next [bundle](Self::trust).
    pub(super) fn revoke(&self, by: &TrustedAuthority, gone: &DescribedCertificate) -> Result<bool, CaFailure> {
        let path = self.files(by.number).revoked;
        let damaged = |reason: String| CaFailure::Damaged {
            path: path.clone(),
            reason,
        };
        let mut list = match self.exists(&path)? {
            true => RevocationList::read(&read(self.world, &path)?).map_err(|fault| damaged(fault.what))?,
            false => RevocationList::default(),
        };
        let now = self.world.clock.now().seconds();
        if !list.add(&gone.serial, now) {
            return Ok(false);
        }
        let text = self.with_key(by)?.sign_list(&list, now, by.ends)?;
        self.write(&path, &text)?;
        Ok(true)
    }

    /// Keeps what a node's file has as certificate, before another one takes its place; all of the file when it is
    /// damaged.
    pub(super) fn keep_replaced(&self, name: &str) -> Result<Option<Kept>, CaFailure> {
        let issued = self.path.join(ISSUED).join(format!("{name}.pem"));
        if !self.exists(&issued)? {
            return Ok(None);
        }
        let found = first_certificate(self.world, &issued);
        let replaced = self.path.join(REPLACED);
        self.device(&self.path).provide_directories(&replaced)?;
        match found {
            Ok((serial, pem)) => {
                let path = replaced.join(format!("{name}-{serial}.pem"));
                self.write(&path, &pem)?;
                Ok(Some(Kept::Certificate(path)))
            }
            Err(CaFailure::Damaged { reason, .. }) => {
                // Not called .pem: `revoke DIR DIR/replaced/*.pem` could not read it.
                let mut number = 1_u32;
                let path = loop {
                    let path = replaced.join(format!("{name}.damaged-{number}"));
                    if !self.exists(&path)? {
                        break path;
                    }
                    number += 1;
                };
                self.write_private(&path, read_bytes(self.world, &issued)?)?;
                Ok(Some(Kept::Damaged { path, reason }))
            }
            Err(failure) => Err(failure),
        }
    }

    /// What has been issued, in the order of names.
    pub(super) fn issued(&self) -> Result<Issued, CaFailure> {
        let directory = self.path.join(ISSUED);
        let mut issued = Issued::default();
        if !self.exists(&directory)? {
            return Ok(issued);
        }
        let names = names(self.world, &directory)?.into_iter();
        for name in names.filter(|name| name.ends_with(".pem")) {
            let path = directory.join(name);
            match certificates(self.world, &path) {
                Ok(found) => issued
                    .certificates
                    .extend(found.into_iter().map(|one| (path.clone(), one))),
                Err(failure) => issued.unread.push((path, failure)),
            }
        }
        Ok(issued)
    }

    /// A node's file.
    pub(super) fn write_issued(&self, name: &str, text: &str, replace: bool) -> Result<PathBuf, CaFailure> {
        let issued = self.path.join(ISSUED);
        let path = issued.join(format!("{name}.pem"));
        if !replace && self.exists(&path)? {
            return Err(CaFailure::Refused(format!(
                "{} exists: --replace issues another one in its place, with another key",
                path.display()
            )));
        }
        self.device(&self.path).provide_directories(&issued)?;
        self.write_private(&path, text)?;
        Ok(path)
    }

    fn refuse_existing(&self, path: &Path) -> Result<(), CaFailure> {
        match self.exists(path)? {
            true => Err(CaFailure::Refused(format!(
                "{} exists and is not overwritten; move it away",
                path.display()
            ))),
            false => Ok(()),
        }
    }

    fn write(&self, path: &Path, text: &str) -> Result<(), CaFailure> {
        let (directory, name) = place(path)?;
        Ok(write_file_atomically(self.world, directory, name, text.as_bytes())?)
    }

    fn write_private(&self, path: &Path, content: impl AsRef<[u8]>) -> Result<(), CaFailure> {
        let (directory, name) = place(path)?;
        let content = content.as_ref();
        Ok(write_private_file_atomically(self.world, directory, name, content)?)
    }
}

/// The first certificate of a file: its number, and its PEM without the key that may be beside it.
fn first_certificate(world: &World, path: &Path) -> Result<(String, String), CaFailure> {
    const END: &str = "-----END CERTIFICATE-----";
    let text = read(world, path)?;
    let first = certificates(world, path)?.into_iter().next();
    let begin = text.find("-----BEGIN CERTIFICATE-----");
    let pem = begin.and_then(|begin| text[begin..].find(END).map(|end| &text[begin..begin + end + END.len()]));
    let found = first.zip(pem).ok_or_else(|| CaFailure::Damaged {
        path: path.to_owned(),
        reason: "its certificate has no end".into(),
    });
    found.map(|(first, pem)| (first.serial(), format!("{pem}\n")))
}

fn place(path: &Path) -> Result<(&Path, &str), CaFailure> {
    let name = path.file_name().and_then(|name| name.to_str());
    let parts = path.parent().zip(name);
    parts.ok_or_else(|| CaFailure::Refused(format!("{} is no path of a file", path.display())))
}

fn io(doing: &'static str, path: &Path, error: std::io::Error) -> CaFailure {
    let path = path.to_owned();
    CaFailure::Io { doing, path, error }
}

/// The names in a directory, sorted.
fn names(world: &World, directory: &Path) -> Result<Vec<String>, CaFailure> {
    let mut names = Vec::new();
    let listed = world.files.open_directory(directory);
    let listed = listed.and_then(|opened| opened.list(&mut |name| names.extend(name.to_str().map(str::to_owned))));
    listed.map_err(|error| io("list", directory, error))?;
    names.sort();
    Ok(names)
}

fn read_bytes(world: &World, path: &Path) -> Result<Vec<u8>, CaFailure> {
    let bytes = world.files.read(path, LARGEST);
    bytes.map_err(|error| io("read", path, error))
}

fn read(world: &World, path: &Path) -> Result<String, CaFailure> {
    String::from_utf8(read_bytes(world, path)?).map_err(|_| CaFailure::Damaged {
        path: path.to_owned(),
        reason: "it is no PEM".into(),
    })
}

/// The certificates in a file.
pub(super) fn certificates(world: &World, path: &Path) -> Result<Vec<DescribedCertificate>, CaFailure> {
    let text = read(world, path)?;
    DescribedCertificate::read_all(text.as_bytes()).map_err(|fault| CaFailure::Damaged {
        path: path.to_owned(),
        reason: fault.what,
    })
}

/// The authorities' keys in a folder that others than their owner may read or change. A folder or a key that cannot be
/// looked at is the matter of what uses it.
pub(super) fn keys_open_to_others(world: &World, folder: &Path) -> Vec<PathBuf> {
    let names = names(world, folder).unwrap_or_default().into_iter();
    let keys = names.filter(|name| name.starts_with("authority-") && name.ends_with(".key"));
    let paths = keys.map(|name| folder.join(name));
    paths
        .filter(|path| world.files.is_open_to_others(path).unwrap_or(false))
        .collect()
}

/// Whether a node may be called that: its file and a host name are made of it.
pub(super) fn check_name(name: &str) -> Result<(), CaFailure> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    let good = name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(is_part) && name.len() < 250;
    match good {
        true => Ok(()),
        false => Err(CaFailure::Refused(format!(
            "--name {name:?}: expected a host name: letters, digits, dots, dashes and underscores"
        ))),
    }
}
