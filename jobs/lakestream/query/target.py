"""Which table is asked: one that a document describes, or whatever is at a path."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from lakestream.errors import SettingsError
from lakestream.log.layout import IDENTITY
from lakestream.nearby import nearby
from lakestream.places import HUDI_SIDE, JSON_SIDE, PROPERTIES, checkpoint_place, for_command, table_place
from lakestream.sinks.owner import KEY, read_owner
from lakestream.storage import LakePath, S3Settings, Scheme, StoreSettings, exists
from lakestream_api import LakeStream


class Kind(StrEnum):
    """What keeps a table."""

    HUDI = "hudi"
    JSON = "json"


_SIDES = {Kind.HUDI: HUDI_SIDE, Kind.JSON: JSON_SIDE}
"""Where below a table it is written whose that is."""


@dataclass(frozen=True, slots=True)
class Target:
    """A table, and where the log of its writer is."""

    kind: Kind
    table: StoreSettings
    log: StoreSettings | None
    """None: a Hudi table that was named by its path, and which nobody owns, or whose writer's log is not there."""

    def known_log(self) -> StoreSettings | None:
        """Where the log of its writer is; None: nobody knows, or no driver has begun with it. One HEAD request, mostly.

        Raises:
            SettingsError: a document names a checkpoint with which no driver has begun, and the table has another.
        """
        if self.log is None or exists(self.log, IDENTITY):
            return self.log
        side = self.table / _SIDES[self.kind]
        if exists(side, KEY) and LakePath.parse((owner := read_owner(side)).place) != self.log.path:
            raise SettingsError(
                f"there is no checkpoint at {self.log.path}, and {side.path / KEY} says that the one of the table "
                f"{self.table.path} is at {owner.place}: see spec.checkpoint and the writer's name"
            )
        return None

    def required_log(self) -> StoreSettings:
        """Where the log of its writer is.

        Raises:
            SettingsError: nobody knows; or as `known_log`.
        """
        log = self.known_log()
        if log is None and self.log is not None:
            raise SettingsError(
                f"there is no checkpoint at {self.log.path}: no driver has begun to write {self.table.path} with it"
            )
        if log is None:
            raise SettingsError(
                f"the table at {self.table.path} does not say where the checkpoint of its writer is, or that is not "
                "there: give -f lakestream.yaml --writer NAME"
            )
        return log

    def log_for_requests(self) -> StoreSettings:
        """Where the driver of its writer looks for requests, also one that has yet to begin.

        Raises:
            SettingsError: as `required_log`.
        """
        return self.known_log() or self.log or self.required_log()


def of_writer(document: LakeStream, writer_name: str, environ: Mapping[str, str]) -> Target:
    """The table of a document's writer, which may be yet to come.

    Raises:
        InvalidDocumentError: there is no such writer.
    """
    writer = document.writer(writer_name)
    s3 = S3Settings.from_environment(environ, document.spec.source.kinesis.region)
    kind = Kind.JSON if writer.hudi is None else Kind.HUDI
    return Target(kind, for_command(table_place(writer, s3)), for_command(checkpoint_place(document, writer, s3)))


def at_path(path: str, environ: Mapping[str, str]) -> Target:
    """The table at a path.

    Raises:
        SettingsError: there is none; or it is on S3, and the environment does not say in which region.
    """
    place = place_at(path, _s3_of(environ))
    require_folder(place)
    if any(exists(place, f".hoodie/{name}") for name in PROPERTIES):
        is_owned = exists(place, f"{HUDI_SIDE}/{KEY}")
        return Target(Kind.HUDI, place, _log_of(place, HUDI_SIDE) if is_owned else None)
    if exists(place, f"{JSON_SIDE}/{KEY}"):
        if (log := _log_of(place, JSON_SIDE)) is None:
            raise SettingsError(
                f"which files at {place.path} count is in its writer's checkpoint, and that is not where "
                f"{JSON_SIDE}/{KEY} says. If it was moved, give the document: -f lakestream.yaml --writer NAME"
            )
        return Target(Kind.JSON, place, log)
    raise SettingsError(
        f"{place.path} has neither a Hudi table (.hoodie/hoodie.properties) nor JSON files of LakeStream "
        f"({JSON_SIDE}/{KEY}); of older JSON files, give the document: -f lakestream.yaml --writer NAME{nearby(place)}"
    )


def _log_of(table: StoreSettings, side: str) -> StoreSettings | None:
    """The log of the writer that owns a table; None if it is a folder that is not there, as on another machine."""
    log = replace(table, path=LakePath.parse(read_owner(table / side).place))
    return log if log.path.scheme is Scheme.S3 or Path(str(log.path)).is_dir() else None


def place_at(path: str, s3: S3Settings) -> StoreSettings:
    """A place that may be on S3.

    Raises:
        SettingsError: it is, and nobody knows in which region.
        StorageError: no path.
    """
    place = for_command(StoreSettings(LakePath.parse(path), s3))
    if place.path.scheme is Scheme.S3 and not s3.region:
        raise SettingsError("set AWS_REGION to the region of the bucket")
    return place


def _s3_of(environ: Mapping[str, str]) -> S3Settings:
    s3 = S3Settings.from_environment(environ, "")
    # A server other than AWS is in whatever region it is told.
    return S3Settings("us-east-1", s3.endpoint) if s3.endpoint and not s3.region else s3


def require_folder(place: StoreSettings) -> None:
    """Check that a table that is a folder is there.

    Raises:
        SettingsError: it is not.
    """
    path = place.path
    if path.scheme is not Scheme.FOLDER:
        return
    try:
        mode = Path(str(path)).stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise SettingsError(f"there is no folder {path}{nearby(place)}") from None
    except OSError as error:
        raise SettingsError(f"{path} cannot be looked at: {error.strerror}") from error
    if not stat.S_ISDIR(mode):
        raise SettingsError(f"{path} is a file: give the folder of the table")
