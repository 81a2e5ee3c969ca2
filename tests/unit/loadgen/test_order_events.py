"""Order events: what the generator promises, for any mix."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakestream_loadgen.errors import SettingsError
from lakestream_loadgen.events import EventMix, OrderEvents, iso_timestamp
from lakestream_loadgen.records import Record

NOW = 1_790_000_000.0
TIME = re.compile(rb'"\d{4}-\d\d-\d\dT[0-9:.]*Z"')

mixes = st.builds(
    lambda shares, lateness, zipf, customers, live: EventMix(
        *(share / 4 for share in shares), max_lateness=lateness, zipf=zipf, customers=customers, max_live=live
    ),
    st.tuples(*[st.floats(0, 1)] * 4),
    st.floats(0, 30),
    st.sampled_from([0.0, 0.8, 1.3]),
    st.integers(1, 500),
    st.integers(1, 300),
)


def make(mix: EventMix, seed: int = 1, worker: int = 0) -> OrderEvents:
    return OrderEvents(seed=seed, worker=worker, prefix=f"t-w{worker}", mix=mix)


def run(events: OrderEvents, cuts: list[int], pace: float = 1.0) -> list[Record]:
    return [record for number, count in enumerate(cuts) for record in events.take(count, NOW + number * pace)]


def parsed(records: list[Record]) -> list[dict[str, object]]:
    return [json.loads(record.data) for record in records if not record.malformed]


@given(mixes, st.integers(0, 2**32), st.lists(st.integers(0, 200), max_size=10))
def test_the_same_seed_gives_the_same_bytes(mix: EventMix, seed: int, cuts: list[int]) -> None:
    assert run(make(mix, seed), cuts) == run(make(mix, seed), cuts)


@given(mixes, st.lists(st.integers(0, 200), max_size=20), st.floats(0.001, 1000))
def test_the_same_seed_gives_the_same_orders_at_any_rate(mix: EventMix, cuts: list[int], pace: float) -> None:
    """What is late may come at another place, and times are other ones."""

    def timeless(pace: float) -> dict[str, bytes]:
        return {record.event_id: TIME.sub(b"", record.data) for record in run(make(mix), cuts, pace)}

    one, other = timeless(1.0), timeless(pace)
    both = one.keys() & other.keys()
    assert {event_id: one[event_id] for event_id in both} == {event_id: other[event_id] for event_id in both}


@given(mixes, st.lists(st.integers(0, 200), min_size=1, max_size=20))
def test_versions_rise_by_one_and_a_delete_is_the_last_of_all(mix: EventMix, cuts: list[int]) -> None:
    records = run(make(mix), cuts)
    assert len(records) == sum(cuts)
    assert len({record.event_id for record in records}) == len(records)
    last_sent: dict[object, object] = {}
    versions: dict[object, list[int]] = defaultdict(list)
    for event, record in zip(parsed(records), [r for r in records if not r.malformed], strict=True):
        assert last_sent.get(event["order_id"]) != "d", "an event after its order's delete"
        last_sent[event["order_id"]] = event["op"]
        versions[event["order_id"]].append(int(str(event["version"])))
        assert record.last == (event["op"] == "d")
        assert record.group == event["order_id"]
        assert record.partition_key == event["customer_id"]
        assert (event["version"] == 1) == (event["op"] == "i")
    for order, seen in versions.items():
        assert len(set(seen)) == len(seen), order
        if last_sent[order] == "d":
            assert sorted(seen) == list(range(1, len(seen) + 1)), "a deleted order lacks events"
            assert seen[-1] == len(seen)


@given(mixes)
def test_created_at_never_changes_and_no_update_is_before_it(mix: EventMix) -> None:
    created: dict[object, object] = {}
    for event in parsed(run(make(mix), [100] * 10)):
        assert created.setdefault(event["order_id"], event["created_at"]) == event["created_at"]
        assert str(event["created_at"]) <= str(event["updated_at"])


def test_without_late_events_versions_come_in_order() -> None:
    seen: dict[object, int] = {}
    for event in parsed(run(make(EventMix(late=0.0)), [500] * 10)):
        version = int(str(event["version"]))
        assert version == seen.get(event["order_id"], 0) + 1
        seen[event["order_id"]] = version


def test_late_events_come_after_newer_ones_and_keep_their_time() -> None:
    records = run(make(EventMix(late=0.3, max_lateness=5.0, max_live=50)), [200] * 20)
    overtaken = 0
    newest: dict[object, int] = {}
    for event in parsed(records):
        version = int(str(event["version"]))
        overtaken += version < newest.get(event["order_id"], 0)
        newest[event["order_id"]] = max(version, newest.get(event["order_id"], 0))
    assert overtaken > 100


def test_the_shares_of_the_kinds_are_kept() -> None:
    mix = EventMix(inserts=0.3, deletes=0.1, late=0.0, malformed=0.05)
    records = run(make(mix), [1000] * 50)
    kinds = Counter("malformed" if r.malformed else json.loads(r.data)["op"] for r in records)
    for kind, share in {"i": 0.3, "d": 0.1, "malformed": 0.05, "u": 0.55}.items():
        # Five standard deviations of a binomial of 50,000; fixed by the seed anyway.
        assert kinds[kind] / len(records) == pytest.approx(share, abs=5 * (share * (1 - share) / 50_000) ** 0.5)


def test_malformed_events_cannot_be_read_but_keep_a_legible_id() -> None:
    records = [r for r in run(make(EventMix(malformed=0.5)), [500]) if r.malformed]
    reasons = Counter()
    for record in records:
        found = re.search(rb'"event_id":"([^"]+)"', record.data)
        assert found is not None
        assert found[1].decode() == record.event_id
        try:
            event = json.loads(record.data)
        except UnicodeDecodeError:
            reasons["not UTF-8"] += 1
        except json.JSONDecodeError:
            reasons["not JSON"] += 1
        else:
            assert not isinstance(event["version"], int)
            reasons["not of the schema"] += 1
    assert set(reasons) == {"not UTF-8", "not JSON", "not of the schema"}


def test_events_have_about_250_bytes() -> None:
    records = run(make(EventMix()), [1000])
    assert 230 < sum(len(record.data) for record in records) / len(records) < 270


def test_zipf_makes_hot_keys_and_uniform_does_not() -> None:
    def hottest(zipf: float) -> float:
        records = run(make(EventMix(zipf=zipf, customers=10_000)), [1000] * 20)
        return Counter(record.partition_key for record in records).most_common(1)[0][1] / len(records)

    assert hottest(0.0) < 0.002
    assert hottest(1.2) > 0.1


def test_workers_make_different_events_of_different_names() -> None:
    first, second = (run(make(EventMix(), worker=worker), [500]) for worker in (0, 1))
    assert not {r.event_id for r in first} & {r.event_id for r in second}
    assert [r.partition_key for r in first] != [r.partition_key for r in second]


def test_old_orders_make_room_so_that_memory_is_bounded() -> None:
    events = make(EventMix(inserts=0.9, deletes=0.0, max_live=10))
    orders = {record.group for record in run(events, [200])}
    assert len(orders) > 100
    assert len(events._live) == 10


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"inserts": 1.1}, "inserts"),
        ({"malformed": -0.1}, "malformed"),
        ({"inserts": 0.6, "deletes": 0.6}, "add up"),
        ({"late": 1.0, "inserts": 0.0, "deletes": 0.0, "malformed": 0.0}, "late: 1.0 is more than 0.9"),
        ({"zipf": -1.0}, "zipf"),
        ({"customers": 0}, "customers"),
    ],
)
def test_impossible_mixes_are_refused_by_name(values: dict[str, float], named: str) -> None:
    with pytest.raises(SettingsError, match=named):
        EventMix(**values)  # type: ignore[arg-type]


def test_of_as_many_late_events_as_there_may_be_few_are_held_back() -> None:
    events = make(EventMix(inserts=0.1, deletes=0.0, late=0.9, malformed=0.0))
    assert len(run(events, [100] * 10)) == 1000
    assert len(events._late) < 15_000


def test_timestamps_are_utc_with_milliseconds() -> None:
    assert iso_timestamp(0.0) == "1970-01-01T00:00:00.000Z"
    assert iso_timestamp(1.9996) == "1970-01-01T00:00:02.000Z"
    assert datetime.fromisoformat(iso_timestamp(NOW)).timestamp() == NOW
