"""Statuses of the processes that end: whoever started a driver is told whether to start it again."""

from __future__ import annotations

from enum import IntEnum

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
