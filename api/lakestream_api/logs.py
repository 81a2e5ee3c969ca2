"""Records of Python's logging as lines of JSON: the form that all of ours have on a cluster."""

from __future__ import annotations

import json
import logging
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
