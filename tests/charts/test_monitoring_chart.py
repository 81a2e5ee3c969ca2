"""What the chart lakestream brings for Prometheus and Grafana; what is in it is tested without Helm."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from rendering import CHARTS, Render

pytestmark = pytest.mark.charts
ON: dict[str, Any] = {"podMonitor": {"enabled": True}, "prometheusRule": {"enabled": True, "maxLagSeconds": 42}}


def test_alerts_are_those_of_the_file_with_the_lag_that_is_too_much(render: Render) -> None:
    rendered = render("lakestream", ON).one("PrometheusRule", "test-lakestream-operator")["spec"]
    written = yaml.safe_load((CHARTS / "lakestream/files/alerts.yaml").read_text("utf-8"))
    rules = {rule["alert"]: rule for rule in written["groups"][0]["rules"]}
    assert rules["LakeStreamLagging"]["expr"].count(" > 300") == 1
    rules["LakeStreamLagging"]["expr"] = rules["LakeStreamLagging"]["expr"].replace(" > 300", " > 42")
    absent = rules["LakeStreamOperatorAbsent"]
    absent["expr"] = absent["expr"].replace('{namespace="lakestream"}', '{namespace="lake"}')
    assert rendered == written
    assert render("lakestream").of("PrometheusRule") == []


def test_the_lag_that_is_too_much_is_that_of_the_release_s_own_namespaces(render: Render) -> None:
    some = {**ON, "operator": {"namespaces": ["orders", "clicks"]}, "sparkOperator": {"enabled": False}}
    (group,) = render("lakestream", some).one("PrometheusRule", "test-lakestream-operator")["spec"]["groups"]
    (lagging,) = (rule for rule in group["rules"] if rule["alert"] == "LakeStreamLagging")
    assert '(lakestream_lag_seconds{namespace=~"orders|clicks"}) > 42' in lagging["expr"]


def test_a_rule_without_a_limit_is_refused(render: Render) -> None:
    with pytest.raises(ValueError, match="maxLagSeconds"):
        render("lakestream", {"prometheusRule": {"enabled": True, "maxLagSeconds": None}})


def test_the_dashboard_is_found_by_grafanas_sidecar(render: Render) -> None:
    on = {"grafanaDashboard": {"enabled": True, "annotations": {"grafana_folder": "Data"}}}
    found = render("lakestream", on).one("ConfigMap", "test-lakestream-operator-dashboard")
    assert found["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert found["metadata"]["annotations"] == {"grafana_folder": "Data"}
    (text,) = found["data"].values()
    assert json.loads(text) == json.loads((CHARTS / "lakestream/files/dashboard.json").read_text("utf-8"))
    assert [one["metadata"]["name"] for one in render("lakestream").of("ConfigMap")] == ["test-lakestream-operator"]


def test_operator_and_drivers_are_scraped_by_their_own_labels(render: Render) -> None:
    rendered = render("lakestream", ON)
    monitors = {one["metadata"]["name"]: one["spec"] for one in rendered.of("PodMonitor")}
    assert set(monitors) == {"test-lakestream-operator", "test-lakestream-driver"}
    assert all(endpoint["honorLabels"] for one in monitors.values() for endpoint in one["podMetricsEndpoints"])
    drivers = monitors["test-lakestream-driver"]
    assert drivers["namespaceSelector"] == {"any": True}
    assert drivers["selector"]["matchLabels"]["spark-role"] == "driver"
    some = render("lakestream", {**ON, "operator": {"namespaces": ["orders"]}, "sparkOperator": {"enabled": False}})
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
