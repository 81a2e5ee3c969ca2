"""What the terminal's report and the page tell alike: tables of text, and what they mean. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakestream_api import rounded_size
from lakestream_demo.result import DemoResult, Freshness, TableResult

AUDIT_HEAD = ("", "expected", "found", "missing", "doubled", "altered", "unexpected")
MEANING = (
    "Each acknowledged record is a row of the JSON files, or in quarantine if it is malformed; "
    "the Hudi table has the latest version of each order that was not deleted."
)
FRESH = (
    "From a record's arrival in Kinesis to its being visible in the table, once the applications were warm; "
    "“all” are their first batches too."
)


@dataclass(frozen=True)
class Sheet:
    """A table; the first column is text, all others are numbers."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def made(result: DemoResult) -> Sheet:
    """How much there is of everything."""
    rows = [
        (_name(one), f"{one.records:,}", f"{one.rows:,}", f"{one.files:,}", rounded_size(one.bytes))
        for one in result.tables
    ]
    return Sheet(
        ("", "records", "rows", "files", "size"), (("stream", f"{result.load.acknowledged:,}", "", "", ""), *rows)
    )


def fresh(tables: Sequence[TableResult]) -> Sheet:
    """How soon records were visible."""
    rows = tuple(
        (
            _name(one),
            f"{one.batches:,}",
            f"{one.batch_seconds_p50:.2f}",
            *_quantiles(one.freshness_warm),
            *_quantiles(one.freshness_all),
        )
        for one in tables
    )
    return Sheet(("", "batches", "s/batch", "fresh p50", "p99", "all p50", "all p99"), rows)


def verdict(result: DemoResult) -> str:
    """What the audit comes to, in a sentence."""
    if result.passed:
        return f"All {result.load.acknowledged:,} acknowledged records are in the lake, each exactly once."
    return "The lake is not what was sent: see the counts of the audit."


def _name(made: TableResult) -> str:
    return f"{made.writer}: {made.kind}"


def _quantiles(fresh: Freshness | None) -> tuple[str, str]:
    return (f"{fresh.p50_seconds:.1f} s", f"{fresh.p99_seconds:.1f} s") if fresh else ("–", "–")
