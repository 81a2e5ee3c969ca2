"""The log of one writer: what is planned, what is committed, and which driver may write."""

from lakestream.log.checkpoint import CheckpointLog, StaleLogError
from lakestream.log.documents import Document, newest_definition
from lakestream.log.fence import Fence, FenceSettings, FenceWatch, newest_epoch
from lakestream.log.identity import Identity, Setting, require_stream
from lakestream.log.manifest import BatchFiles, committed_files, rejected_files, without_readmitted
from lakestream.log.requests import (
    Request,
    Requested,
    RequestState,
    cancel_request,
    current_request,
    newest_commit,
    next_number,
    put_request,
    requests,
)
from lakestream.log.services import (
    CANCELLED,
    Back,
    Outcome,
    ServiceRequest,
    ServiceRequests,
    Work,
    ask_for_service,
    cancel_service,
    newest_service,
)
from lakestream.log.standings import forget_standing, keep_standing, standing_at
from lakestream.log.store import LogStore, ObstoreLogStore
from lakestream.log.undone import Undone, undone_behind

__all__ = [
    "CANCELLED",
    "Back",
    "BatchFiles",
    "CheckpointLog",
    "Document",
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
    "Undone",
    "Work",
    "ask_for_service",
    "cancel_request",
    "cancel_service",
    "committed_files",
    "current_request",
    "forget_standing",
    "keep_standing",
    "newest_commit",
    "newest_definition",
    "newest_epoch",
    "newest_service",
    "next_number",
    "put_request",
    "rejected_files",
    "requests",
    "require_stream",
    "standing_at",
    "undone_behind",
    "without_readmitted",
]
