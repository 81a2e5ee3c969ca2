"""What arms cost at a load, and from where on one costs less than another."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakestream_bench.compare.money import (
    NEEDED,
    Beats,
    Load,
    Measured,
    bill,
    break_even,
    cost_lines,
    inputs_of,
    least_shards,
    load_prices,
    rivals,
    stream_modes,
)

PRICES = load_prices()
MOR = Measured("mor", 40e-6, 1.0, 150.0, False, 2.0, 2e-6, 20, 30, 1, 20)
COW = replace(MOR, arm="cow", cpu_per_batch=3.0, query_cpu=1.0, query_cpu_per_row=1e-6)
JSON = replace(MOR, arm="json", cpu_per_batch=0.2, bytes_per_row=60.0, keeps_all_events=True, query_cpu_per_row=4e-6)


def test_the_price_file_names_a_source_and_its_date_or_says_that_it_is_an_assumption() -> None:
    assert {price.name for price in PRICES.prices} >= NEEDED
    for price in PRICES.prices:
        assert price.source is None or price.source.startswith("https://")
        assert price.dollars > 0
    assert [price.name for price in PRICES.prices if price.source is None] == ["firehose_gb"]


def test_a_price_that_is_missing_is_named(tmp_path: Path) -> None:
    file = tmp_path / "prices.json"
    fewer = tuple(price for price in PRICES.prices if price.name != "vcpu_hour")
    file.write_text(PRICES.model_copy(update={"prices": fewer}).model_dump_json())
    with pytest.raises(ValueError, match="it lacks the prices vcpu_hour; add them"):
        load_prices(file)


def test_what_is_no_price_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "prices.json"
    file.write_text('{"region": "x"}')
    with pytest.raises(ValueError, match=r"prices\.json: no price file"):
        load_prices(file)
    text = PRICES.model_dump_json()
    file.write_text(text.replace(f'"dollars":{PRICES.prices[0].dollars}', '"dollars":1e999', 1))
    with pytest.raises(ValueError, match="Input should be a finite number"):
        load_prices(file)


def test_a_price_by_the_gb_says_how_many_bytes_that_is() -> None:
    by_size = [price for price in PRICES.prices if price.unit.startswith("GB")]
    assert [price.name for price in by_size] == ["kinesis_gb_in", "kinesis_gb_out", "s3_gb_month", "firehose_gb"]
    assert all(price.unit.startswith("GB (2³⁰ bytes) ") for price in by_size)


def test_a_bill_by_hand() -> None:
    load = Load(events_per_second=1_000, event_bytes=512, retention_days=10, queries_per_day=0, batch_seconds=60)
    found = bill(MOR, load, PRICES)
    seconds = 730 * 3600
    # In by whole kibibytes, out by bytes, and the stream.
    kinesis = 1e3 * seconds * (1024 * 0.08 + 512 * 0.04) / 2**30 + 730 * 0.04
    assert found.by_source["Kinesis"] == pytest.approx(kinesis)
    cpu_seconds = seconds * (1e3 * 40e-6 + 1 / 60)
    assert found.by_source["writing: CPU"] == pytest.approx(cpu_seconds / 3600 / 0.6 * 0.0408)
    assert found.by_source["writing: requests"] == pytest.approx(seconds / 60 / 1e3 * (20 * 0.005 + 30 * 0.0004))
    assert found.by_source["storage"] == pytest.approx(1e3 * 0.4 * 10 * 86_400 * 150 / 2**30 * 0.023)
    assert found.asking == 0
    assert found.keeping == pytest.approx(sum(found.by_source.values()))
    assert found.per_terabyte == pytest.approx(found.keeping / (1e3 * 512 * seconds / 1e12))


def test_queries_of_files_that_nobody_merges_open_those_of_all_batches_that_are_kept() -> None:
    arm = replace(
        MOR, reads_per_query=0, writes_per_query=0, writes_per_query_and_batch=0.5, reads_per_query_and_batch=4
    )
    found = bill(arm, Load(retention_days=30, batch_seconds=60, queries_per_day=1_000), PRICES)
    batches = 30 * 86_400 / 60
    queries = 1_000 * 730 / 24
    dollars = queries * batches / 1e3 * (0.5 * 0.005 + 4 * 0.0004)
    assert found.by_source["queries: requests"] == pytest.approx(dollars)


@pytest.mark.parametrize("name", ["vcpu_hour", "batch_seconds", "on_demand"])
def test_a_price_has_a_name_of_its_own(tmp_path: Path, name: str) -> None:
    """Of two prices of a name one would be told and the other be paid."""
    again = PRICES.prices[0].model_copy(update={"name": name, "dollars": 7.0})
    file = tmp_path / "prices.json"
    file.write_text(PRICES.model_copy(update={"prices": (*PRICES.prices, again)}).model_dump_json())
    with pytest.raises(ValueError, match=rf"prices.json: each price needs a name of its own, .*: {name}"):
        load_prices(file)


def test_a_bill_of_a_provisioned_stream_by_hand() -> None:
    load = Load(events_per_second=1_500, event_bytes=30_000, shards=1)
    seconds = 730 * 3600
    # 1,500 times 30,000 bytes are 42.9 MiB, so 43 shards however few are asked for; a record is two payload units.
    assert least_shards(load) == 43
    expected = 43 * 730 * 0.015 + 2 * 1_500 * seconds / 1e6 * 0.014
    assert bill(MOR, load, PRICES).by_source["Kinesis"] == pytest.approx(expected)
    more = bill(MOR, replace(load, shards=50), PRICES).by_source["Kinesis"]
    assert more - expected == pytest.approx(7 * 730 * 0.015)


def test_records_are_billed_by_whole_kibibytes_on_demand() -> None:
    dollars = [bill(MOR, Load(event_bytes=size), PRICES).by_source["Kinesis"] for size in (1_024, 1_025)]
    seconds = 730 * 3600
    assert dollars[1] - dollars[0] == pytest.approx(1e3 * seconds * (1_024 * 0.08 + 0.04) / 2**30)


@given(rate=st.floats(0, 1e6, exclude_min=True), size=st.floats(1, 1e6))
def test_up_to_the_break_even_a_provisioned_stream_costs_less(rate: float, size: float) -> None:
    load = Load(events_per_second=rate, event_bytes=size)
    modes = stream_modes(load, PRICES)
    for shards in {modes.least_shards, math.ceil(modes.even_shards) + 1, 2 * modes.least_shards}:
        if shards >= modes.least_shards and abs(shards - modes.even_shards) > 1e-6 * shards:
            dollars = bill(MOR, replace(load, shards=shards), PRICES).by_source["Kinesis"]
            assert (dollars < modes.on_demand) is (shards < modes.even_shards)


def test_the_mode_of_the_stream_moves_no_break_even_between_tables() -> None:
    evens = [break_even(COW, MOR, Load(shards=shards), PRICES).queries_per_day for shards in (0, 9)]
    assert evens[0] == pytest.approx(evens[1])


def test_json_keeps_every_event_and_its_readers_read_them_all() -> None:
    load = Load(new_keys=0.1)
    alike = replace(JSON, keeps_all_events=False)
    assert bill(JSON, load, PRICES).by_source["storage"] == pytest.approx(
        10 * bill(alike, load, PRICES).by_source["storage"]
    )
    assert bill(JSON, load, PRICES).per_thousand_queries > bill(alike, load, PRICES).per_thousand_queries


@given(queries=st.floats(1, 1e6), rate=st.floats(1, 1e5))
def test_beyond_the_break_even_the_challenger_costs_less(queries: float, rate: float) -> None:
    load = Load(events_per_second=rate, queries_per_day=queries)
    even = break_even(COW, MOR, load, PRICES)
    assert even.beats is Beats.ABOVE
    cheaper = bill(COW, load, PRICES).total < bill(MOR, load, PRICES).total
    if abs(queries - even.queries_per_day) > 1e-6 * queries:
        assert cheaper is (queries > even.queries_per_day)


def test_who_costs_less_to_keep_and_to_ask_always_costs_less() -> None:
    assert break_even(MOR, replace(MOR, cpu_per_event=1.0, query_cpu=9.0), Load(), PRICES).beats is Beats.ALWAYS
    assert break_even(replace(MOR, cpu_per_event=1.0, query_cpu=9.0), MOR, Load(), PRICES).beats is Beats.NEVER
    assert str(break_even(MOR, MOR, Load(), PRICES)) == "never"


def test_who_is_cheap_to_keep_and_dear_to_ask_costs_less_up_to_a_number_of_queries() -> None:
    even = break_even(MOR, COW, Load(), PRICES)
    assert even.beats is Beats.BELOW
    assert even.queries_per_day == pytest.approx(break_even(COW, MOR, Load(), PRICES).queries_per_day)
    assert str(even) == f"below {even.queries_per_day:,.0f} queries a day"


def test_every_cost_is_a_product_of_inputs_that_the_page_has() -> None:
    inputs = inputs_of(Load(), PRICES)
    for line in cost_lines(JSON):
        assert {factor.removeprefix("1/") for factor in line.factors} <= inputs.keys()
        assert line.dollars(inputs) >= 0


def test_what_a_load_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="events_per_second must be a number from 0 on, got -1"):
        Load(events_per_second=-1)
    for name in ("events_per_second", "utilization", "batch_seconds"):
        with pytest.raises(ValueError, match="events_per_second, utilization and batch_seconds must be above zero"):
            Load(**{name: 0.0})


def test_small_records_count_five_kibibytes_with_firehose_and_flink_has_one_unit_more() -> None:
    firehose, flink, glue = rivals(Load(events_per_second=1_000, event_bytes=345), PRICES, MOR)
    assert firehose.dollars == pytest.approx(1e3 * 5120 * 730 * 3600 / 2**30 * 0.029)
    assert flink.dollars == pytest.approx(2 * 0.11 * 730)
    assert glue.dollars == pytest.approx(2 * 0.44 * 730)
