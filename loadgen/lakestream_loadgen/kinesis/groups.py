"""Holds the last record of a group back until the earlier ones are settled. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from operator import itemgetter

from lakestream_loadgen.kinesis.batching import Parcel
from lakestream_loadgen.records import Record

_GROUP = itemgetter(4)
_LAST = itemgetter(5)


class Groups:
    """Counts the unsettled records of each group, and keeps what must wait for them."""

    def __init__(self) -> None:
        self._unsettled: Counter[str] = Counter()
        self._held: dict[str, Parcel] = {}

    def admit(self, parcel: Parcel) -> Parcel | None:
        """What of ``parcel`` may be sent now; the rest comes back from ``settle``."""
        records = parcel.records
        self._unsettled.update(_groups(records))
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
        unsettled = self._unsettled
        groups = _groups(records)
        for group in groups:
            # Groups come and go: what is left at zero would slow all of this down.
            left = unsettled.pop(group) - 1
            if left:
                unsettled[group] = left
        if not self._held:
            return []
        return [self._held.pop(group) for group in self._held.keys() & groups if not self._must_wait(group)]

    def clear(self) -> list[Parcel]:
        """Give up waiting: everything that is held."""
        left = list(self._held.values())
        self._held.clear()
        return left

    def _must_wait(self, group: str | None) -> bool:
        return group is not None and self._unsettled[group] > 1


def _groups(records: Sequence[Record]) -> list[str]:
    return list(filter(None, map(_GROUP, records)))
