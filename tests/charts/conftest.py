"""These tests need helm, kubeconform and, for Kubernetes' own schemas, a cluster: `make charts`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from rendering import CASES, CHARTS, Render, Rendered, template


@pytest.fixture(scope="session")
def render() -> Render:
    """`render(chart, values)`, or `render(chart, case="everything")` with the values of ci/everything.yaml.

    Raises ValueError with what Helm says where it refuses.
    """

    def rendered(chart: str, values: Mapping[str, Any] | None = None, *, case: str | None = None) -> Rendered:
        if case is not None:
            return template(chart, (CHARTS / chart / "ci" / f"{case}.yaml").read_text("utf-8"))
        return template(chart, json.dumps(values or {}))

    return rendered


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that asks for `case` runs over all charts with all their ci/*.yaml."""
    if "case" in metafunc.fixturenames:
        ids = [f"{chart}-{path.stem}" for chart, path in CASES]
        metafunc.parametrize("case", [(chart, path.stem) for chart, path in CASES], ids=ids)
