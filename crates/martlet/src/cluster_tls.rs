//! The credentials of a process within its cluster: read at start, read again when their files change.
//!
//! Always holds: files are read as the user that the process keeps, so that what could be read at start can be read
//! when it changes; files that have become unreadable or do not go together leave what is in force as it is, with one
//! warning that names the file; keys are never logged.
//! What is done with them: `peer`'s `cluster_tls`.

use crate::failure::CommandFailure;
use peer::message::ServerKind;
use peer::{ClusterArrival, ClusterClient, ClusterFiles, ClusterRole, ClusterTls, Peers, PlainNodes, TlsError};
use settings::ClusterTlsMode;
use settings::declare::{Options, Scope};
use settings::ini::{DEFAULT, Document};
use settings::server::ServerCommon;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use world::World;
use world::files::FileInfo;

/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// How long before its end a certificate is warned of.
const ENDS_SOON: Duration = Duration::from_secs(14 * 24 * 3600);
/// Between two such warnings.
const BETWEEN_WARNINGS: Duration = Duration::from_secs(24 * 3600);
/// No bundle of certificates is larger.
const LARGEST: u64 = 1 << 20;

/// What the process shows others, and the files that came from.
pub struct ClusterCredentials {
    tls: ClusterTls,
    mode: ClusterTlsMode,
    plain: PlainNodes,
    files: CredentialFiles,
}

#[derive(Clone)]
struct CredentialFiles {
    certificate: PathBuf,
    key: PathBuf,
    authorities: PathBuf,
}

/// The content of the files. Not to be printed: there is a key in it.
struct CredentialTexts {
    certificate: Vec<u8>,
    key: Vec<u8>,
    authorities: Vec<u8>,
}

/// Peers that are reached as `common` asks for.
pub fn peers(world: &World, common: &ServerCommon) -> Result<Arc<Peers>, CommandFailure> {
    Ok(connect(world, ClusterCredentials::load(world, common)?))
}

/// The same for a daemon that deletes and moves objects as a client does.
pub fn peers_of_client(world: &World, common: &ServerCommon, daemon: &str) -> Result<Arc<Peers>, CommandFailure> {
    let credentials = ClusterCredentials::load(world, common)?;
    if let Some(credentials) = &credentials {
        let consequence = format!("{daemon} needs upkeep; storage servers answer what the others may not ask with 403");
        credentials.warn_without(ClusterRole::Upkeep, &consequence);
    }
    Ok(connect(world, credentials))
}

fn connect(world: &World, credentials: Option<ClusterCredentials>) -> Arc<Peers> {
    let client = credentials.as_ref().and_then(ClusterCredentials::client);
    if let Some(credentials) = credentials {
        world.spawn(credentials.watch(world.clone()));
    }
    Arc::new(Peers::secured(world.clone(), client))
}

/// Peers of a tool, which has ended before a file changes, from a server's configuration if there is one.
pub fn peers_of_tool(world: &World, conf: Option<&Path>) -> Result<Peers, CommandFailure> {
    let Some(conf) = conf else {
        return Ok(Peers::new(world.clone()));
    };
    let common = ServerCommon::read(&Scope::plain(&Document::load(conf)?, DEFAULT)?)?;
    let credentials = ClusterCredentials::load(world, &common)?;
    let client = credentials.as_ref().and_then(ClusterCredentials::client);
    Ok(Peers::secured(world.clone(), client))
}

impl ClusterCredentials {
    /// What the configuration asks for, if it does.
    pub fn load(world: &World, common: &ServerCommon) -> Result<Option<Self>, CommandFailure> {
        if common.cluster_tls == ClusterTlsMode::Off {
            return Ok(None);
        }
        let missing = |option: &str| {
            CommandFailure::Usage(format!(
                "cluster_tls is on, but {option} is not set; make certificates with `martlet cluster-ca`, or set \
                 cluster_tls = off"
            ))
        };
        let certificate = common.cluster_tls_cert_file.clone();
        let certificate = certificate.ok_or_else(|| missing("cluster_tls_cert_file"))?;
        let authorities = common.cluster_tls_ca_file.clone();
        let files = CredentialFiles {
            key: common
                .cluster_tls_key_file
                .clone()
                .unwrap_or_else(|| certificate.clone()),
            certificate,
            authorities: authorities.ok_or_else(|| missing("cluster_tls_ca_file"))?,
        };
        let plain = PlainNodes::parse(common.cluster_tls_plain.iter().map(String::as_str));
        let plain = plain.map_err(|error| CommandFailure::Usage(format!("cluster_tls_plain: {error}")))?;
        let texts = files.read(world)?;
        let tls = ClusterTls::new(world.clock.clone(), texts.as_files()).map_err(|error| files.blame(error))?;
        Ok(Some(Self {
            tls,
            mode: common.cluster_tls,
            plain,
            files,
        }))
    }

