//! `cluster-ca`: the certificates that the nodes of a cluster show each other.
//!
//! A folder holds one authority, and the certificates made with it; nodes are given copies of what they need. An
//! authority is exchanged by making another one beside it: both are trusted until the older one is dropped.
//! Always holds: certificates are made with the folder's keys alone; an authority signs with the key of its own
//! certificate, and issues while that is in force; files with a key are readable by their owner alone, from before
//! their first byte; no file is replaced unless that was asked for; files are whole and on stable storage when their
//! names are said.
//!
//! | question | file |
//! |---|---|
//! | what is in a certificate | `authority.rs` |
//! | which certificates are revoked | `revocation.rs` |
//! | which files are in the folder | `folder.rs` |
//! | what `show` prints | `described.rs` |

mod authority;
mod described;
mod folder;
mod revocation;
#[cfg(test)]
mod tests;
mod validity;

use crate::console::{Console, ToolStatus};
use crate::text::shown;
use authority::{Authority, WantedCertificate};
use clap::{Args, Subcommand};
use described::DescribedCertificate;
use folder::{CaFolder, Kept};
use peer::{ClusterRole, ClusterRoles};
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use validity::Validity;
use world::World;

/// The command line of `cluster-ca`.
#[derive(Debug, Args)]
pub struct ClusterCaArguments {
    /// What to do.
    #[command(subcommand)]
    pub command: ClusterCaCommand,
}

/// What `cluster-ca` can do.
#[derive(Debug, Subcommand)]
pub enum ClusterCaCommand {
    /// Make the authority of a new cluster in DIR, once.
    ///
    /// DIR belongs on a machine that is not a node of the cluster: with the keys in it one can be any node. Writes
    /// authority-1.key and authority-1.pem, and authorities.pem, which every node is given as cluster_tls_ca_file.
    Make(MakeArguments),
    /// Make a certificate for a node.
    ///
    /// Writes DIR/issued/NAME.pem: certificate and key in one file, which the node is given as
    /// cluster_tls_cert_file. The roles say what the processes of the node may ask of others: a
    /// gateway needs proxy; account, container and object servers, with the daemons that share
    /// their files, a role of that name each; object-expirer and container-reconciler need upkeep.
    /// Examples:
    ///
    ///   martlet cluster-ca issue ca --name proxy1 --role proxy --address 10.0.0.2
    ///   martlet cluster-ca issue ca --name node1 --role account,container,object --address 10.0.1.1
    #[command(verbatim_doc_comment)]
    Issue(IssueArguments),
    /// Make a second authority beside the one in force, to replace it.
    ///
    /// authorities.pem then holds both: give it to every node, then issue new certificates and give every node its
    /// own, then `martlet cluster-ca drop DIR` and give every node authorities.pem once more. Nothing is restarted.
    Rotate(RotateArguments),
    /// Stop trusting all authorities but the newest: the end of an exchange.
    Drop(DropArguments),
    /// Revoke certificates before they end: those of a node that was stolen, or taken out of the cluster.
    ///
    /// Puts them on their authority's list, which is part of authorities.pem: give that to every node. Nodes that have
    /// it refuse them, and end connections that were made with them.
    /// Examples:
    ///
    ///   martlet cluster-ca revoke ca ca/issued/node1.pem
    ///   martlet cluster-ca revoke ca ca/replaced/node1-*.pem
    #[command(verbatim_doc_comment)]
    Revoke(RevokeArguments),
    /// Print names, roles, addresses and ends of certificates.
    Show(ShowArguments),
}

impl ClusterCaCommand {
    /// Of the keys in the folder that it signs with.
    fn keys_open_to_others(&self, world: &World) -> Vec<PathBuf> {
        let folder = match self {
            Self::Issue(arguments) => &arguments.folder,
            Self::Rotate(arguments) => &arguments.folder,
            Self::Drop(arguments) => &arguments.folder,
            Self::Revoke(arguments) => &arguments.folder,
            Self::Make(_) | Self::Show(_) => return vec![],
        };
        folder::keys_open_to_others(world, folder)
    }
}

/// `make`.
#[derive(Debug, Args)]
pub struct MakeArguments {
    /// The authority's folder; it is made when missing.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// The cluster's name, for those who look at certificates.
    #[arg(long, value_name = "NAME", default_value = "cluster")]
    pub name: String,
    /// How long the authority lasts.
    #[arg(long, value_name = "DAYS", default_value_t = 3650, value_parser = clap::value_parser!(u32).range(1..=36500))]
    pub days: u32,
}

