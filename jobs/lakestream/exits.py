"""How a driver ends: statuses that tell whoever started it whether to start it again, and a last word."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from enum import IntEnum
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
from lakestream.storage import StorageUnavailableError
from lakestream_api.names import POD_VARIABLE

logger = logging.getLogger(__name__)

TERMINATION_LOG = Path("/dev/termination-log")
"""What a container writes here before it ends is shown as its termination message."""
_MOST_BYTES = 4096
"""Of which the kubelet keeps this much."""


PLANNED = 10
"""Status of a command that has shown a plan, and done nothing; none of a driver."""


class Exit(IntEnum):
    """Status of a driver that ended by an error it could name. A bug ends with 1 too, and a traceback."""

    FAILED = 1
    """Something that may pass: start the writer again."""
    SETTINGS = 2
    """The document asks for something impossible; the same number as for a wrong command line."""
    PERMANENT = 3
    """Starting again changes nothing until a person acts."""
    FENCED = 4
    """Another driver has taken over; this one must not be started again."""
    DATA_LOSS = 5
    """Records were trimmed before they were read."""
    STORAGE = 6
    """The storage of tables and checkpoint did not answer."""
    STREAM_RECREATED = 7
    """The stream is another one of the same name."""
    CHECKPOINT_GONE = 8
    """The checkpoint was deleted under the driver."""
    TABLE_GONE = 9
    """The table was deleted under the driver."""


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
