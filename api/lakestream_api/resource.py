"""The LakeStream resource: a stream, and the tables that it keeps fresh."""

from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from lakestream_api.base import ApiModel, problem_at
from lakestream_api.cel import fixed, rule, rules
from lakestream_api.consumers import require_own_consumers
from lakestream_api.errors import InvalidDocumentError, Problem
from lakestream_api.fields import MAX_STREAM_NAME, STREAM_NAME, Location, Query, Sql, overlap
from lakestream_api.filters import MOST_FILTERS, Filter, require_apart
from lakestream_api.kubernetes import Kubernetes
from lakestream_api.metadata import Metadata
from lakestream_api.quantities import Heap, PositiveDuration, cpu_millis
from lakestream_api.source import Source
from lakestream_api.trigger import Trigger
from lakestream_api.windows import ExcludedWindow, ScheduledExecutors
from lakestream_api.writers import Writer

# In CEL: a writer's folder, and whether two overlap. With a slash at its end no folder begins another's name;
# s3 and s3a are the same.
_FOLDER = "({0} + '/').replace('s3a://', 's3://').replace('//', '/')"
_OF_WRITER = "(has({0}.hudi) ? {0}.hudi.path : has({0}.json) ? {0}.json.path : {0}.name)"


_NO_FIELDS = "looks into JSON, and format: text has none; take what you want by WHERE in transform"


def _within(one: str, other: str) -> str:
    return f"{_FOLDER.format(one)}.startsWith({_FOLDER.format(other)})"


def _writer_path(writer: str) -> str:
    return _OF_WRITER.format(writer)


_NO_EXECUTOR = (
    "must be at least 1: a driver without executors reads nothing, so its lag would say nothing;"
    " set suspend: true to stop all writers"
)


def _an_executor(value: int) -> int:
    if value < 1:
        raise ValueError(f"is {value}; {_NO_EXECUTOR}")
    return value


class Quarantine(ApiModel):
    """What becomes of records that do not parse, or that the output cannot take."""

    max_fraction: float = Field(default=1.0, ge=0.0, le=1.0)
    """Share of a batch's records that may be quarantined; a batch with more fails the job.
    `1.0` never fails, `0.0` fails on the first."""

    warn_fraction: float = Field(default=0.01, ge=0.0, le=1.0)
    """Share of the last five minutes' records in quarantine above which the condition `Quarantining` is
    true. `1.0` never is, `0.0` is on the first. No driver is restarted for it."""


class Driver(ApiModel):
    """Resources of the driver."""

    cores: int = Field(default=1, ge=1, le=64)
    """CPU cores."""

    memory: Heap = "2g"
    """Memory of the JVM in its own notation, at least `512m`."""


class Executor(ApiModel):
    """Resources of each executor."""

    cores: int = Field(default=2, ge=1, le=64)
    """CPU cores: tasks that run at once."""

    memory: Heap = "4g"
    """Memory of the JVM in its own notation, at least `512m`."""


class Resources(ApiModel):
    """Resources of each writer's application."""

    driver: Driver = Driver()
    """Resources of the driver."""

    executor: Executor = Executor()
    """Resources of each executor."""


