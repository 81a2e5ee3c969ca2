"""Draws a run while it runs: a small table that renews itself, or plain lines where there is no terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from lakestream_demo.observed import Observed, WriterSeen, rates
from lakestream_demo.steps import TITLES, Step, Timeline

_BAR_WIDTH = 24
_DONE, _FAILED = Text("✓", style="green"), Text("✗", style="bold red")
_SPINNER = Spinner("dots", style="cyan")
"""One for the whole run: each drawing of a new spinner would begin with its first frame."""


def draw(headline: str, timeline: Timeline, window: Sequence[Observed], now: float) -> RenderableType:
    """The whole live view.

    Args:
        headline: what is being run.
        timeline: phases so far.
        window: observations of the last few seconds, in order; empty before the pipeline runs.
        now: seconds on the monotonic clock of the timeline.
    """
    parts: list[RenderableType] = [Text(headline, style="bold"), Text(), _steps(timeline, now)]
    if window:
        parts += [Text(), _figures(window), Text(trouble(window[-1]), style="yellow")]
    return Group(*parts)


def _steps(timeline: Timeline, now: float) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(width=1)
    grid.add_column(width=14)
    grid.add_column(ratio=1)
    grid.add_column(justify="right")
    for step in timeline.steps:
        running = step.ended is None
        mark: RenderableType = _SPINNER if running else _FAILED if step.failed else _DONE
        detail: RenderableType = Text(step.detail, overflow="ellipsis", no_wrap=True)
        if running and step.expected is not None:
            detail = _bar(step, now)
        grid.add_row(mark, TITLES[step.phase], detail, f"{step.seconds(now):.1f} s")
    return grid


def _bar(step: Step, now: float) -> Table:
    assert step.expected is not None
    done = min(step.seconds(now), step.expected)
    grid = Table.grid(padding=(0, 2))
    grid.add_row(ProgressBar(step.expected, done, width=_BAR_WIDTH), f"{done:.0f} of {step.expected:.0f} s")
    return grid


def _figures(window: Sequence[Observed]) -> Table:
    seen, speed = window[-1], rates(window)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for heading in ("", "records", "per s", "behind", "lag", "batches", "last batch", "fresh"):
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    table.add_row("sent", f"{seen.stream.sent:,}", f"{speed.sent:,.0f}")
    table.add_row("acknowledged", f"{seen.load.acknowledged:,}", f"{speed.acknowledged:,.0f}")
    for writer, per_second in zip(seen.writers, speed.writers, strict=True):
        table.add_row(*_writer_cells(seen, writer, per_second))
    return table


def _writer_cells(seen: Observed, writer: WriterSeen, per_second: float) -> tuple[str, ...]:
    name = f"written, {writer.name}"
    if not writer.batches:
        return (name, "starting")
    return (
        name,
        f"{writer.records:,}",
        f"{per_second:,.0f}",
        f"{seen.backlog(writer):,}",
        _seconds(seen.lag(writer)),
        f"{writer.batches:,}",
        f"{writer.last_records:,} in {writer.last_seconds:.1f} s",
        _seconds(writer.freshness_seconds),
    )


def trouble(seen: Observed) -> str:
    """What the load generator met with, or an empty text."""
    counts = ((seen.stream.throttled, "throttled (sent again)"), (seen.load.failed, "given up"))
    return ", ".join(f"{count:,} {what}" for count, what in counts if count)


def ended_line(step: Step) -> str:
    """A phase that is over, as one line of text."""
    return f"{'✗' if step.failed else '✓'} {TITLES[step.phase]:<14} {step.seconds(step.began):6.1f} s  {step.detail}"


def running_line(step: Step, window: Sequence[Observed], now: float) -> str:
    """The live view as one line of text."""
    parts = [f"  {TITLES[step.phase]:<14} {step.seconds(now):6.1f} s"]
    if not window:
        return " ".join([*parts, "", step.detail])
    seen, speed = window[-1], rates(window)
    acknowledged = f"acknowledged {seen.load.acknowledged:,} ({speed.acknowledged:,.0f}/s)"
    parts.append(f" sent {seen.stream.sent:,}, {acknowledged}")
    parts += [trouble(seen)] if trouble(seen) else []
    parts += [f"{writer.name} wrote {writer.records:,}, lag {_seconds(seen.lag(writer))}" for writer in seen.writers]
    return " | ".join(parts).replace(" |  ", "  ", 1)


def _seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f} s"
