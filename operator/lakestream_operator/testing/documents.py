"""LakeStreams and reports to begin with."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from lakestream_api import BatchSummary, CoreSeconds, DriverReport, DriverState, ExecutorsReport, StageSeconds
from lakestream_api.names import API_VERSION, KIND


def lakestream(
    name: str = "orders", *, namespace: str = "lake", writers: tuple[str, ...] = ("json",)
) -> dict[str, Any]:
    """A valid LakeStream with JSON writers, as a person would apply it."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "source": {"kinesis": {"stream": name, "region": "eu-west-1"}},
            "schema": "order_id string, amount double",
            "trigger": {"interval": "10s"},
            "writers": [{"name": writer, "json": {"path": f"s3a://lake/{name}_{writer}"}} for writer in writers],
            "checkpoint": f"s3a://lake/_checkpoints/{name}",
        },
    }


def batch_of(number: int, at: datetime, *, lag: float = 0.0, records: int = 1000, open_shards: int = 4) -> BatchSummary:
    """A batch of a steady load, one every ten seconds."""
    return BatchSummary(
        batch=number,
        finished_at=at,
        records=records,
        bytes=200 * records,
        kinesis_records=records,
        horizon=at - timedelta(seconds=lag),
        quarantined=0,
        rows_written=records,
        seconds=StageSeconds(plan=0.2, fetch=0.5, write=1.0, commit=0.3),
        trigger_interval=timedelta(seconds=10),
        executors=1,
        cores=2,
        lag_seconds=lag,
        arrival_rate=records / 10,
        backlog_records=records / 10 * lag,
        open_shards=open_shards,
        behind_shards=open_shards if lag else 0,
        caught_up=lag == 0,
    )


def worked(batch: BatchSummary, core_seconds: float, executors: int) -> BatchSummary:
    """A batch whose tasks took so many core-seconds, on so many executors."""
    stage = core_seconds / 2 / (executors * batch.cores)
    update = {
        "seconds": StageSeconds(plan=0.2, fetch=stage, write=stage, commit=0.3),
        "core_seconds": CoreSeconds(fetch=core_seconds / 2, write=core_seconds / 2),
        "executors": executors,
        "horizon": batch.finished_at - 2 * timedelta(seconds=stage),
    }
    return batch.model_copy(update=update)


def report_of(
    at: datetime,
    *,
    pod_uid: str = "pod-1",
    state: DriverState = DriverState.RUNNING,
    age: timedelta = timedelta(seconds=30),
    batches: int = 1,
    lag: float = 0.0,
    drain: str | None = None,
) -> DriverReport:
    """What the driver of orders-json said at a time, when it was so old and had committed so many batches."""
    numbers = range(batches)
    return DriverReport(
        stream="orders",
        writer="json",
        pod="orders-json-driver",
        pod_uid=pod_uid,
        epoch=1,
        started_at=at - age,
        updated_at=at,
        state=state,
        drain=drain,
        executors=ExecutorsReport(target=1, registered=1),
        batches=tuple(batch_of(one, at - timedelta(seconds=10 * (batches - 1 - one)), lag=lag) for one in numbers),
    )
