"""The lock pins all that the packages ask for, and says nothing about where it comes from."""

import re
import tomllib
from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name

ROOT = Path(__file__).parents[3]
LINES = (ROOT / "requirements.lock").read_text("utf-8").splitlines()
PINNED = {canonicalize_name(line.split("==")[0]): line.split("==")[1].split(" ;")[0] for line in LINES}
PROJECTS = [
    tomllib.loads(path.read_text("utf-8"))
    for path in (*ROOT.glob("*/pyproject.toml"), *ROOT.glob("examples/*/pyproject.toml"))
]
OURS = {canonicalize_name(project["project"]["name"]) for project in PROJECTS}


def _declared() -> list[Requirement]:
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["dependency-groups"]["dev"]
    texts = [text for project in PROJECTS for text in project["project"]["dependencies"]]
    return [Requirement(text) for text in (*tools, *texts)]


def _below(requirement: Requirement) -> list[Requirement]:
    """What the installed distribution that fulfils a requirement requires in turn."""
    extras = requirement.extras or {""}
    found = [Requirement(text) for text in requires(requirement.name) or []]
    return [
        need for need in found if need.marker is None or any(need.marker.evaluate({"extra": extra}) for extra in extras)
    ]


def test_everything_that_is_needed_is_pinned_in_a_fitting_version() -> None:
    open_requirements = [need for need in _declared() if canonicalize_name(need.name) not in OURS]
    assert len(open_requirements) > 20
    seen: set[tuple[NormalizedName, frozenset[str]]] = set()
    while open_requirements:
        need = open_requirements.pop()
        name = canonicalize_name(need.name)
        assert name in PINNED, f"{need} is not in requirements.lock; run: make lock"
        assert need.specifier.contains(PINNED[name], prereleases=True), f"{need}, but {PINNED[name]}; run: make lock"
        if (name, frozenset(need.extras)) not in seen:
            seen.add((name, frozenset(need.extras)))
            open_requirements += _below(need)


def test_the_lock_names_versions_only() -> None:
    assert len(LINES) > 50
    assert [line for line in LINES if not re.fullmatch(r"[a-z0-9][a-z0-9.-]*==[\w.!+]+( ; .+)?", line)] == []
