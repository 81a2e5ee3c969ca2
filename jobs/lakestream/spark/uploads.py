"""Uploads in parts that a driver or an executor has left unfinished on S3: nobody sees them, and they cost."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from lakestream.storage import LakePath, Scheme

logger = logging.getLogger(__name__)


def abort_uploads(spark: SparkSession, paths: Iterable[LakePath]) -> int:
    """Abort all uploads below some paths; those that are no folders of S3 have none.

    To be called when nobody may write there: after the fence, and before the first batch. An executor that outlived its
    driver cannot complete a file any more either. It is no condition of anything: a right that is missing is told.

    Returns:
        How many there were.
    """
    aborted = 0
    for path in paths:
        if path.scheme is not Scheme.S3:
            continue
        jvm: Any = spark._jvm
        place = jvm.org.apache.hadoop.fs.Path(path.uri)
        try:
            store = place.getFileSystem(spark._jsc.hadoopConfiguration()).getS3AInternals()
            aborted += store.abortMultipartUploads(place)
        except Py4JJavaError as error:
            reason = str(error.java_exception.getMessage()).partition("\n")[0]
            logger.warning("unfinished uploads below %s stay, and cost what their parts do: %s", path, reason)
    if aborted:
        logger.info("aborted %d uploads that were left unfinished", aborted)
    return aborted
