"""What the demo is asked to do, checked before anything starts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from pathlib import Path

from lakestream_api import TableType
from lakestream_demo.errors import SettingError

DEFAULT_EVENTS = 2_500
"""Events/s that two cores carry together with Kinesis, the users and both Spark applications, lag not growing."""
DEFAULT_USERS = 2_000
DEFAULT_SHARDS = 4

RECORDS_PER_SHARD = 1_000  # a second: Kinesis's write limit of a shard


class Table(StrEnum):
    """Hudi's table types by the short names that people use."""

    MOR = "mor"
    COW = "cow"

    @property
    def table_type(self) -> TableType:
        return TableType.MERGE_ON_READ if self is Table.MOR else TableType.COPY_ON_WRITE


class Lake(StrEnum):
    """Where the tables lie."""

    LOCAL = "local"
    S3 = "s3"


@dataclass(frozen=True)
class Load:
    """A run of the load generator."""

    name: str
    users: int
    events: int
    """Per second, of all users together."""
    duration: timedelta


FIRST_ORDERS = Load("first", users=20, events=100, duration=timedelta(seconds=3))
"""Sent while Spark starts, for a first batch that stays small however long the start takes: it takes ten times as long
as the next ones."""
WARM_UP = Load("warmup", users=20, events=200, duration=timedelta(hours=1))
"""Sent from then on, until the applications are warm, which ends it: small batches, one after the other."""


@dataclass(frozen=True)
class DemoSettings:
    """A run of the demo.

    Raises:
        SettingError: a value is out of bounds.
    """

    out: Path
    """Folder for everything the run makes; absolute."""

    duration: timedelta
    """How long the users send."""

    events: int
    """Events per second that all users together send; an event is a record."""

    shards: int
    """Shards of the stream."""

    users: int
    """Locust users."""

    table: Table
    """Type of the Hudi table."""

    lake: Lake
    """Where the tables lie."""

    def __post_init__(self) -> None:
        # Hudi's catalog takes the location of a table as Java writes URIs, with escapes, for its name.
        if unnamed := re.search(r"[^\w./~@+=,-]", str(self.out)):
            raise SettingError(
                f"{self.out} has {unnamed[0]!r} in its name, and Hudi's SQL cannot name a table there",
                "Choose a folder without with --out.",
            )
        _between("DURATION", self.duration.total_seconds(), 5, 3_600, "seconds")
        _between("SHARDS", self.shards, 1, 100, "shards")
        _between("users", self.users, 1, 50_000, "users")
        _between("EVENTS", self.events, 1, 100_000, "events per second")

    @property
    def load(self) -> Load:
        return Load("load", self.users, self.events, self.duration)

    @property
    def warning(self) -> str | None:
        """What to expect of settings that are allowed but do not run smoothly."""
        limit = self.shards * RECORDS_PER_SHARD
        if self.events <= limit:
            return None
        return (
            f"{self.events:,} events/s are more than {self.shards} shards take ({limit:,}/s): "
            "Kinesis will throttle, and the users will fall behind"
        )


def _between(name: str, value: float, low: int, high: int, what: str) -> None:
    if not low <= value <= high:
        raise SettingError(f"{name} is {value:g}", f"Choose from {low:,} to {high:,} {what}.")
