"""Where the rows go: a writer is one independent application with one output."""

from datetime import timedelta
from enum import IntEnum, StrEnum
from typing import Annotated, Self

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from lakestream_api.base import ApiModel, problem_at
from lakestream_api.catalogs import Catalog
from lakestream_api.cel import fixed, rule, rules, same
from lakestream_api.consumers import ConsumerArn
from lakestream_api.fields import Column, Columns, Location, Sql, WriterName
from lakestream_api.hudi_options import OWNED, REFUSED, problem_of_option, problem_of_value
from lakestream_api.quantities import Hours, Size

DELETES_REMEMBERED = timedelta(hours=1)
"""How long a table remembers that a key was deleted, so that an older version that comes later does not bring it back.
Kinesis keeps the order of a partition key, so lateness is that of a producer's retries: seconds to minutes."""

LEAST_HOURS_RETAINED = 0.05
"""For how long files stay at least that newer ones have replaced: three minutes, for queries that run."""

_ONE_TABLE = "is fixed once the table exists; add a writer with another name and path instead"


class TableType(StrEnum):
    """Hudi's table types."""

    COPY_ON_WRITE = "COPY_ON_WRITE"
    MERGE_ON_READ = "MERGE_ON_READ"


class TableVersion(IntEnum):
    """Versions of Hudi's table format that can be written."""

    SIX = 6
    NINE = 9


class Operation(StrEnum):
    """Hudi's write operations that a stream can use."""

    UPSERT = "upsert"
    INSERT = "insert"


class IndexType(StrEnum):
    """How Hudi finds the file that holds a key."""

    BUCKET = "bucket"
    SIMPLE = "simple"
    BLOOM = "bloom"
    GLOBAL_SIMPLE = "global_simple"
    GLOBAL_BLOOM = "global_bloom"


class Compression(StrEnum):
    """Compression of whole objects."""

    NONE = "none"
    GZIP = "gzip"
    ZSTD = "zstd"


_FEWEST_BUCKETS, _MOST_BUCKETS = 4, 10_000
_TWO_COUNTS = "follows from expectedPartitionSize, which is given as well; remove one of the two"


