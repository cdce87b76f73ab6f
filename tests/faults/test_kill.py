"""kill -9 of the whole process under load, again and again: what was acknowledged reads back whole.

No temporary file outlives a restart, and every database opens. $MARTLET_KILLS says how often (`make torture`: 220).
"""

import os
import random
import time

import pytest

from harness import disk
from harness.client import Client
from harness.load import Load
from harness.waiting import until

KILLS = int(os.environ.get("MARTLET_KILLS", "8"))


@pytest.mark.timeout(0)
def test_nothing_acknowledged_is_lost(make_system, request):
    openstack = request.config.getoption("--sut") == "openstack"  # leaves temporary files to its daemons
    system, dice, loads, total = make_system(), random.Random(9), [], 0
    system.start()
    for kill in range(KILLS):
        load = Load(system.auth_url, seed=kill, container=f"kill-{kill % 5}")
        with load:
            before = load.acknowledged
            until(lambda: load.acknowledged > before + 30, within=60, what="the load getting under way")
            time.sleep(dice.uniform(0, 0.7))  # the moment of death is drawn, not waited for
            system.kill()
        system.start()
        # Upkeep may be writing files of its own; what the dead left would stay.
        until(lambda: openstack or not disk.temporary(system.srv), what="the end of temporary files of before the restart")
        checked = load.read_all()
        assert not load.wrong, load.wrong[:5]
        disk.check_databases(system.srv)
        loads = [*loads[-19:], load]
        total += load.acknowledged
        if KILLS > 20 and kill % 10 == 9:
            print(f"{kill + 1} kills, {total} changes acknowledged, {checked} objects checked last", flush=True)
    for load in loads:  # and later deaths harmed nothing that was already safe
        load.read_all()
        assert not load.wrong, load.wrong[:5]
    check_listings(system, loads)


def check_listings(system, loads):
    """Everything that certainly exists gets listed, though its row may have been waiting when the process died."""
    client = Client(system.auth_url)

    def missing(load):
        listed, marker = set(), ""
        while True:
            page = client.get(load.container, query=f"?marker={marker}".replace(" ", "%20")).decode().splitlines()
            if not page:
                break
            listed.update(page)
            marker = page[-1]
        sure = {name for name, bodies in load.expected.items() if len(bodies) == 1 and bodies[0] is not None}
        return sure - listed

    def accounted_for(load):
        waiting = disk.files(system.srv)  # before the listing: what waits now may be listed then
        pending = [path for path in waiting if any(part.startswith("async_pending") for part in path.parts)]
        lost = missing(load)
        assert len(lost) <= len(pending), f"{sorted(lost)[:5]} are not listed, and {len(pending)} updates wait"
        return True

    for load in loads[-5:]:
        until(lambda load=load: accounted_for(load), what="a listing of all that exists")
