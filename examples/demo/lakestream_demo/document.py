"""The LakeStream document of a run: `examples/orders.yaml`, moved to this machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from lakestream_api import LakeStream, Writer, load_lakestream
from lakestream_demo.errors import DemoError
from lakestream_demo.settings import Table

ORDERS = Path(__file__).resolve().parents[2] / "orders.yaml"
INTERVAL = "2s"
"""Trigger of the demo: a minute should see some thirty batches. An MoR commit takes a second or two."""
COMPACT_EVERY = 4
"""Commits between two compactions: the warm-up waits for the first one."""


@dataclass(frozen=True)
class DemoDocument:
    """The document and what the demo must know of it."""

    text: str
    lakestream: LakeStream

    @classmethod
    def of(cls, text: str) -> DemoDocument:
        """Read a document that `make_document` made."""
        return cls(text, load_lakestream(text))

    @property
    def stream(self) -> str:
        """Name of the Kinesis stream."""
        return self.lakestream.spec.source.kinesis.stream

    @property
    def endpoint(self) -> str:
        """URL of the Kinesis API."""
        endpoint = self.lakestream.spec.source.kinesis.endpoint
        assert endpoint is not None  # make_document sets it
        return endpoint

    @property
    def region(self) -> str:
        return self.lakestream.spec.source.kinesis.region

    @property
    def hudi(self) -> Writer:
        """The one writer of a Hudi table."""
        return _only([writer for writer in self.lakestream.spec.writers if writer.hudi], "Hudi")

    @property
    def json_files(self) -> Writer:
        """The one writer of JSON files."""
        return _only([writer for writer in self.lakestream.spec.writers if writer.json_files], "JSON")

    @property
    def writers(self) -> tuple[Writer, Writer]:
        return self.hudi, self.json_files


def make_document(template: str, *, endpoint: str, lake: str, table: Table) -> DemoDocument:
    """Move an example to this machine.

    Args:
        template: YAML text of the example.
        endpoint: URL of the Kinesis API.
        lake: folder or bucket (`s3a://…`) that takes the place of the example's bucket.
        table: type of the Hudi table.
    """
    example = load_lakestream(template).model_dump(mode="json", by_alias=True, exclude_unset=True)
    spec: dict[str, Any] = example["spec"]
    spec["source"]["kinesis"]["endpoint"] = endpoint
    spec["trigger"]["interval"] = INTERVAL
    spec["checkpoint"] = _moved(spec["checkpoint"], lake)
    for writer in spec["writers"]:
        output = writer.get("hudi") or writer["json"]
        output["path"] = _moved(output["path"], lake)
        if "hudi" in writer:
            output["tableType"] = table.table_type.value
            output["compaction"] = {"everyCommits": COMPACT_EVERY}
    text = yaml.safe_dump(example, sort_keys=False, width=120)
    document = DemoDocument.of(text)
    assert document.writers  # fails here rather than after a minute of load
    return document


def _moved(location: str, lake: str) -> str:
    """`s3a://lake/orders` -> `<lake>/orders`."""
    _bucket, _, folder = location.partition("://")[2].partition("/")
    return f"{lake}/{folder}"


def _only(writers: list[Writer], kind: str) -> Writer:
    if len(writers) != 1:
        raise DemoError(f"{ORDERS} has {len(writers)} {kind} writers", "The demo needs exactly one of each kind.")
    return writers[0]
