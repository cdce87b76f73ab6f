"""Alert rules, recording rules and the dashboard: each alert fires when it should and not before, each names a runbook that is there, and all
of them, and the pages, ask for metrics that Martlet has."""

import json
import re
import subprocess

import pytest
import yaml
from grafana_foundation_sdk.cog import plugins
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

from harness.places import REPOSITORY

PAGES = REPOSITORY / "docs/operating"
RULES = [REPOSITORY / "etc/prometheus" / name for name in ("martlet-rules.yml", "martlet-alerts.yml")]
DASHBOARD = REPOSITORY / "etc/grafana/martlet.json"
CATALOGUE = dict(re.findall(r"^\| `(\w+)` \| (\w+) \|", (REPOSITORY / "docs/reference/metrics.md").read_text(), re.M))
# What Prometheus itself makes.
PROMETHEUS = {"up", "ALERTS"}

NODE = 'job="martlet", instance="10.0.0.1:6200"'
DEVICE = f'{NODE}, device="sdb1"'
DAY = 86400

# Alert: the series that make it fire with their values, minute by minute (VALUE in place of what differs), a value that does not, and
# the minute at which to look.
CASES = {
    "MartletDown": ({f"up{{{NODE}}}": "VALUEx10"}, 0, 1, 3),
    "MartletErrors": ({f'martlet_requests_total{{{NODE}, role="proxy-server", verb="PUT", status="5xx"}}': "0+VALUEx30",
                       f'martlet_requests_total{{{NODE}, role="proxy-server", verb="PUT", status="2xx"}}': "0+100x30"}, 5, 0, 20),
    "MartletDeviceOutOfService": ({f"martlet_device_in_service{{{DEVICE}}}": "VALUEx10"}, 0.5, 1, 3),
    "MartletDeviceHangs": ({f'martlet_io_waiting{{{NODE}, pool="sdb1"}}': "VALUEx10", f'martlet_io_waiting_limit{{{NODE}, pool="sdb1"}}': "100x10"}, 60, 10, 5),
    "MartletDevicesSilent": ({f'martlet_silent_devices{{{NODE}, role="proxy-server"}}': "VALUEx10"}, 1, 0, 3),
    "MartletDeviceFills": ({f"martlet_device_free_bytes{{{DEVICE}}}": "VALUEx30", f"martlet_device_bytes{{{DEVICE}}}": "1000x30"}, 90, 110, 15),
    "MartletDeviceFull": ({f"martlet_device_free_bytes{{{DEVICE}}}": "VALUEx30", f"martlet_device_bytes{{{DEVICE}}}": "1000x30"}, 20, 40, 5),
    "MartletDeviceFilesEnd": ({f"martlet_device_free_files{{{DEVICE}}}": "VALUEx30", f"martlet_device_files{{{DEVICE}}}": "1000x30"}, 90, 110, 15),
    "MartletAsyncPendingsGrow": ({f"martlet_async_pending{{{DEVICE}}}": "2000VALUEx60"}, "+10", "-10", 50),
    "MartletAsyncPendingsOld": ({f"martlet_async_pending_oldest_seconds{{{NODE}}}": "VALUEx30"}, 4000, 3000, 15),
    "MartletQuarantineGrows": ({f'martlet_quarantined{{{DEVICE}, kind="objects"}}': "_x70 1 1"}, None, None, 71),
    "MartletReplicationStalled": ({f'martlet_daemon_last_pass_age_seconds{{{NODE}, daemon="object-replicator"}}': "VALUEx30"}, 90000, 80000, 15),
    "MartletUpdaterStalled": ({f'martlet_daemon_last_pass_age_seconds{{{NODE}, daemon="container-updater"}}': "VALUEx30"}, 30000, 20000, 15),
    "MartletAuditorStalled": ({f'martlet_daemon_last_pass_age_seconds{{{NODE}, daemon="object-auditor"}}': "VALUEx90"}, 31 * DAY, 29 * DAY, 70),
    "MartletExpirerBehind": ({f"martlet_expired_oldest_seconds{{{NODE}}}": "VALUEx30"}, 90000, 80000, 15),
    # Its clock says 1970 and these seconds, as Prometheus' does in this test.
    "MartletClockWrong": ({f"martlet_clock_seconds{{{NODE}}}": "VALUE+60x20"}, -3, 1, 10),
    "MartletWritesRefusedForClock": ({f'martlet_clock_skew_writes_total{{{NODE}, outcome="refused"}}': "0 0 0 VALUE VALUE VALUE"}, 1, 0, 5),
    "MartletRingsDiffer": ({f'martlet_ring{{{NODE}, ring="object", md5="aa"}}': "1x60",
                            'martlet_ring{job="martlet", instance="10.0.0.2:6200", ring="object", md5="bb"}': "VALUEx60"}, "1", "_", 40),
    "MartletContainersSlow": ({f'martlet_request_seconds_bucket{{{NODE}, role="container-server", verb="PUT", le="VALUE"}}': "0+10x60",
                               f'martlet_request_seconds_bucket{{{NODE}, role="container-server", verb="PUT", le="+Inf"}}': "0+10x60"}, 5, 0.5, 40),
    "MartletMemcachedFails": ({f'martlet_memcached_failures_total{{{NODE}, server="10.0.0.9:11211"}}': "0+VALUEx40"}, 11, 0, 20),
    "MartletCertificateEnds": ({f'martlet_certificate_not_after_seconds{{{NODE}, use="cluster"}}': "VALUEx10"}, 13 * DAY, 15 * DAY, 2),
    "MartletCertificateEndsNow": ({f'martlet_certificate_not_after_seconds{{{NODE}, use="clients"}}': "VALUEx10"}, 1 * DAY, 3 * DAY, 2),
    "MartletConnectionsNearLimit": ({f'martlet_connections{{{NODE}, role="proxy-server"}}': "VALUEx20",
                                     f'martlet_connections_limit{{{NODE}, role="proxy-server"}}': "1000x20"}, 900, 700, 8),
    "MartletRefuses": ({f'martlet_refused_total{{{NODE}, role="proxy-server", reason="connections"}}': "0+VALUEx20"}, 1, 0, 15),
    "MartletClusterTlsRefuses": ({f'martlet_refused_total{{{NODE}, role="object-server", reason="handshake"}}': "0+VALUEx40"}, 2, 0, 30),
    "MartletFileDescriptorsEnd": ({f"process_open_fds{{{NODE}}}": "VALUEx20", f"process_max_fds{{{NODE}}}": "1000x20"}, 900, 700, 8),
}
# Instead of a series of the same form.
QUIET = {"MartletQuarantineGrows": {f'martlet_quarantined{{{DEVICE}, kind="objects"}}': "1x72"}}


