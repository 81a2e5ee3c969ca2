"""Whether a key may have been deleted lately: a no is certain."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lakestream.sinks.hudi.delete_index import DeleteIndex

RETAIN = 60.0
KEYS = st.sets(st.integers(0, 30), max_size=5)


def hashes(keys: set[int]) -> pa.Int64Array:
    return pa.array(sorted(keys), pa.int64())


STEPS = st.floats(-5, 10) | st.floats(45, 62)


@given(batches=st.lists(st.tuples(STEPS, KEYS), max_size=12))
def test_no_delete_that_is_remembered_is_missed(batches: list[tuple[float, set[int]]]) -> None:
    index, now = DeleteIndex(RETAIN), 1000.0
    remembered: dict[int, float] = {}
    for step, keys in batches:
        now += step
        index.expire(now - RETAIN)
        # For good: files of deletes are dropped too, and a clock that is turned back brings none of them again.
        remembered = {key: seen for key, seen in remembered.items() if seen >= now - RETAIN}
        assert all(index.may_have(hashes({key})) for key in remembered)
        index.add(hashes(keys), now)
        remembered |= dict.fromkeys(keys, now)


def test_what_was_deleted_long_ago_is_forgotten() -> None:
    index = DeleteIndex(RETAIN)
    index.add(hashes({1}), 0.0)
    index.add(hashes({2}), 2 * RETAIN)
    assert index.may_have(hashes({1, 3})), "whoever reads a batch that came before says when to forget"
    index.expire(RETAIN)
    assert not index.may_have(hashes({1, 3}))
    assert index.may_have(hashes({2, 3}))


def test_of_too_many_deletes_it_knows_nothing() -> None:
    index = DeleteIndex(RETAIN, most=2)
    index.add(hashes({1, 2}), 0.0)
    assert not index.may_have(hashes({3}))
    index.add(hashes({4}), 1.0)
    assert index.may_have(hashes({3}))
    index.expire(2 * RETAIN)
    index.add(hashes({5}), 3 * RETAIN)
    assert index.may_have(hashes({3}))


def test_more_than_it_takes_need_not_be_collected() -> None:
    index = DeleteIndex(RETAIN, most=2)
    index.exceed()
    assert index.may_have(hashes({3}))
