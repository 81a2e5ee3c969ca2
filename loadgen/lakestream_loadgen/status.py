"""The exit status of a load."""

from __future__ import annotations

import logging

from locust import log
from locust.env import Environment
from locust.runners import WorkerRunner

from lakestream_loadgen.statistics import RecordsSettled

logger = logging.getLogger(__name__)

CANNOT = 2
"""Of a load that could not start or go on, or has written nothing."""


def exit_status(environment: Environment, settled: RecordsSettled, missing: set[str]) -> int:
    """Of a load that came to its end; ``missing``: workers that were not heard of.

    Locust would count each call that failed, also those whose records were written by the next one. What it counts of
    users and listeners stays: those that only raise write nothing, and nothing is lost.
    """
    if log.unhandled_greenlet_exception:
        return CANNOT
    # A worker that is missing may not have told what was acknowledged to it.
    if not (settled.acknowledged or missing) and _begins_by_itself(environment):
        logger.critical("the load has written nothing: Kinesis had acknowledged no record when it was over")
        return CANNOT
    raised = environment.runner is not None and bool(environment.runner.exceptions)
    return 1 if missing or raised or settled.lost else 0


def _begins_by_itself(environment: Environment) -> bool:
    """With a page none may ever be asked for; and a worker's part may be nothing."""
    options = environment.parsed_options
    begins = options is not None and (options.headless or options.autostart)
    return begins and not isinstance(environment.runner, WorkerRunner)
