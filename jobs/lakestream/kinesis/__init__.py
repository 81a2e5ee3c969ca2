"""Kinesis without Spark: the client and its adapter, the planner that fixes batches, the reader that reads them."""

from lakestream.kinesis.batches import SCHEMA
from lakestream.kinesis.client import HttpKinesisClient
from lakestream.kinesis.planner import Planner
from lakestream.kinesis.port import KinesisClient, RecordPage, Shard, StreamSummary
from lakestream.kinesis.reader import RangeReader, read_ranges
from lakestream.kinesis.settings import KinesisSettings, PlannerSettings, StartingPosition
from lakestream.kinesis.stream_planner import StreamPlanner

__all__ = [
    "SCHEMA",
    "HttpKinesisClient",
    "KinesisClient",
    "KinesisSettings",
    "Planner",
    "PlannerSettings",
    "RangeReader",
    "RecordPage",
    "Shard",
    "StartingPosition",
    "StreamPlanner",
    "StreamSummary",
    "read_ranges",
]
