"""From the LakeStream document to the settings of each part of one writer. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC

from lakestream.avro import RegistrySettings
from lakestream.engine import EngineSettings
from lakestream.kinesis import KinesisSettings, PlannerSettings, StartingPosition
from lakestream.model import Definition, Filter, RecordFormat
from lakestream.sinks.hudi.settings import HudiSettings
from lakestream.sinks.json_files import Compression, JsonSettings
from lakestream.spark.session import SessionSettings
from lakestream.storage import LakePath, S3Settings, Scheme, StoreSettings
from lakestream_api import HudiOutput, JsonOutput, KinesisSource, LakeStream, MisplacedRecords, OnDataLoss, Writer
from lakestream_api import StartingPosition as Start


def kinesis_settings(source: KinesisSource, writer: Writer) -> KinesisSettings:
    """How a writer's driver and its executors reach the stream."""
    return KinesisSettings(
        stream=source.stream,
        region=source.region,
        account=source.account,
        endpoint=source.endpoint,
        role_arn=source.role_arn,
        consumer_arn=writer.consumer_arn,
        skip_losses=source.on_data_loss is OnDataLoss.SKIP,
    )


def registry_settings(source: KinesisSource) -> RegistrySettings:
    """Where the schemas of a stream's records are, if they are in Avro: with the stream."""
    return RegistrySettings(source.region, source.role_arn)


def planner_settings(document: LakeStream, writer: Writer) -> PlannerSettings:
    """How a writer's batches are cut."""
    source, trigger = document.spec.source.kinesis, document.spec.trigger
    return PlannerSettings(
        starting_position=_start(source),
        interval=trigger.interval,
        max_records=trigger.max_records_per_batch,
        max_bytes=trigger.max_bytes_per_batch,
        pushed=writer.consumer_arn is not None,
        skip_losses=source.on_data_loss is OnDataLoss.SKIP,
        drop_misplaced=source.misplaced_records is MisplacedRecords.DROP,
    )


def _start(source: KinesisSource) -> StartingPosition:
    match source.starting_position:
        case Start.TRIM_HORIZON:
            return "TRIM_HORIZON"
        case Start.LATEST:
            return "LATEST"
        case Start.AT_TIMESTAMP:
            assert source.timestamp is not None  # the model sees to it
            return source.timestamp.astimezone(UTC)


def engine_settings(document: LakeStream, definition: Definition) -> EngineSettings:
    """How batches of one definition are run."""
    trigger, limit = document.spec.trigger, document.spec.quarantine.max_fraction
    settings = EngineSettings(trigger.interval, definition, limit)
    return replace(settings, max_requested=min(settings.max_requested, trigger.max_records_per_batch))


def session_settings(
    document: LakeStream, writer: Writer, s3: S3Settings, cores: int | None, *, executors: int | None = None
) -> SessionSettings:
    """Spark for one writer.

    Args:
        document: the LakeStream.
        writer: one of its writers.
        s3: how to reach S3.
        cores: of local Spark; None: on a cluster.
        executors: to begin with, on a cluster; None: as many as spark-submit was told.
    """
    paths = (document.spec.checkpoint, writer.output.path)
    return SessionSettings(
        app_name=f"{document.metadata.name}-{writer.name}",
        cores=cores,
        driver_memory=document.spec.resources.driver.memory,
        executors=executors,
        hudi=writer.hudi is not None,
        s3=s3 if any(LakePath.parse(path).scheme is Scheme.S3 for path in paths) else None,
    )


def json_settings(output: JsonOutput, s3: S3Settings, definition: Definition) -> JsonSettings:
    """A JSON sink's settings for batches of one definition."""
    return JsonSettings(
        store=StoreSettings(LakePath.parse(output.path), s3),
        partition_by=output.partition_by,
        compression=Compression(definition.compression or output.compression.value),
    )


def definition(document: LakeStream, writer: Writer) -> Definition:
    """What the records of one writer become."""
    return Definition(
        schema=document.spec.event_schema,
        transform=document.spec.transform,
        delete_when=writer.hudi.delete_when if writer.hudi else None,
        compression=writer.json_files.compression.value if writer.json_files else None,
        filters=tuple(Filter(one.steps, frozenset(one.values)) for one in document.spec.filter),
        record_format=RecordFormat(document.spec.format.value),
    )


def hudi_settings(output: HudiOutput, table: str, definition: Definition) -> HudiSettings:
    """A Hudi sink's settings for batches of one definition; `table` is the name that the table bears in its own
    properties."""
    return replace(HudiSettings.of(output, table), delete_when=definition.delete_when)


def immutable_settings(output: HudiOutput | JsonOutput) -> Mapping[str, str | tuple[str, ...]]:
    """What the table under a checkpoint was made with, by its place in the document."""
    path = str(LakePath.parse(output.path))
    match output:
        case HudiOutput():
            return {
                "hudi.path": path,
                "hudi.tableType": output.table_type.value,
                "hudi.operation": output.operation.value,
                "hudi.recordKey": output.record_key,
                "hudi.orderingField": output.ordering_field or "",
                "hudi.partitionBy": output.partition_by,
            }
        case JsonOutput():
            return {"json.path": path, "json.partitionBy": output.partition_by}
