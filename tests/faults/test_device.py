"""One of four devices removed under load: no request fails; with it back, old and new data are served."""

import contextlib
import errno
import itertools

from harness.client import Client
from harness.load import Load
from harness.waiting import until


def go_on(load, changes):
    """Wait until the load has made this many more changes."""
    before = load.acknowledged
    until(lambda: load.acknowledged >= before + changes or load.failed, within=90, what="the load going on")


def bring_back(away, device):
    """Mount the device again, over what a write under way may have made in its place, and may make there once more."""
    for number in itertools.count():
        with contextlib.suppress(FileNotFoundError):
            device.rename(device.parents[1] / f"{device.name}-built-meanwhile-{number}")
        try:
            return away.rename(device)
        except OSError as error:
            assert error.errno in (errno.ENOTEMPTY, errno.EEXIST), error


def test_a_device_goes_and_comes_back(make_system):
    system = make_system()
    system.start()
    early = Load(system.auth_url, container="early", seed=1, rewrites=False)
    with early:
        go_on(early, 100)

    load = Load(system.auth_url, container="load", seed=2, rewrites=False)
    device, away = system.srv / "sdb2", system.root / "sdb2-away"
    with load:
        go_on(load, 50)
        device.rename(away)
        go_on(load, 300)
        early.read_all()
        bring_back(away, device)
        go_on(load, 300)
    assert not load.failed, load.failed[:5]
    assert not load.wrong and not early.wrong, (load.wrong + early.wrong)[:5]

    load.read_all()
    early.read_all()
    assert not load.wrong and not early.wrong, (load.wrong + early.wrong)[:5]
    client = Client(system.auth_url)
    until(lambda: client.get("early").decode().splitlines() == sorted(early.expected), what="every object in the listing")


def test_the_other_devices_serve_what_the_lost_one_held(make_system):
    """Each of the four missing in its turn when the cluster starts: reads go on as if nothing were."""
    system = make_system()
    system.start()
    load = Load(system.auth_url, seed=3, rewrites=False)
    with load:
        go_on(load, 100)
    for name in ("sdb1", "sdb2", "sdb3", "sdb4"):
        away = system.root / "away"
        system.stop()
        (system.srv / name).rename(away)
        system.start()
        load.read_all()
        assert not load.failed and not load.wrong, (load.failed + load.wrong)[:5]
        bring_back(away, system.srv / name)
