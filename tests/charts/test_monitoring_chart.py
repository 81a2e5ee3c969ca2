"""What the chart lakestream brings for Prometheus."""

from __future__ import annotations

import re
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from lakestream.control import PrometheusProgress
from lakestream_api import LakeStreamStatus
from lakestream_operator.metrics import Metrics, StreamMetrics
from rendering import Render

pytestmark = pytest.mark.charts
ON: dict[str, Any] = {"podMonitor": {"enabled": True}, "prometheusRule": {"enabled": True, "maxLagSeconds": 42}}


def _names(registry: CollectorRegistry) -> set[str]:
    suffix = {"counter": "_total", "histogram": "_count"}
    return {f"{one.name}{suffix.get(one.type, '')}" for one in registry.collect()}


def _operator() -> set[str]:
    registry = CollectorRegistry()
    Metrics(registry)
    registry.register(StreamMetrics(lambda: [(("lake", "orders"), LakeStreamStatus())]))
    return _names(registry)


def _driver() -> set[str]:
    registry = CollectorRegistry()
    PrometheusProgress(registry)
    return _names(registry)


def test_no_metric_of_one_name_is_of_two_processes() -> None:
    assert _operator() & _driver() == set()


def test_alerts_are_on_metrics_that_there_are(render: Render) -> None:
    rule = render("lakestream", ON).one("PrometheusRule", "test-lakestream-operator")
    (group,) = rule["spec"]["groups"]
    used = {name for one in group["rules"] for name in re.findall(r"lakestream_[a-z_]+", one["expr"])}
    assert used <= _operator() | _driver()
    assert len(used) >= 4
    (lagging,) = (one for one in group["rules"] if one["alert"] == "LakeStreamLagging")
    assert lagging["expr"] == "lakestream_lag_seconds > 42"
    assert "{{ $labels.writer }}" in lagging["annotations"]["summary"], "it is Prometheus that fills these in"


def test_operator_and_drivers_are_scraped_by_their_own_labels(render: Render) -> None:
    rendered = render("lakestream", ON)
    monitors = {one["metadata"]["name"]: one["spec"] for one in rendered.of("PodMonitor")}
    assert set(monitors) == {"test-lakestream-operator", "test-lakestream-driver"}
    assert all(endpoint["honorLabels"] for one in monitors.values() for endpoint in one["podMetricsEndpoints"])
    drivers = monitors["test-lakestream-driver"]
    assert drivers["namespaceSelector"] == {"any": True}
    assert drivers["selector"]["matchLabels"]["spark-role"] == "driver"
    some = render("lakestream", {**ON, "operator": {"namespaces": ["orders"]}})
    (driver,) = (one for one in some.of("PodMonitor") if one["metadata"]["name"].endswith("driver"))
    assert driver["spec"]["namespaceSelector"] == {"matchNames": ["orders"]}


def test_the_network_policy_lets_prometheus_in_by_default(render: Render) -> None:
    def scrapers(values: dict[str, Any]) -> list[Any]:
        policy = render("lakestream", values).one("NetworkPolicy", "test-lakestream-operator")
        ports = [(one["from"], one["ports"][0]["port"]) for one in policy["spec"]["ingress"]]
        return [source for sources, port in ports if port == "metrics" for source in sources]

    assert scrapers({}) == []
    assert scrapers(ON) == [{"namespaceSelector": {}}]
    mine = {"podSelector": {"matchLabels": {"app": "prometheus"}}}
    assert scrapers({**ON, "networkPolicy": {"metricsFrom": [mine]}}) == [mine]
