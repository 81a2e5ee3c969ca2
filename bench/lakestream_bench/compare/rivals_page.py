"""The part of the report about what people write in place of LakeStream."""

from __future__ import annotations

from html import escape

from lakestream_bench._contenders import OURS
from lakestream_bench.rivals import Rivalry
from lakestream_pages.frame import table

NAMES = {
    OURS: "LakeStream, merge-on-read",
    "loop": "a loop by hand: boto3, createDataFrame, append",
    "files": "Structured Streaming from files, Hudi's defaults",
    "files-tuned": "Structured Streaming from files, tuned",
    "connector": "Structured Streaming, Kinesis connector",
}
"""Of the contenders, as people call them."""


def rivals(found: Rivalry) -> str:
    """The section. Captions name the place of their numbers in rivals.json."""
    figures = (
        (
            _name(one.contender),
            f"{one.events_per_second:,.0f}",
            f"{one.batch_seconds:.2f}",
            f"{one.cpu_microseconds:.0f}",
        )
        for one in found.figures
    )
    ordeals = (
        (
            _name(one.contender),
            f"{one.count} {one.ordeal}",
            f"{one.orders:,}",
            *(_wrong(count) for count in (one.lost, one.outdated, one.doubled, one.undeleted)),
            f"{one.read_again:,}",
        )
        for one in found.ordeals
    )
    refused = "".join(f'<p class="miss">{escape(name)} did not get to the end.</p>' for name in found.refused)
    return (
        '<h2 id="rivals">Beside what people write themselves</h2><h3>The same backlog</h3>'
        + table(
            ("", "events/s", "batch, s", "CPU µs per event"),
            figures,
            f"rivals.json: figures[]. {found.batches} batches of {found.batch:,} events on {found.cores} cores, "
            f"{escape(found.measured_at)}. What writes the files costs nothing here, and none of the others deletes.",
        )
        + "<h3>Two reshards beside it, and kills</h3>"
        + table(
            ("", "ordeal", "orders", "lost", "outdated", "doubled", "not deleted", "events written again"),
            ordeals,
            "rivals.json: ordeals[]. Orders that are wrong in the table afterwards, read by hudi-rs and held against "
            "what the stream took. The loop lists the shards when it starts, and keeps no position. Who reads files "
            "sees no shards: whatever writes them has to follow a reshard.",
        )
        + refused
    )


def _name(contender: str) -> str:
    name = escape(NAMES.get(contender, contender))
    return f"<b>{name}</b>" if contender == OURS else name


def _wrong(count: int) -> str:
    return f'<span class="{"miss" if count else "ok"}">{count:,}</span>'
