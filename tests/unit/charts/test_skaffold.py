"""skaffold.yaml: what its profiles change by place is what they mean."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[3]


def _profile(name: str) -> list[dict[str, Any]]:
    """The configurations in their order, with the patches of a profile."""
    return [_patched(each, name) for each in yaml.safe_load_all((ROOT / "skaffold.yaml").read_text("utf-8"))]


def _patched(document: dict[str, Any], name: str) -> dict[str, Any]:
    """With the patches of a profile, which are JSON patches without copies and tests."""
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


def _releases(document: dict[str, Any]) -> list[str]:
    return [release["name"] for release in document["deploy"]["helm"]["releases"]]


def test_drivers_do_not_wait_for_the_load() -> None:
    lake, load = _profile("local")
    assert _releases(lake) == ["local-aws", "lakestream"]
    assert "kubectl" in lake["deploy"], "the LakeStream is applied behind these"
    assert _releases(load) == ["loadgen"]
    assert [artifact["image"] for artifact in load["build"]["artifacts"]] == ["lakestream/loadgen"]


def test_the_local_lake_outlives_a_run() -> None:
    lake, _ = _profile("local")
    (release,) = (each for each in lake["deploy"]["helm"]["releases"] if each["name"] == "local-aws")
    assert release["upgradeOnChange"] is False
    values = yaml.safe_load((ROOT / "charts/local-aws/values.yaml").read_text("utf-8"))
    for path, value in release["setValues"].items():
        server, *way = path.split(".")
        assert way == ["persistence", "enabled"]
        assert value is True
        assert values[server]["persistence"]["enabled"] is False
    assert {path.split(".")[0] for path in release["setValues"]} == {"kinesis", "s3"}


def test_the_lakestream_names_the_image_that_was_built() -> None:
    document, _ = _profile("local")
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
    lake, load = _profile("eks")
    assert _releases(lake) == ["lakestream"]
    assert _releases(load) == ["loadgen"]
    assert not {"manifests", "resourceSelector"} & set(lake)
    assert "kubectl" not in lake["deploy"]
    assert {artifact["image"] for artifact in lake["build"]["artifacts"]} == {"lakestream/spark", "lakestream/operator"}
    (release,) = load["deploy"]["helm"]["releases"]
    assert "valuesFiles" not in release