class HudiIndex(ApiModel):
    """How upserts find the file that holds a key."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "(self.type == 'bucket') == (oldSelf.type == 'bucket')",
                "cannot go to or from bucket once the table exists; add a writer with another name and path instead",
                ".type",
            ),
            rule(
                "self.type != 'bucket' || oldSelf.type != 'bucket' || (has(self.buckets) ? self.buckets : "
                f"{_FEWEST_BUCKETS}) == (has(oldSelf.buckets) ? oldSelf.buckets : {_FEWEST_BUCKETS})",
                _ONE_TABLE,
                ".buckets",
            ),
            rule(
                f"self.type != 'bucket' || oldSelf.type != 'bucket' || {same('expectedPartitionSize')}",
                _ONE_TABLE,
                ".expectedPartitionSize",
            ),
            rule("!has(self.buckets) || !has(self.expectedPartitionSize)", _TWO_COUNTS, ".buckets"),
        )
    )

    type: IndexType = IndexType.BUCKET
    """`bucket` computes the file from the key and looks nothing up: the cheapest for a stream.
    All but the `global_` ones take a key as unique within its partition only. Cannot go to or from `bucket` once the
    table exists, nor, if that has partitions, from another one to a `global_` one."""

    expected_partition_size: Size | None = None
    """What a full partition of the table will take up, with the `bucket` index: the table gets a
    bucket for each GiB of it, at least 4 and at most 10,000. Fixed once the table exists."""

    buckets: int | None = Field(default=None, ge=1, le=_MOST_BUCKETS)
    """Files per partition with the `bucket` index, if not by `expectedPartitionSize`; 4 without
    either. Fixed once the table exists; plan for 1 to 2 GB per bucket when the partition is full,
    and for as many buckets as task slots: each is written by one task."""

    @model_validator(mode="after")
    def _one_count(self) -> Self:
        if self.buckets is not None and self.expected_partition_size is not None:
            raise problem_at("buckets", _TWO_COUNTS)
        return self

    @property
    def bucket_count(self) -> int:
        """Files per partition with the `bucket` index."""
        if self.buckets is not None:
            return self.buckets
        return min(max(_FEWEST_BUCKETS, -(-(self.expected_partition_size or 0) // 2**30)), _MOST_BUCKETS)


class HudiCompaction(ApiModel):
    """When table services run, beside ingestion: compaction of a MERGE_ON_READ table, and the cleaning and archiving of
    any."""

    every_commits: int = Field(default=10, ge=1, le=10_000)
    """Commits between two rounds: log files are merged into base files, small files of inserts into larger ones
    (`clustering`), replaced files are cleaned, and old commits archived."""


class HudiClustering(ApiModel):
    """Merging of the small files of a table of inserts; runs beside ingestion."""

    target_file_size: Size = Field(default=128 * 2**20, ge=2**20, le=2**40)
    """Files below half of it are merged into files of about this size, `1Mi` to `1Ti`, in all partitions."""


def merged_below(target_file_size: int) -> int:
    """Bytes below which clustering merges a file. What was merged is to stay as it is: of files of up to a size, each
    that is made has half of it or more."""
    return target_file_size // 2


class HudiCleaning(ApiModel):
    """Removal of file versions that newer commits have replaced."""

    # An API server holds whole numbers against the whole part of a bound: 0 against 0.
    retain_hours: Hours = Field(
        default=1,
        ge=LEAST_HOURS_RETAINED,
        le=720,
        json_schema_extra=rules(rule(f"self >= {LEAST_HOURS_RETAINED}", "give at least 0.05, three minutes")),
    )
    """Hours for which a replaced file version stays, parts of one as in `0.25`: how far back time travel and
    incremental queries reach, and how long a running query may take. Storage and the table's timeline grow with it: at
    a batch every 10 s, by 360 commits an hour, and each of them makes every batch dearer."""

    @model_validator(mode="before")
    @classmethod
    def _by_hours(cls, given: object) -> object:
        if isinstance(given, dict) and "retainCommits" in given:
            raise problem_at(
                "retainCommits",
                "is gone: a number of commits was minutes for one stream and days for another; set retainHours",
            )
        return given


# The API server checks what is cheap to check, a document on a laptop, the operator and the driver check all.
_MARKS = "hoodie.datasource.write.commitmeta.key.prefix"
_OPTION_RULES = (
    rule(
        "self.all(key, key.startsWith('hoodie.'))",
        "only options of Hudi may be given; their names begin with 'hoodie.'",
    ),
    *(
        rule(
            " && ".join(f"!('{key}' in self)" for key, owner in OWNED.items() if owner == field),
            f"{' and '.join(key for key, owner in OWNED.items() if owner == field)}"
            f" cannot be given here; set {field} instead",
        )
        for field in dict.fromkeys(OWNED.values())
    ),
    rule(
        f"!('{_MARKS}' in self)",
        f"{_MARKS} cannot be given, because {REFUSED[_MARKS]}",
    ),
)


def _hudi_options(options: dict[str, str]) -> dict[str, str]:
    for name, value in options.items():
        if (problem := problem_of_option(name) or problem_of_value(name, value)) is not None:
            raise ValueError(problem)
    return options


def _require_s3(catalog: Catalog | None, path: str) -> None:
    if catalog is not None and catalog.glue is not None and not path.startswith(("s3://", "s3a://")):
        raise problem_at("catalog.glue", "is read by engines that reach S3 alone; give a path there, or remove it")


_TO_GLOBAL = (
    "a partitioned table that was written with simple or bloom cannot get a global_ index, which would take a key of"
    " two partitions twice; add a writer with another name and path instead"
)
_NO_CLUSTERING = "is for tables of inserts: an upsert finds a key in the file that it was written to; remove it"


class HudiOutput(ApiModel):
    """A Hudi table."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "self.operation != 'upsert' || has(self.orderingField)",
                "is required for upserts; name the column whose highest value wins, or set operation: insert",
                ".orderingField",
            ),
            rule(
                "self.operation != 'insert' || !has(self.deleteWhen)",
                "deletes nothing with operation insert; remove it or use upsert",
                ".deleteWhen",
            ),
            rule("self.operation == 'insert' || !has(self.clustering)", _NO_CLUSTERING, ".clustering"),
            rule(same("orderingField"), _ONE_TABLE, ".orderingField"),
            rule(same("partitionBy", "[]"), _ONE_TABLE, ".partitionBy"),
            rule(
                "!has(self.tableVersion) || !has(oldSelf.tableVersion) || self.tableVersion == oldSelf.tableVersion",
                _ONE_TABLE,
                ".tableVersion",
            ),
            rule(
                "self.operation != 'upsert' || !has(self.partitionBy) || self.partitionBy.size() == 0"
                " || !self.index.type.startsWith('global_') || !(oldSelf.index.type in ['simple', 'bloom'])",
                _TO_GLOBAL,
                ".index.type",
            ),
        )
    )

    path: Location = Field(json_schema_extra=fixed(_ONE_TABLE))
    """Folder of the table: `s3a://`, `s3://`, `file:///` or a local folder. Fixed once the table exists. S3 is asked in
    the Region of `AWS_REGION` in `kubernetes.env`, else of `AWS_DEFAULT_REGION`, else in that of the stream."""

    table_type: TableType = Field(default=TableType.MERGE_ON_READ, json_schema_extra=fixed(_ONE_TABLE))
    """`MERGE_ON_READ` has the faster commits, `COPY_ON_WRITE` the faster queries.
    Fixed once the table exists."""

    table_version: TableVersion | None = None
    """Version of Hudi's table format: `6` is read by Athena, by Trino (copy-on-write) and by all
    releases of Hudi from 0.14 on, `9` by Hudi 1.1 and later. Of a MERGE_ON_READ table Hudi 0.15 leaves out rows with an
    older delete that came late, until the next compaction (docs/hudi.md). Fixed once the table exists; without it a
    table stays what it is, and a new one gets `6`."""

    operation: Operation = Field(default=Operation.UPSERT, json_schema_extra=fixed(_ONE_TABLE))
    """`upsert` keeps one row per record key, the one with the highest `orderingField`;
    `insert` keeps every record as a row of its own. Fixed once the table exists."""

    record_key: Columns = Field(min_length=1, json_schema_extra=fixed(_ONE_TABLE))
    """Columns that identify a row. Fixed once the table exists."""

    ordering_field: Column | None = None
    """Column whose highest value wins between records of one key. Required for `upsert`. Fixed once
    the table exists."""

    partition_by: Columns = ()
    """Columns of the partition path, Hive style. They must not change during the life of a key,
    unless the index is a `global_` one. Fixed once the table exists."""

    delete_when: Sql | None = None
    """SQL predicate over the output's columns: a record for which it is true deletes its key."""

    index: HudiIndex = HudiIndex()
    """How upserts find the file that holds a key."""

    compaction: HudiCompaction = HudiCompaction()
    """When table services run."""

    clustering: HudiClustering | None = None
    """Merging of the small files of a table of inserts. With it (`{}` will do) a batch only writes
    files of its own, which are merged beside the batches; without it each batch adds its rows to
    the files that are below 100 MiB, and so writes them anew."""

    cleaning: HudiCleaning = HudiCleaning()
    """Removal of replaced file versions."""

    catalog: Catalog | None = None
    """Where query engines find the table."""

    options: Annotated[dict[str, Annotated[str, Field(max_length=4096)]], AfterValidator(_hudi_options)] = Field(
        default_factory=dict, max_length=64, json_schema_extra=rules(*_OPTION_RULES)
    )
    """More options of Hudi's writer, `hoodie.*`, as text: those that can do no harm, which
    docs/hudi.md lists (sizes, memory, the metadata table, …)."""

    @model_validator(mode="after")
    def _catalogs_are_of_s3(self) -> Self:
        _require_s3(self.catalog, self.path)
        return self

    @model_validator(mode="after")
    def _upsert_needs_an_order(self) -> Self:
        if self.operation is Operation.UPSERT and self.ordering_field is None:
            raise problem_at(
                "orderingField",
                "is required for upserts; name the column whose highest value wins, or set operation: insert",
            )
        if self.operation is Operation.UPSERT and self.clustering is not None:
            raise problem_at("clustering", _NO_CLUSTERING)
        if self.operation is Operation.INSERT and self.delete_when is not None:
            raise problem_at("deleteWhen", "deletes nothing with operation insert; remove it or use upsert")
        return self

    @property
    def catalog_tables(self) -> tuple[str, ...]:
        """Tables of catalogs that engines read it by."""
        merges = self.table_type is TableType.MERGE_ON_READ
        return self.catalog.tables(merge_on_read=merges) if self.catalog else ()

    @property
    def deletes_remembered(self) -> timedelta | None:
        """How long the table remembers that a key was deleted; None: records delete nothing."""
        return None if self.delete_when is None else DELETES_REMEMBERED


