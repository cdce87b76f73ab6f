//! swift-bench's options: its command line, its configuration file, and which of both holds.
//!
//! Always holds: the command line wins over the file; `concurrency` wins over those of single operations, as in
//! swift-bench; passwords are in no message.
//! Source: the help text and the behaviour of swift-bench 2.0.0.

use clap::Args;
use settings::Document;
use settings::interpolate::expand;
use settings::kinds::Secret;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use vocabulary::Fault;

/// The section of the file.
const SECTION: &str = "bench";
/// Where the "Swift all in one" of Swift's developers is.
const SAIO: [(&str, &str); 3] = [
    ("auth", "http://localhost:8080/auth/v1.0"),
    ("user", "test:tester"),
    ("key", "testing"),
];
/// The largest size where a file gives only `lower_object_size`.
const UPPER: u64 = 10;

/// `martlet bench swift`.
#[derive(Debug, Clone, Args)]
#[command(args_override_self = true)]
pub struct SwiftBenchArguments {
    /// A configuration with a section [bench].
    #[arg(value_name = "CONF_FILE")]
    conf: Option<PathBuf>,
    /// Run with the defaults of a "Swift all in one".
    #[arg(long)]
    saio: bool,
    /// Where a token is had.
    #[arg(short = 'A', long, value_name = "URL")]
    auth: Option<String>,
    /// The user.
    #[arg(short = 'U', long)]
    user: Option<String>,
    /// The password.
    #[arg(short = 'K', long)]
    key: Option<String>,
    /// Version of the authentication: 1.0, 2.0 or 3.
    #[arg(
        short = 'V',
        long = "auth_version",
        visible_alias = "auth-version",
        value_name = "VERSION"
    )]
    auth_version: Option<String>,
    /// Processes that share the load: not served.
    #[arg(short = 'b', long, value_name = "IP:PORT", hide = true)]
    bench_clients: Vec<String>,
    /// The account's address, instead of the one that comes with the token.
    #[arg(short = 'u', long)]
    url: Option<String>,
    /// Requests under way at a time; wins over those of single operations.
    #[arg(short = 'c', long, value_name = "N")]
    concurrency: Option<u32>,
    /// GET requests under way at a time [default: 10].
    #[arg(long, value_name = "N")]
    get_concurrency: Option<u32>,
    /// PUT requests under way at a time [default: 10].
    #[arg(long, value_name = "N")]
    put_concurrency: Option<u32>,
    /// DELETE requests under way at a time [default: 10].
    #[arg(long, value_name = "N")]
    delete_concurrency: Option<u32>,
    /// Bytes of each object [default: 1].
    #[arg(short = 's', long, value_name = "BYTES")]
    object_size: Option<u64>,
    /// Sizes are by chance between this and --object-size.
    #[arg(short = 'l', long, value_name = "BYTES")]
    lower_object_size: Option<u64>,
    /// Objects to write [default: 1000].
    #[arg(short = 'n', long, value_name = "N")]
    num_objects: Option<u64>,
    /// GET requests [default: 10000].
    #[arg(short = 'g', long, value_name = "N")]
    num_gets: Option<u64>,
    /// Containers that objects are spread over [default: 20].
    #[arg(short = 'C', long, value_name = "N")]
    num_containers: Option<u32>,
    /// What names of containers begin with; by chance otherwise.
    #[arg(long, value_name = "NAME")]
    container_name: Option<String>,
    /// Leave objects and containers there.
    #[arg(short = 'x', long)]
    no_delete: bool,
    /// Seconds between the last GET and the first DELETE.
    #[arg(short = 'd', long, value_name = "SECONDS")]
    delay: Option<u64>,
    /// Storage policy of the containers.
    #[arg(short = 'P', long, value_name = "NAME")]
    policy_name: Option<String>,
    /// A line about latencies after each FINAL one, which swift-bench has not.
    #[arg(long)]
    pub(super) latencies: bool,
    /// Authorities in PEM that vouch for the store's certificate.
    #[arg(long, value_name = "FILE")]
    pub(super) cafile: Option<PathBuf>,
    /// Do not verify certificates.
    #[arg(long)]
    pub(super) insecure: bool,
}

