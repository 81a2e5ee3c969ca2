"""Record and draw how a writer on kubectl's current cluster is scaled.

    python -m lakestream_bench.scaling_run --namespace lake --name orders --writer hudi --minutes 10 --svg scaling.svg

Reads two objects every two seconds, and changes nothing. Drawn are what the driver says of each batch, the rate at
which its records arrived and how old the oldest of them were when they became visible, and what the operator says in
the status, executors and the number that there should be.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lakestream_api import BatchSummary, DriverReport, LakeStreamStatus, WriterNames
from lakestream_api.names import REPORT_KEY
from lakestream_api.quantities import parse_duration
from lakestream_bench._options import above_zero, out_file
from lakestream_bench._telling import Telling
from lakestream_operator.adapters.client import KubeClient
from lakestream_operator.adapters.credentials import credentials_of
from lakestream_operator.errors import NotFoundError, OperatorError, RetryLaterError
from lakestream_operator.model import Kind, Reference
from lakestream_pages.plots import Plot, Series, changes, drawing

_EVERY = 2.0
_LINE, _WANTED = "#0b6e99", "#d1495b"


@dataclass
class Recording:
    """What was seen; times are seconds from its begin."""

    began: datetime
    batches: dict[int, tuple[float, float | None, float | None]] = field(default_factory=dict)
    """Number of a batch → end, records per second that arrived, seconds that 99 of 100 records were younger than."""
    executors: list[tuple[float, int, int]] = field(default_factory=list)
    """Time, executors at work, executors that there should be."""
    explanations: list[tuple[float, str]] = field(default_factory=list)
    """Time, the operator's last decision in a line; when its target changed."""
    max_lag: float = 0.0

    def batch(self, batch: BatchSummary) -> None:
        at = (batch.finished_at - self.began).total_seconds()
        if at >= 0:
            age = None if batch.freshness is None else batch.freshness.p99_seconds
            self.batches[batch.batch] = (at, batch.arrival_rate, age)

    def status(self, status: LakeStreamStatus, writer: str) -> None:
        at = (datetime.now(UTC) - self.began).total_seconds()
        for one in status.writers:
            if one.name == writer:
                if not self.executors or self.executors[-1][2] != one.executors.target:
                    self.explanations.append((at, one.scaling))
                self.executors.append((at, one.executors.now, one.executors.target))


async def _record(client: KubeClient, options: argparse.Namespace) -> Recording:
    names = WriterNames(options.name, options.writer)
    recording = Recording(datetime.now(UTC))
    end = time.monotonic() + 60 * options.minutes
    await _look(client, options, names, recording)
    if not recording.executors:
        raise OperatorError(f"the status of {options.namespace}/{options.name} has no writer {options.writer}")
    while time.monotonic() < end:
        try:
            await _look(client, options, names, recording)
        except RetryLaterError as error:
            print(f"not seen: {error}", file=sys.stderr)
        await asyncio.sleep(_EVERY)
    return recording


async def _look(client: KubeClient, options: argparse.Namespace, names: WriterNames, recording: Recording) -> None:
    stream = await client.get(Reference(Kind.LakeStream, options.namespace, options.name))
    recording.max_lag = parse_duration(stream["spec"]["scaling"]["maxLag"]).total_seconds()
    recording.status(LakeStreamStatus.model_validate(stream.get("status", {})), options.writer)
    try:
        progress = await client.get(Reference(Kind.ConfigMap, options.namespace, names.progress))
    except NotFoundError:
        return
    if text := progress.get("data", {}).get(REPORT_KEY):
        for batch in DriverReport.model_validate_json(text).batches:
            recording.batch(batch)


def _drawing(recording: Recording) -> str:
    minutes = max(at for at, _, _ in recording.executors) / 60
    batches = sorted(recording.batches.values())
    rates = [(at / 60, rate) for at, rate, _ in batches if rate is not None]
    ages = [(at / 60, age) for at, _, age in batches if age is not None]
    now = changes([(at / 60, float(count)) for at, count, _ in recording.executors])
    wanted = changes([(at / 60, float(target)) for at, _, target in recording.executors])
    return drawing(
        [
            Plot("Records that arrive", "records/s", [Series("arrival", "#57606a", rates)], minutes, time="minutes"),
            Plot(
                "Age of a batch's oldest records when they became visible (the dashed line is maxLag)",
                "s",
                [Series("age", _LINE, ages, width=2.0)],
                minutes,
                time="minutes",
                goal=recording.max_lag,
            ),
            Plot(
                "Executors at work (blue), and asked for (red)",
                "executors",
                [
                    Series("asked for", _WANTED, wanted, step=True, dash="4 3"),
                    Series("at work", _LINE, now, step=True, width=2.2),
                ],
                minutes,
                time="minutes",
                whole=True,
            ),
        ]
    )


async def _main(options: argparse.Namespace) -> None:
    async with credentials_of(os.environ) as credentials, KubeClient(credentials) as client:
        with Telling(1).measuring(f"writer {options.writer} for {options.minutes:g} minutes"):
            recording = await _record(client, options)
    if options.out is not None:
        figures: dict[str, Any] = {**asdict(recording), "began": recording.began.isoformat()}
        options.out.write_text(json.dumps(figures, indent=1), "utf-8")
    options.svg.write_text(_drawing(recording), "utf-8")
    for at, explanation in recording.explanations:
        print(f"{at:6.0f} s  {explanation}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="lakestream_bench.scaling_run", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--namespace", required=True, help="of the LakeStream")
    parser.add_argument("--name", required=True, help="of the LakeStream")
    parser.add_argument("--writer", required=True, help="name of one of its writers")
    parser.add_argument("--minutes", type=above_zero, default=10.0, help="how long to look on")
    parser.add_argument("--svg", type=Path, required=True, help="write the drawing here")
    parser.add_argument("--out", type=out_file, help="write the figures here, as JSON")
    given = parser.parse_args()
    try:
        given.svg.open("ab").close()  # now, and not when all has been seen
        asyncio.run(_main(given))
    except (OSError, OperatorError) as error:
        parser.error(str(error))
