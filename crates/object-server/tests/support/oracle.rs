//! OpenStack Swift's own object server, where it is installed.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A running `swift-object-server` with a device `sda`.
pub struct Oracle {
    pub port: u16,
    pub root: tempfile::TempDir,
    process: Child,
    bin: PathBuf,
}

impl Oracle {
    /// `None`, with the reason printed, where OpenStack Swift is not installed.
    #[allow(clippy::print_stdout, reason = "a skipped test says why")]
    pub fn start() -> Option<Self> {
        let Some(bin) = bin() else {
            println!("skipped: no swift-object-server in $MARTLET_ORACLE_BIN, ../../.venv/bin or .venv/bin");
            return None;
        };
        let root = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let path = root.path();
        fs::create_dir_all(path.join("srv/sda")).unwrap();
        fs::create_dir_all(path.join("run")).unwrap();
        fs::write(
            path.join("swift.conf"),
            "[swift-hash]\nswift_hash_path_prefix = before\nswift_hash_path_suffix = after\n\
             [storage-policy:0]\nname = gold\ndefault = yes\n[storage-policy:1]\nname = silver\n",
        )
        .unwrap();
        let user = Command::new("id").arg("-un").output().unwrap().stdout;
        let conf = format!(
            "[DEFAULT]\nbind_ip = 127.0.0.1\nbind_port = {port}\nworkers = 0\nuser = {}\nswift_dir = {root}\n\
             devices = {root}/srv\nmount_check = false\nrecon_cache_path = {root}/run\nclient_timeout = 2\n\
             [pipeline:main]\npipeline = object-server\n[app:object-server]\nuse = egg:swift#object\n",
            String::from_utf8_lossy(&user).trim(),
            root = path.display(),
        );
        fs::write(path.join("object-server.conf"), conf).unwrap();
        let main = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/harness/openstack_main.py");
        let process = Command::new(bin.join("python"))
            .args([
                main.as_path(),
                path,
                &bin.join("swift-object-server"),
                &path.join("object-server.conf"),
            ])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut oracle = Self {
            port,
            root,
            process,
            bin,
        };
        oracle.wait();
        Some(oracle)
    }

    fn wait(&mut self) {
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(
                began.elapsed() < Duration::from_secs(30),
                "OpenStack's server does not come up"
            );
            assert!(self.process.try_wait().unwrap().is_none(), "OpenStack's server ended");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Where its devices are.
    pub fn devices(&self) -> PathBuf {
        self.root.path().join("srv")
    }

    /// The pending records of `sda` in `devices`, as OpenStack reads them, oldest name first; they are removed.
    pub fn take_pending(&self, devices: &Path) -> Vec<serde_json::Value> {
        let script = "import glob, json, os, pickle, sys\n\
            from swift.common.utils import Timestamp\n\
            out = []\n\
            for path in sorted(glob.glob(sys.argv[1] + '/sda/async_pending*/*/*')):\n\
            \x20   record = pickle.load(open(path, 'rb'))\n\
            \x20   record['file'] = path.split('/sda/')[1]\n\
            \x20   out.append(record)\n\
            \x20   os.unlink(path)\n\
            print(json.dumps(out))\n";
        let run = Command::new(self.bin.join("python"))
            .args(["-W", "ignore", "-c", script])
            .arg(devices)
            .output()
            .unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        serde_json::from_slice(&run.stdout).unwrap()
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn bin() -> Option<PathBuf> {
    let named = std::env::var_os("MARTLET_ORACLE_BIN").map(PathBuf::from);
    let venv = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin");
    let places = named.into_iter().chain([PathBuf::from("../../.venv/bin"), venv]);
    places
        .into_iter()
        .find(|place| place.join("swift-object-server").exists())
}