/// What holds.
#[derive(Debug, Clone)]
pub struct SwiftBenchOptions {
    /// Where a token is had.
    pub auth: String,
    /// The user.
    pub user: String,
    /// The password.
    pub key: Secret,
    /// 1.0, 2.0 or 3.
    pub auth_version: String,
    /// The account's address, or an object server's.
    pub url: String,
    /// Of PUT, GET and DELETE.
    pub concurrency: [u32; 3],
    /// Least and most bytes of an object.
    pub sizes: (u64, u64),
    /// To write.
    pub objects: u64,
    /// To send.
    pub gets: u64,
    /// For the objects.
    pub containers: u32,
    /// What their names begin with.
    pub container_name: Option<String>,
    /// What was made is deleted.
    pub deletes: bool,
    /// Seconds before that.
    pub delay: u64,
    /// Of containers.
    pub policy: Option<String>,
    /// An object server is asked directly: its devices, and the account.
    pub direct: Option<(Vec<String>, String)>,
}

/// The section of the file, if there is one.
struct ConfFile(Option<Document>);

impl ConfFile {
    fn read(path: Option<&Path>) -> Result<Self, Fault> {
        let Some(path) = path else { return Ok(Self(None)) };
        let failed = |error: &dyn std::fmt::Display| Fault::caller(error.to_string());
        let document = Document::load(path).map_err(|error| failed(&error))?;
        match document.section(SECTION) {
            Some(_) => Ok(Self(Some(document))),
            None => Err(failed(&format_args!(
                "Unable to find {SECTION} config section in {}",
                path.display()
            ))),
        }
    }

    fn text(&self, name: &str) -> Result<Option<String>, Fault> {
        let Some(document) = &self.0 else { return Ok(None) };
        let found = document.lookup(SECTION, name);
        let value = found.map(|option| expand(document, SECTION, option)).transpose();
        let value = value.map_err(|error| Fault::caller(error.to_string()))?;
        Ok(value.filter(|value| !value.is_empty()))
    }

    fn number<N: FromStr>(&self, name: &str) -> Result<Option<N>, Fault> {
        let wrong = |value: &str| Fault::caller(format!("[{SECTION}] {name} = {value}: expected a number"));
        let text = self.text(name)?;
        text.map(|text| text.trim().parse().map_err(|_| wrong(&text)))
            .transpose()
    }

    fn switch(&self, name: &str, default: bool) -> Result<bool, Fault> {
        let text = self.text(name)?.map(|text| text.to_ascii_lowercase());
        Ok(text.map_or(default, |text| {
            ["true", "1", "yes", "on", "t", "y"].contains(&text.as_str())
        }))
    }
}

