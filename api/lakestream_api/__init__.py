"""The LakeStream resource as typed, validated models, and the progress that drivers publish."""

from lakestream_api.errors import InvalidDocumentError, LakeStreamApiError, Problem
from lakestream_api.load import load_lakestream
from lakestream_api.progress import Freshness, Progress, ShardProgress, StageSeconds
from lakestream_api.quantities import (
    format_duration,
    format_size,
    memory_mebibytes,
    parse_duration,
    parse_size,
)
from lakestream_api.resource import (
    Driver,
    Executor,
    LakeStream,
    Metadata,
    Quarantine,
    Resources,
    Scaling,
    Spec,
    Trigger,
)
from lakestream_api.source import KinesisSource, OnDataLoss, Source, StartingPosition
from lakestream_api.writers import (
    Compression,
    HudiCleaning,
    HudiCompaction,
    HudiIndex,
    HudiOutput,
    IndexType,
    JsonOutput,
    Operation,
    TableType,
    Writer,
)

__all__ = [
    "Compression",
    "Driver",
    "Executor",
    "Freshness",
    "HudiCleaning",
    "HudiCompaction",
    "HudiIndex",
    "HudiOutput",
    "IndexType",
    "InvalidDocumentError",
    "JsonOutput",
    "KinesisSource",
    "LakeStream",
    "LakeStreamApiError",
    "Metadata",
    "OnDataLoss",
    "Operation",
    "Problem",
    "Progress",
    "Quarantine",
    "Resources",
    "Scaling",
    "ShardProgress",
    "Source",
    "Spec",
    "StageSeconds",
    "StartingPosition",
    "TableType",
    "Trigger",
    "Writer",
    "format_duration",
    "format_size",
    "load_lakestream",
    "memory_mebibytes",
    "parse_duration",
    "parse_size",
]
