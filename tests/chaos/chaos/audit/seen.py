"""Whether what was read of a table meanwhile is what it may have had by then. The verdict is pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow.parquet

from chaos.audit.lake import NULL_PARTITION
from chaos.audit.verdict import differences, is_delete, key_of, version_of
from chaos.events import PARTITION, Row, epoch_micros, micros
from chaos.ledger import Truth, Where
from chaos.readings import Reading

Key: TypeAlias = tuple[object, ...]

_SAMPLES = 3
"""Of each kind and reading, for a person."""


@dataclass(frozen=True)
class Seen:
    """A table as it was read once; the other fields are as of `Reading`."""

    rows: list[tuple[Where, Row]]
    told: int = 0
    restores: int = 0
    again: frozenset[Where] | None = None
    """What the rows come from, as it was read once more; None: it was not."""
    since: frozenset[Where] | None = None
    """What those rows come from that were written since the reading before, likewise."""


def read_seen(reading: Reading) -> Seen:
    again, since = _places(reading.again), _places(reading.since)
    return Seen(_rows(reading.file), reading.told, reading.restores, again, since)


def judge_seen(truth: Truth, seen: Sequence[Seen], *, keyed: bool) -> list[str]:
    """What none of them may have had, or lacked.

    A row is of the stream, as it was sent, and once there. It stays, unless the table was taken back: in a table by key
    until a newer version or a delete comes. What a driver has told of as committed is there for who asks then. Who asks
    later for the table as it was finds the same; who asks what was written since the reading before finds
    what is new, and nothing else.

    Args:
        truth: each record of the stream, also of those that came later.
        seen: in the order in which they were read.
        keyed: the table keeps the newest version of each key, and not every record.
    """
    faults = []
    deleted = _deleted(truth) if keyed else {}
    for number, (before, one) in enumerate(zip([Seen([]), *seen], seen, strict=False), 1):
        wrong = [_unlike(truth, one), _doubled(one, keyed=keyed), _changed(one), _untold(truth, before, one)]
        if not one.restores:
            wrong += [_taken_back(deleted, before, one)] if keyed else [_gone(before, one), _lacking(one)]
        faults += [f"reading {number}: {fault}" for kind in wrong for fault in islice(kind, _SAMPLES)]
    return faults


def _unlike(truth: Truth, seen: Seen) -> Iterator[str]:
    for where, row in seen.rows:
        sent = truth.sent.get(where)
        if sent is None or sent.row is None:
            yield f"{where} made no row: {row}"
            continue
        asked = {name: value for name, value in sent.row.items() if name in row}
        if differing := differences(replace(sent, row=asked), row, truth.origin(where)):
            yield f"{where} is another: {differing}"


def _doubled(seen: Seen, *, keyed: bool) -> Iterator[str]:
    copies = Counter(key_of(row) if keyed else where for where, row in seen.rows)
    return (f"{one} is there {times} times" for one, times in copies.items() if times > 1)


def _changed(seen: Seen) -> Iterator[str]:
    if seen.again is not None:
        for where in seen.again ^ {where for where, _ in seen.rows}:
            yield f"{where} is there then, and not as of then, or the other way"


def _untold(truth: Truth, before: Seen, after: Seen) -> Iterator[str]:
    """What was there before is written once more only where somebody had the stream read once more."""
    if after.since is None:
        return
    then, now = ({where for where, _ in seen.rows} for seen in (before, after))
    for where in now - then - after.since:
        yield f"{where} has come since the reading before, and is not among what was written since"
    for where in after.since - now:
        yield f"{where} is among what was written since the reading before, and is not there"
    if truth.readings == 1:
        for where in after.since & then:
            yield f"{where} is among what was written since the reading before, and was there before"


def _gone(before: Seen, after: Seen) -> Iterator[str]:
    there = {where for where, _ in after.rows}
    return (f"{where} is gone" for where, _ in before.rows if where not in there)


def _lacking(seen: Seen) -> Iterator[str]:
    if len(seen.rows) < seen.told:
        yield f"{len(seen.rows)} rows, and drivers had told of {seen.told}"


def _deleted(truth: Truth) -> dict[Key, int]:
    """The highest version at which each key was deleted."""
    found: dict[Key, int] = {}
    for sent in truth.sent.values():
        if sent.row is not None and is_delete(sent.row):
            key, version = key_of(sent.row), version_of(sent.row)
            found[key] = max(version, found.get(key, version))
    return found


def _taken_back(deleted: Mapping[Key, int], before: Seen, after: Seen) -> Iterator[str]:
    there = {key_of(row): version_of(row) for _, row in after.rows}
    for _, row in before.rows:
        key, version = key_of(row), version_of(row)
        if key not in there and deleted.get(key, version - 1) < version:
            yield f"{key} is gone, with version {version}, and nobody has deleted it"
        elif there.get(key, version) < version:
            yield f"{key} had version {version}, and has {there[key]}"


def _rows(file: Path) -> list[tuple[Where, Row]]:
    return [_placed(row) for row in pyarrow.parquet.read_table(file).to_pylist()]


def _places(file: Path | None) -> frozenset[Where] | None:
    return None if file is None else frozenset(where for where, _ in _rows(file))


def _placed(row: dict[str, Any]) -> tuple[Where, Row]:
    where = (row["_shard_id"], int(row["_sequence_number"]), row["_sub_sequence"])
    times = {name: _micros(row[name]) for name in ("at", "_arrival")}
    return where, {**row, **times, PARTITION: None if row[PARTITION] == NULL_PARTITION else row[PARTITION]}


def _micros(time: datetime | str | None) -> int | None:
    """Of JSON files behind a transform, times are texts."""
    if time is None:
        return None
    return micros(time) if isinstance(time, str) else epoch_micros(time)
