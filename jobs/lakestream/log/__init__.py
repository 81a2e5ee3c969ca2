"""The log of one writer: what is planned, what is committed, and which driver may write."""

from lakestream.log.checkpoint import CheckpointLog, StaleLogError
from lakestream.log.fence import Fence, FenceSettings, FenceWatch, newest_epoch
from lakestream.log.identity import Identity, Setting, require_stream
from lakestream.log.manifest import BatchFiles, committed_files, without_readmitted
from lakestream.log.requests import (
    Request,
    Requested,
    RequestState,
    cancel_request,
    newest_commit,
    newest_request,
    next_number,
    put_request,
    requests,
)
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
    "Request",
    "RequestState",
    "Requested",
    "ServiceRequest",
    "ServiceRequests",
    "Setting",
    "StaleLogError",
    "Work",
    "ask_for_service",
    "cancel_request",
    "committed_files",
    "newest_commit",
    "newest_epoch",
    "newest_request",
    "newest_service",
    "next_number",
    "put_request",
    "requests",
    "require_stream",
    "without_readmitted",
]
