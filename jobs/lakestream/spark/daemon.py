"""Spark's Python daemon (`spark.python.daemon.module`), which forks the workers: what tasks import, it imports once.

A worker that imports all that for itself takes half a second of CPU before its first record: on each core of each
executor, whenever one comes.
"""

import gc

from pyspark import daemon

import lakestream.spark.read  # noqa: F401
from lakestream.logs import log_to_stderr

if __name__ == "__main__":
    log_to_stderr("WARNING")
    # So that no collection in a worker writes to the pages which all share.
    gc.freeze()
    daemon.manager()  # type: ignore[no-untyped-call]