class JsonOutput(ApiModel):
    """Files of JSON lines, each record as a row."""

    model_config = ConfigDict(json_schema_extra=rules(rule(same("partitionBy", "[]"), _ONE_TABLE, ".partitionBy")))

    path: Location = Field(json_schema_extra=fixed(_ONE_TABLE))
    """Folder of the files: `s3a://`, `s3://`, `file:///` or a local folder. Fixed once files exist. S3 is asked in
    the Region of `AWS_REGION` in `kubernetes.env`, else of `AWS_DEFAULT_REGION`, else in that of the stream."""

    partition_by: Columns = ()
    """Columns of the partition path, Hive style (`dt=2026-01-31/`). Fixed once files exist."""

    compression: Compression = Compression.GZIP
    """Compression of each file. `zstd` is not for all readers: stock Spark, without Hadoop's native libraries, reads no
    JSON lines with it, and Redshift Spectrum's documentation names gzip, Snappy and bzip2 only."""

    catalog: Catalog | None = None
    """Where query engines find the table."""

    @model_validator(mode="after")
    def _catalogs_are_of_s3(self) -> Self:
        _require_s3(self.catalog, self.path)
        return self

    @property
    def catalog_tables(self) -> tuple[str, ...]:
        """Tables of catalogs that engines read it by."""
        return self.catalog.tables(merge_on_read=False) if self.catalog else ()


