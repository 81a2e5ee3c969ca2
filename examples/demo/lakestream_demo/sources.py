"""Where the figures come from: Kinesis's metrics, Locust's statistics, the applications' progress. Pure parsers."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Mapping
from io import StringIO

from lakestream_api import Progress
from lakestream_demo.observed import LoadSeen, StreamSeen, WriterSeen

_FIGURE = re.compile(r'^(kinesis_\w+)\{stream="([^"]*)",[^}]*\} (\d+)$', re.MULTILINE)


def stream_seen(metrics: str, stream: str) -> StreamSeen:
    """What a stream has taken, from the text of localkinesis's `/metrics`, which has a line for each shard."""
    sums: Counter[str] = Counter()
    for figure, name, value in _FIGURE.findall(metrics):
        if name == stream:
            sums[figure] += int(value)
    return StreamSeen(sums["kinesis_incoming_records_total"], sums["kinesis_write_throttles_total"])


def load_seen(table: str, stream: str) -> LoadSeen:
    """What Locust's `_stats.csv` says of a stream; `table` may be torn, since Locust rewrites it in place."""
    counts = _request_counts(table)

    def of(row: str) -> int:
        return counts.get(f"{stream}: {row}", 0)

    return LoadSeen(
        acknowledged=of("records acknowledged"),
        failed=of("records failed") + of("records unknown"),
    )


def _request_counts(table: str) -> Mapping[str, int]:
    counts = {}
    for row in csv.DictReader(StringIO(table)):
        count = row.get("Request Count") or ""
        if count.isdigit() and row["Name"]:
            counts[row["Name"]] = int(count)
    return counts


def after_lines(seen: WriterSeen, lines: list[bytes]) -> WriterSeen:
    """The writer after the batches in some lines of its progress file."""
    for text in lines:
        seen = seen.after(Progress.model_validate_json(text))
    return seen
