"""The order in which xdist's workers take the test files: the longest first, so that no worker is left alone with one.

A unit of work is the tests of one file on one system (`up`, `separate`): they share what the file's fixtures start.
WEIGHTS are seconds by file; a file that is not listed weighs little. From the times of a run on a quiet machine,

    .venv/bin/python tests/harness/schedule.py target/black-box.xml

prints them anew.
"""

import re
import sys
from collections import Counter
from xml.etree import ElementTree

from xdist.scheduler import LoadFileScheduling

LEAST = 15  # seconds: lighter files are not listed
WEIGHTS = {
    "advise/test_look.py": 120,
    "interop/test_container_sync_sender.py": 120,
    "api/test_keystone.py": 110,
    "storm/test_storm.py": 80,
    "interop/test_container_reconciler.py": 70,
    "operator/test_package_systemd.py": 70,
    "interop/test_database_replicators.py": 60,
    "interop/test_statsd_daemons.py": 60,
    "operator/test_ring_histories.py": 60,
    "faults/test_reload.py": 60,
    "bench/test_race.py": 60,
    "interop/test_account_reaper.py": 40,
    "operator/test_production_page.py": 40,
    "faults/test_kill.py": 40,
    "faults/test_memory.py": 40,
    "interop/test_statsd.py": 40,
    "operator/test_package.py": 40,
    "interop/test_s3_acl.py": 40,
    "operator/test_dispersion.py": 40,
    "clients/test_operations.py": 40,
    "clients/test_aws_command.py": 30,
    "interop/test_object_replication.py": 40,
    "api/test_listing_names.py": 40,
    "api/test_staticweb.py": 20,
    "interop/test_backend_container.py": 20,
    "operator/test_info_tools.py": 20,
    "clients/test_boto3_lifecycle_pass.py": 20,
    "commands/test_cluster_tls.py": 20,
    "operator/test_ring_builder.py": 20,
    "clients/test_rclone.py": 20,
    "clients/test_swift_command.py": 20,
    "clients/test_curl.py": 20,
    "clients/test_python_clients.py": 20,
    "clients/test_s3cmd.py": 20,
}


def weight(nodeid):
    return WEIGHTS.get(nodeid.partition("::")[0].removeprefix("tests/"), 0)


def unit(nodeid):
    """The unit of work that a test belongs to."""
    file = nodeid.partition("::")[0]
    system = re.search(r"\[(up|separate|openstack)\b", nodeid)
    return f"{file}@{system.group(1)}" if system else file


class LongestFirst(LoadFileScheduling):
    """`--dist loadfile`, in the order in which the tests were collected."""

    def __init__(self, config, log=None):
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid):
        return unit(nodeid)


def main():
    seconds = Counter()
    for case in ElementTree.parse(sys.argv[1]).iter("testcase"):
        seconds[f"{case.get('classname').replace('.', '/')}.py"] += float(case.get("time"))
    for file, weight in seconds.most_common():
        if weight >= LEAST:
            print(f'    "{file.removeprefix("tests/")}": {weight:.0f},')


if __name__ == "__main__":
    main()
