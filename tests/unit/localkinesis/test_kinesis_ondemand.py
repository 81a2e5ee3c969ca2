"""How on-demand streams grow."""

from __future__ import annotations

from lakestream_localkinesis.core.limits import MIB
from lakestream_localkinesis.core.ondemand import OBSERVED_MS, Demand


def test_it_starts_with_four_shards():
    assert Demand().shards() == 4


def test_it_makes_room_for_twice_the_peak_minute():
    demand = Demand().observe(0, records=0, size=0)
    demand = demand.observe(OBSERVED_MS, records=60 * 3000, size=60)
    assert demand.shards() == 6
    demand = demand.observe(2 * OBSERVED_MS, records=60 * 3000, size=60 + 60 * 10 * MIB)
    assert demand.shards() == 20


def test_a_burst_within_a_minute_is_averaged():
    demand = Demand().observe(0, records=0, size=0)
    assert demand.observe(OBSERVED_MS - 1, records=10**6, size=0) is demand
    assert demand.observe(OBSERVED_MS, records=60_000, size=0).shards() == 4


def test_it_does_not_shrink():
    demand = Demand().observe(0, records=0, size=0).observe(OBSERVED_MS, records=600_000, size=0)
    assert demand.observe(100 * OBSERVED_MS, records=600_000, size=0).shards() == 20
