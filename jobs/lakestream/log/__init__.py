"""The log of one writer: what is planned, what is committed, and which driver may write."""

from lakestream.log.checkpoint import CheckpointLog, StaleLogError
from lakestream.log.fence import Fence, FenceSettings, FenceWatch, newest_epoch
from lakestream.log.identity import Identity, Setting
from lakestream.log.manifest import BatchFiles, committed_files, without_readmitted
from lakestream.log.replays import RejectedFile, ReplayRequest, ask_for_replay, how_far
from lakestream.log.services import Outcome, ServiceRequest, ServiceRequests, Work, ask_for_service, newest_service
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
    "Outcome",
    "RejectedFile",
    "ReplayRequest",
    "ServiceRequest",
    "ServiceRequests",
    "Setting",
    "StaleLogError",
    "Work",
    "ask_for_replay",
    "ask_for_service",
    "committed_files",
    "how_far",
    "newest_epoch",
    "newest_service",
    "without_readmitted",
]
