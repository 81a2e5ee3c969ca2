"""The rules that a plan's definition numbers: a batch planned by one release may be replayed by the next."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from hashlib import sha256
from typing import Any
from uuid import UUID

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from lakestream.kinesis import KinesisSettings
from lakestream.model import RULES
from lakestream.spark.pipeline import Pipeline
from lakestream.spark.read import read_batch
from lakestream.spark.tallies import Tallies
from lakestream.testing.avro import framed

pytestmark = pytest.mark.spark

DDL = (
    "id string, n long, t timestamp, day date, d double, f float, p decimal(5,2), tags array<int>, inner struct<x:int>"
)
RECORDS = [
    b'{"id":"a","n":1,"new":{"x":[1.10]}}',
    b'{"id":1.10,"n":1}',
    b'{"id":{"z": 1E5},"inner":{"x":1,"y":2}}',
    b'{"id":"x","id":"y","ID":"z"}',
    b'{"n":9223372036854775808}',
    b'{"n":5.0}',
    b'{"t":1769860800}',
    b'{"t":1769860800000}',
    b'{"t":"0001-01-01T00:00:00Z"}',
    b'{"t":"2026-01-31T12:00:00.1234567+02:00"}',
    b'{"t":"12:00"}',
    b'{"day":"2026-01-31","p":1.239}',
    b'{"p":1E-5,"f":1e39,"d":1e-400}',
    b'{"d":-0,"f":-0.0}',
    b'{"d":-0,"f":-0.0,"t":"2026-1-31"}',
    b'{"tags":[1,null,"x"]}',
    b'{"d":NaN}',
    b'{"id":"\xc3\x28"}',
    b"[]",
    b"",
    gzip.compress(b'{"id":"a","new":1}'),
    b"\x1f\x8b\x08\x00",
    framed(UUID(int=7), b'{"id":"a","new":1}'),
    framed(UUID(int=7), b"\x02a"),
]
KNOWN = {8: "b0c780d50be744f0"}
"""What the records become, by version of the rules."""
MICROS = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}


def test_rows_change_only_with_the_rules(
    spark: SparkSession, kinesis: KinesisSettings, scripted: Callable[..., Any]
) -> None:
    pipeline = Pipeline.of(spark, DDL, "SELECT * FROM events")
    plan, reader = scripted([RECORDS])
    typed = read_batch(spark, kinesis, plan, plan.tasks, pipeline, reader, Tallies(spark))
    divided = pipeline.divide(typed)
    both = (divided.rows, divided.rejected.select("data", "_reason"))
    rows = [row[0] for frame in both for row in frame.select(sf.to_json(sf.struct("*"), MICROS)).collect()]
    found = sha256("\n".join(rows).encode()).hexdigest()[:16]
    assert KNOWN.get(RULES) == found, (
        "Records become other rows than before. If that is meant, raise RULES in model/definition.py, and put the new "
        f"{found!r} here in place of the old one:\n" + "\n".join(rows)
    )
