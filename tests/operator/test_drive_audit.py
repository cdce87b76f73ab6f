"""drive-audit: what both makes unmount, note and log, among drives and kernel logs made for it."""

import datetime
import json
import os
import subprocess
import time

import pytest

from harness.tools import both, command, run

# A mount namespace keeps what is done away from this machine.
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs namespaces of its own")

# Only what is in this script's own mounts is ever unmounted, and /etc is its own.
DRIVES = r"""
set -e
D=$1; shift
mkdir -p $D/etc $D/dev $D/node/sdb1 $D/node/sdc1 $D/node/dmx
mount -t tmpfs none $D/etc; cp -a /etc/. $D/etc; mount --rbind $D/etc /etc
mount -t tmpfs none $D/dev; cd $D/dev; mknod null c 1 3; chmod 666 null; mkdir block mapper
mknod sdb1 b 8 17; mknod sdc1 b 8 33; mknod dm-3 b 253 3; ln -s ../dm-3 mapper/vg-x
for n in 8:17=sdb1 8:33=sdc1 253:3=dm-3; do ln -s ../${n#*=} block/${n%=*}; done
cd $D; mount --rbind $D/dev /dev
printf 'major minor  #blocks  name\n\n   8 17 100 sdb1\n   8 33 100 sdc1\n 253 3 100 dm-3\n' > $D/partitions
mount --bind $D/partitions /proc/partitions
mount -t tmpfs /dev/sdb1 $D/node/sdb1; mount -t tmpfs /dev/sdc1 $D/node/sdc1; mount -t tmpfs /dev/mapper/vg-x $D/node/dmx
printf '/dev/sdb1 %s xfs noatime 0 0\nUUID=5 /x xfs defaults 0 0\n# %s\n/dev/mapper/vg-x\t%s\txfs x 0 0\n' $D/node/sdb1 $D/node/sdb1 $D/node/dmx > /etc/fstab
chmod 640 /etc/fstab
set +e
"$@"; echo "status $?"
grep -o "$D/node/[a-z0-9]*" /proc/mounts; cat /etc/fstab; stat -c %a /etc/fstab
"""


def log_line(what, minutes=1, form="%b %e %H:%M:%S"):
    """A line that the kernel logged some minutes ago."""
    return f"{(datetime.datetime.now() - datetime.timedelta(minutes=minutes)).strftime(form)} host kernel: {what}\n"


def audited(tmp_path, logs, more="", before=lambda folder: None, pattern="ker[m-o]*", setup=""):
    """What both makes note, print and log about drives whose kernel wrote these logs."""
    output = []
    for make in ("openstack", "martlet"):
        folder = tmp_path / make
        (folder / "cache").mkdir(parents=True)
        for age, (name, text) in enumerate(logs.items()):
            (folder / name).write_text(text)
            os.utime(folder / name, (1, time.time() - 60 * age))
        before(folder)
        conf = folder / "drive-audit.conf"
        conf.write_text(f"[drive-audit]\nuser = root\ndevice_dir = {folder}/node\nrecon_cache_path = {folder}/cache\nlog_file_pattern = {folder}/{pattern}\n"
                        f"log_to_console = true\n{more}\n")
        line = ["unshare", "-m", "bash", "-c", DRIVES.replace("set +e", f"{setup}\nset +e"), "bash", folder, *command(make, "drive-audit", [conf])]
        ended = subprocess.run([str(word) for word in line], capture_output=True, text=True, check=False, timeout=240)
        noted = folder / "cache/drive.recon"
        figures = json.loads(noted.read_text().replace(str(folder), "D")) if noted.exists() else None
        out, mode = ended.stdout.replace(str(folder), "D").rsplit("\n", 2)[:2]
        output.append((figures, out, sorted(ended.stderr.replace(str(folder), "D").splitlines())))
        assert make == "openstack" or mode == "640"
    theirs, ours = output
    assert ours == theirs
    return ours


@as_root
@pytest.mark.parametrize("story", ["unmounts", "tells", "spares", "own pattern", "nothing", "before the boot", "out of order"])
def test_drive_audit(tmp_path, story):
    lines = [log_line("[1] sdb1: error", 130), log_line("[2] I/O error, dev sdb, sector 5"), log_line("[2] Buffer I/O error on device sdb1, logical block 5"),
             log_line("[3] sdc1: all is well"), log_line("[4] XFS (sdc1): xfs_log_force: error 5 returned.", form="%Y-%m-%dT%H:%M:%S.123456+00:00"),
             log_line("[5] sdc1 error"), log_line("weird dm-3"), "junk sdb1 error\n"]
    if story == "before the boot":
        lines.insert(4, log_line("[    0.000000] Linux version 6.1"))
    if story == "out of order":
        lines.insert(4, log_line("[3] sdc1: error", 130))
    more = {"tells": "unmount_failed_device = false", "spares": "error_limit = 2", "own pattern": r"regex_pattern_1 = weird (dm-\d+)"}
    _, out, log = audited(tmp_path, {"kern.log": "" if story == "nothing" else "".join(lines)}, more.get(story, ""))
    gone = {"unmounts": 2, "spares": 1, "own pattern": 1, "before the boot": 1, "out of order": 1}.get(story, 0)
    assert "status 0" in out and sum("Unmounting" in line for line in log) == gone


