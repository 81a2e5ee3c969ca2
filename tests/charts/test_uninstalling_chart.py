"""How a release of the chart lakestream is taken away: what its notes say, and the hook that guards its LakeStreams."""

from __future__ import annotations

from pathlib import Path

import pytest

from rendering import notes

pytestmark = pytest.mark.charts
NAMESPACED = {"operator": {"namespaces": ["orders", "clicks"]}, "sparkOperator": {"enabled": False}}


def test_the_notes_delete_all_lakestreams_that_the_release_serves(tmp_path: Path) -> None:
    said = notes("lakestream", {}, tmp_path)
    assert "\n\n  kubectl delete lakestreams -A --all\n  helm uninstall test -n lake\n" in said


def test_the_notes_of_some_namespaces_leave_the_others_alone(tmp_path: Path) -> None:
    said = notes("lakestream", NAMESPACED, tmp_path)
    assert [line.strip() for line in said.splitlines() if "kubectl delete lakestreams" in line] == [
        "kubectl delete lakestreams -n orders --all",
        "kubectl delete lakestreams -n clicks --all",
    ]
