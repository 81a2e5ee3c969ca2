"""Hudi tables on an S3 that does not give their data files: what a query without Spark does about that."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from moto_s3 import moto_s3, s3_client
from typer.testing import CliRunner, Result

from chaos.s3.faults import Effect, S3Fault, S3Faults, S3Request
from chaos.s3.proxy import S3Proxy
from lakestream.main import app

INSTANT = "20260131120000000"
FILE = f"f0_0-0-0_{INSTANT}.parquet"
PROPERTIES = """
hoodie.table.name=orders
hoodie.table.type=COPY_ON_WRITE
hoodie.table.version=6
hoodie.timeline.layout.version=1
hoodie.table.recordkey.fields=order_id
hoodie.table.timeline.timezone=UTC
"""
OWN = ("commit_time", "commit_seqno", "record_key", "partition_path", "file_name")


class OfDataFiles(S3Faults):
    """Faults that befall requests for data files, but for the first ones."""

    spared = 0

    def strikes(self, request: S3Request) -> S3Fault | None:
        if not request.path.endswith(".parquet"):
            return None
        self.spared -= 1
        return super().strikes(request) if self.spared < 0 else None


def write_table(folder: Path) -> None:
    """One commit with one file, without a driver."""
    own = {f"_hoodie_{name}": pa.array([""], pa.string()) for name in OWN}
    pq.write_table(pa.table({**own, "order_id": ["a"]}), folder / FILE)
    schema = {"type": "record", "name": "orders", "fields": [{"name": "order_id", "type": ["null", "string"]}]}
    stat = {"fileId": "f0", "path": FILE, "numWrites": 1, "fileSizeInBytes": (folder / FILE).stat().st_size}
    commit = {"partitionToWriteStats": {"": [stat]}, "extraMetadata": {"schema": json.dumps(schema)}}
    (folder / ".hoodie").mkdir()
    (folder / ".hoodie" / "hoodie.properties").write_text(PROPERTIES)
    (folder / ".hoodie" / f"{INSTANT}.commit").write_text(json.dumps(commit))


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("orders")
    write_table(folder)
    with moto_s3("lake") as url:
        client = s3_client(url)
        for file in filter(Path.is_file, folder.rglob("*")):
            client.put_object(Bucket="lake", Key=f"orders/{file.relative_to(folder)}", Body=file.read_bytes())
        yield url


@pytest.fixture
def faults(s3: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[OfDataFiles]:
    """Those of the store that the environment names."""
    found = OfDataFiles(Random(1))
    with S3Proxy(s3, found) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", proxy.url)
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, "test")
        yield found


def ask(*more: str) -> Result:
    return CliRunner().invoke(app, ["query", "s3://lake/orders", "-o", "jsonl", *more])


@pytest.mark.usefixtures("faults")
def test_a_table_on_s3_is_read() -> None:
    done = ask("--engine", "native")
    assert (done.exit_code, json.loads(done.stdout)) == (0, {"order_id": "a"})


# As the table is opened, and as its rows are read.
@pytest.mark.parametrize("spared", [0, 7])
@pytest.mark.parametrize(
    ("effect", "status", "says"),
    [
        (Effect.HOLD, 6, "Generic S3 error"),
        (Effect.REFUSE, 6, "S3"),
        (Effect.CUT, 6, "S3"),
        (Effect.FORBID, 3, "access denied; check the credentials and the policy"),
    ],
)
def test_a_store_that_does_not_give_the_data_is_told_as_what_it_is(
    faults: OfDataFiles, monkeypatch: pytest.MonkeyPatch, effect: Effect, status: int, says: str, spared: int
) -> None:
    """And Spark, which would fare no better, is not asked. By itself hudi-rs waits for minutes."""
    monkeypatch.setattr("lakestream.places._PATIENCE", timedelta(seconds=3))
    faults.add(S3Fault(effect))
    faults.spared = spared
    done = ask()
    assert (done.exit_code, done.stdout) == (status, ""), done.stderr
    assert says in done.stderr
    assert "Spark" not in done.stderr
    assert faults.struck


@pytest.mark.parametrize("spared", [0, 7])
def test_ctrl_c_ends_a_query_that_waits_for_a_store(faults: OfDataFiles, spared: int) -> None:
    faults.add(S3Fault(Effect.HOLD))
    faults.spared = spared
    command = [sys.executable, "-m", "lakestream.main", "query", "s3://lake/orders", "--engine", "native"]
    # What a shell starts in the background is deaf to it from the beginning.
    start = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"
    with subprocess.Popen([sys.executable, "-c", start, *command], env=dict(os.environ)) as query:
        try:
            while not faults.struck:
                assert query.poll() is None
                time.sleep(0.05)
            query.send_signal(signal.SIGINT)
            assert query.wait(20) == 130  # before a look at the store ends it
        finally:
            query.kill()
