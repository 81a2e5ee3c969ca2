"""Ledger, JSON and quarantine read from S3's protocol."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
from moto_s3 import moto_s3

from lakestream_loadgen.audit import read_json_lake, read_quarantine
from lakestream_loadgen.errors import LakeError
from lakestream_loadgen.ledger.reader import read_ledger
from lakestream_loadgen.ledger.shipping import LedgerShipper
from lakestream_loadgen.ledger.writer import LedgerWriter
from lakestream_loadgen.records import Record
from lakestream_loadgen.storage import Folder


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A bucket of a server of one's own, filled with a ledger and two JSON files."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with moto_s3("audited") as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", url)
        yield "audited"


def put(key: str, data: bytes) -> None:
    boto3.client("s3").put_object(Bucket="audited", Key=key, Body=data)


def test_ledger_and_tables_are_read_from_s3(bucket: str, tmp_path: Path) -> None:
    writer = LedgerWriter(tmp_path, stream="orders", prefix="t-w0")
    writer.sent([Record("t-1", "k", b"1"), Record("t-2", "k", b"2")])
    writer.close()
    put("run/ledger/t-w0.ledger", writer.path.read_bytes())
    put("orders/dt=2026-01-01/a.json", b'{"event_id":"t-1"}\n')
    put("orders/dt=2026-01-02/b.json", b'{"event_id":"t-2"}\n')
    put("orders_other/c.json", b'{"event_id":"t-3"}\n')
    assert read_ledger(f"s3://{bucket}/run/ledger")["event_id"].to_pylist() == ["t-1", "t-2"]
    rows = read_json_lake(f"s3a://{bucket}/orders/")
    assert sorted(rows["event_id"].to_pylist()) == ["t-1", "t-2"]
    assert len(read_json_lake(f"s3://{bucket}/orders", ["dt=2026-01-02/b.json"])) == 1
    assert len(read_quarantine(f"s3://{bucket}/nothing")) == 0


def test_a_part_of_a_ledger_that_is_there_is_not_written_once_more(bucket: str, tmp_path: Path) -> None:
    """Though it is larger than what is uploaded in parts by default."""
    (tmp_path / "t-w0.ledger").write_bytes(bytes(7 * 2**20))
    folder = Folder(f"s3://{bucket}/shipped")
    # As if a shipper had been killed within its request, which S3 has carried out since another one has looked.
    shipper = LedgerShipper(tmp_path, folder)
    put("shipped/t-w0.ledger/00000000000000000000", bytes(6 * 2**20))
    assert shipper.ship() == 7 * 2**20
    sizes = {f"t-w0.ledger/{0:020d}": 6 * 2**20, f"t-w0.ledger/{6 * 2**20:020d}": 2**20}
    assert folder.sizes() == sizes
    assert folder.add("t-w0.ledger/00000000000000000000", bytes(7 * 2**20)) == 6 * 2**20
    assert folder.sizes() == sizes


def test_a_bucket_that_does_not_exist_is_named(bucket: str) -> None:
    with pytest.raises(LakeError, match="s3://none/x"):
        read_json_lake("s3://none/x")
