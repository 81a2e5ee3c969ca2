"""Exit statuses of a driver: they tell whoever started it whether to start it again."""

from __future__ import annotations

from enum import IntEnum

from lakestream.errors import DataLossError, FencedError, LakeStreamError, PermanentError, SettingsError


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


def exit_of(error: LakeStreamError) -> Exit:
    """The status that an error ends a driver with."""
    match error:
        case FencedError():
            return Exit.FENCED
        case DataLossError():
            return Exit.DATA_LOSS
        case SettingsError():
            return Exit.SETTINGS
        case PermanentError():
            return Exit.PERMANENT
        case _:
            return Exit.FAILED
