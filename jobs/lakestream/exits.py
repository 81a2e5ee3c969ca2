"""How a driver ends: with a status, and a last word."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path

from lakestream.errors import (
    CheckpointGoneError,
    DataLossError,
    FencedError,
    LakeStreamError,
    PermanentError,
    SettingsError,
    StreamRecreatedError,
    TableGoneError,
)
from lakestream.statuses import Exit
from lakestream.storage import StorageUnavailableError
from lakestream_api.names import POD_VARIABLE

logger = logging.getLogger(__name__)

TERMINATION_LOG = Path("/dev/termination-log")
"""What a container writes here before it ends is shown as its termination message."""
_MOST_BYTES = 4096
"""Of which the kubelet keeps this much."""


def exit_of(error: LakeStreamError) -> Exit:
    """The status that an error ends a driver with."""
    match error:
        case FencedError():
            return Exit.FENCED
        case DataLossError():
            return Exit.DATA_LOSS
        case SettingsError():
            return Exit.SETTINGS
        case StreamRecreatedError():
            return Exit.STREAM_RECREATED
        case CheckpointGoneError():
            return Exit.CHECKPOINT_GONE
        case TableGoneError():
            return Exit.TABLE_GONE
        case PermanentError():
            return Exit.PERMANENT
        case StorageUnavailableError():
            return Exit.STORAGE
        case _:
            return Exit.FAILED


def leave_message(
    message: str, environ: Mapping[str, str] = os.environ, termination_log: Path = TERMINATION_LOG
) -> None:
    """In a pod, leave a last word for `kubectl describe pod`; elsewhere nobody would read it."""
    if POD_VARIABLE not in environ:
        return
    try:
        termination_log.write_bytes(message.encode()[:_MOST_BYTES])
    except OSError as error:
        logger.warning("the termination message could not be written: %s", error)
