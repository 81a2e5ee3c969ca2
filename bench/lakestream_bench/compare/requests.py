"""Requests to S3, counted by the server: one arm writes a few batches to it, and is asked one query of each kind.

Nothing is timed here: the server (moto) is far slower than S3, and runs on the same cores.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from lakestream.model import BatchCommit
from lakestream.storage import S3Settings
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

BUCKET = "compare"
BATCHES = 11
"""The first one, which makes the table, and all up to the next compaction, which is counted with them."""


class RequestKind(StrEnum):
    """As S3 prices them."""

    PUT = "PUT"
    POST = "POST"
    LIST = "LIST"
    GET = "GET"
    HEAD = "HEAD"
    DELETE = "DELETE"


def kind_of(method: str, path: str, query: str) -> RequestKind | None:
    """The kind of a request in path style; None: a method that S3 has not.

    Args:
        method: of HTTP.
        path: `/bucket/key`.
        query: behind the `?`.
    """
    _, _, key = path.lstrip("/").partition("/")
    if method == "GET" and not key and not parse_qs(query, keep_blank_values=True).keys() & {"location", "versioning"}:
        return RequestKind.LIST
    return RequestKind.__members__.get(method)


@dataclass
class Counted:
    """A WSGI application that counts what it hands on."""

    application: Callable[..., Iterable[bytes]]
    _counts: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        kind = kind_of(environ["REQUEST_METHOD"], environ["PATH_INFO"], environ.get("QUERY_STRING", ""))
        if kind is not None:
            with self._lock:
                self._counts[kind.value] += 1
        return self.application(environ, start_response)

    def take(self) -> Mapping[str, int]:
        """Counts since the last call."""
        with self._lock:
            counts, self._counts = self._counts, Counter()
        return dict(sorted(counts.items()))


@dataclass(frozen=True)
class CountingS3:
    """A running S3 server."""

    settings: S3Settings
    counted: Counted


@contextmanager
def counting_s3() -> Iterator[CountingS3]:
    """A server with an empty bucket on a free loopback port, until the block ends."""
    import boto3
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    # A line for each request otherwise.
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    counted = Counted(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, counted, threaded=True)
    thread = threading.Thread(target=server.serve_forever, name="counting-s3", daemon=True)
    thread.start()
    endpoint = f"http://127.0.0.1:{server.server_port}"
    try:
        client = boto3.client(
            "s3",
            endpoint_url=endpoint,
            region_name="us-east-1",
            aws_access_key_id="local",
            aws_secret_access_key="local",
        )
        client.create_bucket(Bucket=BUCKET)
        yield CountingS3(S3Settings("us-east-1", endpoint), counted)
    finally:
        server.shutdown()
        thread.join()


def count_requests(spark: SparkSession, scenario: Scenario, arm: Arm, history: History, s3: CountingS3) -> Requests:
    """Write the first batches of a history to S3, and ask.

    Raises:
        WrongAnswerError: an answer was not right.
    """
    table = f"s3a://{BUCKET}/{scenario.name}-{arm.name}/table"
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
