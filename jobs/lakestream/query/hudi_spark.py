"""Hudi tables by Spark: slower to start, and right wherever Hudi is."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyspark
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DayTimeIntervalType,
    DoubleType,
    FloatType,
    MapType,
    StructField,
    StructType,
    YearMonthIntervalType,
)

from lakestream.query.errors import SqlError, UnreadableError
from lakestream.query.history import Version
from lakestream.query.hudi_folder import HudiFolder
from lakestream.query.images import AFTER, BEFORE, COMMIT_TIME, INSTANT, KEY, OP, PARTITION, ROW_KEY, SEQUENCE
from lakestream.query.question import TABLE, Asked, ReadOptimized, SparkRun
from lakestream.query.spans import Comparison, Span
from lakestream.query.telling import told_of, told_of_comparison
from lakestream.spark.environment import DRIVER_MEMORY
from lakestream.spark.failures import SPARK_ERRORS, Remedy, in_our_words
from lakestream.spark.paths import literally
from lakestream.spark.session import SessionSettings, build_session, stop_session
from lakestream.storage import LakePath, Scheme

_AS_OF = "as.of.instant"
_QUERY_TYPE = "hoodie.datasource.query.type"
_INTERVALS = (DayTimeIntervalType, YearMonthIntervalType)
_MICROSECONDS = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""Of JSON; Spark's default writes milliseconds only."""

_RIGHTS = "Check the credentials and their policy: to read and list the table is enough, and to write where --to says"
_HEAP = f"{DRIVER_MEMORY} ({SessionSettings.driver_memory} if it is not set)"
_HERE = Remedy(again="Ask again", driver_memory=_HEAP, executor_memory=_HEAP, rights=_RIGHTS)
_ON_CLUSTER = Remedy(
    again="Start the SparkApplication again",
    driver_memory="spec.driver.memory of the SparkApplication",
    executor_memory="spec.executor.memory of the SparkApplication",
    rights=_RIGHTS,
)


class HudiSpark:
    """One table, as a question looks at it; a `Source`."""

    engine = f"Spark {pyspark.__version__} with Hudi"

    def __init__(self, folder: HudiFolder, span: Span, asked: Asked, run: SparkRun) -> None:
        self._folder = folder
        self._span = span
        self._asked = asked
        self._run = run

    @property
    def about(self) -> str:
        told = told_of(self._span, self._asked.now)
        files = "base files only, " if isinstance(self._asked.question, ReadOptimized) else ""
        return f"{self._folder.told}, {files}{told}"

    @contextmanager
    def answered(self, statement: str | None, limit: int | None) -> Iterator[pa.RecordBatchReader]:
        """See `Source`."""
        with tempfile.TemporaryDirectory(prefix="lakestream-query-") as folder:
            with self._answer(statement, limit) as answer:
                rows = self._brought(answer, Path(folder, "answer"))
            # Spark has ended: what happens to the rows from here on, as a pipe that is closed, is none of its errors.
            yield rows

    def _brought(self, answer: DataFrame, folder: Path) -> pa.RecordBatchReader:
        if self._run.on_cluster:
            # Through the memory of this process, since no disk is the executors' and ours.
            return pa.RecordBatchReader.from_batches(to_arrow_schema(answer.schema), answer._collect_as_arrow())
        # Hadoop would take what a URI escapes for the name.
        answer.write.parquet(f"file:{folder}")
        return ds.dataset(folder, format="parquet").scanner().to_reader()

    def require_kept(self) -> None:
        """See `Source`."""
        if not isinstance(self._asked.question, ReadOptimized):  # which is of the newest files that there are
            self._folder.require_kept(self._oldest)

    @property
    def _oldest(self) -> Version | None:
        return self._span.last

    def write(self, statement: str | None, limit: int | None, to: LakePath) -> int:
        """Have the tasks write the rows to a place, in place of what a killed attempt has left; how many there are.

        Raises:
            SqlError, UnreadableError: as `answered` does.
        """
        with self._answer(statement, limit) as answer:
            answer.write.mode("overwrite").parquet(to.uri)
            return answer.sparkSession.read.schema(answer.schema).parquet(literally(to.uri)).count()

    @contextmanager
    def _answer(self, statement: str | None, limit: int | None) -> Iterator[DataFrame]:
        places = [self._folder.place, *([self._run.to] if self._run.to else [])]
        session = SessionSettings(
            app_name="lakestream-query",
            cores=None if self._run.on_cluster else os.cpu_count() or 1,
            driver_memory=os.environ.get(DRIVER_MEMORY) or SessionSettings.driver_memory,
            hudi=True,
            s3=next((place.s3 for place in places if place.path.scheme is Scheme.S3), None),
            # What is read from here by Parquet: Spark's own form of times is read as nanoseconds, and has no zone.
            conf={"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"},
        )
        remedy = _ON_CLUSTER if self._run.on_cluster else _HERE
        with self._folder.reading(self._oldest), _spark_errors(remedy, statement):
            spark = build_session(session)
            try:
                answer = _told(self._selected(spark, statement))
                yield answer if limit is None else answer.limit(limit)
            finally:
                stop_session(spark)

    def _selected(self, spark: SparkSession, statement: str | None) -> DataFrame:
        rows = self.rows(spark)
        if statement is None:
            return rows.select(*(name for name in rows.columns if not name.startswith("_hoodie_")))
        _require_query(spark, statement)
        rows.createOrReplaceTempView(TABLE)
        return spark.sql(statement)

    def rows(self, spark: SparkSession) -> DataFrame:
        """The rows that the question is about."""
        reader = spark.read.format("hudi")
        if isinstance(self._asked.question, ReadOptimized):
            return reader.option(_QUERY_TYPE, "read_optimized").load(self._folder.place.path.uri)
        rows = self._as_of(spark, self._span.last)
        if self._span.commits is None:
            return rows
        return rows.where(sf.col(COMMIT_TIME).isin([version.name for version in self._span.commits]))

    def _as_of(self, spark: SparkSession, version: Version | None) -> DataFrame:
        reader, path = spark.read.format("hudi"), self._folder.place.path.uri
        if version is None:
            return reader.load(path).limit(0)
        return reader.option(_AS_OF, self._folder.as_of(version)).load(path)


