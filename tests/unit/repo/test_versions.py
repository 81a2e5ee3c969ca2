"""All that is released together has one version."""

from __future__ import annotations

import tomllib
from pathlib import Path

import yaml

from lakestream_api import __version__

ROOT = Path(__file__).parents[3]


def test_packages_and_charts_are_of_one_version() -> None:
    packages = [
        tomllib.loads(file.read_text("utf-8"))
        for file in (*ROOT.glob("*/pyproject.toml"), *ROOT.glob("examples/*/pyproject.toml"))
    ]
    charts = [yaml.safe_load(file.read_text("utf-8")) for file in ROOT.glob("charts/*/Chart.yaml")]
    assert len(packages) > 3
    assert len(charts) == 3
    assert {one["project"]["version"] for one in packages} == {__version__}
    assert {(one["version"], one["appVersion"]) for one in charts} == {(__version__, __version__)}
