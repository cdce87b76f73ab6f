//! The first start of `martlet up`: configuration, rings and builders for a new cluster.
//!
//! Always holds: `DIR/etc` appears whole or not at all (it is written beside its place, synced and
//! renamed), so that an interrupted first start is simply repeated, which removes what that left; the path
//! secrets of data that exist are never made anew: a directory with data and without `etc` is refused.

use crate::cli::Up;
use crate::failure::CommandFailure;
use placement::{Device, Ring, RingBuilder};
use settings::tempauth::TempAuthUser;
use settings::write::{self, NewCluster};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use world::World;
use world::random::Random;

/// Where the storage servers are, as far as rings and configurations say.
const STORAGE_IP: &str = "127.0.0.1";
/// Ports of the storage servers in rings and configurations; within `up` no server listens there.
const OBJECT_PORT: u16 = 6200;
const CONTAINER_PORT: u16 = 6201;
const ACCOUNT_PORT: u16 = 6202;

/// Ring builders move a partition again only after so many hours.
const MIN_PART_HOURS: u32 = 1;

/// What a new cluster consists of besides its configuration files.
pub const RING_NAMES: [(&str, u16); 3] = [
    ("account", ACCOUNT_PORT),
    ("container", CONTAINER_PORT),
    ("object", OBJECT_PORT),
];

/// What the first start decides for ever.
struct Shape {
    devices: u32,
    replicas: u32,
    part_power: u32,
}

/// Makes `etc` (complete) and the device directories (each of which may exist).
pub fn make_cluster(world: &World, up: &Up, bind: SocketAddr, etc: &Path, srv: &Path) -> Result<(), CommandFailure> {
    let shape = Shape::chosen(up)?;
    refuse_data(etc, srv)?;
    for number in 1..=shape.devices {
        let device = srv.join(device_name(number));
        std::fs::create_dir_all(&device).map_err(CommandFailure::io("create", &device))?;
    }
    let draft = etc.with_extension(format!("{:016x}.new", world.random.next_u64()));
    std::fs::create_dir_all(&draft).map_err(CommandFailure::io("create", &draft))?;
    write_configuration(world, up, bind, &draft, etc, srv)?;
    write_rings(world, &shape, &draft)?;
    sync_directory(&draft)?;
    std::fs::rename(&draft, etc).map_err(CommandFailure::io("put in place", etc))?;
    remove_drafts(etc);
    sync_directory(etc.parent().unwrap_or(etc))
}

/// Those of first starts that were interrupted: no other start runs in this directory.
fn remove_drafts(etc: &Path) {
    for entry in etc.parent().map(entries).and_then(Result::ok).unwrap_or_default() {
        if is_draft(&entry, etc)
            && let Err(error) = std::fs::remove_dir_all(&entry)
        {
            tracing::warn!("cannot remove {}: {error}", entry.display());
        }
    }
}

