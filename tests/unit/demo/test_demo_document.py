from __future__ import annotations

import pytest

from lakestream_api import TableType
from lakestream_demo.document import INTERVAL, ORDERS, make_document
from lakestream_demo.errors import DemoError
from lakestream_demo.settings import Table

EXAMPLE = ORDERS.read_text(encoding="utf-8")
ENDPOINT = "http://127.0.0.1:4567"


def test_the_example_is_moved_to_this_machine() -> None:
    document = make_document(EXAMPLE, endpoint=ENDPOINT, lake="/demo/lake", table=Table.COW)
    spec = document.lakestream.spec
    assert document.endpoint == ENDPOINT
    assert document.hudi.hudi is not None
    assert document.hudi.hudi.path == "/demo/lake/orders_hudi"
    assert document.hudi.hudi.table_type is TableType.COPY_ON_WRITE
    assert document.json_files.json_files is not None
    assert document.json_files.json_files.path == "/demo/lake/orders_json"
    assert spec.checkpoint == "/demo/lake/_checkpoints/orders"
    assert f"interval: {INTERVAL}" in document.text


def test_everything_else_is_the_example() -> None:
    document = make_document(EXAMPLE, endpoint=ENDPOINT, lake="s3a://other", table=Table.MOR)
    back = document.text.replace("s3a://other/", "s3a://lake/").replace(f"      endpoint: {ENDPOINT}\n", "")
    again = make_document(back, endpoint=ENDPOINT, lake="s3a://other", table=Table.MOR)
    assert again == document
    original = make_document(EXAMPLE, endpoint=ENDPOINT, lake="s3a://lake", table=Table.MOR).lakestream.spec
    assert document.lakestream.spec.event_schema == original.event_schema
    assert document.lakestream.spec.transform == original.transform
    assert document.hudi.hudi is not None
    assert document.hudi.hudi.delete_when == "op = 'd'"


def test_an_example_without_both_kinds_of_writer_is_refused() -> None:
    text = EXAMPLE.replace(
        "      json:\n", "      hudi:\n        recordKey: [order_id]\n        orderingField: version\n"
    )
    text = text.replace("        compression: gzip\n", "")
    with pytest.raises(DemoError, match="has 2 Hudi writers"):
        make_document(text, endpoint=ENDPOINT, lake="/demo/lake", table=Table.MOR)
