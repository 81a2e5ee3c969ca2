"""What a valid document becomes."""

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import ValidationError

from lakestream_api import (
    Compression,
    InvalidDocumentError,
    LakeStream,
    Operation,
    StartingPosition,
    TableType,
    load_lakestream,
)
from lakestream_api.fields import overlap

EXAMPLES = Path(__file__).parents[3] / "examples"
EXAMPLE = (EXAMPLES / "orders.yaml").read_text("utf-8")
CLUSTER_EXAMPLE = (EXAMPLES / "lakestream.yaml").read_text("utf-8")


def test_the_example_is_read_in_full() -> None:
    stream = load_lakestream(EXAMPLE)
    hudi, json_files = stream.writer("hudi").hudi, stream.writer("json").json_files
    assert hudi is not None
    assert json_files is not None
    assert stream.spec.source.kinesis.starting_position is StartingPosition.TRIM_HORIZON
    assert stream.spec.trigger.interval == timedelta(seconds=10)
    assert stream.spec.trigger.max_bytes_per_batch == 256 * 1024 * 1024
    assert (hudi.table_type, hudi.operation) == (TableType.MERGE_ON_READ, Operation.UPSERT)
    assert (hudi.record_key, hudi.ordering_field, hudi.partition_by) == (("order_id",), "version", ("dt",))
    assert json_files.compression is Compression.GZIP
    assert stream.writer("json").output is json_files


def test_the_example_for_a_cluster_reads_the_same_orders() -> None:
    laptop, cluster = load_lakestream(EXAMPLE).spec, load_lakestream(CLUSTER_EXAMPLE).spec
    assert (cluster.event_schema, cluster.transform) == (laptop.event_schema, laptop.transform)
    assert [writer.output.path for writer in cluster.writers] == [writer.output.path for writer in laptop.writers]


def test_a_written_document_reads_as_the_same() -> None:
    stream = load_lakestream(EXAMPLE)
    assert load_lakestream(stream.model_dump_json()) == stream


def test_only_what_was_given_can_be_written() -> None:
    written = json.loads(load_lakestream(EXAMPLE).model_dump_json(exclude_unset=True))
    assert written["spec"]["trigger"] == {"interval": "10s", "maxRecordsPerBatch": 500_000}
    assert "json" not in written["spec"]["writers"][0]


def test_an_unquoted_time_keeps_its_zone() -> None:
    at = "startingPosition: AT_TIMESTAMP\n      timestamp: 2026-01-31T06:00:00+02:00"
    stream = load_lakestream(EXAMPLE.replace("startingPosition: TRIM_HORIZON", at))
    assert stream.spec.source.kinesis.timestamp == datetime(2026, 1, 31, 4, tzinfo=UTC)


def test_yaml_anchors_may_be_used() -> None:
    text = EXAMPLE.replace("driver: {cores: 1, memory: 2g}", "driver: &all {cores: 1, memory: 2g}")
    text = text.replace("executor: {cores: 2, memory: 4g}", "executor: {<<: *all, cores: 4}")
    executor = load_lakestream(text).spec.resources.executor
    assert (executor.cores, executor.memory) == (4, "2g")


def test_a_document_cannot_be_changed() -> None:
    stream = load_lakestream(EXAMPLE)
    with pytest.raises(ValidationError, match="frozen"):
        stream.spec.suspend = True  # type: ignore[misc]


@pytest.mark.parametrize(
    "location", ["lake", "./lake/orders", "/var/lake", "file:///var/lake/", "s3://lake/a", "s3a://l-k/a/b/"]
)
def test_these_are_locations(location: str) -> None:
    stream = load_lakestream(EXAMPLE.replace("s3a://lake/_checkpoints/orders", location))
    assert stream.spec.checkpoint == location.rstrip("/")


@pytest.mark.parametrize(
    ("first", "second", "overlapping"),
    [
        ("s3a://lake/orders", "s3://lake/orders", True),
        ("s3a://lake/orders", "s3a://lake/orders/json", True),
        ("s3a://lake/orders", "s3a://lake/orders_json", False),
        ("s3a://lake/orders", "s3a://pond/orders", False),
        ("file:///lake/orders", "/lake/orders/x", True),
        ("lake/a", "lake/b", False),
        ("./lake/a", "lake/a", True),
        ("lake/a/x", "./lake/a", True),
    ],
)
def test_locations_overlap_when_one_is_within_the_other(first: str, second: str, overlapping: bool) -> None:
    assert overlap(first, second) is overlapping
    assert overlap(second, first) is overlapping


def test_names_leave_room_for_executor_pods() -> None:
    stream, writer = "o" * 30, "w" * 16
    text = EXAMPLE.replace("name: orders", f"name: {stream}", 1).replace("name: hudi", f"name: {writer}")
    read = load_lakestream(text)
    assert len(f"{read.metadata.name}-{read.writer(writer).name}-exec-{2**31 - 1}") == 63
    with pytest.raises(InvalidDocumentError, match="has 17 characters; at most 16"):
        load_lakestream(text.replace(writer, f"{writer}w"))


def test_every_field_is_described() -> None:
    schema = LakeStream.model_json_schema()
    for model in [schema, *schema["$defs"].values()]:
        assert model["description"], model["title"]
        for name, field in model.get("properties", {}).items():
            # Pydantic leaves a description out that is the same as that of the model referred to.
            assert "description" in field or "$ref" in field, f"{model['title']}.{name}"


def _transformed(query: str) -> str:
    line = f"  transform: {json.dumps(query)}"
    return re.sub("(?m)^  transform: .*$", lambda _: line, EXAMPLE)


@pytest.mark.parametrize(
    "query",
    [
        "/* of the shop */ SELECT * FROM events",
        "/**\n * it's\n **/\n-- all of it\nwith one as (select * from events) select * from one",
        "(SELECT * FROM events) UNION ALL (SELECT * FROM events)",
        "((SELECT * FROM events))",
    ],
)
def test_a_query_may_begin_with_comments_and_parentheses(query: str) -> None:
    assert load_lakestream(_transformed(query)).spec.transform == query


@pytest.mark.parametrize(
    "query", ["/* SELECT */", "/* SELECT * FROM events", "(DROP TABLE events)", "/*/ select 1", "("]
)
def test_what_only_looks_like_a_query_is_none(query: str) -> None:
    with pytest.raises(InvalidDocumentError, match=re.escape("spec.transform: is not a query")):
        load_lakestream(_transformed(query))
