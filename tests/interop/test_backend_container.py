"""Container servers asked the same answer the same and leave databases of the same schema and rows."""

import pytest

from harness.backend import Call, replicate

C = "/a/c"
ROW = {"X-Size": "3", "X-Content-Type": "text/x", "X-Etag": "900150983cd24fb0d6963f7d28e17f72"}
MADE = Call("PUT", C, "5", {"X-Backend-Storage-Policy-Index": "0", "X-Backend-Storage-Policy-Default": "0"})


def made(name, time="5", policy="0", **headers):
    return Call("PUT", name, time, {"X-Backend-Storage-Policy-Index": policy, "X-Backend-Storage-Policy-Default": "0", **headers})


def row(path, time, method="PUT", **headers):
    fields = {**ROW, "X-Backend-Storage-Policy-Index": "0", **headers} if method == "PUT" else {"X-Backend-Storage-Policy-Index": "0", **headers}
    return Call(method, path, time, fields)


def look(path=C, query=""):
    return [Call("HEAD", path), Call("GET", path + query), Call("GET", path + "?format=json" + query.replace("?", "&"))]
T1, T9 = "4000000001.00000", "4000000009.00000"
ITEM = {"ROWID": 3, "name": "p", "created_at": "4000000006.00000", "size": 4, "content_type": "t", "etag": "x", "deleted": 0, "storage_policy_index": 0}
SHARD = {"name": ".shards_a/c-1", "timestamp": "4000000006.00000", "lower": "a", "upper": "m", "object_count": 1, "bytes_used": 2, "meta_timestamp": "4000000006.00000",
         "deleted": 0, "state": 20, "state_timestamp": "4000000006.00000", "epoch": None, "reported": 0, "tombstones": -1}