    /// For connections to others, when TLS is spoken to them.
    pub fn client(&self) -> Option<ClusterClient> {
        self.mode.is_spoken().then(|| ClusterClient {
            tls: self.tls.clone(),
            plain: self.plain.clone(),
        })
    }

    /// For the connections of others.
    pub fn arrival(&self, server: ServerKind) -> ClusterArrival {
        let role = match server {
            ServerKind::Account => ClusterRole::Account,
            ServerKind::Container => ClusterRole::Container,
            ServerKind::Object => ClusterRole::Object,
        };
        let refused = format!(
            "an {} server that shows it is refused by others of its kind",
            role.word()
        );
        self.warn_without(role, &refused);
        ClusterArrival {
            tls: self.tls.clone(),
            required: self.mode == ClusterTlsMode::Require,
            server,
        }
    }

    /// Says what follows when the certificate lacks a role that it should have.
    fn warn_without(&self, role: ClusterRole, consequence: &str) {
        let roles = self.tls.roles();
        if !roles.has(role) {
            let certificate = self.files.certificate.display();
            tracing::warn!("{certificate} is a certificate for {roles}; {consequence}");
        }
    }

    /// Reads files that change from now on, for ever.
    pub async fn watch(self, world: World) {
        let (mut seen, mut failing) = (self.files.look(&world), None);
        let mut warned: Option<Duration> = None;
        loop {
            let now = world.clock.elapsed();
            if warned.is_none_or(|at| now.saturating_sub(at) >= BETWEEN_WARNINGS) && self.tls.ends_within(ENDS_SOON) {
                warned = Some(now);
                let (file, days) = (self.files.certificate.display(), ENDS_SOON.as_secs() / 86_400);
                tracing::warn!("{file}, or the authority behind it, ends within {days} days; issue a new certificate");
            }
            world.clock.sleep(LOOK_EVERY).await;
            let found = self.files.look(&world);
            // What failed may work later without a change: a certificate that begins in a moment.
            if found == seen && failing.is_none() {
                continue;
            }
            seen = found;
            let taken = self.files.read(&world).and_then(|texts| {
                let replaced = self.tls.replace(texts.as_files());
                replaced.map_err(|error| self.files.blame(error))
            });
            let failure = taken.err().map(|error| error.to_string());
            match &failure {
                None => {
                    warned = None;
                    tracing::info!("{} has been read and is in force", self.files.certificate.display());
                }
                Some(error) if failing.as_ref() != Some(error) => {
                    tracing::warn!("{error}; the cluster_tls credentials read before stay in force");
                }
                Some(_) => {}
            }
            failing = failure;
        }
    }
}

impl CredentialFiles {
    fn paths(&self) -> [&Path; 3] {
        [&self.certificate, &self.key, &self.authorities]
    }

    fn read(&self, world: &World) -> Result<CredentialTexts, CommandFailure> {
        let read = |path: &Path| {
            let read = world.files.read(path, LARGEST);
            read.map_err(CommandFailure::io("read", path))
        };
        Ok(CredentialTexts {
            certificate: read(&self.certificate)?,
            key: read(&self.key)?,
            authorities: read(&self.authorities)?,
        })
    }

    fn look(&self, world: &World) -> [Option<FileInfo>; 3] {
        self.paths().map(|path| world.files.info(path).ok())
    }

    /// Names the file that is at fault.
    fn blame(&self, error: TlsError) -> CommandFailure {
        let [certificate, key, authorities] = self.paths().map(Path::display);
        CommandFailure::Usage(match &error {
            TlsError::Authorities(_) => format!("cluster_tls_ca_file {authorities}: {error}"),
            TlsError::Key(_) => format!("cluster_tls_key_file {key}: {error}"),
            TlsError::Unusable(_) => format!("cluster_tls_cert_file {certificate} with key {key}: {error}"),
            TlsError::NotVouchedFor(_) => {
                format!("cluster_tls_cert_file {certificate} with cluster_tls_ca_file {authorities}: {error}")
            }
            _ => format!("cluster_tls_cert_file {certificate}: {error}"),
        })
    }
}

impl CredentialTexts {
    fn as_files(&self) -> ClusterFiles<'_> {
        ClusterFiles {
            certificate: &self.certificate,
            key: &self.key,
            authorities: &self.authorities,
        }
    }
}

/// Both options would encrypt the same connections.
pub fn refuse_two_kinds(common: &ServerCommon) -> Result<(), CommandFailure> {
    match common.cert_file.is_some() && common.cluster_tls != ClusterTlsMode::Off {
        true => Err(CommandFailure::Usage(
            "a storage server has either cert_file or cluster_tls: take one of them out".into(),
        )),
        false => Ok(()),
    }
}
