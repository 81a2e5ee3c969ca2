"""A stream and its load, second by second, and what may happen to who reads it.

Loads are given as a share of what the stream's shards take in. Records are small and come aggregated, so that a full
shard has 1 MiB, and as many records as that holds, per second.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lakestream_api import Scaling, Spec
from lakestream_bench.simulation.costs import BatchCosts

Series = NDArray[np.float64]

SHARD_WRITE_BYTES = 1024 * 1024
NEVER_FULL = 1_000_000
_INTERVAL = 10.0
_CORES = ((4, 1), (64, 2))
_MORE_CORES = 4
"""Of an executor, by the stream's shards at most: larger streams have larger executors."""


class Mishaps(StrEnum):
    """What may happen to cluster or driver."""

    ROOM = "room"
    """The cluster holds `value` executors from now on."""
    LOST = "lost"
    """So many executors die."""
    DIED = "died"
    """The driver dies."""
    REVIVED = "revived"
    """A new driver is started."""
    STOPPED = "stopped"
    """Tasks make no headway: garbage is collected, or storage does not answer."""
    RESUMED = "resumed"
    """They do again."""


@dataclass(frozen=True, slots=True)
class Mishap:
    """Something that happens to cluster or driver."""

    at: float
    kind: Mishaps
    value: int = 0


@dataclass(frozen=True, slots=True)
class Compaction:
    """Work on the table that runs beside the batches."""

    every: int
    """Batches between two runs."""
    share: float
    """Of the core-seconds that these batches took to be written."""


@dataclass(frozen=True, eq=False)
class Scenario:
    """One stream and its load, second by second."""

    name: str
    story: str
    """What happens, in a sentence."""
    shards: int
    """At the beginning."""
    rate: Series
    """Records per second that arrive."""
    record_bytes: Series
    """Mean size of the records that arrive in each second."""
    spec: Spec
    initial: int
    """Executors at the beginning: what the load there calls for."""
    seed: int
    hot_share: Series | None = None
    """Share of all records that the fullest shard gets; None: all shards get the same."""
    resharded_at: tuple[float, ...] = ()
    """Times at which the number of shards doubles."""
    mishaps: tuple[Mishap, ...] = ()
    compaction: Compaction | None = None
    warming: float = 0.0
    """Seconds in which a new executor does half of what it will do: classes are loaded, code is compiled."""
    records: Series = field(init=False)
    """That have arrived by the begin of each second."""
    bytes: Series = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "records", np.concatenate(([0.0], np.cumsum(self.rate))))
        object.__setattr__(self, "bytes", np.concatenate(([0.0], np.cumsum(self.rate * self.record_bytes))))

    @property
    def seconds(self) -> int:
        return len(self.rate)

    @property
    def scaling(self) -> Scaling:
        return self.spec.scaling

    @property
    def interval(self) -> float:
        return self.spec.trigger.interval.total_seconds()

    @property
    def cores(self) -> int:
        """Of each executor."""
        return self.spec.resources.executor.cores

    @property
    def consumers(self) -> int:
        """Writers that share the stream's read limits."""
        return len(self.spec.writers)

    @property
    def max_lag(self) -> float:
        return self.scaling.max_lag.total_seconds()

    def arrived(self, at: float) -> float:
        """Records that have arrived until then."""
        return self._at(self.records, at)

    def arrived_bytes(self, at: float) -> float:
        """Their bytes."""
        return self._at(self.bytes, at)

    def next_arrival(self, at: float) -> float:
        """When the next record arrives after all that had arrived until then; infinite: none does."""
        count = self.arrived(at) + 1
        second = int(np.searchsorted(self.records, count)) - 1
        if second >= self.seconds:
            return math.inf
        return max(at, second + (count - float(self.records[second])) / float(self.rate[second]))

    def _at(self, sums: Series, at: float) -> float:
        if at <= 0:
            return 0.0
        second = min(int(at), self.seconds - 1)
        return float(sums[second] + (at - second) * (sums[second + 1] - sums[second]))

    def shards_at(self, at: float) -> int:
        """Open shards at that position of the stream."""
        return self.shards << sum(at > time for time in self.resharded_at)

    def share_at(self, at: float) -> float:
        """Share of the records that the fullest shard gets."""
        even = 1.0 / self.shards_at(at)
        if self.hot_share is None:
            return even
        return max(even, float(self.hot_share[min(int(max(at, 0.0)), self.seconds - 1)]))

    def room_at(self, at: float) -> int:
        """Executors that the cluster can hold."""
        rooms = [mishap.value for mishap in self.mishaps if mishap.kind is Mishaps.ROOM and mishap.at <= at]
        return rooms[-1] if rooms else NEVER_FULL

    def changes(self) -> list[Mishap]:
        """The mishaps in their order."""
        return sorted((mishap for mishap in self.mishaps if mishap.at > 0), key=lambda mishap: mishap.at)


@dataclass(frozen=True, slots=True)
class Stream:
    """What the scenarios of one size have in common."""

    shards: int
    costs: BatchCosts
    seed: int
    executor_cores: int | None = None
    """None: larger streams have larger executors."""

    @property
    def cores(self) -> int:
        return self.executor_cores or next((cores for most, cores in _CORES if self.shards <= most), _MORE_CORES)

    @property
    def full(self) -> float:
        """Records per second when all shards are full."""
        return self.shards * SHARD_WRITE_BYTES / self.costs.record_bytes

    def executors(self, share: float, utilization: float = 1.0) -> int:
        """That a share of the full load keeps so busy."""
        return max(1, math.ceil(share * self.full * self.costs.per_record / self.cores / utilization))

    def scenario(
        self,
        name: str,
        story: str,
        load: Series,
        *,
        record_bytes: Series | None = None,
        consumers: int = 1,
        scaling: Mapping[str, Any] = MappingProxyType({}),
        **more: Any,
    ) -> Scenario:
        """A scenario with this load, as a share of the full one."""
        largest = max(500_000, int(2 * _INTERVAL * self.full))
        most = 2 * self.executors(1.0) + 1
        document = {
            "source": {"kinesis": {"stream": "simulated", "region": "us-east-1"}},
            "schema": "id string",
            "checkpoint": "/lake/checkpoint",
            "writers": [{"name": f"w{number}", "json": {"path": f"/lake/w{number}"}} for number in range(consumers)],
            "trigger": {
                "interval": f"{_INTERVAL:g}s",
                "maxRecordsPerBatch": largest,
                "maxBytesPerBatch": int(largest * self.costs.record_bytes),
            },
            "resources": {"executor": {"cores": self.cores}},
            "scaling": {"minExecutors": 1, "maxExecutors": most, "maxLag": "60s", **scaling},
        }
        spec = Spec.model_validate(document)
        sizes = np.full(len(load), self.costs.record_bytes) if record_bytes is None else record_bytes
        initial = min(most, self.executors(float(load[:60].mean()), spec.scaling.target_utilization))
        return Scenario(
            name=name,
            story=story,
            shards=self.shards,
            rate=load * self.full * self.costs.record_bytes / sizes,
            record_bytes=sizes,
            spec=spec,
            initial=initial,
            seed=self.seed,
            **more,
        )
