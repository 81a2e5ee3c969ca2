"""What a scenario runs on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Sink(StrEnum):
    """What a writer writes."""

    JSON = "json"
    MOR = "mor"
    COW = "cow"
    MOR_INSERT = "mor-insert"
    COW_INSERT = "cow-insert"

    @property
    def is_hudi(self) -> bool:
        return self is not Sink.JSON

    @property
    def is_merge_on_read(self) -> bool:
        return self in (Sink.MOR, Sink.MOR_INSERT)

    @property
    def is_keyed(self) -> bool:
        """Whether it has one row for each live key, not one for each record."""
        return self in (Sink.MOR, Sink.COW)


class Place(StrEnum):
    """Where the lake is."""

    FOLDER = "folder"
    S3 = "s3"


@dataclass(frozen=True)
class Setting:
    """One writer, one lake."""

    sink: Sink
    place: Place
    cluster: bool
    """Whether executors are processes of their own (`local-cluster`)."""
    shards: int
    burst: int
    """Records that the producer puts at a time."""
    auto: bool = False
    """Whether the stream is on demand and places records itself; most then have no partition key."""
    volume: int = 1
    """Bursts that come at a time."""
    sql: bool = False
    """Whether the document has a transform, which fails at some records."""
    joins: bool = False
    """Whether that makes rows of several records."""
    index: str = "bucket"
    """How a table by key finds the file of a key."""
    version: int = 6
    """Of Hudi's table format."""
    pushed: bool = False
    """Whether the writer has a consumer of enhanced fan-out."""
    packed: bool = False
    """Whether some records have several objects (`format: jsonl`)."""
    avro: bool = False
    """Whether records are in frames of a schema registry, most in Avro."""

    @property
    def moves(self) -> bool:
        """Whether a key may go from one partition to another."""
        return self.sink.is_keyed and self.index.startswith("global_")

    def __str__(self) -> str:
        more = [", with executors"] * self.cluster + [", placed by the stream"] * self.auto + [", by SQL"] * self.sql
        more += [" that joins"] * (self.sql and self.joins)
        more += [f", index {self.index}"] * (self.sink.is_keyed and self.index != "bucket")
        more += [", pushed"] * self.pushed + [", packed"] * self.packed + [", in Avro"] * self.avro
        more += [f", table version {self.version}"] * (self.sink.is_hudi and self.version != Setting.version)
        return f"{self.sink} on {self.place}{''.join(more)}"
