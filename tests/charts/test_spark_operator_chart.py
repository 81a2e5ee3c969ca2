"""The Spark Operator that comes with the chart lakestream."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rendering import CHARTS, Render, pods, template

pytestmark = pytest.mark.charts


def test_it_watches_all_namespaces_and_has_no_webhook(render: Render) -> None:
    rendered = render("lakestream")
    (pod,) = [pod for name, pod in pods(rendered) if name == "test-spark-operator-controller"]
    (container,) = pod["containers"]
    assert container["image"] == "ghcr.io/kubeflow/spark-operator/controller:2.5.0"
    assert '--namespaces=""' in container["args"]
    # No driver has a page that such a Service would lead to; and what refuses one refuses the application.
    assert "--enable-ui-service=false" in container["args"]
    assert rendered.of("MutatingWebhookConfiguration") == []
    assert rendered.of("ValidatingWebhookConfiguration") == []


def test_beside_an_operator_of_some_namespaces_it_watches_these_and_no_others(render: Render) -> None:
    namespaces = ["orders", "clicks"]
    values = {"operator": {"namespaces": namespaces}, "sparkOperator": {"spark": {"jobNamespaces": namespaces}}}
    rendered = render("lakestream", values)
    (pod,) = [pod for name, pod in pods(rendered) if name == "test-spark-operator-controller"]
    assert "--namespaces=orders,clicks" in pod["containers"][0]["args"]
    roles = [each for each in rendered.of("Role") if each["metadata"]["name"] == "test-spark-operator-controller"]
    assert {role["metadata"].get("namespace") for role in roles} >= set(namespaces)


@pytest.mark.parametrize("watched", [None, [], [""], ["orders", ""]], ids=str)
def test_it_is_not_to_watch_all_namespaces_beside_an_operator_of_some(render: Render, watched: Any) -> None:
    values: dict[str, Any] = {"operator": {"namespaces": ["orders", "clicks"]}}
    if watched is not None:
        values["sparkOperator"] = {"spark": {"jobNamespaces": watched}}
    with pytest.raises(ValueError, match=r"give --set-string 'sparkOperator\.spark\.jobNamespaces=\{orders,clicks\}'"):
        render("lakestream", values)


def test_it_is_not_to_pass_over_a_namespace_of_the_operators(render: Render) -> None:
    values = {
        "operator": {"namespaces": ["orders", "clicks"]},
        "sparkOperator": {"spark": {"jobNamespaces": ["orders"]}},
    }
    with pytest.raises(
        ValueError, match=r"has clicks, .* give --set-string 'sparkOperator\.spark\.jobNamespaces=\{orders,clicks\}'"
    ):
        render("lakestream", values)


def test_a_second_release_of_one_name_shares_nothing_with_the_first(render: Render) -> None:
    def of_the_whole_cluster(own: dict[str, Any], namespace: str) -> set[tuple[str, str]]:
        values = {
            "operator": {"namespaces": [namespace]},
            "sparkOperator": {"spark": {"jobNamespaces": [namespace]}, **own},
            "crd": {"install": not own},
        }
        kinds = ("ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition")
        names = {(kind, each["metadata"]["name"]) for kind in kinds for each in render("lakestream", values).of(kind)}
        # Of the operator's own roles, a test of its rights knows that they bear the release's namespace.
        return {(kind, name) for kind, name in names if not name.startswith("test-lakestream-lake-")}

    first = of_the_whole_cluster({}, "orders")
    assert ("ClusterRole", "test-spark-operator-controller") in first
    assert of_the_whole_cluster({"fullnameOverride": "clicks-spark-operator"}, "clicks") & first == set()


def test_it_makes_no_accounts_for_jobs(render: Render) -> None:
    accounts = {each["metadata"]["name"] for each in render("lakestream").of("ServiceAccount")}
    assert accounts == {"test-lakestream-operator", "test-spark-operator-controller"}


def test_it_can_be_somebody_elses(render: Render) -> None:
    rendered = render("lakestream", case="namespaced")
    assert [each for each in rendered.objects if "spark-operator" in each["metadata"]["name"]] == []


@pytest.mark.parametrize("release", ["2024", "1e3", "true", "null"])
def test_a_release_whose_name_it_would_write_as_no_text_is_refused(release: str) -> None:
    """In labels without quotes, which the API server refuses one by one, after some objects are there."""
    values = {"fullnameOverride": "lake"}
    with pytest.raises(ValueError, match=f" {release} is no text to YAML then; choose another name"):
        template("lakestream", json.dumps(values), release)
    assert template("lakestream", json.dumps({**values, "sparkOperator": {"enabled": False}}), release).objects


def test_namespaces_that_it_is_to_watch_are_texts(render: Render) -> None:
    with pytest.raises(ValueError, match=" 2026 is no text to YAML then"):
        render("lakestream", {"sparkOperator": {"spark": {"jobNamespaces": ["orders", "2026"]}}})
    with pytest.raises(ValueError, match="/sparkOperator/spark/jobNamespaces/0"):
        render("lakestream", {"sparkOperator": {"spark": {"jobNamespaces": [2026]}}})


def test_the_documents_name_its_image_and_the_values_that_reach_its_pod(render: Render) -> None:
    own: dict[str, Any] = {
        "image": {"registry": "registry.example.com", "pullSecrets": [{"name": "registry"}]},
        "controller": {"nodeSelector": {"disk": "ssd"}, "tolerations": [{"key": "dedicated", "operator": "Exists"}]},
    }
    (found,) = [pod for name, pod in pods(render("lakestream", {"sparkOperator": own})) if "spark-operator" in name]
    (default,) = [pod for name, pod in pods(render("lakestream")) if "spark-operator" in name]
    (image,) = [each["image"] for each in default["containers"]]
    assert found["containers"][0]["image"] == image.replace("ghcr.io", "registry.example.com")
    assert found["imagePullSecrets"] == own["image"]["pullSecrets"]
    assert {key: found[key] for key in ("nodeSelector", "tolerations")} == own["controller"]
    for path in (CHARTS / "lakestream/README.md", CHARTS.parent / "docs/eks.md"):
        text = path.read_text("utf-8")
        names = ("image.registry", "image.pullSecrets", "controller.nodeSelector")
        assert [name for name in (image, *(f"sparkOperator.{each}" for each in names)) if f"`{name}" not in text] == []
