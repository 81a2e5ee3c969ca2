"""A driver in the tests' own process and JVM, to the tip of its stream: for what nobody kills, without the start of
another process and JVM."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lab.driver import Ingest
from lab.ingest import hudi_settings
from lakestream import app, endings, settings
from lakestream.catalogs import CatalogKeeper
from lakestream.command import load
from lakestream.control.files import read_progress
from lakestream_api import Progress
from quick_spark import interpreted

CATALOG_SECONDS = 240.0
_CREDENTIALS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
"""Of the environment, for tasks."""


def log_of(ingest: Ingest) -> Path:
    """Of all drivers that have run here."""
    return ingest.folder / "here.log"


def ingest_here(ingest: Ingest, spark: SparkSession) -> list[Progress]:
    """Run a driver until it has caught up; what it tells of its batches.

    Raises what the driver would end of.
    """
    progress = ingest.folder / "here.progress.jsonl"
    before = len(read_progress(progress))
    run_settings = app.RunSettings(cores=1, until_caught_up=True, progress_file=progress, metrics_port=None)
    with ExitStack() as stack:
        stack.enter_context(_logged(log_of(ingest)))
        stack.enter_context(interpreted(spark))
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        for name, value in ingest.environment.items():
            if name.startswith("AWS_"):
                patch.setenv(name, value)
        for name in _CREDENTIALS:
            patch.setitem(spark.sparkContext.environment, name, ingest.environment[name])
        patch.setattr(settings, "hudi_settings", hudi_settings)
        # The JVM is the tests' own.
        patch.setattr(app, "build_session", lambda _: spark)
        patch.setattr(app, "stop_session", lambda _: None)
        # A catalog that is late is not left to the next driver: there may be none.
        patch.setitem(CatalogKeeper.__init__.__kwdefaults__, "last_words", CATALOG_SECONDS)
        # Nobody takes over from it; and a watch that stood still for longer than it may ends its process at once.
        patch.setattr(app, "_watch", lambda *_: nullcontext())
        patch.setattr(endings, "kill_jvm", lambda: None)
        patch.setattr(endings, "owns_jvm", lambda: False)
        app.run(load(ingest.document), ingest.writer, run_settings)
    return read_progress(progress)[before:]


@contextmanager
def _logged(log: Path) -> Iterator[None]:
    logger, handler = logging.getLogger("lakestream"), logging.FileHandler(log)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    level = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        handler.close()
