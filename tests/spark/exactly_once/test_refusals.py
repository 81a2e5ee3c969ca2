"""What a driver refuses before it starts Spark: a plain sentence, a telling exit status, and nothing is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from lab.chain import Lab, Labs, Table
from lab.lake import epochs_of
from lakestream.errors import LakeStreamError
from lakestream.main import app
from lakestream.statuses import Exit
from lakestream_localkinesis.testing import LocalKinesis

# In one process, for the labs that they share.
pytestmark = [pytest.mark.spark, pytest.mark.timeout(300), pytest.mark.xdist_group("refusals")]

ACCEPTED = "here Spark is started"


def accept(*_: object) -> None:
    raise LakeStreamError(ACCEPTED)


def start(lab: Lab, *options: str) -> Result:
    """A driver up to where it starts Spark: so far it needs no process of its own."""
    lab.save()
    with lab.writer.environment(), pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "test")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        patch.setattr("lakestream.app.build_session", accept)
        command = ["ingest", "--cores", "1", "-f", str(lab.path), "--writer", lab.writer.name, *options]
        return CliRunner().invoke(app, command)


def require_refusal(lab: Lab, status: Exit, *parts: str, options: Sequence[str] = ()) -> None:
    """It ends with that status, and its last line says why, in one sentence for a person."""
    ended = start(lab, *options)
    last = ended.output.splitlines()[-1]
    assert ended.exit_code == status, ended.output
    assert last.startswith("lakestream: "), ended.output
    assert not [part for part in parts if part not in last], last


def take(lab: Lab) -> Lab:
    """Let a driver take checkpoint and table."""
    assert ACCEPTED in (ended := start(lab)).output, ended.output
    return lab


@pytest.fixture(scope="module")
def taken(labs: Labs) -> Callable[[Table], Lab]:
    """The lab of a kind of table, taken: a driver that is refused leaves it as it is."""
    return cache(lambda table: take(labs.make(table)))


@pytest.fixture
def started(taken: Callable[[Table], Lab]) -> Iterator[Callable[[Table], Lab]]:
    """The same; with its own document again after the test."""
    with ExitStack() as stack:

        def start(table: Table) -> Lab:
            lab = taken(table)
            stack.callback(setattr, lab, "document", deepcopy(lab.document))
            return lab

        yield start


@pytest.mark.parametrize(
    ("table", "field", "value", "shown"),
    [
        (Table.MOR, "recordKey", ["event_id"], "hudi.recordKey: was [order_id], now [event_id]"),
        (Table.MOR, "tableType", "COPY_ON_WRITE", "hudi.tableType: was 'MERGE_ON_READ', now 'COPY_ON_WRITE'"),
        (Table.MOR, "partitionBy", [], "hudi.partitionBy: was [dt], now []"),
        (Table.MOR, "path", "/elsewhere", "now '/elsewhere'"),
        (Table.JSON, "path", "/elsewhere", "now '/elsewhere'"),
        (Table.JSON, "partitionBy", [], "json.partitionBy: was [dt], now []"),
    ],
)
def test_a_changed_setting_of_the_table_is_refused(
    started: Callable[[Table], Lab], table: Table, field: str, value: Any, shown: str
) -> None:
    lab = started(table)
    (output,) = (output for name, output in lab.document["spec"]["writers"][0].items() if name != "name")
    output[field] = value
    before = epochs_of(lab.writer)
    require_refusal(lab, Exit.PERMANENT, shown, "Set them back; or, to write a new table, give another path")
    assert epochs_of(lab.writer) == before


def test_a_stream_that_was_deleted_and_created_again_is_refused(labs: Labs, server: LocalKinesis) -> None:
    lab = take(labs.make(Table.JSON))
    server.client().delete_stream(StreamName=lab.stream.name)
    server.create_stream(lab.stream.name, shards=1)
    before = epochs_of(lab.writer)
    require_refusal(lab, Exit.STREAM_RECREATED, "was deleted and created again", "another spec.checkpoint")
    assert epochs_of(lab.writer) == before


@pytest.mark.parametrize(
    ("table", "marker"), [(Table.MOR, ".hoodie/lakestream/owner"), (Table.JSON, "_lakestream/owner")]
)
def test_the_table_of_another_checkpoint_is_refused(started: Callable[[Table], Lab], table: Table, marker: str) -> None:
    lab = take(started(table))  # the same one again is welcome
    before = sorted(Path(lab.writer.path).rglob("*"))
    lab.document["metadata"]["name"] = "returns"
    lab.document["spec"]["checkpoint"] += "-of-returns"
    require_refusal(
        lab,
        Exit.PERMANENT,
        "belongs to the writer orders of the LakeStream orders, with the checkpoint ",
        "this is the writer orders of the LakeStream returns, with the checkpoint ",
        marker,
    )
    assert sorted(Path(lab.writer.path).rglob("*")) == before


def test_another_stream_is_refused(started: Callable[[Table], Lab], labs: Labs) -> None:
    lab, other = started(Table.JSON), labs.make(Table.JSON)
    lab.document["spec"]["source"]["kinesis"]["stream"] = other.stream.name
    require_refusal(lab, Exit.PERMANENT, f"stream/{lab.stream.name}, not to", "Set spec.source.kinesis back")


def test_a_stream_that_does_not_exist_is_named(labs: Labs) -> None:
    lab = labs.make(Table.JSON)
    lab.document["spec"]["source"]["kinesis"]["stream"] = "nowhere"
    require_refusal(lab, Exit.PERMANENT, "nowhere")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--progress-file", "/"), "--progress-file / cannot be written: Is a directory"),
        (("--cluster",), "--cluster takes Spark's master from spark-submit, and none has started this"),
    ],
)
def test_a_driver_that_cannot_run_replaces_none(
    started: Callable[[Table], Lab], monkeypatch: pytest.MonkeyPatch, options: Sequence[str], said: str
) -> None:
    for name in ("PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT"):
        monkeypatch.delenv(name, raising=False)
    lab = started(Table.JSON)
    before = epochs_of(lab.writer)
    require_refusal(lab, Exit.SETTINGS, said, options=options)
    assert epochs_of(lab.writer) == before
