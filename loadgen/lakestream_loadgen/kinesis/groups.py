"""Holds the last record of a group back until the earlier ones are settled. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from operator import itemgetter

from lakestream_loadgen.kinesis.batching import Parcel
from lakestream_loadgen.records import Record

_GROUP = itemgetter(4)
_LAST = itemgetter(5)
_PRUNE_AT = 200_000


class Groups:
    """Counts the records handed in and settled per group, and keeps what must wait for the two to meet.

    Two counters that only grow, because a Counter adds a list at C speed and cannot subtract one so.
    """

    def __init__(self) -> None:
        self._put: Counter[str] = Counter()
        self._settled: Counter[str] = Counter()
        self._held: dict[str, Parcel] = {}
        self._prune_at = _PRUNE_AT

    def admit(self, parcel: Parcel) -> Parcel | None:
        """What of ``parcel`` may be sent now; the rest comes back from ``settle``."""
        records = parcel.records
        self._put.update(_groups(records))
        if not any(map(_LAST, records)):
            return parcel
        held = [index for index, record in enumerate(records) if record.last and self._must_wait(record.group)]
        if not held:
            return parcel
        for index in held:
            self._held[str(records[index].group)] = parcel.part([index])
        admitted = [index for index in range(len(records)) if index not in held]
        return parcel.part(admitted) if admitted else None

    def settle(self, records: Sequence[Record]) -> list[Parcel]:
        """Forget settled records; returns the held parcels that may now be sent."""
        groups = _groups(records)
        self._settled.update(groups)
        released = []
        if self._held:
            for group in self._held.keys() & groups:
                if not self._must_wait(group):
                    released.append(self._held.pop(group))
        if len(self._put) >= self._prune_at:
            self._prune()
        return released

    def clear(self) -> list[Parcel]:
        """Give up waiting: everything that is held."""
        left = list(self._held.values())
        self._held.clear()
        return left

    def _must_wait(self, group: str | None) -> bool:
        return group is not None and self._put[group] - self._settled[group] > 1

    def _prune(self) -> None:
        """Drop the groups of which nothing is under way."""
        self._put = Counter({group: put for group, put in self._put.items() if put != self._settled[group]})
        self._settled = Counter({group: self._settled[group] for group in self._put})
        self._prune_at = max(_PRUNE_AT, 2 * len(self._put))


def _groups(records: Sequence[Record]) -> list[str]:
    return list(filter(None, map(_GROUP, records)))
