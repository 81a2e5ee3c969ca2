"""Requests to S3, counted by the server: one arm writes a few batches to it, and is asked one query of each kind.

Nothing is timed here: the server (moto) is far slower than S3, and runs on the same cores.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lakestream.model import BatchCommit
from lakestream_bench._counting_s3 import CountingS3
from lakestream_bench.compare.arms import Arm
from lakestream_bench.compare.history import History
from lakestream_bench.compare.queries import queries, right_answer
from lakestream_bench.compare.results import Requests
from lakestream_bench.compare.scenarios import Scenario
from lakestream_bench.compare.tables import answer, commits, moment_of, name_table, stock_session
from lakestream_bench.compare.trial import Ingest, Place
from lakestream_bench.compare.truth import WrongAnswerError, differences, subjects

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BATCHES = 11
"""The first one, which makes the table, and all up to the next compaction, which is counted with them."""


def count_requests(spark: SparkSession, scenario: Scenario, arm: Arm, history: History, s3: CountingS3) -> Requests:
    """Write the first batches of a history to S3, and ask.

    Raises:
        WrongAnswerError: an answer was not right.
    """
    table = f"{s3.lake}/{scenario.name}-{arm.name}/table"
    plans = history.plans[:BATCHES]
    instants: list[str | None] = []

    def committed(commit: BatchCommit) -> None:
        instants.append(commit.sink.instant if commit.sink else None)

    ingest = Ingest(spark, arm, Place(table, f"{table}-checkpoint", s3.settings), history)
    try:
        # The first batch makes the table, which happens once.
        ingest.run(plans[:1], committed)
        ingest.settle()
        s3.counted.take()
        ingest.run(plans[1:], committed)
        ingest.settle()
        writing = s3.counted.take()
    finally:
        ingest.close()
    about = subjects(history.truth, len(plans))
    found = commits(spark, table) if arm.has_keys else ()
    moment = moment_of(history.arrived[about.then - 1], about.then, instants, found)
    reading: dict[str, Mapping[str, int]] = {}
    for query in queries(arm, about):
        s3.counted.take()
        session = stock_session(spark)
        name_table(session, arm, table, query.view, moment)
        given = answer(session, query.sql)
        reading[query.kind.value] = s3.counted.take()
        right = right_answer(query, history.truth, len(plans), about.then)
        if query.may_lag or given == right:
            continue
        raise WrongAnswerError(f"{arm.title} on S3, {query.kind}: {differences(right, given)}")
    return Requests(scenario.name, arm.name, sum(scenario.sizes[1 : len(plans)]), len(plans) - 1, writing, reading)
