"""Logs of the `lakestream` command and of Spark's Python workers. Those of JVMs are in spark/log4j2.properties."""

from __future__ import annotations

import logging
import os
import sys

from lakestream_api.logs import JsonFormatter
from lakestream_api.names import LOG_FORMAT_VARIABLE

logger = logging.getLogger(__name__)

_LEVEL_VARIABLE = "LAKESTREAM_LOG_LEVEL"


def as_json() -> bool:
    """Whether a log is read by programs: lines of JSON, as the operator asks for in its pods."""
    return os.environ.get(LOG_FORMAT_VARIABLE) == "json"


def log_to_stderr(default: str = "INFO") -> None:
    """Log from the level on that LAKESTREAM_LOG_LEVEL names."""
    handler = logging.StreamHandler(sys.stderr)
    text = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    handler.setFormatter(JsonFormatter() if as_json() else text)
    handler.addFilter(_not_told_twice)
    asked = os.environ.get(_LEVEL_VARIABLE) or default
    level = logging.getLevelNamesMapping().get(asked.upper())
    logging.basicConfig(level=default if level is None else level, handlers=[handler])
    if level is None:
        known = "DEBUG, INFO, WARNING, ERROR, CRITICAL"
        logger.warning("%s: %r is no level, so it is %s; there are: %s", _LEVEL_VARIABLE, asked, default, known)
    for chatty in ("botocore", "py4j"):
        logging.getLogger(chatty).setLevel(logging.WARNING)


def _not_told_twice(record: logging.LogRecord) -> bool:
    """py4j logs a JVM that is gone by the root logger, with its traceback, and then raises it, so that we tell it."""
    return record.name != "root" or record.module != "java_gateway"
