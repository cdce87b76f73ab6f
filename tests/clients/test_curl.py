"""curl, as in the documentation: log in, store, read in parts, share in public, delete."""

import re

from harness.process import run
from harness.waiting import until


def curl(*arguments, **options):
    return run(["curl", "-sS", "--fail-with-body", "-i", *arguments], **options).stdout


def test_a_first_session(system, tmp_path):
    login = curl("-H", "X-Auth-User: test:tester", "-H", "X-Auth-Key: testing", system.auth_url)
    token = re.search(r"X-Auth-Token: (\S+)", login, re.I).group(1)
    url = re.search(r"X-Storage-Url: (\S+)", login, re.I).group(1)
    auth = ["-H", f"X-Auth-Token: {token}"]

    assert "201 Created" in curl(*auth, "-X", "PUT", f"{url}/curl")
    (tmp_path / "photo.jpg").write_bytes(bytes(range(256)) * 5000)
    assert "201 Created" in curl(*auth, "-T", tmp_path / "photo.jpg", f"{url}/curl/photo.jpg")  # sends Expect: 100-continue
    run(["curl", "-sS", "-f", *auth, "-o", tmp_path / "back.jpg", f"{url}/curl/photo.jpg"])
    assert (tmp_path / "back.jpg").read_bytes() == (tmp_path / "photo.jpg").read_bytes()

    run(["sh", "-c", f"curl -sS -f -H 'X-Auth-Token: {token}' -T - '{url}/curl/piped' < photo.jpg"], cwd=tmp_path)  # chunked
    assert "Content-Length: 1280000" in curl(*auth, "-I", f"{url}/curl/piped")
    part = curl(*auth, "-r", "256-259", f"{url}/curl/piped")
    assert "206 Partial Content" in part and "Content-Range: bytes 256-259/1280000" in part

    until(lambda: "photo.jpg\npiped\n" in curl(*auth, f"{url}/curl"), what="the listing")
    assert run(["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", f"{url}/curl/piped"]).stdout == "401"
    assert "204 No Content" in curl(*auth, "-X", "POST", "-H", "X-Container-Read: .r:*", f"{url}/curl")
    assert "200 OK" in curl("-I", f"{url}/curl/piped")
    for name in ("photo.jpg", "piped"):
        assert "204 No Content" in curl(*auth, "-X", "DELETE", f"{url}/curl/{name}")
    until(lambda: "204 No Content" in curl(*auth, "-X", "DELETE", f"{url}/curl"), what="the container being empty, and going")


def test_several_requests_share_a_connection(system):
    healthy = f"http://127.0.0.1:{system.port}/healthcheck"
    done = run(["curl", "-sS", "-v", healthy, healthy, healthy])
    assert done.stdout == "OKOKOK"
    assert done.stderr.count("Re-using existing connection") == 2
