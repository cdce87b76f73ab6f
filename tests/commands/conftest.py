"""These tests are about Martlet's own commands, which OpenStack does not have."""

import pytest


@pytest.fixture(autouse=True)
def only_martlet(request):
    if request.config.getoption("--sut") == "openstack":
        pytest.skip("a command of Martlet's own: OpenStack has no such command")
