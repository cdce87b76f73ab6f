"""If-None-Match: * as clients use it to store a name only once, whatever is sent along."""

import pytest


@pytest.mark.parametrize("body", [b"", b"something"])
def test_a_name_is_stored_only_once(client, body):
    """An empty body too, for which storage servers may have answered before the gateway sees that they wait for nothing."""
    client.do("PUT", "once", expect=(201, 202))
    for number in range(60):
        name, once = f"{len(body)} {number}", {"If-None-Match": "*"}
        assert client.do("PUT", "once", name, body=body, headers=once).status == 201
        assert client.do("PUT", "once", name, body=body, headers=once).status == 412
