"""The processes of a driver: found by a mark in their environment, which children inherit, so none can be missed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from contextlib import suppress
from enum import Enum

import psutil

MARK = "LAKESTREAM_CHAOS_DRIVER"


class Part(Enum):
    """Which processes of a driver are meant."""

    ALL = "the group"
    PYTHON = "Python"
    JVM = "the JVM"
    WORKERS = "its workers"
    EXECUTORS = "its executors"


def family(mark: str) -> list[psutil.Process]:
    """The living processes that carry a mark."""
    found = []
    for process in psutil.process_iter(["environ", "status"]):
        is_dead = process.info["status"] in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
        if not is_dead and (process.info["environ"] or {}).get(MARK) == mark and process.pid != os.getpid():
            found.append(process)
    return found


def part_of(mark: str, leader: int, part: Part) -> list[psutil.Process]:
    """Those of a driver's processes that are meant; `leader` is the id of the driver itself."""
    members = family(mark)
    return members if part is Part.ALL else [process for process in members if _part(process, leader) is part]


def send(processes: Iterable[psutil.Process], number: signal.Signals) -> int:
    """Send a signal to those that still run; returns how many got it."""
    sent = 0
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            if process.is_running():
                process.send_signal(number)
                sent += 1
    return sent


def _part(process: psutil.Process, leader: int) -> Part | None:
    if process.pid == leader:
        return Part.PYTHON
    try:
        name, command = process.name(), " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return None
    if "CoarseGrainedExecutorBackend" in command:
        return Part.EXECUTORS
    if name == "java":
        return Part.JVM
    return Part.WORKERS if "spark.daemon" in command else None
