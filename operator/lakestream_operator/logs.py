"""The operator's log."""

from __future__ import annotations

import logging
import sys

from lakestream_api.logs import JsonFormatter


def configure(level: str) -> None:
    """Log to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    # kopf tells of each event that it passes on.
    logging.getLogger("kopf").setLevel(max(logging.WARNING, logging.getLogger().level))