def rules():
    return [rule for path in RULES for group in yaml.safe_load(path.read_text())["groups"] for rule in group["rules"]]


def alerts():
    return {rule["alert"]: rule for rule in rules() if "alert" in rule}


def expressions():
    """Every expression of the rules and of the dashboard, by where it stands."""
    found = {rule.get("alert") or rule["record"]: rule["expr"] for rule in rules()}
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        found.update({f"{panel['title']} {target['refId']}": target["expr"] for target in panel.get("targets", [])})
    return found


def promtool(*arguments):
    done = subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def asked(text):
    """The metrics that a text names."""
    return set(re.findall(r"\b(?:martlet|process)_[a-z_]+\b", re.sub(r"`martlet_passes`", "", text)))


def known(name):
    return name in CATALOGUE or re.sub("_(bucket|sum|count)$", "", name) in CATALOGUE


def anchors(page):
    """The anchors of a page's headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def series_of(number, series, value):
    """The series of a case, on nodes of its own."""
    put = lambda text: text.replace("VALUE", str(value)).replace("10.0.0.", f"10.0.{number}.")
    return [{"series": put(name), "values": put(values)} for name, values in series.items()]


def firing(number, alert, minute, count):
    """How many alerts of that name fire at that minute for the nodes of a case, or for no node."""
    query = f'count(ALERTS{{alertname="{alert}", alertstate="firing", instance=~"(10.0.{number}.*)?", node=~"(10.0.{number}.*)?"}})'
    return {"expr": query, "eval_time": f"{minute}m", "exp_samples": [{"labels": "{}", "value": count}] if count else []}


def test_promtool_accepts_the_rules():
    promtool("check", "rules", *RULES)


def test_each_alert_fires_when_it_should_and_not_before(tmp_path):
    assert CASES.keys() == alerts().keys()
    ill, well = ({"name": name, "interval": "1m", "input_series": [], "promql_expr_test": []} for name in ("ill", "well"))
    for number, (alert, (series, bad, good, minute)) in enumerate(CASES.items()):
        ill["input_series"] += series_of(number, series, bad)
        ill["promql_expr_test"].append(firing(number, alert, minute, 1))
        if "for" in alerts()[alert]:
            ill["promql_expr_test"].append(firing(number, alert, 0, 0))
        well["input_series"] += series_of(number, QUIET.get(alert) or series, good)
        well["promql_expr_test"].append(firing(number, alert, minute, 0))
    tests = tmp_path / "alerts.yml"
    tests.write_text(yaml.safe_dump({"rule_files": [str(path) for path in RULES], "evaluation_interval": "1m", "tests": [ill, well]}))
    promtool("test", "rules", tests)


@pytest.mark.parametrize("alert", CASES)
def test_each_alert_names_a_runbook_that_is_there(alert):
    page, anchor = alerts()[alert]["annotations"]["runbook"].split("#")
    assert anchor in anchors(PAGES / page)
    assert alerts()[alert]["labels"]["severity"] in ("warning", "critical")


def test_each_section_of_the_runbooks_that_names_alerts_is_the_one_they_name():
    sections = re.split(r"^## (.*)$", (PAGES / "runbooks.md").read_text(), flags=re.M)[1:]
    named = {alert: heading for heading, text in zip(sections[::2], sections[1::2]) for alert in re.findall(r"^\| alert \|.*$", text, re.M)
             for alert in re.findall(r"`(Martlet\w+)`", alert)}
    there = {name: rule["annotations"]["runbook"] for name, rule in alerts().items() if rule["annotations"]["runbook"].startswith("runbooks.md")}
    assert {alert: "runbooks.md#" + re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for alert, heading in named.items()} == there


# Words of the page about Ansible that begin with martlet_ are variables of its role.
NO_METRICS = "ansible.md"


@pytest.mark.parametrize("place", [*RULES, DASHBOARD, *sorted(page for page in PAGES.glob("*.md") if page.name != NO_METRICS)], ids=lambda place: place.name)
def test_only_metrics_that_martlet_has_are_asked_for(place):
    assert not [name for name in asked(place.read_text()) if not known(name)]


def test_only_recorded_metrics_are_asked_for():
    recorded = {rule["record"] for rule in rules() if "record" in rule}
    used = {name for expression in expressions().values() for name in re.findall(r"\bmartlet:[\w:]+", expression)}
    assert used == recorded, "recorded for nothing, or not recorded"


def test_promtool_accepts_the_expressions_of_the_dashboard(tmp_path):
    records = [{"record": f"x{number}", "expr": re.sub(r'"\$\w+"', '".*"', text)} for number, text in enumerate(expressions().values())]
    path = tmp_path / "expressions.yml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": records}]}))
    promtool("check", "rules", path)


def lost(before, after, at=""):
    """What of a JSON document is missing or different in another one."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key, value in before.items():
            if key in after:
                yield from lost(value, after[key], f"{at}/{key}")
            elif value not in (None, []):
                yield f"{at}/{key}"
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, pair in enumerate(zip(before, after)):
            yield from lost(*pair, f"{at}/{number}")
    elif before != after:
        yield at


def through_grafanas_types(dashboard):
    plugins.register_default_plugins()
    return json.loads(json.dumps(Dashboard.from_json(dashboard), cls=JSONEncoder))


def test_grafanas_own_types_know_all_of_the_dashboard():
    dashboard = json.loads(DASHBOARD.read_text())
    assert list(lost(dashboard, through_grafanas_types(dashboard))) == []
    dashboard["panels"][1]["options"]["legned"] = dashboard["panels"][1]["fieldConfig"]["defaults"]["units"] = "x"
    assert len(list(lost(dashboard, through_grafanas_types(dashboard)))) == 2


def test_panels_lie_side_by_side():
    panels = json.loads(DASHBOARD.read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken = [(x, y) for place in (panel["gridPos"] for panel in panels)
             for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])]
    assert len(set(taken)) == len(taken) and max(x for x, _ in taken) < 24
