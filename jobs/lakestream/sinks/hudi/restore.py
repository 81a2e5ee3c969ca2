"""Taking a table back to one of its commits, by Hudi's restore.

Hudi undoes the later commits one by one, newest first: the files that they wrote are deleted, their instants with them;
in log files of version 6 a block takes back what a commit has appended. A restore that was cut off is in the timeline,
refuses all writes, and is gone on with.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import UTC, datetime
from types import MappingProxyType

from pyspark.sql import SparkSession

from lakestream.errors import RestoreError, TableGoneError
from lakestream.faults import reach
from lakestream.sinks.hudi.client import HudiClient
from lakestream.sinks.hudi.clock import CommitClock
from lakestream.sinks.hudi.deletes import forget_since
from lakestream.sinks.hudi.metaclient import HudiTable, SideFiles
from lakestream.sinks.hudi.options import ALONE, write_options
from lakestream.sinks.hudi.rollbacks import remember
from lakestream.sinks.hudi.settings import HudiSettings
from lakestream.sinks.hudi.table import with_version
from lakestream.spark.failures import SPARK_ERRORS, in_our_words
from lakestream_api import TableVersion

logger = logging.getLogger(__name__)


class RestorableTable:
    """A table that no sink has open: nothing may be written, compacted or cleaned meanwhile."""

    def __init__(
        self, spark: SparkSession, settings: HudiSettings, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._spark = spark
        self._settings = settings
        self._clock = CommitClock(settings.path, now)

    def require(self, instant: str, batch: int, checkpoint: str, comment: str) -> None:
        """Check that the table can be taken back to a commit, and have its files kept until that is done.

        Args:
            instant: of the commit.
            batch: that it is of, or an earlier one than this: there may have been batches without a commit since.
            checkpoint: of the batch.
            comment: kept with the savepoint, and tells by it whose it is.

        Raises:
            ClockBehindError: by this machine's clock, the savepoint would be older than the table's newest commit.
            RestoreError: it cannot, and why.
        """
        table = self._table()
        self._require_clock(table)
        marked = table.batch_at(instant, checkpoint)
        if marked is None or marked > batch:
            raise RestoreError(f"{self._settings.path} has no completed commit {instant} of this checkpoint any more")
        saved = table.savepoints()
        if later := sorted(one for one in saved if one > instant):
            raise RestoreError(f"a later commit has a savepoint, {later[-1]}: delete that first")
        if instant in saved:
            return
        with closing(self._client(table)) as client:
            try:
                client.savepoint(comment, instant)
            except SPARK_ERRORS as error:
                raise RestoreError(f"files of {instant} may have been cleaned: {in_our_words(error)}") from error

    def restore(self, instant: str) -> None:
        """Undo all later commits. It may be called again, also if it was cut off.

        1. Deletes that later batches had are forgotten: what is read again may make other rows of them.
        2. The later commits are written down as undone: should a request of a dead driver complete one afterwards, it
           is none.
        3. Hudi undoes them, of version 9 without the plans of clusterings: completed, these are another action there
           than pending ones. They would be taken up again, on files of commits that are gone.

        Raises:
            ClockBehindError: by this machine's clock, that would be before the table's newest commit.
        """
        table = self._table()
        self._require_clock(table)
        self._end_rollbacks(table)
        forget_since(self._spark, SideFiles(table, "deletes"), table.time_of(instant).timestamp())
        remember(table, table.batches(after=instant))
        reach("written")
        with closing(self._client(table)) as client:
            client.restore(instant)
            if table.settings.version is TableVersion.NINE:
                for later in (one for one in table.pending_clusterings() if one > instant):
                    client.undo(later)

    def release(self, instant: str, comment: str) -> None:
        """Delete the savepoint that `require` has made with this comment, if there is one."""
        table = self._table()
        if table.savepoints().get(instant) != comment:
            return
        with closing(self._client(table)) as client:
            client.delete_savepoint(instant)

    def _table(self) -> HudiTable:
        table = HudiTable(self._spark, self._settings)
        if not table.exists():
            raise TableGoneError(f"there is no table at {self._settings.path}")
        return HudiTable(self._spark, with_version(table.properties(), self._settings))

    def _require_clock(self, table: HudiTable) -> None:
        self._clock.require_after(table.newest_time(table.meta_client()))

    def _end_rollbacks(self, table: HudiTable) -> None:
        """Undo what a dead driver was writing. Of a restore that was cut off, end what it was undoing, by the plan that
        it had: the commit is half gone, and another plan would go by what is left of it."""
        undoing = table.undoing()
        with closing(self._client(table, ALONE)) as client:
            if undoing is None:
                client.roll_back_pending()
            else:
                client.end_rollbacks()
        # A compaction that is half undone is a pending one again, and Hudi passes over it: its files are gone by now.
        table.forget_compactions(instant for instant in table.pending_compactions() if instant in (undoing or ()))

    def _client(self, table: HudiTable, more: Mapping[str, str] = MappingProxyType({})) -> HudiClient:
        columns = table.columns()
        assert columns is not None  # a table with a commit has some
        return HudiClient(table, {**write_options(table.settings), **more}, columns)
