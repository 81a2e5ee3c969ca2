"""`lakestream query` by Spark: on this machine, and on a cluster's executors."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import Result
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from typer.testing import CliRunner

from hudi_orders import Order, opened, ref, rows_of, upserts
from lab.driver import small_cluster
from lakestream.main import app
from lakestream.query import hudi_spark
from lakestream.query.hudi_spark import HudiSpark, _comparable, _field
from lakestream.query.images import AFTER, BEFORE
from lakestream_api import TableType
from quick_spark import quick

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

LATER = [Order("a", 2), Order("b", 1, "d"), Order("d", 1)]
BY_DAY = "SELECT dt, count(*) AS orders, max(version) AS version FROM lake GROUP BY dt ORDER BY dt"


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """`a`, `c` and `d`; `b` was deleted."""
    settings = upserts(tmp_path_factory.mktemp("query"), TableType.MERGE_ON_READ)
    with opened(spark, settings) as sink:
        sink.write(ref(0), rows_of(spark, [Order("a", 1), Order("b", 1), Order("c", 1)]), replay=False)
        sink.write(ref(1), rows_of(spark, LATER), replay=False)
        sink.finish_services()
    return settings.path


@pytest.fixture
def on_cluster(tmp_path: Path) -> Mapping[str, str]:
    """What spark-submit says of an executor that is a process of its own."""
    return small_cluster(tmp_path / "spark-home", executors=1)


def query(*arguments: str, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "lakestream.main", "query", *arguments],
        env={**os.environ, **quick(), **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.fixture
def ask(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """The same in this process, by a Spark that is there."""
    monkeypatch.setattr(hudi_spark, "build_session", lambda _: spark)
    monkeypatch.setattr(hudi_spark, "stop_session", lambda _: None)
    return lambda *arguments: CliRunner().invoke(app, ["query", *arguments])


def test_tasks_read_a_folder_of_any_name_and_write_the_rows_to_one_that_is_empty(table: str, tmp_path: Path) -> None:
    odd = tmp_path / "my [old] #1 'orders' %41"
    shutil.copytree(table.removeprefix("file://"), odd)
    native = query(str(odd), "--engine", "native", "--sql", BY_DAY, "-o", "csv")
    assert native.stdout == "dt,orders,version\n2026-01-01,1,1\n2026-01-02,2,2\n", native.stderr
    to = tmp_path / "my [reports]" / "{date}"
    # What an attempt that was killed has left: its rows do not come back.
    now = datetime.now(UTC)
    days = [tmp_path / "my [reports]" / f"{one:%Y-%m-%d}" for one in (now, now + timedelta(days=1))]
    for day in days:
        stale = day / "_temporary" / "0" / "task_1" / "part-0.parquet"
        stale.parent.mkdir(parents=True)
        stale.write_bytes(b"rows of another attempt")
    done = query(str(odd), "--engine", "spark", "--sql", BY_DAY, "--to", str(to))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "", "not a word of a library's"
    assert "2 rows of orders (Hudi, merge on read), as of " in done.stderr
    (day,) = (day for day in days if f", by Spark 3.5.9 with Hudi, written to {day} in " in done.stderr)
    assert pq.read_table(day).to_pylist() == [
        {"dt": "2026-01-01", "orders": 1, "version": 1},
        {"dt": "2026-01-02", "orders": 2, "version": 2},
    ]
    again = query(table, "--engine", "spark", "--to", str(day))
    assert again.returncode == 2
    assert f"--to: {day} is not empty (" in again.stderr
    assert "Spark" not in again.stderr, "it is refused before Spark is started"


def test_an_executor_of_a_cluster_reads_and_the_driver_prints(table: str, on_cluster: Mapping[str, str]) -> None:
    done = query(table, "--cluster", "--sql", BY_DAY, "-o", "csv", environment=on_cluster)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "dt,orders,version\n2026-01-01,1,1\n2026-01-02,2,2\n"


def test_no_rows_are_an_answer_and_a_wrong_query_is_none(table: str, ask: Callable[..., Result]) -> None:
    none = ask(table, "--engine", "spark", "--sql", f"SELECT * FROM ({BY_DAY}) WHERE orders > 9")
    assert none.exit_code == 0, none.stderr
    assert none.stdout.split()[:3] == ["dt", "orders", "version"]
    assert "0 rows of orders" in none.stderr
    wrong = ask(table, "--engine", "spark", "--sql", "SELECT statsu FROM lake")
    assert wrong.exit_code == 2
    assert "statsu" in wrong.stderr.splitlines()[-1]


def test_intervals_are_text(table: str, ask: Callable[..., Result]) -> None:
    took = "max(TIMESTAMP '2026-01-02 03:00:00') - min(TIMESTAMP '2026-01-01 00:00:00') AS `took ``it`"
    done = ask(table, "--engine", "spark", "--sql", f"SELECT count(*) AS n, {took} FROM lake", "-o", "csv")
    assert done.stdout == "n,took `it\n3,INTERVAL '1 03:00:00' DAY TO SECOND\n", done.stderr


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE mine USING parquet AS SELECT * FROM lake",
        "DELETE FROM lake",
        "DROP VIEW lake",
    ],
)
def test_what_is_no_query_is_not_carried_out(table: str, ask: Callable[..., Result], statement: str) -> None:
    """The table has one writer, which is not who asks it something."""
    refused = ask(table, "--engine", "spark", "--sql", f"{statement};")
    assert refused.exit_code == 2
    assert refused.stderr.splitlines()[-1] == (
        "lakestream: --sql takes a query (SELECT, WITH, FROM, VALUES), and no other statement"
    )
    assert ask(table, "--sql", "SELECT count(*) AS n FROM lake", "-o", "csv").stdout == "n\n3\n"


def test_a_microsecond_in_a_map_is_a_change(spark: SparkSession) -> None:
    """Spark compares no maps, and as JSON it writes them with milliseconds."""
    kind = "map(1, named_struct('t', {}, 'n', {}))"
    at, without = "timestamp_micros({})", "CAST(timestamp_micros({}) AS TIMESTAMP_NTZ)"
    one, two = (kind.format(at.format(n), without.format(1)) for n in (1, 2))
    three = kind.format(at.format(1), without.format(2))
    for after, changes in ((one, 0), (two, 1), (three, 1)):
        rows = spark.sql(f"SELECT struct({one} AS m) AS {BEFORE}, struct({after} AS m) AS {AFTER}")
        own = rows.schema[AFTER].dataType.fields
        assert rows.where(~_comparable(BEFORE, own).eqNullSafe(_comparable(AFTER, own))).count() == changes


def test_a_row_of_before_is_as_one_of_now(spark: SparkSession) -> None:
    """Fields that have changed places since were swapped, those that came failed; floats were other doubles."""
    rows = spark.sql(
        """SELECT named_struct('net', 1, 'gross', 2) AS price, CAST(NULL AS STRUCT<net: INT>) AS none, 0.1F AS f,
        array(named_struct('a', 0.1F)) AS many, map('k', named_struct('x', 1, 'y', 2)) AS by, 7 AS same"""
    )
    has = {field.name: field.dataType for field in rows.schema}
    wanted = spark.sql(
        """SELECT CAST(NULL AS STRUCT<gross: BIGINT, vat: INT, net: INT>) AS price,
        CAST(NULL AS STRUCT<net: INT>) AS none, 1D AS f, array(named_struct('a', 1D)) AS many,
        map('k', named_struct('y', 1, 'x', 2)) AS by, 7 AS same, 1 AS came"""
    ).schema
    found = rows.select(*(_field(sf.col, has, one) for one in wanted))
    assert found.first().asDict(recursive=True) == {
        "price": {"gross": 2, "vat": None, "net": 1},
        "none": None,
        "f": 0.1,
        "many": [{"a": 0.1}],
        "by": {"k": {"y": 2, "x": 1}},
        "same": 7,
        "came": None,
    }
    assert [one.dataType.simpleString() for one in found.schema] == [one.dataType.simpleString() for one in wanted]


def test_texts_are_what_they_are(table: str, ask: Callable[..., Result]) -> None:
    done = ask(
        table, "--engine", "spark", "--sql", "SELECT DISTINCT '${x}' AS x, '${env:PATH}' AS p FROM lake", "-o", "csv"
    )
    assert done.stdout == "x,p\n${x},${env:PATH}\n", done.stderr


def test_the_folder_for_temporary_files_may_have_any_name(
    table: str, ask: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "jürgen 50%"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    answer = ask(table, "--engine", "spark", "--sql", "SELECT count(*) AS n FROM lake", "-o", "csv")
    assert answer.stdout == "n\n3\n", answer.stderr


def test_files_that_were_cleaned_under_tasks_are_to_be_asked_for_again(
    table: str, tmp_path: Path, ask: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "orders"
    shutil.copytree(table.removeprefix("file://"), folder)
    brought = HudiSpark._brought

    def cleaned(source: HudiSpark, answer: DataFrame, place: Path) -> pa.RecordBatchReader:
        assert answer.inputFiles(), "nothing was listed"
        newest = max((folder / ".hoodie").glob("*.deltacommit"))
        shutil.copy(newest, newest.with_name("20990101000000000.deltacommit"))
        plan = {"earliestInstantToRetain": {"timestamp": "20990101000000000"}}
        newest.with_name("20990101000001000.clean.requested").write_text(json.dumps(plan))
        for file in folder.glob("*/*.parquet"):
            file.unlink()
        return brought(source, answer, place)

    monkeypatch.setattr(HudiSpark, "_brought", cleaned)
    failed = ask(str(folder), "--engine", "spark")
    assert (failed.exit_code, failed.stdout) == (1, ""), failed.stderr
    assert re.search(r"files of \d{17} .* were removed while they were read: .* Ask again", failed.stderr)


def test_who_has_seen_enough_is_told_nothing_of_spark(table: str) -> None:
    """As `| head -1` has."""
    many = "SELECT id, repeat('x', 100) AS text FROM range(100000)"
    arguments = [table, "--engine", "spark", "--sql", many, "-o", "csv"]
    with subprocess.Popen(
        [sys.executable, "-m", "lakestream.main", "query", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "id,text\n"
        process.stdout.close()
        assert "JVM" not in process.stderr.read()
        assert process.wait() == 1


def test_a_query_that_runs_out_of_memory_says_what_to_set(table: str) -> None:
    text = "concat_ws('', collect_list(repeat('x', 1000000)))"
    large = f"SELECT length({text}) FROM range(2000)"
    failed = query(table, "--engine", "spark", "--sql", large, environment={"SPARK_DRIVER_MEMORY": "600m"})
    assert failed.returncode == 3
    assert "raise SPARK_DRIVER_MEMORY (2g if it is not set)" in failed.stderr.splitlines()[-1]
    assert "writer" not in failed.stderr
    assert "Traceback" not in failed.stderr
