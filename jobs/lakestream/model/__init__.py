"""Domain types of the data plane: frozen, valid once built, without I/O."""

from lakestream.model.commit import PAUSE, TABLE_SERVICES, BatchCommit, ShardStats, SinkCommit
from lakestream.model.cursors import Cursor, Finished, Reading, Unpinned, Waiting
from lakestream.model.definition import RULES, Definition, Filter, RecordFormat
from lakestream.model.files import FileEntry
from lakestream.model.findings import Finding, united
from lakestream.model.plan import BatchPlan
from lakestream.model.ranges import HashKeys, Loss, Position, ShardRange, after, at
from lakestream.model.requests import FilePart, Format, Part, Piece, Portion, Span, SpanDue, SpanProgress, Taken
from lakestream.model.restore import Restore, Standing
from lakestream.model.services import ServiceStatus, Upkeep, in_a_line
from lakestream.model.trim import Trim

__all__ = [
    "PAUSE",
    "RULES",
    "TABLE_SERVICES",
    "BatchCommit",
    "BatchPlan",
    "Cursor",
    "Definition",
    "FileEntry",
    "FilePart",
    "Filter",
    "Finding",
    "Finished",
    "Format",
    "HashKeys",
    "Loss",
    "Part",
    "Piece",
    "Portion",
    "Position",
    "Reading",
    "RecordFormat",
    "Restore",
    "ServiceStatus",
    "ShardRange",
    "ShardStats",
    "SinkCommit",
    "Span",
    "SpanDue",
    "SpanProgress",
    "Standing",
    "Taken",
    "Trim",
    "Unpinned",
    "Upkeep",
    "Waiting",
    "after",
    "at",
    "in_a_line",
    "united",
]
