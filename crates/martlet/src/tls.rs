//! Certificates: read at start, before privileges are given up; read again when their files change.
//!
//! Always holds: files that have become unreadable or do not go together leave the certificate in force
//! as it is, with one warning per change; what is served is never a certificate with another's key.

use crate::failure::CommandFailure;
use peer::Tls;
use settings::server::ServerCommon;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};
use tokio::signal::unix::{SignalKind, signal};
use world::World;

/// How often the files are looked at; SIGHUP, sent to the worker itself, looks at once.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// A certificate in force and the files it came from.
pub struct Certificate {
    tls: Tls,
    files: Files,
}

struct Files {
    certificate: PathBuf,
    key: PathBuf,
}

impl Certificate {
    /// What the configuration names, if it does.
    pub fn load(common: &ServerCommon) -> Result<Option<Self>, CommandFailure> {
        let Some(certificate) = common.cert_file.clone() else {
            return Ok(None);
        };
        let key = common.key_file.clone().unwrap_or_else(|| certificate.clone());
        let files = Files { certificate, key };
        let (certificate, key) = files.read()?;
        let tls = Tls::new(&certificate, &key).map_err(|error| files.blame(error))?;
        Ok(Some(Self { tls, files }))
    }

    /// For the server; changes by [`Certificate::watch`] reach it.
    pub fn tls(&self) -> Tls {
        self.tls.clone()
    }

    /// Reads files that change from now on, for ever.
    pub async fn watch(self, world: World) {
        let Ok(mut hang_up) = signal(SignalKind::hangup()) else {
            return tracing::warn!("cannot watch for SIGHUP; changed certificates will not be read");
        };
        let mut seen = self.files.modified();
        loop {
            let asked = tokio::select! {
                () = world.clock.sleep(LOOK_EVERY) => false,
                _ = hang_up.recv() => true,
            };
            let now = self.files.modified();
            if now == seen && !asked {
                continue;
            }
            seen = now;
            let fresh = self.files.read().and_then(|(certificate, key)| {
                let replaced = self.tls.replace(&certificate, &key);
                replaced.map_err(|error| self.files.blame(error))
            });
            match fresh {
                Ok(()) => tracing::info!("{} has been read and is in force", self.files.certificate.display()),
                Err(error) => tracing::warn!("{error}; the certificate read before stays in force"),
            }
        }
    }
}

impl Files {
    fn read(&self) -> Result<(Vec<u8>, Vec<u8>), CommandFailure> {
        let read = |path: &PathBuf| std::fs::read(path).map_err(CommandFailure::io("read", path));
        Ok((read(&self.certificate)?, read(&self.key)?))
    }

    fn modified(&self) -> [Option<SystemTime>; 2] {
        let modified = |path: &PathBuf| std::fs::metadata(path).and_then(|meta| meta.modified()).ok();
        [modified(&self.certificate), modified(&self.key)]
    }

    fn blame(&self, error: peer::TlsError) -> CommandFailure {
        CommandFailure::Usage(format!(
            "cert_file {} with key_file {}: {error}",
            self.certificate.display(),
            self.key.display()
        ))
    }
}
