//! OpenStack reads the files that `write.rs` makes, as an operator would hand them to its services.
//!
//! Needs Python with OpenStack Swift: `MARTLET_ORACLE_PYTHON`, by default ../../.venv/bin/python; says
//! so and passes when there is none.
#![allow(clippy::unwrap_used, reason = "tests may fail by panicking")]

use settings::write::{NewCluster, files, test_users};
use std::path::PathBuf;
use std::process::Command;

const READ: &str = r#"
import os, sys
from swift.common import utils, wsgi
etc = sys.argv[1]
utils.set_swift_dir(etc)
utils.validate_hash_conf()
from swift.common.storage_policy import POLICIES
print(POLICIES.default.name)
for name in ('proxy', 'object', 'container', 'account'):
    path = os.path.join(etc, name + '-server.conf')
    context = wsgi.loadcontext(wsgi.loadwsgi.APP, path)
    conf = context.app_context.config()
    print(' '.join(f.entry_point_name for f in context.filter_contexts), context.app_context.entry_point_name,
          conf['bind_ip'], conf['bind_port'], conf['swift_dir'], conf.get('devices'), conf.get('mount_check'))
    for f in context.filter_contexts:
        if f.name == 'tempauth':
            users = f.create()(None).users
            print(sorted((u, d['key'], d['groups']) for u, d in users.items())[1])
"#;

#[test]
fn openstack_reads_what_is_written() {
    let python = std::env::var_os("MARTLET_ORACLE_PYTHON").map_or("../../.venv/bin/python".into(), PathBuf::from);
    if !python.exists() {
        eprintln!("skipped: no Python with OpenStack Swift at {}", python.display());
        return;
    }
    let etc = tempfile::tempdir().unwrap();
    let users = test_users();
    let servers = ["127.0.0.1:11211".to_owned()];
    let cluster = NewCluster {
        swift_dir: etc.path(),
        devices: etc.path(),
        recon: etc.path(),
        bind_ip: "127.0.0.1",
        storage_ip: "127.0.0.1",
        proxy_port: 8080,
        object_port: 6200,
        container_port: 6201,
        account_port: 6202,
        hash_prefix: "abc",
        hash_suffix: "def",
        users: &users,
        memcache_servers: &servers,
        tls: None,
    };
    for (name, text) in files(&cluster) {
        std::fs::write(etc.path().join(name), text).unwrap();
    }
    let output = Command::new(python)
        .args(["-c", READ])
        .arg(etc.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let etc = etc.path().display();
    let storage = |kind: &str, port: u16| format!("healthcheck recon {kind} 127.0.0.1 {port} {etc} {etc} false\n");
    let expected = format!(
        "Policy-0\n\
         catch_errors gatekeeper healthcheck proxy_logging memcache etag_quoter domain_remap listing_formats \
         crossdomain container_sync bulk tempurl formpost ratelimit s3api tempauth read_only staticweb copy \
         container_quotas account_quotas slo dlo versioned_writes symlink proxy_logging proxy \
         127.0.0.1 8080 {etc} None None\n\
         ('test2:tester2', 'testing2', ['.admin'])\n{}{}{}",
        storage("object", 6200),
        storage("container", 6201),
        storage("account", 6202)
    );
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
}
