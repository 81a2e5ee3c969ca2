"""Run one operator on many LakeStreams: `KUBECONFIG=… python -m lakestream_bench.operator_scale --namespace scale`.

Takes any API server that has both resource definitions, and a namespace of its own; a node, a Spark Operator and a
controller manager are not needed. Written down are

- the start: from the operator's start to the last SparkApplication,
- steady state: CPU and memory of the operator's process while each driver reports every ten seconds,
- reactions: from a change of a LakeStream's spec to the driver's new orders, as a client of the API server sees both,
- a restart: until the new process has taken up a change; no SparkApplication may be another one after it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import yaml
from kubernetes.aio.client import ApiClient

from lakestream_bench._options import above_zero, out_file, whole
from lakestream_bench._processes import no_process_left
from lakestream_bench._telling import Telling
from lakestream_bench.operator_scale.drivers import SimulatedDrivers, clear
from lakestream_operator.adapters.client import KubeClient
from lakestream_operator.adapters.credentials import credentials_of
from lakestream_operator.model import Kind, Reference
from lakestream_operator.testing import lakestream


@dataclass(frozen=True)
class Options:
    """What is measured."""

    streams: int
    namespace: str
    steady: float
    reactions: int
    out: Path | None


class Operator:
    """The operator's process."""

    def __init__(self, settings: Path, log: Path) -> None:
        self._command = (sys.executable, "-m", "lakestream_operator", "run", "--config", str(settings))
        self._log = log
        self.process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> psutil.Process:
        with self._log.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(*self._command, stderr=log)
        return psutil.Process(self.process.pid)

    async def __aexit__(self, *_: object) -> None:
        assert self.process is not None
        self.process.terminate()
        await self.process.wait()


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


async def _until(what: Any, seconds: float, why: str) -> float:
    """Seconds until something is so."""
    began = time.monotonic()
    while not what():
        if time.monotonic() - began > seconds:
            raise TimeoutError(why)
        await asyncio.sleep(0.02)
    return time.monotonic() - began


async def _react(client: KubeClient, drivers: SimulatedDrivers, options: Options, executors: int) -> list[float]:
    """Seconds from a change of the target in the spec to the driver's orders, one LakeStream after the other."""
    seconds = []
    for number in random.sample(range(options.streams), options.reactions):
        name = f"stream-{number}"
        patch = {"spec": {"scaling": {"executors": executors}}}
        asked = datetime.now(UTC)
        await client.merge(Reference(Kind.LakeStream, options.namespace, name), patch)
        control = f"{name}-json-control"
        await _until(lambda at=control: drivers.targets[at][0] == executors, 300, f"{control} was not written")
        seconds.append((drivers.targets[control][1] - asked).total_seconds())
    return seconds


async def _measure(client: KubeClient, watching: ApiClient, options: Options, folder: Path) -> dict[str, float]:
    settings = folder / "operator.yaml"
    settings.write_text(yaml.safe_dump(_settings(options)))
    drivers = SimulatedDrivers(client, watching, options.namespace, timedelta(seconds=10))
    following = asyncio.create_task(drivers.run())
    try:
        return await _live_through(client, drivers, options, settings, folder / "log")
    finally:
        following.cancel()
        await drivers.end()


async def _live_through(
    client: KubeClient, drivers: SimulatedDrivers, options: Options, settings: Path, log: Path
) -> dict[str, float]:
    figures: dict[str, float] = {"lakestreams": options.streams}
    telling = Telling(4)
    async with Operator(settings, log) as process:
        with telling.measuring(f"start with {options.streams} LakeStreams"):
            figures["start_seconds"] = await _until(lambda: len(drivers.uids) == options.streams, 900, "no start")
            figures["start_cpu_seconds"] = _cpu(process)
        with telling.measuring("steady state"):
            await asyncio.sleep(30)
            began, cpu, reports = time.monotonic(), _cpu(process), drivers.reports
            await asyncio.sleep(options.steady)
            elapsed = time.monotonic() - began
        figures["steady_cpu_cores"] = (_cpu(process) - cpu) / elapsed
        figures["steady_reports_per_second"] = (drivers.reports - reports) / elapsed
        figures["steady_memory_mib"] = process.memory_info().rss / 2**20
        with telling.measuring(f"{options.reactions} reactions"):
            figures |= _spread("reaction", await _react(client, drivers, options, 2))
    uids = dict(drivers.uids)
    async with Operator(settings, log) as process:
        with telling.measuring("restart"):
            one = Options(**{**vars(options), "reactions": 1})
            figures["restart_seconds"] = max(await _react(client, drivers, one, 3))
            await asyncio.sleep(30)
        figures["restart_memory_mib"] = process.memory_info().rss / 2**20
    figures["restarted_drivers"] = sum(drivers.uids.get(name) != uid for name, uid in uids.items())
    return figures


def _spread(name: str, seconds: list[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    return {f"{name}_p50_seconds": statistics.median(ordered), f"{name}_max_seconds": ordered[-1]}


def _settings(options: Options) -> dict[str, Any]:
    return {
        "job": {"image": "none", "clusterRole": "none"},
        "namespaces": [options.namespace],
        "health": {"port": 0},
        "metrics": {"port": 0},
        "log": {"level": "WARNING"},
        "leaderElection": {"enabled": False},
    }


async def _apply(client: KubeClient, options: Options) -> None:
    async def one(number: int) -> None:
        await client.create(lakestream(f"stream-{number}", namespace=options.namespace))

    await asyncio.gather(*(one(number) for number in range(options.streams)))


async def _run(options: Options) -> dict[str, float]:
    async with (
        credentials_of(os.environ) as credentials,
        KubeClient(credentials) as client,
        ApiClient(credentials) as watching,
    ):
        await clear(client, options.namespace)
        try:
            await _apply(client, options)
            with tempfile.TemporaryDirectory() as folder:
                return await _measure(client, watching, options, Path(folder))
        finally:
            await clear(client, options.namespace)


def main() -> None:
    """Measure, print, and write the figures as JSON."""
    parser = argparse.ArgumentParser(prog="lakestream_bench.operator_scale")
    parser.add_argument("--streams", type=whole(), default=1000)
    parser.add_argument("--namespace", default="scale", help="must exist; is emptied before and after")
    parser.add_argument("--steady", type=above_zero, default=120.0, help="seconds")
    parser.add_argument("--reactions", type=whole(), default=50)
    parser.add_argument("--out", type=out_file)
    options = Options(**vars(parser.parse_args()))
    if options.reactions > options.streams:
        parser.error(f"--reactions: of each stream one at most, got {options.reactions} of {options.streams} streams")
    figures = asyncio.run(_run(options))
    for name, value in figures.items():
        print(f"{name:28} {value:10.3f}")
    if options.out:
        options.out.write_text(json.dumps(figures, indent=2))


if __name__ == "__main__":
    with no_process_left():
        main()
