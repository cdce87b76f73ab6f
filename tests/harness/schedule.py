"""The order in which xdist's workers take the test files: the longest first, so that no worker is left alone with one.

A unit of work is the tests of one file on one system (`up`, `separate`): they share what the file's fixtures start.
Weights are seconds on a machine of two cores, from `pytest --durations=0`; a file that is not listed weighs little.
"""

import re

from xdist.scheduler import LoadFileScheduling

WEIGHTS = {}


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
