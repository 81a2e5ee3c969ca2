"""skaffold.yaml: what its profiles change by place is what they mean."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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


def test_the_lakestream_names_the_image_that_was_built() -> None:
    document = _profile("local")
    (rule,) = document["resourceSelector"]["allow"]
    assert rule == {"groupKind": "LakeStream.lakestream.dev", "image": [".spec.kubernetes.image"]}
    (path,) = document["manifests"]["kustomize"]["paths"]
    kustomization = yaml.safe_load((ROOT / path / "kustomization.yaml").read_text("utf-8"))
    assert [(ROOT / path / name).resolve() for name in kustomization["resources"]] == [
        ROOT / "examples/lakestream.yaml"
    ]
    (patch,) = kustomization["patches"]
    (added,) = yaml.safe_load(patch["patch"])
    assert added == {"op": "add", "path": "/spec/kubernetes/image", "value": "lakestream/spark"}
    assert added["value"] in {artifact["image"] for artifact in document["build"]["artifacts"]}


def test_on_eks_there_is_nothing_local() -> None:
    document = _profile("eks")
    assert [release["name"] for release in document["deploy"]["helm"]["releases"]] == ["lakestream", "loadgen"]
    names = {release["name"] for release in document["deploy"]["helm"]["releases"]}
    assert all(names.issuperset(release.get("dependsOn", ())) for release in document["deploy"]["helm"]["releases"])
    assert "lakestream/localkinesis" not in {artifact["image"] for artifact in document["build"]["artifacts"]}
