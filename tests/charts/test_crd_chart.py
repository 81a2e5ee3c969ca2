"""The CRD in the chart lakestream."""

from __future__ import annotations

import pytest
import yaml

from rendering import CHARTS, Render

pytestmark = pytest.mark.charts
KEEP = {"helm.sh/resource-policy": "keep"}


def test_the_crd_is_the_generated_one_and_stays_when_the_release_goes(render: Render) -> None:
    written = yaml.safe_load((CHARTS / "lakestream" / "files" / "lakestreams.yaml").read_text("utf-8"))
    crd = render("lakestream").one("CustomResourceDefinition", "lakestreams.lakestream.dev")
    assert crd["metadata"].pop("annotations") == KEEP
    assert crd == written


def test_the_crd_can_go_with_the_release(render: Render) -> None:
    crd = render("lakestream", case="bare").one("CustomResourceDefinition", "lakestreams.lakestream.dev")
    assert "annotations" not in crd["metadata"]


def test_the_crd_can_be_somebody_elses(render: Render) -> None:
    assert render("lakestream", case="namespaced").of("CustomResourceDefinition") == []


def test_no_crd_is_where_helm_never_upgrades_it() -> None:
    assert not (CHARTS / "lakestream" / "crds").exists()
