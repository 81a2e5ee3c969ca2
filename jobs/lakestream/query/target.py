"""Which table is asked: one that a document describes, or whatever is at a path."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from lakestream.errors import SettingsError
from lakestream.places import JSON_SIDE, checkpoint_place, table_place
from lakestream.sinks.owner import KEY, read_owner
from lakestream.storage import LakePath, S3Settings, Scheme, StoreSettings, exists
from lakestream_api import LakeStream


class Kind(StrEnum):
    """What keeps a table."""

    HUDI = "hudi"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Target:
    """A table, and where the log of its writer is."""

    kind: Kind
    table: StoreSettings
    log: StoreSettings | None
    """None: a Hudi table that was named by its path, and which nobody owns."""

    def required_log(self) -> StoreSettings:
        """Where the log of its writer is.

        Raises:
            SettingsError: nobody knows.
        """
        if self.log is None:
            raise SettingsError(
                f"nobody has claimed the table at {self.table.path}: give -f lakestream.yaml --writer NAME"
            )
        return self.log


def of_writer(document: LakeStream, writer_name: str, environ: Mapping[str, str]) -> Target:
    """The table of a document's writer.

    Raises:
        InvalidDocumentError: there is no such writer.
        SettingsError: the table is a folder, and not there.
    """
    writer = document.writer(writer_name)
    s3 = S3Settings.from_environment(environ, document.spec.source.kinesis.region)
    kind = Kind.JSON if writer.hudi is None else Kind.HUDI
    target = Target(kind, table_place(writer, s3), checkpoint_place(document, writer, s3))
    _require_folder(target.table.path)
    return target


def at_path(path: str, environ: Mapping[str, str]) -> Target:
    """The table at a path.

    Raises:
        SettingsError: there is none; or it is on S3, and the environment does not say in which region.
    """
    place = place_at(path, _s3_of(environ))
    _require_folder(place.path)
    if exists(place, ".hoodie/hoodie.properties"):
        owner = read_owner(place / ".hoodie" / "lakestream") if exists(place, f".hoodie/lakestream/{KEY}") else None
        log = None if owner is None else StoreSettings(LakePath.parse(owner.place), place.s3)
        return Target(Kind.HUDI, place, log)
    if exists(place, f"{JSON_SIDE}/{KEY}"):
        return Target(Kind.JSON, place, StoreSettings(LakePath.parse(read_owner(place / JSON_SIDE).place), place.s3))
    raise SettingsError(
        f"{place.path} has neither a Hudi table (.hoodie/hoodie.properties) nor JSON files of LakeStream "
        f"({JSON_SIDE}/{KEY}); of older JSON files, give the document: -f lakestream.yaml --writer NAME"
    )


def place_at(path: str, s3: S3Settings) -> StoreSettings:
    """A place that may be on S3.

    Raises:
        SettingsError: it is, and nobody knows in which region.
        StorageError: no path.
    """
    place = StoreSettings(LakePath.parse(path), s3)
    if place.path.scheme is Scheme.S3 and not s3.region:
        raise SettingsError("set AWS_REGION to the region of the bucket")
    return place


def _s3_of(environ: Mapping[str, str]) -> S3Settings:
    s3 = S3Settings.from_environment(environ, "")
    # A server other than AWS is in whatever region it is told.
    return S3Settings("us-east-1", s3.endpoint) if s3.endpoint and not s3.region else s3


def _require_folder(path: LakePath) -> None:
    if path.scheme is Scheme.FOLDER and not Path(str(path)).is_dir():
        raise SettingsError(f"there is no folder {path}")
