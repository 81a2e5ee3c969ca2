"""Labels of the objects of all charts."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rendering import CHARTS, containers, ours, pods, template

NAMES = ["lakestream", "loadgen", "local-aws"]
pytestmark = pytest.mark.charts


@pytest.mark.parametrize("chart", NAMES)
def test_a_version_may_name_its_build(chart: str, tmp_path: Path) -> None:
    """With `reconcileStrategy: Revision` Flux appends the revision to the chart's version."""
    copy = shutil.copytree(CHARTS / chart, tmp_path / chart)
    path = copy / "Chart.yaml"
    path.write_text(
        path.read_text("utf-8").replace("ersion: 0.1.0\n", f"ersion: 0.1.0-{'0a' * 20}+4e1243bd\n"), "utf-8"
    )
    rendered = template(str(copy), "{}")
    labels = [each["metadata"]["labels"] for each in ours(rendered) if each["kind"] != "CustomResourceDefinition"]
    assert {each["helm.sh/chart"] for each in labels} == {f"{chart}-0.1.0-{'0a' * 20}_4e1243bd"[:63]}
    assert {each["app.kubernetes.io/version"] for each in labels} == {f"0.1.0-{'0a' * 20}_4e1243bd"}
    images = {each["image"] for _, pod in pods(rendered) for each in containers(pod) if "lakestream/" in each["image"]}
    assert {image.rpartition(":")[2] for image in images} == {f"0.1.0-{'0a' * 20}_4e1243bd"}
