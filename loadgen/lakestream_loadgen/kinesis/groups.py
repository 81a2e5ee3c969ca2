"""Holds the last record of a group back until the earlier ones are settled. Pure."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from itertools import chain
from operator import itemgetter

from lakestream_loadgen.kinesis.batching import Parcel
from lakestream_loadgen.records import Record

_GROUP = itemgetter(4)
_LAST = itemgetter(5)


class Groups:
    """Counts the unsettled records of each group, and keeps what must wait for them."""

    def __init__(self) -> None:
        self._unsettled: Counter[str] = Counter()
        self._held: dict[str, deque[Parcel]] = {}
        """In the order in which they came."""

    def admit(self, parcel: Parcel) -> Parcel | None:
        """What of ``parcel`` may be sent now; the rest comes back from ``settle``."""
        records, unsettled = parcel.records, self._unsettled
        if not any(map(_LAST, records)):
            unsettled.update(_groups(records))
            return parcel
        admitted = []
        for index, (_, _, _, _, group, last) in enumerate(records):
            if group and last and unsettled[group]:
                self._held.setdefault(group, deque()).append(parcel.part([index]))
            else:
                admitted.append(index)
            if group:
                unsettled[group] += 1
        if len(admitted) == len(records):
            return parcel
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
        return [self._release(group) for group in self._held.keys() & groups if self._is_idle(group)]

    def clear(self) -> list[Parcel]:
        """Give up waiting: everything that is held."""
        left = list(chain.from_iterable(self._held.values()))
        self._held.clear()
        return left

    def _is_idle(self, group: str) -> bool:
        """Whether nothing of a group is under way, but what is held."""
        return self._unsettled[group] == len(self._held[group])

    def _release(self, group: str) -> Parcel:
        """The first that is held: others wait for it."""
        held = self._held[group]
        first = held.popleft()
        if not held:
            del self._held[group]
        return first


def _groups(records: Sequence[Record]) -> list[str]:
    return list(filter(None, map(_GROUP, records)))
