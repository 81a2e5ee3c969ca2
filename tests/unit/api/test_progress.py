"""The progress that drivers publish: a wire format between two programs of different age."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from pydantic import ValidationError

from lakestream_api import Freshness, Progress, ShardProgress, StageSeconds

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def _shard(number: int, lag: float) -> ShardProgress:
    return ShardProgress(
        shard_id=f"shardId-{number:012d}",
        last_arrival=NOON - timedelta(seconds=lag),
        tip_reached=lag == 0,
        lag_seconds=lag,
        records=100,
        bytes=22_500,
    )


def _progress(*lags: float, lag: float) -> Progress:
    return Progress(
        stream="orders",
        writer="hudi",
        batch=7,
        epoch=2,
        finished_at=NOON,
        records=100 * len(lags),
        bytes=22_500 * len(lags),
        quarantined=1,
        rows_written=99 * len(lags),
        seconds=StageSeconds(plan=0.1, fetch=0.4, write=1.5, commit=0.05),
        trigger_interval=timedelta(seconds=10),
        executors=2,
        cores=4,
        shards=tuple(_shard(number, lag) for number, lag in enumerate(lags)),
        lag_seconds=lag,
        freshness=Freshness(p50_seconds=1.2, p99_seconds=2.9),
        caught_up=lag == 0,
    )


def test_progress_survives_the_wire() -> None:
    progress = _progress(0.0, 12.5, 3.0, lag=12.5)
    assert Progress.model_validate_json(progress.model_dump_json()) == progress


def test_the_wire_has_these_names() -> None:
    wire = json.loads(_progress(4.0, lag=4.0).model_dump_json())
    assert wire["triggerInterval"] == "10s"
    assert wire["finishedAt"] == "2026-01-31T12:00:00Z"
    assert wire["freshness"] == {"p50Seconds": 1.2, "p99Seconds": 2.9}
    waits = {"tableServices": 0.0, "pause": 0.0}
    assert wire["seconds"] == {"plan": 0.1, "fetch": 0.4, "write": 1.5, "commit": 0.05, **waits}
    assert wire["shards"] == [
        {
            "shardId": "shardId-000000000000",
            "lastArrival": "2026-01-31T11:59:56Z",
            "tipReached": False,
            "lagSeconds": 4.0,
            "records": 100,
            "bytes": 22500,
            "kinesisRecords": None,
            "kinesisBytes": None,
        }
    ]


def test_a_reader_passes_over_what_a_newer_driver_adds() -> None:
    progress = _progress(0.0, lag=0.0)
    wire = json.loads(progress.model_dump_json())
    wire["colour"] = wire["shards"][0]["colour"] = "blue"
    assert Progress.model_validate_json(json.dumps(wire)) == progress


@pytest.mark.parametrize(("lags", "lag"), [((), 1.0), ((1.0, 5.0), 6.0), ((1.0, 5.0), 3.0), ((1.0, 5.0), 0.0)])
def test_the_lag_of_a_stream_is_no_sum_and_no_mean(lags: tuple[float, ...], lag: float) -> None:
    with pytest.raises(ValidationError, match="the slowest shard has"):
        _progress(*lags, lag=lag)


def test_a_time_without_a_zone_is_refused() -> None:
    wire = _progress(0.0, lag=0.0).model_dump_json().replace("2026-01-31T12:00:00Z", "2026-01-31T12:00:00", 1)
    with pytest.raises(ValidationError, match="finishedAt"):
        Progress.model_validate_json(wire)


def test_the_work_of_a_batch_is_all_its_stages_but_a_pause() -> None:
    seconds = StageSeconds(plan=0.125, fetch=0.25, write=1.5, commit=0.0625, table_services=2.0, pause=30.0)
    assert seconds.total == 3.9375
