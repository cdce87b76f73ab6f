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
    "advise/test_look.py": 205,
    "api/test_keystone.py": 173,
    "interop/test_object_expirer.py": 151,
    "interop/test_statsd_daemons.py": 96,
    "interop/test_takeover.py": 94,
    "interop/test_object_replication.py": 87,
    "interop/test_database_replicators.py": 86,
    "interop/test_recon_of_daemons.py": 79,
    "interop/test_statsd.py": 69,
    "interop/test_tools.py": 66,
    "api/test_listing_names.py": 64,
    "interop/test_networks.py": 59,
    "faults/test_failover.py": 56,
    "operator/test_dispersion_odd.py": 54,
    "faults/test_memory.py": 54,
    "faults/test_reload.py": 52,
    "interop/test_container_sync_sender.py": 50,
    "bench/test_race.py": 48,
    "interop/test_s3_acl.py": 47,
    "storm/test_storm.py": 47,
    "operator/test_swift_recon.py": 44,
    "interop/test_mixed_cluster.py": 44,
    "api/test_staticweb.py": 44,
    "clients/test_operations.py": 40,
    "faults/test_bad_configuration.py": 39,
    "api/test_filter_options.py": 36,
    "operator/test_package_systemd.py": 35,
    "interop/test_encryption.py": 35,
    "commands/test_cluster_tls.py": 33,
    "operator/test_migration_page.py": 33,
    "api/test_metrics.py": 32,
    "operator/test_info_tools.py": 32,
    "operator/test_dispersion.py": 30,
    "advise/test_measure.py": 30,
    "clients/test_boto3_lifecycle_pass.py": 29,
    "operator/test_small_tools.py": 29,
    "bench/test_drivers.py": 28,
    "operator/test_get_nodes.py": 28,
    "bench/test_beside_wrk.py": 25,
    "api/test_keystone_s3_acl.py": 25,
    "operator/test_samples.py": 25,
    "bench/test_bench.py": 25,
    "interop/test_memcached.py": 24,
    "clients/test_access_keys.py": 24,
    "interop/test_account_reaper.py": 23,
    "interop/test_replication_figures.py": 23,
    "operator/test_command_lines.py": 23,
    "clients/test_aws_command.py": 23,
    "operator/test_ring_builder.py": 23,
    "bench/test_filling.py": 21,
    "faults/test_flood.py": 21,
    "clients/test_swift_command.py": 19,
    "interop/test_object_versioning.py": 19,
    "faults/test_rsync_fails.py": 18,
    "bench/test_replay.py": 18,
    "faults/test_conditions.py": 18,
    "operator/test_package_tarball.py": 18,
    "bench/test_sweep.py": 18,
    "operator/test_ring_composer.py": 18,
    "api/test_quotas.py": 17,
    "faults/test_strange_things.py": 16,
    "clients/test_boto3_notifications.py": 16,
    "operator/test_metrics.py": 15,
    "api/test_large_objects.py": 15,
    "api/test_versioned_writes.py": 15,
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