class Scaling(ApiModel):
    """How many executors each writer gets, from its lag and its load."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "self.minExecutors <= self.maxExecutors",
                "is above maxExecutors; lower it or raise maxExecutors",
                ".minExecutors",
            ),
            rule(
                "!has(self.executors) || (self.executors >= self.minExecutors && self.executors <= self.maxExecutors)",
                "must be from minExecutors to maxExecutors; choose one between them, or move them",
                ".executors",
            ),
            rule(
                "!has(self.schedule) || self.schedule.all(one, one.executors <= self.maxExecutors)",
                "has executors above maxExecutors; lower them or raise maxExecutors",
                ".schedule",
            ),
        )
    )

    min_executors: Annotated[int, AfterValidator(_an_executor)] = Field(
        default=1, le=10_000, json_schema_extra=rules(rule("self >= 1", _NO_EXECUTOR))
    )
    """Executors that always stay, at least one."""

    max_executors: int = Field(default=10, ge=1, le=10_000)
    """Executors that are never exceeded."""

    max_lag: PositiveDuration = timedelta(seconds=60)
    """Lag that is not to be exceeded. The lag is the age of the oldest record that is not in the table, over the
    slowest shard; 0 where all that arrived is in it. Executors are there in time for it where the load lets them."""

    target_utilization: float = Field(default=0.9, gt=0.0, lt=1.0)
    """Share of the trigger interval that batches should take up."""

    catch_up: PositiveDuration = timedelta(minutes=10)
    """Time in which a backlog should be worked off."""

    scale_down_after: PositiveDuration = timedelta(minutes=10)
    """Executors are taken away when for so long there was never a need for them; after half of it, or less, where the
    load has fallen by a quarter."""

    executors: int | None = Field(default=None, ge=1, le=10_000)
    """Executors to have whatever the lag is, from `minExecutors` to `maxExecutors`. Without it,
    they follow the lag."""

    dry_run: bool = False
    """Say how many executors would be right, in status and events, and leave them as they are."""

    excluded_windows: Annotated[tuple[ExcludedWindow, ...], Field(max_length=16)] = ()
    """Times at which the number of executors stays as it is."""

    schedule: Annotated[tuple[ScheduledExecutors, ...], Field(max_length=16)] = ()
    """Times at which load is known to come, and executors that are to be there by then. Where more are called for,
    there are more."""

    @model_validator(mode="after")
    def _min_is_at_most_max(self) -> Self:
        if self.min_executors > self.max_executors:
            raise problem_at(
                "minExecutors",
                f"is {self.min_executors}, above maxExecutors {self.max_executors}; lower it or raise maxExecutors",
            )
        if self.executors is not None and not self.min_executors <= self.executors <= self.max_executors:
            raise problem_at(
                "executors",
                f"is {self.executors}, not from minExecutors {self.min_executors} to maxExecutors"
                f" {self.max_executors}; choose one between them, or move them",
            )
        for index, one in enumerate(self.schedule):
            if one.executors > self.max_executors:
                raise problem_at(
                    f"schedule[{index}].executors",
                    f"is {one.executors}, above maxExecutors {self.max_executors}; lower it or raise maxExecutors",
                )
        return self


class RecordFormat(StrEnum):
    """What the bytes of a record are."""

    JSON = "json"
    JSONL = "jsonl"
    TEXT = "text"
    AVRO = "avro"


class Spec(ApiModel):
    """What a LakeStream should be."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "self.writers.all(one, self.writers.all(other, one.name == other.name"
                f" || !{_within(_writer_path('one'), _writer_path('other'))}))",
                "the folders of two writers overlap; give each writer a folder of its own",
                ".writers",
            ),
            rule(
                f"self.writers.all(one, !{_within(_writer_path('one'), 'self.checkpoint')}"
                f" && !{_within('self.checkpoint', _writer_path('one'))})",
                "overlaps with the folder of a writer; keep the two apart",
                ".checkpoint",
            ),
            rule(
                "!has(self.format) || self.format != 'text' || !has(self.filter) || self.filter.size() == 0",
                _NO_FIELDS,
                ".filter",
            ),
        )
    )

    source: Source
    """Where the records come from."""

    filter: tuple[Filter, ...] = Field(
        default=(),
        max_length=MOST_FILTERS,
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["path"]},
    )
    """What a record has to have, all of it; the others are left out before `schema` is looked at. For a
    stream that has the records of several tables. What is no JSON object is not left out, but quarantined."""

    format: RecordFormat = RecordFormat.JSON
    """`json`: the JSON of an object. `jsonl`: of one or several, one after the other, each of which is an event;
    lines, for instance. `text`: anything in UTF-8, as lines of a log or CSV; `schema` then has one
    column, a STRING, that is the whole of it, and `transform` takes it apart. `avro`: Avro in a frame
    of the AWS Glue Schema Registry, whose schemas are asked for; `schema` names the fields to take."""

    event_schema: Sql = Field(validation_alias="schema", serialization_alias="schema")
    """Columns of a record's JSON as Spark DDL, as in `order_id string, amount double`. Fields
    that it lacks, at any depth, are kept in the column `_rescued`. A record with a value that a
    column cannot hold exactly is quarantined."""

    transform: Query | None = None
    """Spark SQL query `SELECT ... FROM events` that makes the output's rows, out of the batch's
    records alone: `_arrival` in place of `now()`. Without it, they have the schema's columns and
    `_rescued`, `_shard_id`, `_sequence_number`, `_sub_sequence`, `_arrival` and `_partition_key`."""

    trigger: Trigger = Trigger()
    """When a batch begins, and how large it may get."""

    writers: tuple[Writer, ...] = Field(
        min_length=1,
        max_length=8,
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    )
    """The outputs, at most 8, each written by an application of its own."""

    checkpoint: Location = Field(
        json_schema_extra=fixed(
            "is fixed: it says how far each writer is; make another LakeStream to begin anew elsewhere"
        )
    )
    """Folder of the logs that say how far each writer is: `s3a://`, `s3://`, `file:///` or a
    local folder. Each writer has a folder of its own in it. Fixed: another LakeStream begins anew elsewhere."""

    quarantine: Quarantine = Quarantine()
    """What becomes of records that do not parse, or that the output cannot take."""

    resources: Resources = Resources()
    """Resources of each writer's application."""

    scaling: Scaling = Scaling()
    """How many executors each writer gets."""

    suspend: bool = False
    """Stop all writers at the end of their batch, and start none."""

    rollback: bool = False
    """When a changed spec never gets to run while the one before did, go back to that one and say
    so in status and events."""

    kubernetes: Kubernetes = Kubernetes()
    """How the pods of all writers look on Kubernetes. Not used on a laptop."""

    @model_validator(mode="after")
    def _texts_have_no_fields(self) -> Self:
        if self.format is RecordFormat.TEXT and self.filter:
            raise problem_at("filter", _NO_FIELDS)
        return self

    @model_validator(mode="after")
    def _filters_are_apart(self) -> Self:
        require_apart(self.filter)
        return self

    @model_validator(mode="after")
    def _consumers_are_the_writers_own(self) -> Self:
        require_own_consumers([writer.consumer_arn for writer in self.writers], self.source.kinesis)
        return self

    @model_validator(mode="after")
    def _writers_are_apart(self) -> Self:
        for index, writer in enumerate(self.writers):
            here = f"writers[{index}]"
            output = f"{here}.{'json' if writer.hudi is None else 'hudi'}.path"
            for other in self.writers[:index]:
                if other.name == writer.name:
                    raise problem_at(f"{here}.name", f"{writer.name!r} is taken; give each writer its own name")
                if overlap(writer.output.path, other.output.path):
                    raise problem_at(
                        output,
                        f"overlaps with the folder of writer {other.name!r}; give each writer a folder of its own",
                    )
            if overlap(writer.output.path, self.checkpoint):
                raise problem_at(output, "overlaps with spec.checkpoint; keep the two apart")
        return self

    @model_validator(mode="after")
    def _catalogs_have_each_table_once(self) -> Self:
        owners: dict[str, str] = {}
        for index, writer in enumerate(self.writers):
            for table in writer.output.catalog_tables:
                if (owner := owners.setdefault(table, writer.name)) != writer.name:
                    raise problem_at(
                        f"writers[{index}].{'json' if writer.hudi is None else 'hudi'}.catalog",
                        f"has the table {table}, as writer {owner!r} has; give each writer a table of its own"
                        " (a MERGE_ON_READ table is there as <table>_ro and <table>_rt besides)",
                    )
        return self

    @model_validator(mode="after")
    def _limits_allow_the_cores(self) -> Self:
        # No pod is made of it, and of an executor's nobody is told but the driver's log.
        pods, resources = self.kubernetes, self.resources
        for name, pod, cores in (
            ("driver", pods.driver, resources.driver.cores),
            ("executor", pods.executor, resources.executor.cores),
        ):
            if pod.core_limit and not pod.core_request and cpu_millis(pod.core_limit) < 1000 * cores:
                raise problem_at(
                    f"kubernetes.{name}.coreLimit",
                    f"{pod.core_limit!r} is less than resources.{name}.cores, {cores}, which are reserved where there"
                    " is no coreRequest; give at least as much, or add a coreRequest",
                )
        return self


class LakeStream(ApiModel):
    """A Kinesis stream, and the tables that it keeps fresh."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                f"self.metadata.name.size() <= {MAX_STREAM_NAME}",
                f"metadata.name must have at most {MAX_STREAM_NAME} characters: the names of its pods are made of it",
            ),
            rule(
                f"self.metadata.name.matches('^{STREAM_NAME}$')",
                "metadata.name must have lower-case letters, digits and '-' only, begin with a letter and end with a"
                " letter or digit: the names of its pods are made of it",
            ),
        )
    )

    api_version: Literal["lakestream.dev/v1alpha1"]
    """The version of the document's form: `lakestream.dev/v1alpha1`."""

    kind: Literal["LakeStream"]
    """What the document describes: `LakeStream`."""

    metadata: Metadata
    """Name of the resource."""

    spec: Spec
    """What it should be."""

    def writer(self, name: str) -> Writer:
        """The writer of that name.

        Raises:
            InvalidDocumentError: there is none; the message names those that there are.
        """
        for writer in self.spec.writers:
            if writer.name == name:
                return writer
        names = ", ".join(writer.name for writer in self.spec.writers)
        raise InvalidDocumentError([Problem("spec.writers", f"there is no writer {name!r}; choose one of: {names}")])
