"""What is another row at the end of a span than at its beginning: both versions are read, and joined by key.

That needs nothing but the files of two commits, so it holds for any table, also one that nobody has written a log of
changes for; and it is right wherever the two snapshots are. What it does not have is what was between them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa

from lakestream.query import sql
from lakestream.query.ddl import quoted
from lakestream.query.hudi_folder import HudiFolder
from lakestream.query.hudi_rs import HudiRs
from lakestream.query.images import AFTER, BEFORE, COMMIT_TIME, INSTANT, KEY, OP, PARTITION, ROW_KEY, SEQUENCE
from lakestream.query.question import Asked
from lakestream.query.rows import first
from lakestream.query.spans import Comparison, Span
from lakestream.query.telling import told_of_comparison


class HudiRsChanges:
    """The changes between two versions of a table; a `Source`."""

    engine = HudiRs.engine

    def __init__(self, folder: HudiFolder, found: Comparison, asked: Asked) -> None:
        self._folder = folder
        self._found = found
        # Of no commit and of the same one there are no rows that could differ.
        self._before, self._after = (
            HudiRs(folder, Span(None if found.before == found.after else version), asked)
            for version in (found.before, found.after)
        )
        self._before.leave_out(self._after)
        own = pa.struct([field for field in self._after.schema if not field.name.startswith("_hoodie_")])
        text = pa.string()
        self.schema = pa.schema([(OP, text), (INSTANT, text), (ROW_KEY, text), (BEFORE, own), (AFTER, own)])

    @property
    def about(self) -> str:
        return f"{self._folder.told}, {told_of_comparison(self._found)}"

    @contextmanager
    def answered(self, statement: str | None, limit: int | None) -> Iterator[pa.RecordBatchReader]:
        """See `Source`."""
        images = [field.name for field in self.schema.field(AFTER).type]
        with joined(self._before.read, self._after.read, images) as changes:
            if statement is None:
                with sql.kept(first(limit, changes(self.schema.names))) as rows:
                    yield rows
                return
            with sql.answered(statement, self.schema, changes) as rows:
                yield first(limit, rows)

    def require_kept(self) -> None:
        """See `Source`."""
        self._folder.require_kept(self._found.before or self._found.after)


@contextmanager
def joined(before: sql.Read, after: sql.Read, images: Sequence[str]) -> Iterator[sql.Read]:
    """What reads the changes between two versions, by key.

    Args:
        before: reads columns of the earlier version, Hudi's own among them.
        after: of the later one.
        images: the table's columns.
    """
    needed = [KEY, PARTITION, SEQUENCE, COMMIT_TIME, *images]
    with sql.connected() as connection:

        def changes(columns: Sequence[str]) -> pa.RecordBatchReader:
            for name, read in (("old", before), ("new", after)):
                sql.fill(connection, name, read(needed))
            picked = ", ".join(map(quoted, columns)) or OP
            return connection.sql(f"SELECT {picked} FROM ({_join(images)})").to_arrow_reader(10_000)

        yield changes


def _join(images: Sequence[str]) -> str:
    """Rows of one key are told apart by the order in which they were written: a table of inserts may have several, and
    only gains some behind them."""
    image = f"struct_pack({', '.join(f'{quoted(name)} := {quoted(name)}' for name in images)})"
    numbered = f"row_number() OVER (PARTITION BY {KEY}, {PARTITION} ORDER BY {SEQUENCE})"
    sides = (
        f"(SELECT {KEY}, {PARTITION}, {COMMIT_TIME}, {numbered} AS n, {image} AS image FROM {name}) AS {name}"
        for name in ("old", "new")
    )
    return (
        f"SELECT CASE WHEN old.n IS NULL THEN 'insert' WHEN new.n IS NULL THEN 'delete' ELSE 'update' END AS {OP}, "
        f"new.{COMMIT_TIME} AS {INSTANT}, {KEY} AS {ROW_KEY}, old.image AS {BEFORE}, new.image AS {AFTER} "
        f"FROM {' FULL JOIN '.join(sides)} USING ({KEY}, {PARTITION}, n) "
        f"WHERE old.image IS DISTINCT FROM new.image ORDER BY {KEY}, {PARTITION}, n"
    )
