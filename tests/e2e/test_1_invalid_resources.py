"""The API server refuses what cannot work, and says what to do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster.commands import CommandError, Kubectl
from cluster.installation import OTHER

TABLES = Path(__file__).parent / "invalid"
VALID = (TABLES / "orders.yaml").read_text("utf-8")

# The first test of a run has all installed before it, for which Helm alone is given ten minutes.
pytestmark = pytest.mark.timeout(1200)


def rows(name: str) -> list[Any]:
    return [
        pytest.param(row, id=" ".join(row["by"].split())[:60] or "removed")
        for row in yaml.safe_load((TABLES / name).read_text("utf-8"))
    ]


@pytest.fixture(scope="module")
def other() -> Kubectl:
    return Kubectl(OTHER)


@pytest.fixture(scope="module")
def existing(other: Kubectl) -> Iterator[None]:
    """The valid one; suspended, for there is no such stream."""
    other.run("apply", "-f", "-", stdin=f"{VALID}  suspend: true\n")
    yield
    other.delete("lakestream", "orders")


def refusal(other: Kubectl, row: dict[str, Any]) -> str:
    changed = VALID.replace(row["replace"], row["by"], 1)
    assert changed != VALID
    with pytest.raises(CommandError) as refused:
        other.run("apply", "--dry-run=server", "-f", "-", stdin=changed)
    return str(refused.value)


@pytest.mark.parametrize("row", rows("created.yaml"))
def test_creating_it_is_refused(other: Kubectl, row: dict[str, Any]) -> None:
    said = refusal(other, row)
    for fragment in row["says"]:
        assert fragment in said


@pytest.mark.parametrize("row", rows("changed.yaml"))
@pytest.mark.usefixtures("existing")
def test_changing_it_is_refused(other: Kubectl, row: dict[str, Any]) -> None:
    said = refusal(other, row)
    for fragment in row["says"]:
        assert fragment in said


@pytest.mark.usefixtures("existing")
def test_a_default_that_is_written_out_is_no_change(other: Kubectl) -> None:
    written = VALID.replace("path: s3a://lake/orders_json", "path: s3a://lake/orders_json\n        partitionBy: []", 1)
    written = written.replace("orderingField: version", "orderingField: version\n        partitionBy: []", 1)
    assert "configured" in other.run("apply", "--dry-run=server", "-f", "-", stdin=written)


def test_an_empty_filter_is_none(other: Kubectl) -> None:
    texts = f"{VALID}  format: text\n  filter: []\n"
    assert "(server dry run)" in other.run("apply", "--dry-run=server", "-f", "-", stdin=texts)


def test_kubectl_explains_the_fields(other: Kubectl) -> None:
    said = " ".join(other.run("explain", "lakestream.spec.writers").split())  # it breaks lines where it likes
    assert "The outputs, at most 8, each written by an application of its own." in said