/// `issue`.
#[derive(Debug, Args)]
pub struct IssueArguments {
    /// The authority's folder.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// The node's name: a host name; the certificate's file is called after it.
    #[arg(long, value_name = "HOST")]
    pub name: String,
    /// What runs there: proxy, account, container, object or upkeep. May be given several times, or with commas.
    #[arg(long, value_name = "ROLE", required = true, value_delimiter = ',', value_parser = role)]
    pub role: Vec<ClusterRole>,
    /// An address of the node, as the rings have it. May be given several times, or with commas.
    #[arg(long, value_name = "IP", value_delimiter = ',')]
    pub address: Vec<IpAddr>,
    /// How long the certificate lasts; never longer than its authority.
    #[arg(long, value_name = "DAYS", default_value_t = 365, value_parser = clap::value_parser!(u32).range(1..=36500))]
    pub days: u32,
    /// Replace the certificate that was issued for this name before, and its key.
    #[arg(long)]
    pub replace: bool,
}

/// `rotate`.
#[derive(Debug, Args)]
pub struct RotateArguments {
    /// The authority's folder.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// How long the new authority lasts.
    #[arg(long, value_name = "DAYS", default_value_t = 3650, value_parser = clap::value_parser!(u32).range(1..=36500))]
    pub days: u32,
}

/// `drop`.
#[derive(Debug, Args)]
pub struct DropArguments {
    /// The authority's folder.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Though certificates were issued by the older ones that have no successor.
    #[arg(long)]
    pub force: bool,
}

/// `revoke`.
#[derive(Debug, Args)]
pub struct RevokeArguments {
    /// The authority's folder.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Files with certificates that it has issued.
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
}

/// `show`.
#[derive(Debug, Args)]
pub struct ShowArguments {
    /// An authority's folder, or files with certificates.
    #[arg(value_name = "DIR|FILE", required = true)]
    pub paths: Vec<PathBuf>,
    /// End with status 1 when a certificate ends within so many days.
    #[arg(long, value_name = "DAYS", default_value_t = 0)]
    pub within: u32,
}

fn role(word: &str) -> Result<ClusterRole, peer::UnknownRole> {
    word.parse()
}

/// Does it.
pub fn run(arguments: &ClusterCaArguments, world: &World, console: &mut Console<'_>) -> io::Result<ToolStatus> {
    for key in arguments.command.keys_open_to_others(world) {
        let line = format!(
            "warning: others than its owner may read or change {0}: chmod 600 {0}",
            key.display()
        );
        console.complain(shown(line.as_bytes()))?;
    }
    let done = match &arguments.command {
        ClusterCaCommand::Make(arguments) => make(arguments, world),
        ClusterCaCommand::Issue(arguments) => issue(arguments, world),
        ClusterCaCommand::Rotate(arguments) => rotate(arguments, world),
        ClusterCaCommand::Drop(arguments) => drop_older(arguments, world),
        ClusterCaCommand::Revoke(arguments) => revoke(arguments, world),
        ClusterCaCommand::Show(arguments) => return show(arguments, world, console),
    };
    match done {
        Ok(lines) => {
            lines.iter().try_for_each(|line| console.say(shown(line.as_bytes())))?;
            Ok(ToolStatus::SUCCESS)
        }
        Err(failure) => {
            console.complain(shown(failure.to_string().as_bytes()))?;
            Ok(ToolStatus::FAILURE)
        }
    }
}

