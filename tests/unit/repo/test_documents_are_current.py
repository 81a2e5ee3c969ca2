"""What documents say is so."""

import re
from pathlib import Path

import pytest

from lakestream_api import load_lakestream
from lakestream_api.reference import reference
from lakestream_loadgen.events import EVENT_DDL

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
PROSE = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("*/README.md")])


def test_the_configuration_reference_is_current() -> None:
    written = (ROOT / "docs" / "configuration.md").read_text("utf-8")
    assert written == reference(), "docs/configuration.md is not what the models say; run: make docs"


def test_there_is_an_example() -> None:
    assert EXAMPLES


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_examples_are_valid(example: Path) -> None:
    assert load_lakestream(example.read_text("utf-8")).spec.writers


def test_the_orders_example_has_the_schema_of_the_generated_events() -> None:
    stream = load_lakestream((ROOT / "examples" / "orders.yaml").read_text("utf-8"))
    assert stream.spec.event_schema == EVENT_DDL


@pytest.mark.parametrize("document", PROSE, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    targets = re.findall(r"\]\(([^)\s]+)\)", document.read_text("utf-8"))
    local = [target for target in targets if "://" not in target and not target.startswith("mailto:")]
    assert [target for target in local if not _leads_somewhere(document, target)] == []


def _leads_somewhere(document: Path, target: str) -> bool:
    name, _, anchor = target.partition("#")
    place = document.parent / name if name else document
    return place.exists() and (not anchor or anchor in _anchors(place.read_text("utf-8")))


def _anchors(text: str) -> set[str]:
    """Of headings, by GitHub's rule."""
    headings = re.findall(r"^#+ +(.*)$", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", PROSE, ids=lambda path: str(path.relative_to(ROOT)))
def test_python_can_be_copied(document: Path) -> None:
    for block in re.findall(r"^```python\n(.*?)^```", document.read_text("utf-8"), re.MULTILINE | re.DOTALL):
        compile(block, str(document), "exec")
