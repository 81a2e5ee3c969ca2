"""Where the things of a writer are. Pure, and light: commands that start no Spark go by it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from lakestream.storage import LakePath, S3Settings, StoreSettings
from lakestream_api import LakeStream, Writer

_PATIENCE = timedelta(seconds=30)
"""How long a command tries a request to the store again."""

QUARANTINE = "quarantine"
"""Folder of the unusable records, in the writer's part of the checkpoint."""


def table_place(writer: Writer, s3: S3Settings) -> StoreSettings:
    """Where the writer's table is."""
    return StoreSettings(LakePath.parse(writer.output.path), s3)


def checkpoint_place(document: LakeStream, writer: Writer, s3: S3Settings) -> StoreSettings:
    """Where the writer's log is."""
    return StoreSettings(LakePath.parse(document.spec.checkpoint), s3) / writer.name


def for_command(place: StoreSettings) -> StoreSettings:
    """The same place, for a command, which somebody waits for."""
    return replace(place, patience=_PATIENCE)


def owner_place(writer: Writer, s3: S3Settings) -> StoreSettings:
    """Where it is written whose the table is: below it, where neither Hudi, Spark, Trino nor Athena look for data."""
    table = table_place(writer, s3)
    return table / (JSON_SIDE if writer.hudi is None else HUDI_SIDE)


PROPERTIES = ("hoodie.properties", "hoodie.properties.backup")
"""In a Hudi table's `.hoodie`, which has one of them at least: Hudi copies the first, deletes it and writes it anew."""


def table_proofs(writer: Writer) -> tuple[str, ...]:
    """Objects of which every table of the writer has one, by their path in it; none: a table may be empty."""
    return () if writer.hudi is None else tuple(f".hoodie/{name}" for name in PROPERTIES)


JSON_SIDE = "_lakestream"
"""Folder beside JSON files, or those in quarantine, with what is no data."""

HUDI_SIDE = ".hoodie/lakestream"
"""The same of a Hudi table."""
