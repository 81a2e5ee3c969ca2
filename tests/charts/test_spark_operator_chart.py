"""The Spark Operator that comes with the chart lakestream."""

from __future__ import annotations

import pytest

from rendering import Render, pods

pytestmark = pytest.mark.charts


def test_it_watches_all_namespaces_and_has_no_webhook(render: Render) -> None:
    rendered = render("lakestream")
    (pod,) = [pod for name, pod in pods(rendered) if name == "test-spark-operator-controller"]
    (container,) = pod["containers"]
    assert container["image"] == "ghcr.io/kubeflow/spark-operator/controller:2.5.0"
    assert '--namespaces=""' in container["args"]
    assert rendered.of("MutatingWebhookConfiguration") == []
    assert rendered.of("ValidatingWebhookConfiguration") == []


def test_it_makes_no_accounts_for_jobs(render: Render) -> None:
    accounts = {each["metadata"]["name"] for each in render("lakestream").of("ServiceAccount")}
    assert accounts == {"test-lakestream-operator", "test-spark-operator-controller"}


def test_it_can_be_somebody_elses(render: Render) -> None:
    rendered = render("lakestream", case="namespaced")
    assert [each for each in rendered.objects if "spark-operator" in each["metadata"]["name"]] == []
