"""What writing and asking use of the machine: CPU, files, the page cache."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SparkCpu:
    """CPU time of a local session: its JVM, and the Python workers below it.

    The driver's own Python is not among it, since the local Kinesis runs there as well.
    """

    def __init__(self, spark: SparkSession) -> None:
        jvm: Any = spark._jvm
        self._jvm = psutil.Process(jvm.java.lang.ProcessHandle.current().pid())

    def seconds(self) -> float:
        """Used so far, workers that have ended included."""
        total = 0.0
        for process in (self._jvm, *self._jvm.children(recursive=True)):
            try:
                times = process.cpu_times()
            except psutil.NoSuchProcess:
                continue  # its parent has it among its children's
            total += times.user + times.system + times.children_user + times.children_system
        return total


File = tuple[int, int]
"""Bytes, and time of the last change in nanoseconds."""


@dataclass(frozen=True)
class Change:
    """Between two listings of a folder."""

    objects_written: int
    bytes_written: int
    objects_deleted: int


def listing(folder: Path) -> dict[str, File]:
    """All files below a folder. Hadoop's checksum files are left out: an object store has none."""
    found: dict[str, File] = {}
    for parent, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".crc"):
                continue
            path = os.path.join(parent, name)
            try:
                status = os.stat(path)
            except FileNotFoundError:
                continue  # cleaned meanwhile
            found[os.path.relpath(path, folder)] = (status.st_size, status.st_mtime_ns)
    return found


def change(before: Mapping[str, File], after: Mapping[str, File]) -> Change:
    """What was written and deleted. What came and went between the two is not seen; requests at an S3 server are."""
    written = [size for name, (size, time) in after.items() if before.get(name) != (size, time)]
    return Change(len(written), sum(written), len(before.keys() - after.keys()))


def is_data(name: str) -> bool:
    """Whether a file of a table has rows."""
    return not name.startswith((".hoodie", "_lakestream")) and not name.endswith(".hoodie_partition_metadata")


def size(files: Mapping[str, File]) -> int:
    """Bytes of all files."""
    return sum(length for length, _ in files.values())


def forget(folder: Path) -> None:
    """Ask the kernel to drop a folder's files from its page cache, so that the next reader waits for the disk."""
    for name in listing(folder):
        try:
            descriptor = os.open(folder / name, os.O_RDONLY)
        except FileNotFoundError:
            continue
        try:
            os.fdatasync(descriptor)  # what is not on the disk yet would stay
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)
