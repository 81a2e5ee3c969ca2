"""The log of one writer: what is planned, what is committed, and which driver may write."""

from lakestream.log.checkpoint import CheckpointLog, StaleLogError
from lakestream.log.fence import Fence, FenceSettings, FenceWatch
from lakestream.log.identity import Identity, Setting
from lakestream.log.manifest import BatchFiles, committed_files
from lakestream.log.store import LogStore, ObstoreLogStore

__all__ = [
    "BatchFiles",
    "CheckpointLog",
    "Fence",
    "FenceSettings",
    "FenceWatch",
    "Identity",
    "LogStore",
    "ObstoreLogStore",
    "Setting",
    "StaleLogError",
    "committed_files",
]
