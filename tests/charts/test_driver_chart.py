"""The role of drivers in the chart lakestream."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from rendering import Render

pytestmark = pytest.mark.charts


def _rules(render: Render) -> list[dict[str, Any]]:
    rules: list[dict[str, Any]] = render("lakestream").one("ClusterRole", "test-lakestream-driver")["rules"]
    return rules


def test_drivers_make_executors_and_what_these_need(render: Render) -> None:
    verbs = {resource: set(rule["verbs"]) for rule in _rules(render) for resource in rule["resources"]}
    assert set(verbs) == {"pods", "services", "configmaps", "persistentvolumeclaims"}
    assert {"get", "list", "watch", "create", "delete"} <= verbs["pods"]
    # What it reports, and what it is told.
    assert {"get", "watch", "patch"} <= verbs["configmaps"]


def test_drivers_see_no_secrets_and_change_no_rights(render: Render) -> None:
    assert {group for rule in _rules(render) for group in rule["apiGroups"]} == {""}
    assert all("*" not in rule["verbs"] + rule["resources"] for rule in _rules(render))


@pytest.mark.parametrize("namespaces", [[], ["orders"]], ids=str)
def test_the_role_of_somebody_elses_has_the_name_that_the_chart_would_give_it(
    render: Render, namespaces: list[str]
) -> None:
    values = {"operator": {"namespaces": namespaces}, "sparkOperator": {"enabled": False}}
    made = [each["metadata"] for each in render("lakestream", values).of("ClusterRole")]
    (name,) = (each["name"] for each in made if each["labels"]["app.kubernetes.io/component"] == "driver")
    theirs = render("lakestream", {**values, "rbac": {"create": False}})
    settings = yaml.safe_load(theirs.one("ConfigMap", "test-lakestream-operator")["data"]["operator.yaml"])
    assert settings["job"]["clusterRole"] == name == f"test-lakestream{'-lake' if namespaces else ''}-driver"


def test_the_chart_binds_the_role_to_nobody(render: Render) -> None:
    rendered = render("lakestream")
    bound = {each["roleRef"]["name"] for kind in ("RoleBinding", "ClusterRoleBinding") for each in rendered.of(kind)}
    assert "test-lakestream-driver" not in bound
