"""The role of drivers in the chart lakestream."""

from __future__ import annotations

from typing import Any

import pytest

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


def test_the_chart_binds_the_role_to_nobody(render: Render) -> None:
    rendered = render("lakestream")
    bound = {each["roleRef"]["name"] for kind in ("RoleBinding", "ClusterRoleBinding") for each in rendered.of(kind)}
    assert "test-lakestream-driver" not in bound
