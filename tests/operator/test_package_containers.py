"""The OCI image in podman, started by the compose file as it is: on a copy of this machine, with a network of its own."""

import os
import shutil

import pytest

from harness.machine import on_a_copy
from harness.packages import packages_tool, quick
from harness.places import REPOSITORY, martlet
from harness.process import run

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not shutil.which("podman"), reason="podman is not installed"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can have a copy of the machine"),
]

# What a container cannot be given inside of another one.
CONTAINERS_CONF = """[containers]
default_ulimits = ["nofile=4096:4096", "nproc=1000:1000"]
cgroups = "disabled"
[engine]
cgroup_manager = "cgroupfs"
"""

SCRIPT = """
    mount -t sysfs sysfs /sys; mount -t cgroup2 cgroup2 /sys/fs/cgroup; mount -t tmpfs tmpfs /run; mount -t tmpfs tmpfs /var/lib/containers
    ip link set lo up
    export CONTAINERS_CONF=/package/containers.conf STORAGE_DRIVER=vfs XDG_RUNTIME_DIR=/run
    PATH=$PATH:{tools}
    compose="podman-compose -f {compose}"
    podman load -q -i /package/martlet-0.1.0-*.oci.tar
    key() {{ podman logs martlet 2>&1 | sed -n 's/^ *test:tester \\([0-9a-f]*\\) .*/\\1/p'; }}
    token() {{ curl -sS -i -H 'X-Auth-User: test:tester' -H "X-Auth-Key: $key" http://127.0.0.1:8080/auth/v1.0 | tr -d '\\r' | sed -n 's/^X-Auth-Token: //p'; }}
    await() {{ for _ in $(seq 600); do podman logs martlet 2>&1 | grep -q ^ready && return; sleep 0.1; done; podman logs martlet; exit 1; }}
    ask() {{ curl -sS -H "X-Auth-Token: $(token)" "$@"; }}
    url=http://127.0.0.1:8080/v1/AUTH_test
    $compose up -d > /dev/null; await; key=$(key)
    ask -X PUT $url/cont; ask -X PUT -d kept $url/cont/object
    echo "read $(ask $url/cont/object)"
    podman inspect --format '{{{{.Config.User}}}} {{{{.HostConfig.ReadonlyRootfs}}}}' martlet
    $compose down > /dev/null 2>&1; test -z "$(podman ps -q)"
    $compose up -d > /dev/null; await
    echo "read $(ask $url/cont/object)"
    podman stop -t 60 martlet > /dev/null; podman inspect --format 'exit {{{{.State.ExitCode}}}}' martlet
    $compose down -v > /dev/null 2>&1; podman volume ls -q | grep cluster || echo gone
"""


def test_the_compose_file_starts_a_cluster_and_keeps_its_data(tmp_path):
    image = tmp_path / "image"
    image.mkdir()
    run([REPOSITORY / "packaging/build-oci.py", martlet(), image], env=quick("0.1.0", keep_symbols=False))
    (image / "containers.conf").write_text(CONTAINERS_CONF)
    script = SCRIPT.format(tools=packages_tool("podman-compose").parent, compose=REPOSITORY / "etc/compose.yaml")
    done = on_a_copy(tmp_path / "copy", image, f"unshare --net sh -e <<'INSIDE'\n{script}\nINSIDE\n")
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and lines[-5:] == ["read kept", "10001:10001 true", "read kept", "exit 0", "gone"], f"{done.stdout}\n{done.stderr}"