class Writer(ApiModel):
    """One output, written by an application of its own. Has exactly one of `hudi` and `json`."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule("!has(self.hudi) || !has(self.json)", "has both hudi and json; make them two writers"),
            rule("has(self.hudi) || has(self.json)", "has no output; add hudi: or json:"),
            rule(
                "has(self.hudi) == has(oldSelf.hudi)",
                "a writer cannot go from hudi to json or back; add a writer with another name, and remove this one",
            ),
        )
    )

    name: WriterName
    """Name of the writer, unique within the LakeStream: at most 16 lower-case letters and
    digits, beginning with a letter. Its part of the checkpoint bears this name."""

    hudi: HudiOutput | None = None
    """Write a Hudi table."""

    json_files: JsonOutput | None = Field(default=None, validation_alias="json", serialization_alias="json")
    """Write files of JSON lines."""

    consumer_arn: ConsumerArn | None = None
    """Consumer of enhanced fan-out, this writer's alone, that Kinesis pushes the records to (docs/fan-out.md). Without
    it they are asked for, at a rate that all readers of the stream share."""

    @model_validator(mode="after")
    def _has_one_output(self) -> Self:
        if self.hudi is not None and self.json_files is not None:
            raise ValueError("has both hudi and json; make them two writers")
        if self.hudi is None and self.json_files is None:
            raise ValueError("has no output; add hudi: or json:")
        return self

    @property
    def output(self) -> HudiOutput | JsonOutput:
        """The one output that the writer has."""
        output = self.hudi or self.json_files
        assert output is not None  # _has_one_output
        return output