/// By the names that drafts get; another one is an operator's.
fn is_draft(path: &Path, etc: &Path) -> bool {
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let (Some(name), Some(etc)) = (name(path), name(etc)) else {
        return false;
    };
    let rest = name.strip_prefix(&etc).and_then(|rest| rest.strip_prefix('.'));
    let digits = rest.and_then(|rest| rest.strip_suffix(".new"));
    digits.is_some_and(|digits| digits.len() == 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Whether there is no configuration yet; refuses an empty directory, which may be what is to be filled from a backup.
pub fn is_missing(etc: &Path) -> Result<bool, CommandFailure> {
    if etc.is_dir() && entries(etc).is_ok_and(|entries| entries.iter().all(|entry| is_file_systems(entry))) {
        let etc = etc.display();
        return Err(CommandFailure::Usage(format!(
            "{etc} is empty: put the cluster's configuration there, or remove the directory for a new cluster"
        )));
    }
    Ok(!etc.exists())
}

/// Without its secrets nothing of it could be found, and upkeep would take it for what does not belong there.
fn refuse_data(etc: &Path, srv: &Path) -> Result<(), CommandFailure> {
    let Some(data) = data_below(srv)? else {
        return Ok(());
    };
    let (etc, data) = (etc.display(), data.display());
    Err(CommandFailure::Unsafe(format!(
        "{data} has data of a cluster, and {etc}, with its path secrets and rings, is gone: put {etc} back, or choose \
         another --dir; nothing was changed"
    )))
}

/// What servers make on a device, if any is there.
fn data_below(srv: &Path) -> Result<Option<PathBuf>, CommandFailure> {
    let entries = |directory: &Path| entries(directory).map_err(CommandFailure::io("list", directory));
    for device in entries(srv)? {
        if is_file_systems(&device) {
            continue;
        }
        for entry in entries(&device)? {
            let name = entry.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if matches!(name, "accounts" | "containers") || name.starts_with("objects") {
                return Ok(Some(entry));
            }
        }
    }
    Ok(None)
}

/// What file systems make, for root alone to read.
fn is_file_systems(path: &Path) -> bool {
    path.ends_with("lost+found")
}

fn entries(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    match std::fs::read_dir(directory) {
        Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect(),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(vec![]),
        Err(error) => Err(error),
    }
}

/// `sdb1`, `sdb2`, …: names like those of Swift's all-in-one set-up.
fn device_name(number: u32) -> String {
    format!("sdb{number}")
}

impl Shape {
    fn chosen(up: &Up) -> Result<Self, CommandFailure> {
        let refuse = |text: String| Err(CommandFailure::Usage(text));
        let (devices, replicas) = (up.devices.unwrap_or(4), up.replicas.unwrap_or(3));
        let part_power = up.part_power.unwrap_or(10);
        if devices == 0 || devices > 10_000 {
            return refuse(format!("--devices {devices}: choose 1 to 10000"));
        }
        if replicas == 0 || replicas > devices {
            return refuse(format!(
                "--replicas {replicas}: choose 1 to {devices}, the number of --devices"
            ));
        }
        if !(1..=24).contains(&part_power) {
            return refuse(format!("--part-power {part_power}: choose 1 to 24"));
        }
        Ok(Self {
            devices,
            replicas,
            part_power,
        })
    }
}

/// What the command line asks of the cluster's shape in vain, since the cluster exists: one line that says what holds.
pub fn asked_in_vain(up: &Up, ring: &Ring, etc: &Path) -> Option<String> {
    let devices = ring.devices().filter(|device| device.weight > 0.0).count();
    let (replicas, part_power) = (ring.replicas(), ring.part_power());
    let differs = |wanted: Option<u32>, have: f64| wanted.filter(|wanted| f64::from(*wanted) != have);
    let asked: Vec<String> = [
        ("--devices", differs(up.devices, devices as f64)),
        ("--replicas", differs(up.replicas, replicas)),
        ("--part-power", differs(up.part_power, f64::from(part_power))),
    ]
    .into_iter()
    .filter_map(|(option, wanted)| Some(format!("{option} {}", wanted?)))
    .collect();
    let etc = etc.display();
    (!asked.is_empty()).then(|| {
        format!(
            "{} on the first start only and is ignored: the rings in {etc} have {devices} devices, {replicas} replicas \
             and 2^{part_power} partitions",
            match &asked[..] {
                [one] => format!("{one} counts"),
                several => format!("each of {} counts", several.join(", ")),
            }
        )
    })
}

/// A certificate that the command line asks for in vain: the cluster has another, or none.
pub fn certificate_asked_in_vain(up: &Up, configured: Option<&Path>, etc: &Path) -> Option<String> {
    let asked = up.tls_cert.as_deref()?;
    let is_served = configured.is_some_and(|have| have == asked || absolute(asked).is_ok_and(|asked| asked == have));
    let have = configured.map_or_else(
        || "no cert_file".to_owned(),
        |path| format!("cert_file = {}", path.display()),
    );
    (!is_served).then(|| {
        format!(
            "--tls-cert {} counts on the first start only and is ignored: {} has {have}; change it there",
            asked.display(),
            etc.join("proxy-server.conf").display()
        )
    })
}

fn write_configuration(
    world: &World,
    up: &Up,
    bind: SocketAddr,
    draft: &Path,
    etc: &Path,
    srv: &Path,
) -> Result<(), CommandFailure> {
    let random = &*world.random;
    let tls = match &up.tls_cert {
        Some(certificate) => Some((
            absolute(certificate)?,
            absolute(up.tls_key.as_ref().unwrap_or(certificate))?,
        )),
        None => None,
    };
    let users = if bind.ip().is_loopback() {
        write::test_users()
    } else {
        users_with_random_keys(random)
    };
    let cluster = NewCluster {
        swift_dir: etc,
        devices: srv,
        recon: &srv.with_file_name("recon"),
        bind_ip: &bind.ip().to_string(),
        storage_ip: STORAGE_IP,
        proxy_port: bind.port(),
        object_port: OBJECT_PORT,
        container_port: CONTAINER_PORT,
        account_port: ACCOUNT_PORT,
        hash_prefix: &secret(random),
        hash_suffix: &secret(random),
        users: &users,
        memcache_servers: &[],
        tls: tls
            .as_ref()
            .map(|(certificate, key)| (certificate.as_path(), key.as_path())),
    };
    for (name, text) in write::files(&cluster) {
        write_file(&draft.join(name), text.as_bytes())?;
    }
    Ok(())
}

fn absolute(path: &Path) -> Result<PathBuf, CommandFailure> {
    path.canonicalize().map_err(CommandFailure::io("find", path))
}

fn users_with_random_keys(random: &dyn Random) -> Vec<TempAuthUser> {
    let mut users = write::test_users();
    for user in &mut users {
        user.key = secret(random);
    }
    users
}

/// 128 random bits in letters and digits.
fn secret(random: &dyn Random) -> String {
    format!("{:016x}{:016x}", random.next_u64(), random.next_u64())
}

fn write_rings(world: &World, shape: &Shape, draft: &Path) -> Result<(), CommandFailure> {
    let now = i64::try_from(world.clock.now().seconds()).unwrap_or(i64::MAX);
    for (name, port) in RING_NAMES {
        let mut builder = RingBuilder::new(shape.part_power, f64::from(shape.replicas), MIN_PART_HOURS)?;
        for number in 1..=shape.devices {
            builder.add(Device {
                region: 1,
                zone: number,
                weight: 100.0,
                ip: STORAGE_IP.into(),
                port,
                replication_ip: STORAGE_IP.into(),
                replication_port: port,
                device: device_name(number),
                ..Device::default()
            })?;
        }
        builder.rebalance(world.random.next_u64(), now)?;
        let path = draft.join(format!("{name}.ring.gz"));
        let ring = builder.to_ring()?.to_bytes_v1().map_err(|error| CommandFailure::Ring {
            path: path.clone(),
            error,
        })?;
        write_file(&path, &ring)?;
        write_file(&draft.join(format!("{name}.builder")), &builder.to_bytes())?;
    }
    Ok(())
}

/// Readable by the owner only: the files hold secrets.
fn write_file(path: &Path, bytes: &[u8]) -> Result<(), CommandFailure> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(CommandFailure::io("create", path))?;
    file.write_all(bytes)
        .and_then(|()| file.sync_all())
        .map_err(CommandFailure::io("write", path))
}

fn sync_directory(path: &Path) -> Result<(), CommandFailure> {
    std::fs::File::open(path)
        .and_then(|directory| directory.sync_all())
        .map_err(CommandFailure::io("sync", path))
}
