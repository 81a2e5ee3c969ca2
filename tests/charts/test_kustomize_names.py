"""What kustomize is told of names that LakeStreams and SparkApplications have of other objects."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from rendering import command, run

EXAMPLES = Path(__file__).parents[2] / "examples"
KINDS = ("configMap", "secret")
VOLUMES = [{"name": "a", "configMap": {"name": "own"}}, {"name": "b", "secret": {"secretName": "own"}}]
STREAM: dict[str, Any] = {
    "apiVersion": "lakestream.dev/v1alpha1",
    "kind": "LakeStream",
    "metadata": {"name": "orders"},
    "spec": {
        "kubernetes": {
            "serviceAccount": "orders-queries",
            "imagePullSecrets": ["own"],
            "env": [{"name": each, "valueFrom": {f"{each}KeyRef": {"name": "own", "key": "k"}}} for each in KINDS],
            "envFrom": [{f"{each}Ref": {"name": "own"}} for each in KINDS],
            "driver": {"template": {"spec": {"volumes": VOLUMES}}},
            "executor": {"template": {"spec": {"volumes": VOLUMES}}},
        }
    },
}
pytestmark = pytest.mark.charts


def _named(part: Any) -> set[str]:
    """All names of other objects in a part of a manifest."""
    if isinstance(part, list):
        return set().union(*map(_named, part))
    if not isinstance(part, dict):
        return set()
    found = {each for key, each in part.items() if key in ("serviceAccount", "secretName")}
    found |= {each["name"] for key, each in part.items() if key.endswith(("Ref", "configMap"))}
    return found.union(*map(_named, part.values()))


def test_names_of_what_is_renamed_are_renamed_with_it(tmp_path: Path) -> None:
    query = (EXAMPLES / "queries/orders-by-status.yaml").read_text("utf-8").replace("local-aws", "own")
    (tmp_path / "query.yaml").write_text(query, "utf-8")
    (tmp_path / "stream.yaml").write_text(yaml.safe_dump(STREAM), "utf-8")
    shutil.copy(EXAMPLES / "kustomize/names.yaml", tmp_path)
    generated = [{"name": "own", "literals": ["k=v"], "options": {"disableNameSuffixHash": True}}]
    (tmp_path / "kustomization.yaml").write_text(
        yaml.safe_dump(
            {
                "resources": ["query.yaml", "stream.yaml"],
                "namePrefix": "eu-",
                "configMapGenerator": generated,
                "secretGenerator": generated,
                "configurations": ["names.yaml"],
            }
        ),
        "utf-8",
    )
    done = run(command("kubectl"), "kustomize", str(tmp_path))
    assert done.returncode == 0, done.stderr
    objects = {each["kind"]: each for each in yaml.safe_load_all(done.stdout)}
    account = objects["ServiceAccount"]["metadata"]["name"]
    assert account == "eu-orders-queries"
    assert _named(objects["LakeStream"]["spec"]) == _named(objects["SparkApplication"]["spec"]) == {account, "eu-own"}
    assert objects["LakeStream"]["spec"]["kubernetes"]["imagePullSecrets"] == ["eu-own"]
