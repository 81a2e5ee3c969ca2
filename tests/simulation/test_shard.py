"""What GetRecords gives at once is paid off afterwards, by all who read the shard."""

import numpy as np
import pytest

from lakestream_bench.simulation.costs import load_costs
from lakestream_bench.simulation.shard import ANSWER_BYTES, OTHERS_EVERY, Shard
from lakestream_bench.simulation.streams import Stream

STREAM = Stream(64, load_costs("mor"), 1)


def shard(load: float = 0.8, consumers: int = 1) -> Shard:
    return Shard(STREAM.scenario("made", "for a test", np.full(3600, load), consumers=consumers))


def test_an_answer_of_ten_megabytes_comes_at_once_and_the_next_one_five_seconds_later() -> None:
    one = shard()
    assert one.read(100.0, ANSWER_BYTES) == (100.0, 100.0)
    assert one.read(101.0, 1.0) == (105.0, 105.0)


def test_more_than_an_answer_takes_two_and_then_waits_for_what_the_first_gave() -> None:
    assert shard().read(100.0, 12e6) == (100.0, 105.0)
    assert shard().read(100.0, 25e6) == (100.0, 110.0)


def test_a_single_writer_at_the_tip_waits_for_nothing() -> None:
    one = shard(0.9)
    for at in range(100, 200, 10):
        assert one.read(at, 9.4e6) == (at, at)


def test_who_asks_behind_another_writer_waits_for_what_that_one_has_taken() -> None:
    two = shard(0.8, consumers=2)
    waits = [two.read(float(at), 8.4e6)[0] - at for at in range(10, 3000, 10)]
    taken = OTHERS_EVERY * 8.4 / 2
    assert max(waits) == pytest.approx(taken, rel=0.05)
    assert min(waits) == 0
    # The other asks at any time of our interval: as long as it is paid off, we wait for the half of that.
    assert np.mean(waits) == pytest.approx(taken / 10 * taken / 2, rel=0.1)


def test_two_writers_who_are_behind_have_half_of_the_limit_each() -> None:
    two = shard(1.0, consumers=2)
    first, last = two.read(100.0, 100e6)
    assert last - first == pytest.approx(100, rel=0.15)
