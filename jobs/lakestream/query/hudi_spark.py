"""Hudi tables by Spark: slower to start, and right wherever Hudi is."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyspark
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from lakestream.query.errors import SqlError, UnreadableError
from lakestream.query.hudi_folder import HudiFolder
from lakestream.query.question import TABLE, Asked, ReadOptimized
from lakestream.query.spans import Span
from lakestream.query.telling import told_of
from lakestream.spark.failures import SPARK_ERRORS, in_our_words
from lakestream.spark.session import SessionSettings, build_session, stop_session
from lakestream.storage import Scheme

_AS_OF = "as.of.instant"
_QUERY_TYPE = "hoodie.datasource.query.type"


class HudiSpark:
    """One table, as a question looks at it; a `Source`."""

    engine = f"Spark {pyspark.__version__} with Hudi"

    def __init__(self, folder: HudiFolder, span: Span, asked: Asked) -> None:
        self._folder = folder
        self._span = span
        self._asked = asked

    @property
    def about(self) -> str:
        told = told_of(self._span, self._asked.now)
        files = "base files only, " if isinstance(self._asked.question, ReadOptimized) else ""
        return f"{self._folder.told}, {files}{told}"

    @contextmanager
    def answered(self, statement: str | None, limit: int | None) -> Iterator[pa.RecordBatchReader]:
        """See `Source`."""
        place = self._folder.place
        session = SessionSettings(
            app_name="lakestream-query",
            cores=os.cpu_count() or 1,
            hudi=True,
            s3=place.s3 if place.path.scheme is Scheme.S3 else None,
            # The answer comes here by Parquet. Spark's own form of times is read as nanoseconds, and has no zone.
            conf={"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"},
        )
        spark = build_session(session)
        try:
            with _spark_errors(), tempfile.TemporaryDirectory(prefix="lakestream-query-") as folder:
                answer = self._answer(spark, statement)
                answer = answer if limit is None else answer.limit(limit)
                answer.write.parquet(f"{Path(folder).as_uri()}/answer")
                yield ds.dataset(f"{folder}/answer", format="parquet").scanner().to_reader()
        finally:
            stop_session(spark)

    def _answer(self, spark: SparkSession, statement: str | None) -> DataFrame:
        rows = self.rows(spark)
        if statement is None:
            return rows.select(*(name for name in rows.columns if not name.startswith("_hoodie_")))
        rows.createOrReplaceTempView(TABLE)
        return spark.sql(statement)

    def rows(self, spark: SparkSession) -> DataFrame:
        """The rows that the question is about."""
        reader = spark.read.format("hudi")
        if isinstance(self._asked.question, ReadOptimized):
            return reader.option(_QUERY_TYPE, "read_optimized").load(self._folder.place.path.uri)
        if self._span.last is None:
            return reader.load(self._folder.place.path.uri).limit(0)
        rows = reader.option(_AS_OF, self._folder.as_of(self._span.last)).load(self._folder.place.path.uri)
        if self._span.commits is None:
            return rows
        return rows.where(sf.col("_hoodie_commit_time").isin([version.name for version in self._span.commits]))


@contextmanager
def _spark_errors() -> Iterator[None]:
    try:
        yield
    except AnalysisException as error:
        raise SqlError(f"--sql: {str(error).splitlines()[0]}. The table is called {TABLE} there") from error
    except SPARK_ERRORS as error:
        raise UnreadableError(str(in_our_words(error))) from error
