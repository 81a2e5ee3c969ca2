"""The files of a Hudi table, by their names. Pure.

    <file group>_<write token>_<instant>.parquet         a base file
    .<file group>_<instant>.log.<version>_<write token>  a log file: what a delta commit adds to a base file

In timeline layout 1 the instant of a log file is that of its base file. In layout 2 it is that of the delta commit, and
the log file belongs to the newest base file that was begun before that was completed.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass

from lakestream.query.timeline import Timeline

# No dot at the beginning: on a folder Hadoop keeps a checksum beside each file, `..<name>.crc`.
_BASE = re.compile(r"(?P<group>[^._/][^_/]*)_[^_/]+_(?P<instant>\d{17}|\d{14})\.(?:parquet|orc)")
_LOG = re.compile(r"\.(?P<group>[^._/][^_/]*)_(?P<instant>\d{17}|\d{14})\.log\.\d+(?:_[^./]+)?")
SMALL = 32 << 20
"""Bytes. Base files below this cost a reader more to open than to read."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """An object of the table's folder."""

    path: str
    """Relative to the table."""
    bytes: int


@dataclass(frozen=True, slots=True)
class Files:
    """How many, and how large together."""

    count: int = 0
    bytes: int = 0

    @classmethod
    def of(cls, files: Iterable[StoredFile]) -> Files:
        found = list(files)
        return cls(len(found), sum(file.bytes for file in found))


@dataclass(frozen=True, slots=True)
class Slices:
    """The files that a table consists of."""

    partitions: int
    file_groups: int
    base: Files
    """The newest of each file group."""
    small: Files
    """Base files below `SMALL`."""
    mergeable: Files
    """Base files that clustering merges: those that are small for it, and not alone with that in their partition."""
    waiting: Files
    """Log files that no compaction has merged yet."""
    replaced: Files
    """Base and log files that newer ones have replaced: for time travel, until they are cleaned."""
    unfinished: Files
    """Files of commits that are not completed: in flight, or left behind."""


@dataclass(frozen=True, slots=True)
class _Named:
    file: StoredFile
    partition: str
    group: str
    instant: str
    is_log: bool


def slices_of(
    stored: Iterable[StoredFile],
    timeline: Timeline,
    replaced_groups: Set[tuple[str, str]] = frozenset(),
    merged_below: int = SMALL,
) -> Slices:
    """Sort files by what they are for; others than data files are passed over.

    Args:
        stored: what is in the table's folder.
        timeline: the table's.
        replaced_groups: partition and file group of what clusterings have replaced.
        merged_below: bytes below which clustering merges a file.
    """
    completed = {one.requested: one.completed or one.requested for one in timeline.instants}
    is_completed = _completed_in(timeline)
    named = [found for file in stored if (found := _named(file)) is not None]
    groups: defaultdict[tuple[str, str], list[_Named]] = defaultdict(list)
    for one in named:
        if is_completed(one):
            groups[one.partition, one.group].append(one)
    newest: list[StoredFile] = []
    waiting: list[StoredFile] = []
    replaced: list[StoredFile] = []
    for group in replaced_groups & groups.keys():
        replaced += [one.file for one in groups.pop(group)]
    for files in groups.values():
        bases = sorted((one for one in files if not one.is_log), key=lambda one: one.instant)
        since = bases[-1].instant if bases else ""
        newest += [one.file for one in bases[-1:]]
        replaced += [one.file for one in bases[:-1]]
        for log in (one for one in files if one.is_log):
            seen = log.instant if timeline.layout == 1 else completed.get(log.instant, log.instant)
            is_merged = seen < since
            (replaced if is_merged else waiting).append(log.file)
    return Slices(
        partitions=len({partition for partition, _ in groups}),
        file_groups=len(groups),
        base=Files.of(newest),
        small=Files.of(file for file in newest if file.bytes < SMALL),
        mergeable=Files.of(_mergeable(newest, merged_below)),
        waiting=Files.of(waiting),
        replaced=Files.of(replaced),
        unfinished=Files.of(one.file for one in named if not is_completed(one)),
    )


def _completed_in(timeline: Timeline) -> Callable[[_Named], bool]:
    """Tells whether a file is of a commit that is completed."""
    instants = {one.requested for one in timeline.instants}
    open_instants = {one.requested for one in timeline.pending}
    compactions = {one.requested for one in timeline.pending if one.action == "compaction"}
    begins = timeline.instants[0].requested if timeline.instants else ""

    def is_completed(named: _Named) -> bool:
        if named.is_log and timeline.layout == 1 and named.instant in compactions:
            return True  # it is there before its base file
        # What is older than the active timeline is in the archive, where only completed commits are.
        return named.instant not in open_instants and (named.instant in instants or named.instant < begins)

    return is_completed


def _mergeable(newest: Iterable[StoredFile], below: int) -> Iterable[StoredFile]:
    small = [file for file in newest if file.bytes < below]
    of_partition = Counter(file.path.rpartition("/")[0] for file in small)
    return (file for file in small if of_partition[file.path.rpartition("/")[0]] > 1)


def _named(file: StoredFile) -> _Named | None:
    if file.path.startswith(".hoodie/"):
        return None  # the metadata table has files of the same names
    partition, _, name = file.path.rpartition("/")
    for pattern, is_log in ((_BASE, False), (_LOG, True)):
        if match := pattern.fullmatch(name):
            return _Named(file, partition, match["group"], match["instant"], is_log)
    return None
