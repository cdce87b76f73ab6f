"""Ceph's RGW on a cluster of one monitor and one OSD that keeps all in memory, from Debian's packages as they were unpacked into a folder.

Nothing is installed, no service of the machine is used, nobody proves anything to another (`auth_client_required = none`), and all of it listens
on 127.0.0.1 alone.
"""

import os
import uuid

from harness.process import Process, run
from harness.waiting import free_port, listening, until

LIBRARIES = "usr/lib/x86_64-linux-gnu"
CONFIGURATION = """
[global]
fsid = {fsid}
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
mon_host = {monitor}
public_addr = 127.0.0.1
cluster_addr = 127.0.0.1
ms_bind_port_min = {first}
ms_bind_port_max = {last}
run_dir = {root}/run
admin_socket =
pid_file =
log_file = {root}/log/$name.log
plugin_dir = {libraries}/ceph
erasure_code_dir = {libraries}/ceph/erasure-code
osd_class_dir = {libraries}/rados-classes
mon_data = {root}/monitor
mon_data_avail_crit = 1
mon_max_pg_per_osd = 1000
osd_data = {root}/osd
osd_objectstore = memstore
memstore_device_bytes = 4294967296
osd_crush_chooseleaf_type = 0
osd_pool_default_size = 1
osd_pool_default_min_size = 1
osd_pool_default_pg_num = 4
osd_pool_default_pgp_num = 4
osd_pool_default_pg_autoscale_mode = off
mon_allow_pool_size_one = true
mon_warn_on_pool_no_redundancy = false
rgw_frontends = beast endpoint=127.0.0.1:{port}
rgw_mime_types_file = {root}/mime.types
rgw_gc_max_objs = 1
rgw_lc_max_objs = 1
rgw_usage_max_shards = 1
rgw_num_async_rados_threads = 4
rgw_thread_pool_size = 32
"""


class Rgw:
    """A gateway with a user; within a `with` it runs."""

    def __init__(self, unpacked, root, access, secret):
        self.unpacked, self.root, self.access, self.secret = unpacked, root, access, secret
        self.port, self.processes = free_port(), []
        libraries = unpacked / LIBRARIES
        self.env = {
            "PATH": f"{unpacked}/usr/bin:{os.environ['PATH']}",
            "LD_LIBRARY_PATH": f"{libraries}:{libraries}/ceph:{unpacked}/lib/x86_64-linux-gnu",
            "PYTHONPATH": f"{unpacked}/usr/lib/python3/dist-packages",
            # One that gets its configuration from the monitor may ask it for more before it knows the cluster's name: "wrong fsid".
            "CEPH_ARGS": "--no-mon-config",
        }

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        for process in reversed(self.processes):
            process.kill()

    def start(self):
        for folder in ("run", "log", "monitor", "osd"):
            (self.root / folder).mkdir(parents=True)
        fsid, monitor, first = uuid.uuid4(), f"v1:127.0.0.1:{free_port()}", free_port()
        (self.root / "mime.types").write_text("text/plain txt\n")
        (self.root / "ceph.conf").write_text(CONFIGURATION.format(
            fsid=fsid, monitor=monitor, first=first, last=first + 40, root=self.root, libraries=self.unpacked / LIBRARIES, port=self.port))
        self.tool("monmaptool", "--create", "--fsid", fsid, "--addv", "a", f"[{monitor}]", self.root / "monmap")
        self.tool("ceph-mon", "--mkfs", "-i", "a", "--monmap", self.root / "monmap")
        self.daemon("ceph-mon", "-i", "a")
        osd = uuid.uuid4()
        until(lambda: self.tool("ceph", "--connect-timeout", 5, "osd", "new", osd).strip() == "0", what="the monitor")
        self.tool("ceph-osd", "-i", 0, "--mkfs", "--osd-uuid", osd)
        device = self.daemon("ceph-osd", "-i", 0)
        device.wait_for(lambda: "1 up" in self.tool("ceph", "--connect-timeout", 5, "osd", "stat"))
        self.tool("radosgw-admin", "user", "create", "--uid", "bench", "--display-name", "bench", "--access-key", self.access, "--secret", self.secret)
        # The same user by Swift's API: `bench:swift`, with the same secret.
        self.tool("radosgw-admin", "subuser", "create", "--uid", "bench", "--subuser", "bench:swift", "--access", "full", "--key-type", "swift",
                  "--secret", self.secret)
        gateway = self.daemon("radosgw", "-n", "client.rgw")
        gateway.wait_for(lambda: listening(self.port), within=120)
        return self

    def tool(self, *command):
        """What a program of Ceph's says; one that fails is an AssertionError."""
        return run(self.command(*command), env={**os.environ, **self.env}, timeout=120).stdout

    def daemon(self, *command):
        process = Process([*self.command(*command), "--foreground"], self.root / f"{command[0]}.out", env=self.env)
        self.processes.append(process)
        return process

    def command(self, name, *words):
        return [self.unpacked / "usr/bin" / name, *words, "-c", self.root / "ceph.conf"]