@as_root
@pytest.mark.parametrize("line", ["[    0.000000] Linux version 6.1", "KERNEL supported cpus:", "BIOS-provided physical RAM map:", "too old"])
def test_drive_audit_knows_nothing_from_before_the_last_boot(tmp_path, line):
    """Nor what stands before a line that is too old; the kernel may have given the letters to other drives since."""
    newest = log_line("sdb1 error", 5) + log_line(line, 300 if line == "too old" else 3) + log_line("sdc1 error")
    figures, _, _ = audited(tmp_path, {"kern.log": newest, "kern.log.1": log_line("dm-3 error", 6)}, r"regex_pattern_1 = (sd.1|dm-\d) error")
    assert figures == {"D/node/sdb1": 0, "D/node/sdc1": 1, "D/node/dmx": 0, "drive_audit_errors": 1}


@as_root
def test_drive_audit_adds_up_rotated_logs(tmp_path):
    logs = {"kern.log.9": log_line("sdb1 error sdc1 error"), "kern.log": log_line("sdb1 error", 3), "kern.log.0": log_line("sdc1 error", 200)}
    figures, _, _ = audited(tmp_path, logs, "regex_pattern_1 = (sd.1) error\nerror_limit = 2")
    assert figures["D/node/sdb1"] == figures["drive_audit_errors"] == 2


@as_root
def test_drive_audit_ends_at_a_log_that_cannot_be_read(tmp_path):
    figures, out, _ = audited(tmp_path, {"kern.log": log_line("sdb1 error")}, before=lambda folder: (folder / "kern.log.1").mkdir())
    assert figures is None and out.startswith("Unable to open D/kern.log.1\nstatus 1\n")


@as_root
def test_drive_audit_finds_logs_below_patterns_of_directories(tmp_path):
    def logs(folder):
        for name in ("log/a/kern.log", "log/b/kern.log", "log/.hidden/kern.log"):
            (folder / name).parent.mkdir(parents=True)
            (folder / name).write_text(log_line("sdb1 error"))

    figures, _, _ = audited(tmp_path, {}, before=logs, pattern="lo[g]/*/kern.*")
    assert figures["D/node/sdb1"] == 2


@as_root
def test_drive_audit_without_parentheses_takes_the_whole_match(tmp_path):
    figures, _, _ = audited(tmp_path, {"kern.log": log_line("weird dm-3")}, r"regex_pattern_1 = dm-\d+")
    assert figures["D/node/dmx"] == 1


@as_root
def test_drive_audit_where_a_drive_does_not_let_go(tmp_path):
    """The boot is to leave it alone all the same; a line of two fields mounts nothing."""
    def before(folder):
        (folder / "umount").write_text("#!/bin/sh\necho umount: busy >&2\nexit 32\n")
        (folder / "umount").chmod(0o755)

    figures, out, _ = audited(tmp_path, {"kern.log": log_line("sdb1 error")}, before=before,
                              setup='mount --bind $D/umount "$(command -v umount)"; echo "/dev/sdb1 $D/node/sdb1" >> /etc/fstab')
    assert figures["D/node/sdb1"] == 1 and "#/dev/sdb1 D/node/sdb1 xfs" in out and "\n/dev/sdb1 D/node/sdb1\n" in f"{out}\n" and out.count("D/node/sdb1") > 3


@pytest.fixture
def conf(tmp_path):
    """Of a node without drives, whose logs are to be `log/kern*`."""
    for name in ("cache", "log", "node"):
        (tmp_path / name).mkdir()
    path = tmp_path / "drive-audit.conf"
    path.write_text(f"[drive-audit]\ndevice_dir = {tmp_path}/node\nrecon_cache_path = {tmp_path}/cache\nlog_file_pattern = {tmp_path}/log/kern*\n")
    return path


def test_drive_audit_does_not_wait_for_a_pipe(conf, tmp_path):
    """OpenStack's waits for a writer, for ever."""
    os.mkfifo(tmp_path / "log/kern.pipe")
    (tmp_path / "log/kern.log").write_text(log_line("all is well"))
    done = run("martlet", "drive-audit", conf, within=20)
    assert done.status == 0 and f"{tmp_path}/log/kern.pipe is no regular file: skipped" in done.err, done
    assert json.loads((tmp_path / "cache/drive.recon").read_text()) == {"drive_audit_errors": 0}


@pytest.mark.parametrize("name", [None, "other.log", "kern.pipe"])
def test_drive_audit_without_a_log_is_a_failure(conf, tmp_path, name):
    """OpenStack's notes that there are no errors."""
    if name:
        os.mkfifo(tmp_path / "log" / name)
    done = run("martlet", "drive-audit", conf, within=20)
    assert done.status == 1 and f"{tmp_path}/log/kern*: nothing was audited" in done.out, done
    assert not (tmp_path / "cache/drive.recon").exists()


@pytest.mark.parametrize("pattern", ["(", r"(sd\w)(?=["])
def test_drive_audit_with_a_wrong_pattern(tmp_path, pattern):
    conf = tmp_path / "drive-audit.conf"
    conf.write_text(f"[drive-audit]\nregex_pattern_7 = {pattern}\n")
    theirs, ours = both("drive-audit", conf)
    assert (ours.status, ours.out, ours.err.splitlines()[0]) == (theirs.status, theirs.out, theirs.err.splitlines()[0]) and ours.status == 1
    assert "regex_pattern_7: " in ours.err


def test_drive_audit_without_configuration(tmp_path):
    for words in ((), ("",), (tmp_path / "nosuch", "more")):
        theirs, ours = both("drive-audit", *words)
        assert (ours.out, ours.status) == (theirs.out, theirs.status) and ours.status == 1
