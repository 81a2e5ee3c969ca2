"""Labels of the objects of all charts."""

from __future__ import annotations

import json
import shutil
import string
from pathlib import Path
from typing import Any

import pytest
import yaml

from rendering import CHARTS, Render, containers, ours, pods, template

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


@pytest.mark.parametrize("chart", NAMES)
def test_a_long_version_is_cut_where_a_label_may_end(chart: str, tmp_path: Path) -> None:
    """As that of a branch: the 63rd character may be what stands before its build."""
    copy = shutil.copytree(CHARTS / chart, tmp_path / chart)
    path = copy / "Chart.yaml"
    version = f"0.1.0-{'a' * (62 - len(f'{chart}-0.1.0-'))}+4e1243bd"
    path.write_text(path.read_text("utf-8").replace("\nversion: 0.1.0\n", f"\nversion: {version}\n"), "utf-8")
    values = {"nameOverride": f"{'n' * 38}--lake", "fullnameOverride": "lake"} if chart != "local-aws" else {}
    objects = [each for each in ours(template(str(copy), json.dumps(values))) if each["metadata"].get("labels")]
    ends = {value[-1] for each in objects for value in each["metadata"]["labels"].values()}
    assert ends <= set(string.ascii_letters + string.digits)


def test_a_long_name_is_cut_where_a_name_may_end() -> None:
    names = [each["metadata"]["name"] for each in template("loadgen", "{}", release=f"{'r' * 48}--eu").objects]
    assert [name for name in names if name.endswith("-")] == []


MORE = {"app.kubernetes.io/part-of": "shop", "app.kubernetes.io/version": "2", "team": "data"}


@pytest.mark.parametrize(
    ("chart", "values", "found"),
    [
        ("lakestream", {"operator": {"podLabels": MORE}}, 3),
        ("lakestream", {"podMonitor": {"enabled": True, "labels": MORE}}, 2),
        ("lakestream", {"prometheusRule": {"enabled": True, "labels": MORE}}, 1),
        ("lakestream", {"grafanaDashboard": {"enabled": True, "labels": MORE}}, 1),
        ("loadgen", {"podLabels": MORE}, 3),
        ("loadgen", {"podMonitor": {"enabled": True, "labels": MORE}}, 1),
        ("local-aws", {"podMonitor": {"enabled": True, "labels": MORE}}, 1),
    ],
)
def test_labels_of_ones_own_take_the_place_of_the_charts(
    chart: str, values: dict[str, Any], found: int, render: Render
) -> None:
    """Each is there once: what renders these refuses keys that are there twice."""
    objects = [each for one in ours(render(chart, values)) for each in (one, one.get("spec", {}).get("template", {}))]
    labels = [each["metadata"].get("labels", {}) for each in objects if "metadata" in each]
    changed = [each for each in labels if each.get("team") == "data"]
    assert len(changed) == found
    for each in changed:
        assert MORE.items() <= each.items()
        assert each["app.kubernetes.io/instance"] == "test"


@pytest.mark.parametrize("label", ["name", "instance", "component"])
def test_labels_by_which_pods_are_found_are_the_charts_own(label: str, render: Render) -> None:
    labels = {"podLabels": {f"app.kubernetes.io/{label}": "shop"}}
    for chart, values in (("lakestream", {"operator": labels}), ("loadgen", labels)):
        with pytest.raises(ValueError, match=f"'app.kubernetes.io/{label}'"):
            render(chart, values)


@pytest.mark.parametrize("chart", NAMES)
def test_labels_may_be_given_to_all_objects_and_pods(chart: str, render: Render) -> None:
    """As policies of a cluster ask for, which refuse an object without."""
    values = yaml.safe_load((CHARTS / chart / "ci/everything.yaml").read_text("utf-8"))
    rendered = render(chart, {**values, "commonLabels": MORE})
    for each in ours(rendered):
        template = each["spec"]["template"] if each["kind"] in ("Deployment", "Job") else {}
        for metadata in (one["metadata"] for one in (each, template) if one):
            assert MORE.items() <= metadata["labels"].items(), each
    before = {each["metadata"]["name"]: each["spec"]["selector"] for each in render(chart, values).of("Deployment")}
    assert {each["metadata"]["name"]: each["spec"]["selector"] for each in rendered.of("Deployment")} == before


@pytest.mark.parametrize("chart", NAMES)
def test_a_label_of_pods_goes_before_that_of_all(chart: str, render: Render) -> None:
    values: dict[str, Any] = {"lakestream": {"operator": {"podLabels": {"team": "ops"}}}}.get(chart, {})
    for each in ours(render(chart, {**values, "commonLabels": {"team": "data"}})):
        if each["kind"] == "Deployment":
            labels = each["spec"]["template"]["metadata"]["labels"]
            assert labels["team"] == ("ops" if values else "data")
            assert each["metadata"]["labels"]["team"] == "data"


@pytest.mark.parametrize("chart", NAMES)
def test_labels_of_all_may_not_be_those_by_which_pods_are_found(chart: str, render: Render) -> None:
    with pytest.raises(ValueError, match=r"'app\.kubernetes\.io/name'"):
        render(chart, {"commonLabels": {"app.kubernetes.io/name": "shop"}})
