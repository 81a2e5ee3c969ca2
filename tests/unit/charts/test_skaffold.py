"""skaffold.yaml: what its profiles change by place is what they mean."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]


def _profile(name: str) -> dict[str, Any]:
    """The configuration with the patches of a profile, which are JSON patches without copies and tests."""
    document: dict[str, Any] = yaml.safe_load((ROOT / "skaffold.yaml").read_text("utf-8"))
    (profile,) = (each for each in document["profiles"] if each["name"] == name)
    for patch in profile["patches"]:
        *way, last = patch["path"].strip("/").split("/")
        at: Any = document
        for key in way:
            at = at[int(key)] if isinstance(at, list) else at[key]
        key = int(last) if isinstance(at, list) else last
        if patch["op"] == "remove":
            del at[key]
        else:
            at[key] = patch["value"]
    return document


def test_the_local_lake_outlives_a_run() -> None:
    (release,) = (each for each in _profile("local")["deploy"]["helm"]["releases"] if each["name"] == "local-aws")
    assert release["upgradeOnChange"] is False
    values = yaml.safe_load((ROOT / "charts/local-aws/values.yaml").read_text("utf-8"))
    for path, value in release["setValues"].items():
        server, *way = path.split(".")
        assert way == ["persistence", "enabled"]
        assert value is True
        assert values[server]["persistence"]["enabled"] is False
    assert {path.split(".")[0] for path in release["setValues"]} == {"kinesis", "s3"}


KUBECTL = """#!/bin/sh
case "$1 $2" in
    "get configmaps/lakestream-operator") printf 'job:\\n  image: lakestream/spark:new\\n  env: []\\n' ;;
    "get sparkapplications") printf "$RUNNING" ;;
    "patch -n") printf '%s\\n' "$@" >"$PATCHED" ;;
    "rollout status") ;;
    *) exit 1 ;;
esac
"""


@pytest.mark.parametrize(
    ("running", "patched"),
    [
        ("lakestream/spark:old\\nlakestream/spark:new\\n", True),
        ("lakestream/spark:new\\nlakestream/spark:new\\n", False),
        ("", False),
    ],
    ids=["one is old", "all are new", "none is there"],
)
def test_drivers_of_another_image_get_the_new_one_at_once(tmp_path: Path, running: str, *, patched: bool) -> None:
    (hook,) = _profile("local")["deploy"]["kubectl"]["hooks"]["after"]
    kubectl, seen = tmp_path / "kubectl", tmp_path / "patched"
    kubectl.write_text(KUBECTL, "utf-8")
    kubectl.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    variables = {"PATH": path, "RUNNING": running, "PATCHED": str(seen)}
    subprocess.run(hook["host"]["command"], env=variables, check=True, timeout=30)
    assert seen.exists() is patched
    if patched:
        *words, patch = seen.read_text("utf-8").splitlines()
        assert words == ["patch", "-n", "lake", "lakestreams/orders", "--type=merge", "-p"]
        assert json.loads(patch) == {"spec": {"kubernetes": {"image": "lakestream/spark:new"}}}


def test_on_eks_there_is_nothing_local() -> None:
    document = _profile("eks")
    assert [release["name"] for release in document["deploy"]["helm"]["releases"]] == ["lakestream", "loadgen"]
    assert "lakestream/localkinesis" not in {artifact["image"] for artifact in document["build"]["artifacts"]}