STORIES = {
    "replicas": [
        made("/a/repl", "5", **{"X-Container-Meta-Colour": "blue"}), row("/a/repl/o", "6"), replicate("/a/repl", "sync", 5, "f" * 32, "other", T1, T9, "0", ""),
        replicate("/a/repl", "sync", 5, "f" * 32, "other", T1, T9, "0", '{"X-Container-Meta-New": ["v", "4000000009.00000"]}', T1, 1, 0),
        replicate("/a/repl", "sync", 5), replicate("/a/repl", "nonsense"), replicate("/a/repl"), replicate("/a/none", "sync", 5, "f" * 32, "other", T1, T9, "0", ""),
        replicate("/a/none", "merge_items", [], "x"), replicate("/a/repl", "merge_items", [ITEM, {**ITEM, "ROWID": 4, "name": "gone", "deleted": 1}], "other"),
        replicate("/a/repl", "merge_items", [{**ITEM, "created_at": T1, "etag": "older"}, {**ITEM, "ROWID": 2, "name": "o", "size": 77}], "third"),
        replicate("/a/repl", "merge_items", [{**ITEM, "ROWID": 9, "name": "other policy", "storage_policy_index": 1}], "third"),
        replicate("/a/repl", "merge_items", [{"name": "x"}], "third"), replicate("/a/repl", "merge_items", []), *look("/a/repl"),
        replicate("/a/repl", "merge_syncs", [{"remote_id": "fourth", "sync_point": 9}, {"remote_id": "other", "sync_point": 2}]),
        replicate("/a/repl", "merge_shard_ranges", [SHARD], "other"), replicate("/a/repl", "merge_shard_ranges", [{**SHARD, "object_count": 7, "meta_timestamp": T9}], "other"),
        replicate("/a/repl", "get_shard_ranges"), replicate("/a/repl", "complete_rsync", "nofile"), replicate("/a/repl", "rsync_then_merge", "nofile"),
        replicate("/a/repl", "sync", 5, "f" * 32, "other", T1, "4000000007.00000", "4000000020.00000", "", T9, 0, 1), *look("/a/repl"),
        Call("REPLICATE", "/", body=b"[]", level="status"), Call("REPLICATE", "/nothash", body=b'["sync"]', level="status"), replicate("/a/repl", "sync", 5, device="sdb9"),
    ],
    "replicas that disagree about the policy": [
        made("/a/rp", policy="1"), row("/a/rp/o", "6", **{"X-Backend-Storage-Policy-Index": "1"}),
        replicate("/a/rp", "sync", 5, "f" * 32, "other", T1, T1, "0", "", T1, 1, 0), Call("GET", "/a/rp?format=json", level="status"),
        made("/a/rq", policy="1"), replicate("/a/rq", "sync", 5, "f" * 32, "other", T1, T9, "0", "", T9, 1, 0), Call("HEAD", "/a/rq"),
    ],
    "life": [
        Call("GET", "/a/l"), Call("HEAD", "/a/l"), Call("POST", "/a/l", "1"), Call("DELETE", "/a/l", "1"), row("/a/l/o", "1"),
        made("/a/l"), made("/a/l"), made("/a/l", "4"), made("/a/l", "6"), *look("/a/l"), row("/a/l/o", "7"), Call("DELETE", "/a/l", "8"),
        row("/a/l/o", "9", "DELETE"), *look("/a/l"), Call("DELETE", "/a/l", "3"), Call("DELETE", "/a/l", "10"), *look("/a/l"),
        Call("DELETE", "/a/l", "11"), made("/a/l", "12"), *look("/a/l"), row("/a/l/late", "11"), *look("/a/l"),
    ],
    "rows": [
        made("/a/r"), row("/a/r/o", "6"), *look("/a/r"), row("/a/r/o", "5", **{"X-Size": "99"}), *look("/a/r"),
        row("/a/r/o", "7", **{"X-Size": "4"}), *look("/a/r"), row("/a/r/o", "6.5", "DELETE"), *look("/a/r"), row("/a/r/o", "8", "DELETE"), *look("/a/r"),
        row("/a/r/%C3%BC/b", "9"), row("/a/r/o", "10", **{"X-Content-Type": "text/x;swift_bytes=500;charset=x"}), *look("/a/r"),
        row("/a/r/o", "11", **{"X-Content-Type-Timestamp": "4000000012.00000", "X-Meta-Timestamp": "4000000013.00000"}), *look("/a/r"),
        row("/a/r/off", "4000000005.00000_0000000000000002"), *look("/a/r"),
    ],
    "row refusals": [
        made("/a/rr"), Call("PUT", "/a/rr/o", "6", level="status", also=(400,)), Call("PUT", "/a/rr/o", "6", {**ROW, "X-Size": "x"}, level="status", also=(400,)), row("/a/rr/o", "never"),
        Call("PUT", "/a/rr/o", None, ROW), Call("DELETE", "/a/rr/o"), row("/a/none/o", "6"), Call("POST", "/a/rr/o", "6"), *look("/a/rr"),
        row("/a/rr/o", "6", **{"X-Backend-Storage-Policy-Index": "1"}), *look("/a/rr"), Call("BREW", "/a/rr", "6"), Call("GET", "/a/rr/o"),
        Call("PUT", "/a/rr", None), made("/a/rr", "never"), Call("GET", "/a/rr", device="sdb9"), made("/a/rr9", policy="9"), made("/a/rrx", policy="x"),
    ],
    "names beyond ASCII": [
        Call("PUT", "/a/uni", "5", {"X-Container-Meta-uni\u0e12x": "v\u00e9", "X-Container-Meta-a/b(c)": "1", "X-Container-Sysmeta-50%": "2"}),
        Call("HEAD", "/a/uni"), Call("POST", "/a/uni", "6", {"X-Container-Meta-uni\u0e12x": ""}), Call("HEAD", "/a/uni"),
    ],
    "metadata": [
        made("/a/m", **{"X-Container-Meta-Colour": "blue", "X-Container-Read": ".r:*", "X-Container-Sysmeta-S": "s", "X-Other": "dropped"}),
        Call("HEAD", "/a/m"), Call("POST", "/a/m", "6", {"X-Container-Meta-Colour": "red", "X-Container-Write": "test"}), Call("HEAD", "/a/m"),
        Call("POST", "/a/m", "5.5", {"X-Container-Meta-Colour": "late"}), Call("POST", "/a/m", "7", {"X-Container-Meta-Colour": ""}), Call("HEAD", "/a/m"),
        made("/a/m", "8", **{"X-Container-Meta-Uni": "çødé"}), Call("GET", "/a/m?format=json"), Call("POST", "/a/m", None), Call("POST", "/a/m", "never"),
        Call("POST", "/a/m", "9", {"X-Container-Sync-To": "http://nowhere/v1/a/c"}), Call("POST", "/a/m", "9", {"X-Container-Sync-Key": "k"}), Call("HEAD", "/a/m"),
    ],
    "policies": [
        made("/a/p", policy="1"), Call("HEAD", "/a/p"), made("/a/p", "6", policy="0"), made("/a/p", "6", policy="1"), row("/a/p/o", "7", **{"X-Backend-Storage-Policy-Index": "1"}),
        *look("/a/p"), Call("GET", "/a/p?format=json", headers={"X-Backend-Storage-Policy-Index": "0"}), Call("PUT", "/a/p2", "5"),
        Call("PUT", "/a/p3", "5", {"X-Backend-Storage-Policy-Default": "1"}), Call("HEAD", "/a/p3"),
    ],
    "autocreated": [row("/.a/c/o", "5"), *look("/.a/c"), row("/.a/c/o", "6", "DELETE"), row("/.a/d/o", "6", "DELETE"), row("/.a/e/o", "5", **{"X-Backend-Auto-Create": "true"})],
    "listings": [made("/a/q"), *(row(f"/a/q/{name}", str(10 + n)) for n, name in enumerate(
        ("a", "a/1", "a/2/x", "b--1", "b--2", "c/", "c/1", "%C3%BC", "z%20z", "%25")))] + [
        Call("GET", "/a/q?" + query + form) for form in ("", "&format=json", "&format=xml") for query in (
            "limit=2", "marker=a", "end_marker=b", "prefix=a/", "delimiter=/", "delimiter=--&prefix=b", "path=a", "reverse=true", "reverse=true&marker=b&limit=2",
            "delimiter=/&reverse=on", "limit=20000", "limit=x", "limit=-1", "marker=%FF", "prefix=%FF", "delimiter=%C3%BC", "states=listing")] + [
        Call("GET", "/a/q", headers={"Accept": accept}) for accept in ("application/json", "text/xml", "image/png", "*/*")] + [
        Call("GET", "/a/q?format=json", headers={"X-Backend-Record-Type": "object"}), Call("GET", "/a/q?format=json", headers={"X-Backend-Record-Type": "shard"}),
        Call("GET", "/a/q?format=json", headers={"X-Backend-Record-Type": "auto"}), Call("HEAD", "/a/q", headers={"X-Backend-Record-Type": "auto"})],
    "names": [call for name in ("/a/%C3%BC", "/a/with%20space", "/%C3%BC/c", "/a/..", "/a/n%00n", "/a/" + "n" * 256) for call in (made(name), Call("HEAD", name))] + [
        Call("PUT", "/a/%FF", "5", also=(400,)), Call("GET", "/a/%FF", also=(400,))],
}


@pytest.mark.parametrize("name", STORIES)
def test_same_answers_and_same_rows(container_servers, name):
    container_servers.check(STORIES[name])
