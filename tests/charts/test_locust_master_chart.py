"""Locust's master in the chart loadgen: the load, the page, the metrics."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from lakestream_loadgen.settings import MOST_CONNECTIONS, MOST_CUSTOMERS
from rendering import Render, Rendered, containers

pytestmark = pytest.mark.charts
OPTIONS = """
import json, sys
from locust.argument_parser import get_parser
from lakestream_loadgen import locustfile
print(json.dumps(vars(get_parser().parse_args(sys.argv[1:])), default=str))
"""


def _container(rendered: Rendered, name: str) -> dict[str, Any]:
    pod = rendered.one("Deployment", name)["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    found: dict[str, Any] = container
    return found


def _options(rendered: Rendered, name: str, config: str) -> dict[str, Any]:
    """What Locust makes of a container's arguments and of the ConfigMap."""
    command, *arguments = _container(rendered, name)["args"]
    assert command == "load"
    done = subprocess.run(
        [sys.executable, "-c", OPTIONS, *arguments],
        env={"PATH": os.environ["PATH"], **rendered.one("ConfigMap", config)["data"]},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    options: dict[str, Any] = json.loads(done.stdout)
    return options


def test_locust_understands_the_load(render: Render) -> None:
    options = _options(render("loadgen", case="everything"), "test-load-master", "test-load")
    expected = {
        "master": True,
        "autostart": True,
        "expect_workers": 3,
        "enable_rebalancing": True,
        "web_host": "*",
        "num_users": 5000,
        "spawn_rate": 100.0,
        "run_time": 7200,
        "stream": "clicks",
        "events": 250_000.0,
        "shape": "sine",
        "shape_period": 86400.0,
        "seed": 1_234_567,
        "customers": 2_000_000,
        "inserts": 0.3,
        "ledger": "/ledger",
        "locustfile": "/scenario/locustfile.py",
    }
    assert {name: options[name] for name in expected} == expected


def test_locust_understands_large_numbers(render: Render) -> None:
    values = {"load": {"events": 3_000_000, "users": 2_000_000, "customers": MOST_CUSTOMERS, "seed": 4_000_000_000}}
    options = _options(render("loadgen", values), "test-loadgen-master", "test-loadgen")
    assert [options[name] for name in ("events", "num_users", "customers", "seed")] == list(values["load"].values())


def test_a_run_that_a_person_starts_waits_for_nobody(render: Render) -> None:
    options = _options(render("loadgen", case="bare"), "bare-master", "bare")
    assert (options["autostart"], options["expect_workers"], options["run_time"]) == (False, 1, None)


def test_workers_connect_to_the_masters_service(render: Render) -> None:
    rendered = render("loadgen")
    options = _options(rendered, "test-loadgen-worker", "test-loadgen")
    assert options["worker"] is True
    service = rendered.one("Service", options["master_host"])
    assert {port["name"]: port["port"] for port in service["spec"]["ports"]} == {"web": 8089, "workers": 5557}
    assert options["master_port"] == 5557
    # Its workers must reach it before it waits for them.
    assert service["spec"]["publishNotReadyAddresses"] is True


def test_helm_test_may_ask_the_master(render: Render) -> None:
    rendered = render("loadgen")
    policy = rendered.one("NetworkPolicy", "test-loadgen-test")["spec"]
    assert [[port["port"] for port in rule["ports"]] for rule in policy["egress"]] == [[53, 53, 5353, 5353], ["web"]]
    master = rendered.one("NetworkPolicy", "test-loadgen-master")["spec"]
    assert policy["egress"][1]["to"] == [{"podSelector": master["podSelector"]}]
    (test,) = master["ingress"][1]["from"]
    assert test["podSelector"] == policy["podSelector"]


def test_there_is_one_master_and_never_two(render: Render) -> None:
    spec = render("loadgen").one("Deployment", "test-loadgen-master")["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})


def test_a_change_of_the_load_starts_it_anew(render: Render) -> None:
    def checksums(values: dict[str, Any]) -> set[str]:
        deployments = render("loadgen", values).of("Deployment")
        return {each["spec"]["template"]["metadata"]["annotations"]["checksum/load"] for each in deployments}

    assert len(checksums({})) == 1
    assert checksums({}) == checksums({"workers": {"replicas": 5}})
    assert checksums({}) != checksums({"load": {"events": 2000}})


def test_the_page_is_for_those_who_are_named(render: Render) -> None:
    workers, page = render("loadgen").one("NetworkPolicy", "test-loadgen-master")["spec"]["ingress"]
    assert workers["ports"] == [{"protocol": "TCP", "port": "workers"}]
    assert page["ports"] == [{"protocol": "TCP", "port": "web"}]
    labels = [each["podSelector"]["matchLabels"]["app.kubernetes.io/component"] for each in page["from"]]
    assert labels == ["test"]
    _, page = render("loadgen", case="everything").one("NetworkPolicy", "test-load-master")["spec"]["ingress"]
    assert page["from"][1:] == [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}]


def test_the_master_is_probed_and_has_time_to_end(render: Render) -> None:
    pod = render("loadgen").one("Deployment", "test-loadgen-master")["spec"]["template"]["spec"]
    (container,) = containers(pod)
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"] == {"path": "/metrics", "port": "web"}
    assert pod["terminationGracePeriodSeconds"] == 90
    assert pod["enableServiceLinks"] is False


@pytest.mark.parametrize(
    ("load", "where"),
    [
        ({"shape": "square"}, "shape"),
        ({"events": 0}, "events"),
        ({"deletes": 1.5}, "deletes"),
        ({"runTime": "1d"}, "runTime"),
        ({"customers": MOST_CUSTOMERS + 1}, "customers"),
        ({"connections": MOST_CONNECTIONS + 1}, "connections"),
    ],
)
def test_loads_that_cannot_be_are_refused(load: dict[str, Any], where: str, render: Render) -> None:
    with pytest.raises(ValueError, match=f"/load/{where}"):
        render("loadgen", {"load": load})


def test_shares_that_are_more_than_all_events_are_refused(render: Render) -> None:
    assert render("loadgen", {"load": {"inserts": 0.7, "deletes": 0.2, "late": 0.1, "malformed": 0}}).objects
    with pytest.raises(ValueError, match="are shares, and add up to more than 1"):
        render("loadgen", {"load": {"inserts": 0.9}})