impl SwiftBenchOptions {
    /// Reads the file, and puts the command line before it.
    pub fn of(line: &SwiftBenchArguments) -> Result<Self, Fault> {
        let conf = ConfFile::read(line.conf.as_deref())?;
        let text = |given: &Option<String>, name: &str| -> Result<String, Fault> {
            let saio = SAIO.iter().find(|(known, _)| line.saio && *known == name);
            let otherwise = || saio.map_or(String::new(), |(_, value)| (*value).to_owned());
            Ok(match given {
                Some(given) => given.clone(),
                None => conf.text(name)?.unwrap_or_else(otherwise),
            })
        };
        let number = |given: Option<u64>, name: &str, default: u64| -> Result<u64, Fault> {
            Ok(match given {
                Some(given) => given,
                None => conf.number(name)?.unwrap_or(default),
            })
        };
        if !line.bench_clients.is_empty() || conf.text("bench_clients")?.is_some() {
            return Err(Fault::caller(
                "-b, bench_clients: processes of swift-bench-client are not spoken to; one process of this program \
                 loads a store from all processors of its machine",
            ));
        }
        let version = text(&line.auth_version, "auth_version")?;
        let optional = |text: String| (!text.is_empty()).then_some(text);
        let options = Self {
            auth: text(&line.auth, "auth")?,
            user: text(&line.user, "user")?,
            key: Secret(text(&line.key, "key")?),
            auth_version: optional(version).unwrap_or_else(|| "1.0".to_owned()),
            url: text(&line.url, "url")?,
            concurrency: concurrency(line, &conf)?,
            sizes: sizes(line, &conf)?,
            objects: number(line.num_objects, "num_objects", 1000)?,
            gets: number(line.num_gets, "num_gets", 10_000)?,
            containers: u32::try_from(number(line.num_containers.map(u64::from), "num_containers", 20)?)
                .unwrap_or(u32::MAX)
                .max(1),
            container_name: optional(text(&line.container_name, "container_name")?),
            deletes: !line.no_delete && conf.switch("delete", true)?,
            delay: number(line.delay, "delay", 0)?,
            policy: optional(text(&line.policy_name, "policy_name")?),
            direct: direct(&conf)?,
        };
        match (&options.direct, options.auth.is_empty(), options.url.is_empty()) {
            (None, true, _) => Err(Fault::caller(
                "expected -A URL -U USER -K KEY, --saio, or a file with auth = URL",
            )),
            (Some(_), _, true) => Err(Fault::caller(
                "use_proxy = no: expected url = http://host:port of an object server",
            )),
            _ => Ok(options),
        }
    }
}

/// The object server's devices and the account, where the file says `use_proxy = no`.
fn direct(conf: &ConfFile) -> Result<Option<(Vec<String>, String)>, Fault> {
    if conf.switch("use_proxy", true)? {
        return Ok(None);
    }
    let devices = conf.text("devices")?.unwrap_or_default();
    let devices: Vec<String> = devices.split_whitespace().map(str::to_owned).collect();
    if devices.is_empty() {
        return Err(Fault::caller(
            "use_proxy = no: expected devices = sdb1 sdb2 …, those of the object server",
        ));
    }
    Ok(Some((devices, conf.text("account")?.unwrap_or_else(|| "a".to_owned()))))
}

/// Of PUT, GET and DELETE.
fn concurrency(line: &SwiftBenchArguments, conf: &ConfFile) -> Result<[u32; 3], Fault> {
    let all = match line.concurrency {
        Some(all) => Some(all),
        None => conf.number("concurrency")?,
    };
    let of = |given: Option<u32>, name: &str| -> Result<u32, Fault> {
        let one = match (all, given) {
            (Some(all), _) => all,
            (None, Some(given)) => given,
            (None, None) => conf.number(name)?.unwrap_or(10),
        };
        Ok(one.max(1))
    };
    Ok([
        of(line.put_concurrency, "put_concurrency")?,
        of(line.get_concurrency, "get_concurrency")?,
        of(line.delete_concurrency, "del_concurrency")?,
    ])
}

/// Least and most bytes of an object.
fn sizes(line: &SwiftBenchArguments, conf: &ConfFile) -> Result<(u64, u64), Fault> {
    let size = match line.object_size {
        Some(size) => size,
        None => conf.number("object_size")?.unwrap_or(1),
    };
    match (line.lower_object_size, conf.number("lower_object_size")?) {
        (Some(lower), _) if lower >= size => Err(Fault::caller(format!(
            "--lower-object-size ({lower}) must be < --object-size ({size})"
        ))),
        (Some(lower), _) => Ok((lower, size)),
        (None, Some(lower)) => {
            let upper = conf.number("upper_object_size")?.unwrap_or(UPPER);
            Ok((lower, upper.max(lower)))
        }
        (None, None) => Ok((size, size)),
    }
}
