"""What is compared: one table each, written from the same batches. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

KEY, ORDER, PARTITION, DELETES = "order_id", "version", "dt", "op = 'd'"
"""Record key, ordering field, partition and delete condition of all arms with keys."""


class Writer(StrEnum):
    """Who writes the table."""

    JSON = "json"
    """LakeStream's JSON sink: each event is a line, and stays."""
    HUDI = "hudi"
    """LakeStream's Hudi sink."""
    DEFAULTS = "defaults"
    """Hudi's own DataSource with key, partition and ordering field, and nothing else."""


@dataclass(frozen=True)
class Arm:
    """One way to keep the events."""

    name: str
    title: str
    writer: Writer
    color: str
    """CSS."""
    merges_on_read: bool = False
    version: int | None = None
    """`hudi.tableVersion`; None: LakeStream's default, 6."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Of `hudi.options`."""

    @property
    def has_keys(self) -> bool:
        """Whether the table keeps one row per order; JSON keeps every event."""
        return self.writer is not Writer.JSON

    def output(self, path: str) -> dict[str, Any]:
        """The writer's output in a LakeStream document.

        Args:
            path: folder of the table, or `s3a://…`.
        """
        if self.writer is Writer.JSON:
            return {"json": {"path": path, "partitionBy": [PARTITION]}}
        settings: dict[str, Any] = {
            "path": path,
            "tableType": "MERGE_ON_READ" if self.merges_on_read else "COPY_ON_WRITE",
            "recordKey": [KEY],
            "orderingField": ORDER,
            "partitionBy": [PARTITION],
            "deleteWhen": DELETES,
        }
        if self.version is not None:
            settings["tableVersion"] = self.version
        if self.options:
            settings["options"] = dict(self.options)
        return {"hudi": settings}


JSON = Arm("json", "JSON", Writer.JSON, "var(--amber)")
COW = Arm("cow", "Hudi copy-on-write", Writer.HUDI, "var(--violet)")
MOR = Arm("mor", "Hudi merge-on-read", Writer.HUDI, "var(--ours)", merges_on_read=True)
DEFAULTS = Arm("defaults", "Hudi's defaults", Writer.DEFAULTS, "var(--grey)")
METADATA = Arm(
    "metadata",
    "merge-on-read, metadata table",
    Writer.HUDI,
    "var(--red)",
    merges_on_read=True,
    options={"hoodie.metadata.enable": "true"},
)
VERSION_9 = Arm(
    "version9", "merge-on-read, table version 9", Writer.HUDI, "var(--green)", merges_on_read=True, version=9
)

ARMS = {arm.name: arm for arm in (JSON, COW, MOR, DEFAULTS, METADATA, VERSION_9)}
MAIN = (JSON.name, COW.name, MOR.name)
"""What is compared unless arms are asked for."""
