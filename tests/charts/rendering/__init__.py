"""Charts as Helm renders them."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

CHARTS = Path(__file__).parents[3] / "charts"
CASES = sorted((path.parents[1].name, path) for path in CHARTS.glob("*/ci/*.yaml"))
KUBERNETES = "1.34.4"

Object = dict[str, Any]


@dataclass(frozen=True)
class Rendered:
    """The objects of a release, named `test` if nothing else is said, in the namespace `lake`."""

    objects: tuple[Object, ...]

    def of(self, kind: str) -> list[Object]:
        return [found for found in self.objects if found["kind"] == kind]

    def one(self, kind: str, name: str) -> Object:
        found = [each for each in self.of(kind) if each["metadata"]["name"] == name]
        names = [(each["kind"], each["metadata"]["name"]) for each in self.objects]
        assert len(found) == 1, f"{kind} {name} is not one of {names}"
        return found[0]


Render = Callable[..., Rendered]


class _Loader(yaml.SafeLoader):
    """Refuses keys that are there twice, of which PyYAML and Helm take the last, and strict readers none."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value]
        assert len(set(keys)) == len(keys), f"a key is given twice: {keys}"
        return super().construct_mapping(node, deep)


def command(name: str) -> str:
    path = shutil.which(name)
    assert path is not None, f"{name} is not on PATH"
    return path


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)


@cache
def template(chart: str, values: str, release: str = "test") -> Rendered:
    folder, version = str(CHARTS / chart), f"--kube-version={KUBERNETES}"
    done = subprocess.run(
        [command("helm"), "template", release, folder, "-n", "lake", version, "-f-"],
        input=values,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if done.returncode:
        raise ValueError(done.stderr)
    return Rendered(tuple(found for found in yaml.load_all(done.stdout, _Loader) if found))


def notes(chart: str, values: Mapping[str, Any], folder: Path) -> str:
    """What Helm says after an installation. `helm template` leaves it out, so it is an object of a copy here."""
    copy = shutil.copytree(CHARTS / chart, folder / chart)
    path = copy / "templates" / "NOTES.txt"
    text = f'{{{{ define "notes" }}}}{path.read_text("utf-8")}{{{{ end }}}}'
    path.with_name("notes.yaml").write_text(f'{text}kind: Notes\ntext: {{{{ include "notes" . | toJson }}}}\n', "utf-8")
    (found,) = template(str(copy), json.dumps(values)).of("Notes")
    return str(found["text"])


def pods(rendered: Rendered) -> list[tuple[str, Object]]:
    """Names and specs of all pods, those in templates too."""
    found = [(each["metadata"]["name"], each["spec"]) for each in rendered.of("Pod")]
    for kind in ("Deployment", "StatefulSet", "DaemonSet", "Job"):
        found += [(each["metadata"]["name"], each["spec"]["template"]["spec"]) for each in rendered.of(kind)]
    return found


def containers(pod: Object) -> list[Object]:
    return [*pod.get("initContainers", []), *pod["containers"]]


def environment(container: Object) -> dict[str, Any]:
    return {each["name"]: each.get("value", each.get("valueFrom")) for each in container.get("env", [])}


def ours(rendered: Rendered) -> list[Object]:
    """Without those of the Spark Operator's chart, whose labels say what they are."""
    return [
        each
        for each in rendered.objects
        if not each["metadata"].get("labels", {}).get("helm.sh/chart", "").startswith("sparkOperator-")
    ]
