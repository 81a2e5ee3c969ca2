"""Logs as lines of JSON."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

_EXTRAS = ("stream", "reason")


class JsonFormatter(logging.Formatter):
    """One JSON object per record: time, level, logger, message, and what a record has of stream, reason, error."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        entry |= {name: getattr(record, name) for name in _EXTRAS if hasattr(record, name)}
        if record.exc_info:
            entry["error"] = self.formatException(record.exc_info)
        return json.dumps(entry, ensure_ascii=False)


def configure(level: str) -> None:
    """Log to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    # kopf tells of each event that it passes on.
    logging.getLogger("kopf").setLevel(max(logging.WARNING, logging.getLogger().level))
