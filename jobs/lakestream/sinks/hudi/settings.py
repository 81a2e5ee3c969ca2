"""What a Hudi table is made with and written by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from lakestream.sinks.hudi.deletes import DeleteRule
from lakestream.storage import LakePath
from lakestream_api import DELETES_REMEMBERED, HudiOutput, IndexType, Operation, TableType, TableVersion


@dataclass(frozen=True)
class HudiSettings:
    """One table, as the LakeStream document describes it."""

    path: str
    """`file:///…` or `s3a://…`."""
    table: str
    """Name that the table bears in its own properties."""
    record_key: tuple[str, ...]
    ordering_field: str | None = None
    """Never None for upserts."""
    table_type: TableType = TableType.MERGE_ON_READ
    table_version: TableVersion | None = None
    """None: that of the table, or if there is none yet, the one that new tables get."""
    operation: Operation = Operation.UPSERT
    partition_by: tuple[str, ...] = ()
    delete_when: str | None = None
    """SQL predicate over the output's columns."""
    index: IndexType = IndexType.BUCKET
    """How upserts find the file of a key; inserts look nothing up."""
    buckets: int = 4
    """Files per partition with the bucket index."""
    compact_every: int = 10
    """Delta commits between two compactions."""
    cluster_into: int | None = None
    """Bytes of the files into which small ones of a table of inserts are merged; None: they are not, and batches add to
    them."""
    retain: timedelta = timedelta(hours=1)
    """How long the cleaner keeps files that newer ones have replaced."""
    options: Mapping[str, str] = field(default_factory=dict)
    """The document's own `hoodie.*` options."""
    tombstones: timedelta = DELETES_REMEMBERED
    """How long a deleted key is remembered."""

    @classmethod
    def of(cls, output: HudiOutput, table: str) -> HudiSettings:
        """From the document; `table` is the name that the table gets if it does not exist yet."""
        return cls(
            path=LakePath.parse(output.path).uri,
            table=table,
            record_key=output.record_key,
            ordering_field=output.ordering_field,
            table_type=output.table_type,
            table_version=output.table_version,
            operation=output.operation,
            partition_by=output.partition_by,
            delete_when=output.delete_when,
            index=output.index.type,
            buckets=output.index.bucket_count,
            compact_every=output.compaction.every_commits,
            cluster_into=None if output.clustering is None else output.clustering.target_file_size,
            retain=timedelta(hours=output.cleaning.retain_hours),
            options=dict(output.options),
        )

    @property
    def version(self) -> TableVersion:
        """What the table is written as."""
        return self.table_version or TableVersion.SIX

    @property
    def plans_between_commits(self) -> bool:
        """Whether compactions are planned while no commit is under way.

        Log files of version 6 bear the time of the base file that they belong to. A commit that is under way when a
        compaction is planned has its log files, which the plan may lack, where readers do not look any more; so Hudi
        ends it with a conflict.
        """
        return self.version is TableVersion.SIX

    @property
    def completes_by_store_time(self) -> bool:
        """Whether readers tell by the time of an object what came after a compaction."""
        return self.merges_on_read and self.version is TableVersion.SIX

    @property
    def counts_log_files(self) -> bool:
        """Whether log files of a file group are told apart by their number alone, and not by their commit."""
        return self.merges_on_read and self.version is TableVersion.SIX

    @property
    def upserts(self) -> bool:
        """Whether the table has one row per key."""
        return self.operation is Operation.UPSERT

    @property
    def merges_on_read(self) -> bool:
        """Whether the table has log files to compact."""
        return self.table_type is TableType.MERGE_ON_READ

    @property
    def is_global(self) -> bool:
        """Whether a key is looked for in all partitions, and may move from one to another."""
        return self.upserts and self.index in (IndexType.GLOBAL_SIMPLE, IndexType.GLOBAL_BLOOM)

    @property
    def identity(self) -> tuple[str, ...]:
        """Columns that tell rows apart; all indexes but the global ones take a key as unique in its partition only."""
        return self.record_key if self.is_global else (*self.record_key, *self.partition_by)

    @property
    def has_buckets(self) -> bool:
        """Whether the files of a partition are a number that was given, however large they grow."""
        return self.upserts and self.index is IndexType.BUCKET

    @property
    def layout(self) -> str:
        """How keys are spread over files, as far as a table cannot change it: `bucket:4`, or `free`."""
        return f"bucket:{self.buckets}" if self.has_buckets else "free"

    @property
    def delete_rule(self) -> DeleteRule | None:
        """Which rows delete; None if none does."""
        if self.delete_when is None or self.ordering_field is None:
            return None
        return DeleteRule(self.delete_when, self.identity, self.ordering_field, self.tombstones)