/// Why a certificate or a file of it was not made.
#[derive(Debug, thiserror::Error)]
enum CaFailure {
    #[error("{0}")]
    Refused(String),
    #[error("cannot {doing} {}: {error}", path.display())]
    Io {
        doing: &'static str,
        path: PathBuf,
        error: io::Error,
    },
    #[error("{0}")]
    Storage(#[from] durable_fs::FsError),
    #[error("{}: {reason}", path.display())]
    Damaged { path: PathBuf, reason: String },
    #[error("cannot make a certificate: {0}")]
    Certificate(#[from] rcgen::Error),
}

fn make(arguments: &MakeArguments, world: &World) -> Result<Vec<String>, CaFailure> {
    if arguments.name.is_empty() || arguments.name.chars().any(char::is_control) {
        return Err(CaFailure::Refused("--name: expected a name that can be printed".into()));
    }
    let folder = CaFolder::make(world, &arguments.folder)?;
    let _lock = folder.lock()?;
    if folder.is_made()? {
        return Err(CaFailure::Refused(format!(
            "{} holds an authority already; `martlet cluster-ca rotate {0}` makes another one beside it",
            arguments.folder.display()
        )));
    }
    let made = Authority::make(&arguments.name, 1, Validity::of_days(world, arguments.days))?;
    let written = folder.add(1, &made)?;
    Ok(vec![
        format!(
            "wrote {}, the authority's key: keep it from everybody",
            written.key.display()
        ),
        format!("wrote {}", written.certificate.display()),
        format!(
            "wrote {}, for every node: cluster_tls_ca_file",
            folder.bundle().display()
        ),
    ])
}

fn issue(arguments: &IssueArguments, world: &World) -> Result<Vec<String>, CaFailure> {
    folder::check_name(&arguments.name)?;
    let folder = CaFolder::open(world, &arguments.folder)?;
    let _lock = folder.lock()?;
    let (newest, authority) = folder.issuing()?;
    newest.refuse_out_of_force(world.clock.now().seconds(), &arguments.folder)?;
    let roles: ClusterRoles = arguments.role.iter().copied().collect();
    let mut lines = Vec::new();
    if arguments.address.is_empty() && roles.iter().any(ClusterRole::is_server) {
        lines.push("note: without --address only rings that name this host can lead to its servers".to_owned());
    }
    let mut validity = Validity::of_days(world, arguments.days);
    if newest.ends < validity.until {
        validity.until = newest.ends;
        let day = described::day(newest.ends);
        lines.push(format!(
            "note: the certificate ends with its authority, on {day}; consider `rotate`"
        ));
    }
    let wanted = WantedCertificate {
        name: &arguments.name,
        roles,
        addresses: &arguments.address,
        validity,
    };
    let kept = match arguments.replace {
        true => folder.keep_replaced(&arguments.name)?,
        false => None,
    };
    lines.extend(kept.map(|kept| match kept {
        Kept::Certificate(path) => format!(
            "note: kept {}, the certificate before, without its key; `revoke` takes it when that key is in wrong hands",
            path.display()
        ),
        Kept::Damaged { path, reason } => {
            format!("note: kept {}, the file before, as it was: {reason}", path.display())
        }
    }));
    let path = folder.write_issued(&arguments.name, &authority.issue(&wanted)?, arguments.replace)?;
    let until = described::day(validity.until);
    lines.insert(
        0,
        format!(
            "wrote {}, certificate and key for {roles} until {until}: cluster_tls_cert_file",
            path.display()
        ),
    );
    Ok(lines)
}

fn rotate(arguments: &RotateArguments, world: &World) -> Result<Vec<String>, CaFailure> {
    let folder = CaFolder::open(world, &arguments.folder)?;
    let _lock = folder.lock()?;
    let trusted = folder.trusted()?;
    let (newest, _) = folder.issuing()?;
    if trusted.len() > 1 {
        return Err(CaFailure::Refused(format!(
            "{} authorities are trusted already; end that exchange first: `martlet cluster-ca drop {}`",
            trusted.len(),
            arguments.folder.display()
        )));
    }
    let number = newest.number.checked_add(1).ok_or_else(|| {
        let path = newest.path.display();
        CaFailure::Refused(format!("{path} has the greatest number that there is; move it away"))
    })?;
    let name = newest.cluster_name();
    let made = Authority::make(&name, number, Validity::of_days(world, arguments.days))?;
    let written = folder.add(number, &made)?;
    let (dir, bundle) = (arguments.folder.display(), folder.bundle());
    Ok(vec![
        format!("wrote {} and {}", written.key.display(), written.certificate.display()),
        format!("wrote {}, with both authorities", bundle.display()),
        format!(
            "next: 1. give every node {} as its cluster_tls_ca_file",
            bundle.display()
        ),
        format!("      2. `martlet cluster-ca issue {dir} … --replace` for every node, and give it its file"),
        format!(
            "      3. `martlet cluster-ca drop {dir}`, and give every node {} again",
            bundle.display()
        ),
    ])
}

fn drop_older(arguments: &DropArguments, world: &World) -> Result<Vec<String>, CaFailure> {
    let folder = CaFolder::open(world, &arguments.folder)?;
    let _lock = folder.lock()?;
    let trusted = folder.trusted()?;
    let (newest, _) = folder.issuing()?;
    if trusted.len() < 2 {
        return Err(CaFailure::Refused(
            "one authority is trusted; there is none to drop".into(),
        ));
    }
    let issued = folder.issued()?;
    let behind: Vec<String> = issued
        .certificates
        .into_iter()
        .filter(|(_, certificate)| !certificate.is_issued_by(&newest.described))
        .map(|(path, _)| path.display().to_string())
        .collect();
    let mut against = Vec::new();
    if !behind.is_empty() {
        against.push(format!(
            "issued by an authority that would be dropped: {}",
            behind.join(", ")
        ));
    }
    against.extend(issued.unread.iter().map(|(_, failure)| failure.to_string()));
    if !against.is_empty() && !arguments.force {
        return Err(CaFailure::Refused(format!(
            "{}; issue them again with --replace and give them to their nodes, or drop with --force",
            against.join("; ")
        )));
    }
    folder.trust(std::slice::from_ref(&newest))?;
    Ok(vec![
        format!(
            "wrote {}, for every node: cluster_tls_ca_file",
            folder.bundle().display()
        ),
        format!(
            "the keys of authorities before {} serve nothing any more; delete them",
            newest.number
        ),
    ])
}

fn revoke(arguments: &RevokeArguments, world: &World) -> Result<Vec<String>, CaFailure> {
    let folder = CaFolder::open(world, &arguments.folder)?;
    let _lock = folder.lock()?;
    let trusted = folder.trusted()?;
    // All are looked at before one is revoked.
    let (mut wanted, mut foreign) = (Vec::new(), Vec::new());
    for path in &arguments.files {
        for certificate in folder::certificates(world, path)? {
            match trusted
                .iter()
                .find(|authority| certificate.is_issued_by(&authority.described))
            {
                Some(by) => wanted.push((path, by, certificate)),
                None => foreign.push(format!(
                    "{}: not issued by an authority that is trusted",
                    path.display()
                )),
            }
        }
    }
    if wanted.is_empty() {
        return Err(CaFailure::Refused(format!(
            "{}; nothing is revoked",
            foreign.join("; ")
        )));
    }
    let skipped = foreign
        .iter()
        .map(|what| format!("note: {what}, so that no node takes it; not revoked"));
    let mut lines: Vec<String> = skipped.collect();
    for (path, by, certificate) in wanted {
        let (name, path, serial) = (&certificate.name, path.display(), certificate.serial());
        lines.push(match folder.revoke(by, &certificate)? {
            true => format!("revoked {path}: {name}, serial {serial}"),
            false => format!("{path}: {name}, serial {serial}, has been revoked before"),
        });
    }
    folder.trust(&folder.trusted()?)?;
    lines.push(format!(
        "wrote {}, for every node: cluster_tls_ca_file",
        folder.bundle().display()
    ));
    Ok(lines)
}

fn show(arguments: &ShowArguments, world: &World, console: &mut Console<'_>) -> io::Result<ToolStatus> {
    let now = world.clock.now().seconds();
    let soon = now.saturating_add(u64::from(arguments.within) * 24 * 3600);
    let mut status = ToolStatus::SUCCESS;
    for path in &arguments.paths {
        let (certificates, complaints) =
            looked_at(world, path).unwrap_or_else(|failure| (vec![], vec![failure.to_string()]));
        for (path, certificate) in certificates {
            let line = format!("{}: {}", path.display(), certificate.line(now));
            console.say(shown(line.as_bytes()))?;
            if certificate.until <= soon {
                status = ToolStatus::FAILURE;
            }
        }
        for complaint in complaints {
            console.complain(shown(complaint.as_bytes()))?;
            status = ToolStatus::FAILURE;
        }
    }
    Ok(status)
}

/// The certificates at a path of `show`, and what to complain of.
type LookedAt = (Vec<(PathBuf, DescribedCertificate)>, Vec<String>);

fn looked_at(world: &World, path: &Path) -> Result<LookedAt, CaFailure> {
    let is_folder = world.files.open_directory(path).is_ok();
    if !is_folder {
        let found = folder::certificates(world, path)?;
        return Ok((
            found.into_iter().map(|found| (path.to_owned(), found)).collect(),
            vec![],
        ));
    }
    let folder = CaFolder::open(world, path)?;
    let authorities = folder.trusted()?.into_iter();
    let mut found: Vec<_> = authorities.map(|known| (known.path, known.described)).collect();
    let issued = folder.issued()?;
    found.extend(issued.certificates);
    let complaints = issued.unread.into_iter().map(|(file, failure)| match failure {
        CaFailure::Damaged { .. } => format!(
            "{failure}; `martlet cluster-ca issue {} --name {} … --replace` makes another one",
            path.display(),
            file.file_stem().unwrap_or_default().display()
        ),
        failure => failure.to_string(),
    });
    Ok((found, complaints.collect()))
}
