"""What is signed works for those who were given it: `swift tempurl` for curl, a form for a browser, an archive of GNU tar."""

import json
import subprocess
import tempfile
import time

import pytest
from selenium import webdriver

from harness.client import Client
from harness.places import openstack
from harness.process import run
from harness.signing import signed_fields
from harness.waiting import until


@pytest.fixture
def container(system):
    """A container of test:tester's with a key; its client and its path."""
    client = Client(system.auth_url)
    client.do("POST", headers={"X-Account-Meta-Temp-URL-Key": "sesame"}, expect=204)
    client.put("signed")
    yield client, client.path("signed")
    client.close()


@pytest.mark.parametrize("digest", ["sha1", "sha256", "sha512"])
def test_swift_tempurl_for_curl(system, container, digest, tmp_path):
    client, path = container
    client.put("signed", "ünï file", body=b"hello")

    def signed(method, *more):
        command = [openstack("swift"), "tempurl", "--digest", digest, *more, method, "600", path + "/ünï file", "sesame"]
        return f"http://127.0.0.1:{system.port}" + run(command).stdout.strip().replace(" ", "%20").replace("ü", "%C3%BC").replace("ï", "%C3%AF")

    for more in ((), ("--iso8601",), ("--ip-range", "127.0.0.0/8")):
        assert run(["curl", "-sf", signed("GET", *more)]).stdout == "hello"
    (tmp_path / "new").write_text("new")
    run(["curl", "-sf", "-T", tmp_path / "new", signed("PUT")])
    assert client.get("signed", "ünï file") == b"new"
    refused = run(["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "-X", "DELETE", signed("GET")])
    assert refused.stdout == "401"


def test_a_browser_sends_a_form(system, container, tmp_path):
    client, path = container
    (tmp_path / "photo ü.png").write_bytes(bytes(range(256)) * 300)
    redirect = f"http://127.0.0.1:{system.port}/healthcheck?from=form"
    fields = signed_fields(path + "/upload-", "sesame", redirect=redirect, size=10**6, expires=int(time.time()) + 600)
    inputs = "".join(f'<input type="hidden" name="{name}" value="{value}">' for name, value in fields)
    page = tmp_path / "form.html"
    page.write_text(f'<meta charset="utf-8"><form method="POST" enctype="multipart/form-data" '
                    f'action="http://127.0.0.1:{system.port}{path}/upload-">{inputs}'
                    '<input type="file" name="file1" id="file"><input type="submit" id="send"></form>')
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    with tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as profile:
        for flag in ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", f"--user-data-dir={profile}"):
            options.add_argument(flag)
        browser = webdriver.Chrome(options=options, service=webdriver.ChromeService("/usr/bin/chromedriver"))
        try:
            browser.get(page.as_uri())
            browser.find_element("id", "file").send_keys(str(tmp_path / "photo ü.png"))
            browser.find_element("id", "send").click()
            until(lambda: "status=" in browser.current_url, within=60, what="the browser being sent on")
            assert browser.current_url == redirect + "&status=201&message="
        finally:
            browser.quit()
    stored = client.do("GET", "signed", "upload-photo ü.png", expect=200)
    assert stored.body == bytes(range(256)) * 300 and stored["Content-Type"] == "image/png"


@pytest.mark.parametrize("form, flag", [("tar", ""), ("tar.gz", "z"), ("tar.bz2", "j")])
def test_an_archive_of_gnu_tar_is_unpacked(system, container, tree, form, flag):
    client, _ = container
    root, files = tree
    small = [name for name, size in sorted(files.items()) if size < 10000][:60]
    packed = subprocess.run(["tar", f"-c{flag}f", "-", "-C", root, *[f"./{name}" for name in small]], check=True, capture_output=True).stdout
    name = "unpacked-" + form
    reply = client.send("PUT", client.path(name) + f"?extract-archive={form}", packed, {"Accept": "application/json"})
    report = json.loads(reply.body)
    assert (report["Response Status"], report["Number Files Created"], report["Errors"]) == ("201 Created", len(small), [])
    for file in small:
        assert client.get(name, file) == (root / file).read_bytes()
    listed = "\n".join([*(client.path(name, file).removeprefix(client.root) for file in small), name])
    reply = client.send("POST", client.root + "?bulk-delete", listed, {"Accept": "application/json", "Content-Type": "text/plain"})
    assert json.loads(reply.body)["Number Deleted"] >= len(small)
