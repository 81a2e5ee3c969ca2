"""Writes the report: the page, its Markdown, and the numbers of both beside them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import orjson
from rich.console import Console
from rich.markdown import Markdown

from lakestream_bench.compare.findings import find
from lakestream_bench.compare.markdown import markdown
from lakestream_bench.compare.money import Prices
from lakestream_bench.compare.page import page
from lakestream_bench.compare.results import Results
from lakestream_bench.rivals import Rivalry
from lakestream_bench.scalability.figures import Scalability


def write_report(
    results: Results,
    given: Mapping[str, float],
    prices: Prices,
    folder: Path,
    scalability: Scalability | None = None,
    rivalry: Rivalry | None = None,
) -> int:
    """Write `report.html`, `report.md` and `findings.json`, and show the Markdown; returns how many trials failed.

    Raises:
        ValueError: as `find`.
        OSError: a file cannot be written.
    """
    found = find(results, given, prices)
    text = markdown(results, found, scalability, rivalry)
    folder.mkdir(parents=True, exist_ok=True)
    option = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
    (folder / "findings.json").write_bytes(orjson.dumps(found, option=option))
    (folder / "report.md").write_text(text, encoding="utf-8")
    (folder / "report.html").write_text(page(results, found, prices, scalability, rivalry), encoding="utf-8")
    Console().print(Markdown(text))
    return sum(len(one.failures) for one in found)
