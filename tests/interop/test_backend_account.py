"""Account servers asked the same answer the same and leave databases of the same schema and rows."""

import pytest

from harness.backend import Call, replicate, stamp


def holds(container, time, objects="1", size="10", deleted="0", account="/a", **headers):
    """A container server telling the account about a container."""
    return Call("PUT", f"{account}/{container}", time, {
        "X-Put-Timestamp": stamp(time), "X-Delete-Timestamp": stamp(deleted) if deleted != "0" else "0", "X-Object-Count": objects,
        "X-Bytes-Used": size, "X-Backend-Storage-Policy-Index": "0", **headers})


def look(path="/a"):
    return [Call("HEAD", path), Call("GET", path), Call("GET", path + "?format=json")]
T1, T9 = "4000000001.00000", "4000000009.00000"
ITEM = {"ROWID": 3, "name": "p", "put_timestamp": "4000000006.00000", "delete_timestamp": "0", "object_count": 1, "bytes_used": 2, "deleted": 0, "storage_policy_index": 0}


STORIES = {
    "replicas": [
        Call("PUT", "/repl", "5", {"X-Account-Meta-Colour": "blue"}), replicate("/repl", "sync", 5, "f" * 32, "other", T1, T9, "0", ""),
        replicate("/repl", "sync", 5, "f" * 32, "other", T1, T9, "0", '{"X-Account-Meta-New": ["v", "4000000009.00000"]}'),
        replicate("/repl", "sync", 5), replicate("/repl", "nonsense"), replicate("/repl"), replicate("/none", "sync", 5, "f" * 32, "other", T1, T9, "0", ""),
        replicate("/repl", "merge_items", [ITEM, {**ITEM, "ROWID": 4, "name": "gone", "delete_timestamp": T9, "object_count": 0, "bytes_used": 0, "deleted": 1}], "other"),
        replicate("/repl", "merge_items", [{**ITEM, "put_timestamp": T1, "object_count": 5}, {**ITEM, "ROWID": 2, "name": "q", "storage_policy_index": 1}], "third"),
        replicate("/repl", "merge_items", [{"name": "x"}], "third"), replicate("/repl", "merge_items", [], "third"), replicate("/repl", "merge_items", []),
        replicate("/repl", "merge_syncs", [{"remote_id": "fourth", "sync_point": 9}, {"remote_id": "other", "sync_point": 2}]),
        replicate("/repl", "get_shard_ranges"), replicate("/repl", "complete_rsync", "nofile"), replicate("/repl", "rsync_then_merge", "nofile"),
        Call("HEAD", "/repl"), Call("GET", "/repl?format=json"), replicate("/repl", "sync", 5, device="sdb9"),
    ],
    "life": [
        Call("GET", "/l"), Call("HEAD", "/l"), Call("POST", "/l", "1"), Call("DELETE", "/l", "1"), holds("c", "1", account="/l"),
        Call("PUT", "/l", "5"), Call("PUT", "/l", "5"), Call("PUT", "/l", "4"), *look("/l"), holds("c", "6", account="/l"), *look("/l"), Call("DELETE", "/l", "7"),
        *look("/l"), holds("d", "8", account="/l"), Call("PUT", "/l", "9"), Call("DELETE", "/l", "10"), Call("POST", "/l", "11"), Call("PUT", "/never", "never"),
    ],
    "containers": [
        Call("PUT", "/a", "5"), holds("c1", "6"), holds("c2", "6", "5", "50"), *look(), holds("c1", "6", "7", "70"), *look(),
        holds("c1", "6", "0", "0", deleted="8"), *look(), holds("c1", "9", "2", "20", deleted="8"), *look(),
        holds("silver", "10", **{"X-Backend-Storage-Policy-Index": "1"}), *look(), holds("%C3%BC", "10"), holds("with%20space", "10"), *look(),
        holds("x", "10", **{"X-Account-Override-Deleted": "yes"}),
        Call("DELETE", "/a/c1", "11"), Call("GET", "/a/c1"), holds("p9", "10", **{"X-Backend-Storage-Policy-Index": "9"}), *look(),
    ],
    "listings": [
        Call("PUT", "/q", "5"), *(holds(name, "6", account="/q") for name in ("a", "a-1", "a-2", "b", "%C3%BC", "%25"))] + [
        Call("GET", "/q?" + query + form) for form in ("", "&format=json", "&format=xml") for query in (
            "limit=2", "marker=a", "end_marker=b", "prefix=a", "delimiter=-", "reverse=true", "reverse=on&marker=b", "limit=20000", "limit=x", "prefix=%FF")] + [
        Call("GET", "/q", headers={"Accept": accept}) for accept in ("application/json", "text/xml", "image/png")],
    "names beyond ASCII": [
        Call("PUT", "/uni", "5", {"X-Account-Meta-uni\u0e12x": "v\u00e9", "X-Account-Meta-a/b(c)": "1", "X-Account-Sysmeta-50%": "2"}),
        Call("HEAD", "/uni"), Call("POST", "/uni", "6", {"X-Account-Meta-uni\u0e12x": ""}), Call("HEAD", "/uni"),
    ],
    "metadata": [
        Call("PUT", "/m", "5", {"X-Account-Meta-Colour": "blue", "X-Account-Sysmeta-S": "s"}), Call("HEAD", "/m"), Call("POST", "/m", "6", {"X-Account-Meta-Size": "L"}),
        Call("POST", "/m", "5.5", {"X-Account-Meta-Size": "late"}), Call("POST", "/m", "7", {"X-Account-Meta-Colour": ""}), Call("HEAD", "/m"), Call("GET", "/m?format=json"),
        Call("PUT", "/m", "8", {"X-Account-Meta-Uni": "çødé"}), Call("HEAD", "/m"), Call("POST", "/m", None), Call("POST", "/none", "5"),
    ],
    "autocreated": [holds("c", "5", account="/.auto"), *look("/.auto")],
    "refused": [Call("BREW", "/a", "5"), Call("GET", "/a", device="sdb9"), Call("PUT", "/%FF", "5", also=(400,)), Call("PUT", "/n%00", "5"), Call("PUT", "/a", None), Call("DELETE", "/a", None),
                Call("PUT", "/r", "5"), Call("PUT", "/r/bad", "10", level="status", also=(400,)), Call("GET", "/a/c/o"),
                Call("PUT", "/r/bad", "10", {"X-Put-Timestamp": "never"}, level="status", also=(400,)),  Call("PUT", "/" + "n" * 256, "5"), Call("HEAD", "/a", partition="x", also=(400,))],
}


@pytest.mark.parametrize("name", STORIES)
def test_same_answers_and_same_rows(account_servers, name):
    account_servers.check(STORIES[name])
