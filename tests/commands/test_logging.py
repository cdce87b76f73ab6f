"""What `[filter:proxy-logging]` asks for and cannot have is said at start, by name."""

import pytest

from harness.client import Client
from harness.waiting import until


@pytest.mark.parametrize("option, value, expected", [
    ("log_msg_template", "{nonsense}", "{nonsense}"), ("log_msg_template", "{method.anonymized}", "has no form"), ("log_msg_template", "{path", "followed by a field"),
    ("log_anonymization_method", "rot13", "MD5, SHA1")])
def test_a_wrong_value_is_refused(tmp_path, make_system, option, value, expected):
    up = make_system("up", overrides={"proxy": {"filter:proxy-logging": {option: value}}})
    up.launch()
    until(lambda: not up.alive())
    assert f"[filter:proxy-logging] {option}" in up.log() and expected in up.log() and "proxy-server.conf" in up.log()


def test_a_host_for_metrics_that_cannot_be_found_stops_nothing(make_system):
    up = make_system("up", overrides={"proxy": {"DEFAULT": {"log_statsd_host": "no.such.host.invalid"}}}).start()
    until(lambda: "log_statsd_host no.such.host.invalid" in up.log(), what="a line in the log")


def test_lines_of_a_request_carry_its_transaction_id(make_system):
    """One process logs for its gateway and for its storage servers: whatever a request makes it log, at any level, is found by the id."""
    up = make_system("up", overrides={"proxy": {"DEFAULT": {"log_level": "ERROR"}}}).start()
    client = Client(up.auth_url)
    client.put("c")
    for device in up.devices:  # no device is left, whichever the ring names
        (up.srv / device).rename(up.srv / f"{device}-unplugged")
    answer = client.do("GET", "c", "o", expect=503)
    lines = until(lambda: [line for line in up.log().splitlines() if " ERROR " in line and "request{" in line], what="a line of an error")
    assert all(f'request{{txn="{answer["X-Trans-Id"]}"}}' in line for line in lines), up.log()
