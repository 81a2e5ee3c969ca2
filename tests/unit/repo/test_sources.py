"""House rules that no linter checks."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGES = {
    "lakestream_api": "api",
    "lakestream": "jobs",
    "lakestream_loadgen": "loadgen",
    "lakestream_localkinesis": "localkinesis",
    "lakestream_operator": "operator",
    "lakestream_pages": "pages",
    "lakestream_bench": "bench",
    "lakestream_demo": "examples/demo",
}
CHECKED = {**PACKAGES, "chaos": "tests/chaos", "aws_credentials": "tests/servers", "moto_s3": "tests/servers"}
"""Those that are not installed as well."""
MODULES = sorted(path for name, folder in CHECKED.items() for path in (ROOT / folder / name).rglob("*.py"))
MAX_MODULE_LINES = 400
MAX_FUNCTION_LINES = 50


def _functions(module: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            yield node.name, node.end_lineno - node.lineno + 1


def test_modules_are_short() -> None:
    lines = {str(module.relative_to(ROOT)): len(module.read_text("utf-8").splitlines()) for module in MODULES}
    assert len(lines) > 20
    assert {module: count for module, count in lines.items() if count > MAX_MODULE_LINES} == {}


def test_functions_are_short() -> None:
    found = [(module, *function) for module in MODULES for function in _functions(module)]
    long = [
        f"{module.relative_to(ROOT)}: {name}, {lines} lines"
        for module, name, lines in found
        if lines > MAX_FUNCTION_LINES
    ]
    assert long == []


@pytest.mark.parametrize("folder", PACKAGES.values())
def test_every_package_says_that_it_is_typed(folder: str) -> None:
    (name,) = [name for name, where in PACKAGES.items() if where == folder]
    assert (ROOT / folder / name / "py.typed").exists()


def test_every_package_is_checked_and_installed() -> None:
    folders = {str(found.parent.relative_to(ROOT)) for found in ROOT.glob("*/pyproject.toml")}
    folders |= {str(found.parent.relative_to(ROOT)) for found in ROOT.glob("examples/*/pyproject.toml")}
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]
    makefile = (ROOT / "Makefile").read_text("utf-8")
    (installed,) = [line for line in makefile.splitlines() if line.startswith("PACKAGES := ")]
    assert folders == set(PACKAGES.values())
    assert set(installed.removeprefix("PACKAGES := ").split()) == folders
    assert set(tools["mypy"]["mypy_path"]) == set(CHECKED.values())
    assert set(tools["mypy"]["files"]) == {f"{folder}/{name}" for name, folder in CHECKED.items()}
    assert set(tools["importlinter"]["root_packages"]) == set(PACKAGES)


def test_every_test_with_spark_is_run_by_make_spark() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    (folders,) = re.findall(r"^SPARK_TESTS := (.*)$", makefile, re.MULTILINE)
    marked = {path for path in (ROOT / "tests").rglob("test_*.py") if "mark.spark" in path.read_text("utf-8")}
    elsewhere = {path for path in marked if not any(path.is_relative_to(ROOT / one) for one in folders.split())}
    assert {path.name for path in elsewhere} == {"test_sources.py", "test_bench_compare.py"}, "the second one is slow"


def test_what_is_in_images_needs_nothing_that_is_for_tests() -> None:
    assert "**/testing" in (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    images = ("lakestream", "lakestream_api", "lakestream_loadgen", "lakestream_localkinesis", "lakestream_operator")
    shipped = [path for name in images for path in (ROOT / PACKAGES[name] / name).rglob("*.py")]
    code = [path for path in shipped if "testing" not in path.parts]
    assert len(code) < len(shipped)
    imports = re.compile(r"^\s*(from|import) lakestream\w*\.testing", re.MULTILINE)
    assert [path for path in code if imports.search(path.read_text("utf-8"))] == []
