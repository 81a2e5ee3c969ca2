"""Writes images/<image>/requirements.lock: what of the repository's lock an image's packages need on Linux.

Run it in the environment of `make setup` after requirements.lock or a package's dependencies have changed:
the distributions installed there say what they require in turn.
"""

from __future__ import annotations

import tomllib
from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name

ROOT = Path(__file__).parents[1]
IMAGES = {
    "localkinesis": ["localkinesis"],
    "loadgen": ["loadgen"],
    "operator": ["api", "operator"],
    "spark": ["api", "jobs"],
}
"""The folders of the packages that are in an image."""


def pinned(lock: str) -> dict[NormalizedName, str]:
    """The `name==version` of each line of a lock, without its marker: images are built for one platform."""
    lines = [line.split(" ;")[0] for line in lock.splitlines()]
    return {canonicalize_name(line.split("==")[0]): line for line in lines}


def lock_of(image: str) -> str:
    """The lock of an image, in order.

    Raises:
        KeyError: requirements.lock lacks a distribution; run `make lock`.
    """
    pins = pinned((ROOT / "requirements.lock").read_text("utf-8"))
    projects = [
        tomllib.loads((ROOT / folder / "pyproject.toml").read_text("utf-8"))["project"] for folder in IMAGES[image]
    ]
    ours = {canonicalize_name(project["name"]) for project in projects}
    needed: dict[NormalizedName, str] = {}
    seen: set[str] = set()
    open_requirements = [Requirement(text) for project in projects for text in project["dependencies"]]
    while open_requirements:
        need = open_requirements.pop()
        name = canonicalize_name(need.name)
        if name in ours or str(need) in seen:
            continue
        seen.add(str(need))
        needed[name] = pins[name]
        open_requirements += _below(need)
    return "".join(f"{needed[name]}\n" for name in sorted(needed))


def _below(requirement: Requirement) -> list[Requirement]:
    """What the installed distribution requires in turn, with the extras that are asked for."""
    found = [Requirement(text) for text in requires(requirement.name) or []]
    extras = {"", *requirement.extras}
    return [
        need for need in found if need.marker is None or any(need.marker.evaluate({"extra": extra}) for extra in extras)
    ]


def main() -> None:
    for image in IMAGES:
        if (ROOT / "images" / image).is_dir():
            (ROOT / "images" / image / "requirements.lock").write_text(lock_of(image), "utf-8")


if __name__ == "__main__":
    main()