class HudiSparkChanges(HudiSpark):
    """The changes between two versions of a table, as `net_changes` has them; a `Source`."""

    def __init__(self, folder: HudiFolder, found: Comparison, asked: Asked, run: SparkRun) -> None:
        super().__init__(folder, Span(found.after), asked, run)
        self._found = found

    @property
    def about(self) -> str:
        return f"{self._folder.told}, {told_of_comparison(self._found)}"

    @property
    def _oldest(self) -> Version | None:
        return self._found.before or self._found.after

    def rows(self, spark: SparkSession) -> DataFrame:
        """The changes, by key."""
        own = [field for field in self._as_of(spark, None).schema if not field.name.startswith("_hoodie_")]
        place = [KEY, PARTITION, "n"]
        old = _numbered(self._as_of(spark, self._found.before), own, BEFORE)
        new = _numbered(self._as_of(spark, self._found.after), own, AFTER)
        both = old.join(new, place, "full")
        op = (
            sf.when(sf.col(BEFORE).isNull(), "insert").when(sf.col(AFTER).isNull(), "delete").otherwise("update")
        ).alias(OP)
        changed = both.where(~_comparable(BEFORE, own).eqNullSafe(_comparable(AFTER, own)))
        columns = op, sf.col(INSTANT), sf.col(KEY).alias(ROW_KEY), sf.col(BEFORE), sf.col(AFTER)
        return changed.orderBy(*place).select(*columns)


def _told(answer: DataFrame) -> DataFrame:
    """Intervals as text: Spark writes them to Parquet as numbers."""
    if not any(isinstance(field.dataType, _INTERVALS) for field in answer.schema):
        return answer
    columns = []
    for field in answer.schema:
        column = sf.col(f"`{field.name.replace('`', '``')}`")
        columns.append(column.cast("string").alias(field.name) if isinstance(field.dataType, _INTERVALS) else column)
    return answer.select(*columns)


def _require_query(spark: SparkSession, statement: str) -> None:
    """Spark would carry out any other statement at once: a table of ours has one writer, which is not we."""
    parser = spark._jsparkSession.sessionState().sqlParser()
    parser.parsePlan(statement)
    try:
        parser.parsePlan(f"({statement.rstrip().rstrip(';')}\n)")
    except ParseException:
        raise SqlError("--sql takes a query (SELECT, WITH, FROM, VALUES), and no other statement") from None


def _numbered(rows: DataFrame, own: Sequence[StructField], image: str) -> DataFrame:
    """Each row as one value, with the columns of the table as it is now, by key and number (see `net_changes`)."""
    has = {field.name: field.dataType for field in rows.schema}
    values = [_field(sf.col, has, one) for one in own]
    number = sf.row_number().over(Window.partitionBy(KEY, PARTITION).orderBy(SEQUENCE)).alias("n")
    more = [sf.col(COMMIT_TIME).alias(INSTANT)] if image == AFTER else []
    return rows.select(KEY, PARTITION, number, sf.struct(*values).alias(image), *more)


def _field(column: Callable[[str], Column], has: Mapping[str, DataType], wanted: StructField) -> Column:
    """A column, or a field of a struct, as it is now; null where there was none."""
    name = wanted.name
    if name not in has:
        return sf.lit(None).cast(wanted.dataType).alias(name)
    return _as(column(name), has[name], wanted.dataType).alias(name)


def _as(column: Column, has: DataType, wanted: DataType) -> Column:
    """A value of one type as one of another that it was evolved to. Spark casts structs by the places of their fields,
    and floats by their bits, of which Hudi takes the digits."""
    if has == wanted:
        return column
    match has, wanted:
        case StructType(), StructType():
            fields = {field.name: field.dataType for field in has.fields}
            made = sf.struct(*(_field(column.getField, fields, one) for one in wanted.fields))
            return sf.when(column.isNotNull(), made)
        case ArrayType(), ArrayType():
            return sf.transform(column, lambda one: _as(one, has.elementType, wanted.elementType))
        case MapType(), MapType() if has.keyType == wanted.keyType:
            return sf.transform_values(column, lambda _, one: _as(one, has.valueType, wanted.valueType))
        case FloatType(), DoubleType():
            column = column.cast("string")
    return column.cast(wanted)


def _comparable(image: str, own: Sequence[StructField]) -> Column:
    """Spark compares no maps."""
    values = [
        sf.to_json(sf.col(image)[one.name], _MICROSECONDS)
        if "map<" in one.dataType.simpleString()
        else sf.col(image)[one.name]
        for one in own
    ]
    return sf.when(sf.col(image).isNotNull(), sf.struct(*values))


@contextmanager
def _spark_errors(remedy: Remedy, statement: str | None) -> Iterator[None]:
    try:
        yield
    except AnalysisException as error:
        if statement is None:
            raise UnreadableError(str(in_our_words(error, remedy))) from error
        raise SqlError(f"--sql: {str(error).splitlines()[0]}. The table is called {TABLE} there") from error
    except SPARK_ERRORS as error:
        raise UnreadableError(str(in_our_words(error, remedy))) from error
