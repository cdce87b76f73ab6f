"""What `[filter:proxy-logging]` asks for and cannot have is said at start, by name."""

import pytest

from harness.waiting import until


@pytest.mark.parametrize("option, value, told", [
    ("log_msg_template", "{nonsense}", "{nonsense}"), ("log_msg_template", "{method.anonymized}", "has no form"), ("log_msg_template", "{path", "followed by a field"),
    ("log_anonymization_method", "rot13", "MD5, SHA1"), ("access_log_statsd_host", "no.such.host.invalid", "a host that can be found")])
def test_a_wrong_value_is_refused(tmp_path, make_system, option, value, told):
    up = make_system("up", overrides={"proxy": {"filter:proxy-logging": {option: value}}})
    up.launch()
    until(lambda: not up.alive())
    assert f"[filter:proxy-logging] {option}" in up.log() and told in up.log() and "proxy-server.conf" in up.log()
