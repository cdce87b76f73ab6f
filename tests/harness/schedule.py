"""The order in which xdist's workers take the test files: the longest first, so that no worker is left alone with one.

A unit of work is the tests of one file on one system (`up`, `separate`): they share what the file's fixtures start.
WEIGHTS are seconds by file; a file that is not listed weighs little. From the times of a short run, which is what they are for,

    .venv/bin/python tests/harness/schedule.py target/black-box.xml

prints them anew.
"""

import re
import sys
from collections import Counter
from xml.etree import ElementTree
from zlib import crc32

from xdist.scheduler import LoadFileScheduling

LEAST = 15  # seconds: lighter files are not listed
WEIGHTS = {
    "api/test_keystone.py": 269,
    "interop/test_sharded.py": 142,
    "advise/test_look.py": 137,
    "faults/test_multipart.py": 128,
    "interop/test_takeover.py": 120,
    "api/test_listing_names.py": 116,
    "advise/test_measure.py": 114,
    "interop/test_object_expirer.py": 108,
    "interop/test_s3_acl.py": 108,
    "interop/test_statsd_daemons.py": 103,
    "interop/test_recon_of_daemons.py": 103,
    "faults/test_reload.py": 103,
    "operator/test_package.py": 101,
    "interop/test_object_replication.py": 96,
    "interop/test_database_replicators.py": 86,
    "operator/test_production_page.py": 83,
    "interop/test_statsd.py": 83,
    "interop/test_mixed_cluster.py": 82,
    "operator/test_migration_page.py": 81,
    "operator/test_dispersion_odd.py": 74,
    "api/test_keystone_s3_acl.py": 73,
    "interop/test_container_sync_sender.py": 73,
    "operator/test_package_systemd.py": 66,
    "interop/test_networks.py": 64,
    "storm/test_storm.py": 60,
    "interop/test_encryption.py": 60,
    "clients/test_operations.py": 57,
    "api/test_staticweb.py": 53,
    "faults/test_clocks.py": 52,
    "clients/test_boto3_customer_keys.py": 50,
    "operator/test_info_tools.py": 49,
    "faults/test_failover.py": 47,
    "clients/test_s3cmd.py": 44,
    "clients/test_customer_keys_by_tls.py": 44,
    "clients/test_boto3_virtual_host.py": 44,
    "api/test_large_objects.py": 43,
    "api/test_acl.py": 43,
    "clients/test_boto3_lifecycle_pass.py": 43,
    "faults/test_silence.py": 43,
    "clients/test_aws_command.py": 43,
    "clients/test_boto3_conditional.py": 42,
    "bench/test_bench.py": 41,
    "operator/test_drive_audit.py": 41,
    "faults/test_bad_configuration.py": 41,
    "bench/test_drivers.py": 40,
    "faults/test_kill.py": 40,
    "clients/test_boto3_object_lock.py": 39,
    "faults/test_device.py": 39,
    "api/test_filter_options.py": 38,
    "operator/test_ring_builder.py": 38,
    "operator/test_samples.py": 38,
    "clients/test_boto3_versions_restored.py": 36,
    "faults/test_flood.py": 34,
    "api/test_metrics.py": 34,
    "commands/test_cluster_tls.py": 34,
    "operator/test_dispersion.py": 32,
    "operator/test_small_tools.py": 32,
    "interop/test_partition_power.py": 31,
    "operator/test_ring_advice.py": 30,
    "operator/test_swift_recon.py": 30,
    "operator/test_ring_histories.py": 29,
    "clients/test_signed.py": 28,
    "interop/test_account_reaper.py": 28,
    "api/test_listing.py": 28,
    "faults/test_strange_things.py": 27,
    "interop/test_container_reconciler.py": 27,
    "operator/test_log_volume.py": 27,
    "clients/test_large_objects.py": 27,
    "api/test_versioned_writes.py": 27,
    "clients/test_boto3_encryption.py": 27,
    "bench/test_beside_the_load.py": 27,
    "clients/test_access_keys.py": 25,
    "bench/test_swift_bench.py": 25,
    "bench/test_replay.py": 24,
    "clients/test_rclone.py": 23,
    "api/test_quotas.py": 23,
    "clients/test_boto3_notified_targets.py": 23,
    "clients/test_boto3_notifications.py": 23,
    "operator/test_command_lines.py": 22,
    "faults/test_memory.py": 22,
    "clients/test_restic.py": 22,
    "interop/test_object_versioning.py": 22,
    "interop/test_customer_keys.py": 22,
    "interop/test_replication_figures.py": 22,
    "faults/test_log.py": 21,
    "operator/test_metrics.py": 21,
    "commands/test_priority.py": 21,
    "api/test_symlink.py": 21,
    "faults/test_conditions.py": 20,
    "api/test_object.py": 20,
    "api/test_container.py": 20,
    "interop/test_memcached.py": 20,
    "clients/test_python_clients.py": 19,
    "bench/test_sweep.py": 19,
    "api/test_bulk.py": 19,
    "clients/test_boto3_post.py": 18,
    "clients/test_rclone_s3.py": 18,
    "clients/test_boto3_cors.py": 18,
    "bench/test_operations.py": 17,
    "operator/test_config_tested.py": 17,
    "faults/test_rsync_fails.py": 17,
    "faults/test_rubbish_listings.py": 16,
    "interop/test_tools.py": 16,
    "api/test_copy.py": 16,
    "commands/test_up.py": 15,
    "bench/test_other_stores.py": 15,
    "clients/test_swift_command.py": 15,
}


def weight(nodeid, seed=None):
    """Files weigh what a seed decides, where one is given: other ones share a worker then."""
    file = nodeid.partition("::")[0].removeprefix("tests/")
    return WEIGHTS.get(file, 0) if seed is None else crc32(f"{seed} {file}".encode())


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
