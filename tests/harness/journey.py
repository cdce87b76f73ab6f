"""A stay of a user: things of every kind stored, changed and deleted, and the proof later that all is as left."""

import hashlib
import http.client
import json

from harness.waiting import until

BIG = hashlib.sha256(b"martlet").digest() * 100_000  # 3.2 MB
NAMES = ["plain", "with space", "ünï/çødé", "100% %41", "trailing/", "🐦", "a//b", "nested/1", "nested/2/deep"]


def write(client, tag):
    """Store a stay named `tag`; what `check` needs to know of it."""
    kept = {}
    for policy in ("gold", "silver"):
        container = f"{tag} {policy}"
        client.do("PUT", container, headers={"X-Storage-Policy": policy, "X-Container-Meta-Tag": tag, "X-Container-Read": ".r:*"}, expect=201)
        for index, name in enumerate(NAMES):
            body = f"{tag} {name}".encode() * (index * 1000)
            client.put(container, name, body=body, headers={"Content-Type": f"text/x-{index}", "X-Object-Meta-Index": str(index)})
            kept[container, name] = body, {"Content-Type": f"text/x-{index}", "X-Object-Meta-Index": str(index)}
        client.put(container, "big", body=BIG)
        client.put(container, "chunked", body=iter([BIG[:70_000], BIG[70_000:100_000]]))  # chunked
        kept[container, "big"], kept[container, "chunked"] = (BIG, {}), (BIG[:100_000], {})
        client.put(container, "replaced", body=b"first")
        client.put(container, "replaced", body=b"second")
        kept[container, "replaced"] = b"second", {}
        client.put(container, "described", body=b"x", headers={"X-Object-Meta-Old": "gone"})
        client.do("POST", container, "described", headers={"X-Object-Meta-New": "here", "Content-Type": "text/new"}, expect=202)
        kept[container, "described"] = b"x", {"X-Object-Meta-New": "here", "Content-Type": "text/new", "X-Object-Meta-Old": None}
        client.put(container, "deleted", body=b"x")
        client.do("DELETE", container, "deleted", expect=204)
        kept[container, "deleted"] = None, {}
    return kept


def check(client, kept):
    """Assert that everything reads back and is listed, and that its containers are described and readable by all."""
    check_objects(client, kept)
    for container in {container for container, _ in kept}:
        until(lambda: check_listing(client, container, kept), what=f"the listing of {container!r}")
        assert client.do("HEAD", container)["X-Container-Meta-Tag"]
        until(lambda: container in client.get(query="?limit=10000").decode().splitlines(), what=f"{container!r} in its account's listing")
        anonymous = http.client.HTTPConnection("127.0.0.1", client.port)
        anonymous.request("GET", client.path(container, "plain"))
        assert anonymous.getresponse().status == 200
        anonymous.close()


def check_objects(client, kept):
    """Assert that every object reads back whole, one way and another."""
    for (container, name), (body, headers) in kept.items():
        if body is None:
            client.do("GET", container, name, expect=404)
            continue
        reply = client.do("GET", container, name, expect=200)
        assert reply.body == body, (container, name)
        assert reply["Etag"] == hashlib.md5(body).hexdigest()
        for header, value in headers.items():
            assert reply[header] == value, (container, name, header)
        assert client.do("HEAD", container, name, expect=200)["Content-Length"] == str(len(body))
        assert client.do("GET", container, name, headers={"X-Newest": "true"}, expect=200).body == body
        if len(body) > 1000:
            assert client.get(container, name, headers={"Range": "bytes=500-999"}) == body[500:1000]


def check_listing(client, container, kept):
    """Whether the container lists just what is kept in it, rightly described; listings may lag behind."""
    wanted = {name: (len(body), hashlib.md5(body).hexdigest(), headers.get("Content-Type"))
              for (where, name), (body, headers) in kept.items() if where == container and body is not None}
    rows = {row["name"]: (row["bytes"], row["hash"], row["content_type"] if wanted.get(row["name"], (0, 0, None))[2] else None)
            for row in json.loads(client.get(container, query="?format=json"))}
    assert rows == wanted
    head = client.do("HEAD", container, expect=204)
    assert head["X-Container-Object-Count"] == str(len(wanted))
    assert head["X-Container-Bytes-Used"] == str(sum(size for size, _, _ in wanted.values()))
    return True


def clean(client, kept):
    """Delete it all again."""
    for container, name in kept:
        client.delete(container, name)
    for container in {container for container, _ in kept}:
        until(lambda: client.do("DELETE", container).status in (204, 404), what=f"deleting {container!r}")
