"""Asking the driver of a writer to take files."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial

from lakestream.backfill.cut import parts_of, parts_of_texts
from lakestream.backfill.find import Found
from lakestream.errors import RequestError
from lakestream.log import Document, LogStore, Request, Requested, next_number, put_request, requests
from lakestream.model import Definition, FilePart, RecordFormat

_CONCURRENT_GETS = 16
_MOST_PARTS = 100_000
"""Of a request, which a driver reads as a whole: 400 GB of JSON lines, or 2.5 billion rows of Parquet."""


def ask(
    store: LogStore,
    definition: Definition,
    files: Sequence[Found],
    now: datetime,
    *,
    columns: Collection[str] | None,
    is_table: bool,
    once: bool,
) -> Request:
    """Ask the writer's driver to take files.

    Args:
        store: the writer's part of the checkpoint.
        definition: what the document says now.
        files: in the order in which they are taken.
        now: the time.
        columns: as in `parts_of`.
        is_table: all files hold rows of a table; otherwise those do that are of a table of JSON files.
        once: refuse a file that was asked for before: the table would have its rows twice.

    Raises:
        RequestError: another request goes on; or one of the files cannot be taken.
        CorruptLogError, StorageError, StorageUnavailableError, OutcomeUnknownError: of checkpoint or files.
    """
    number = next_number(store)
    _require_few(sum(file.size > 0 for file in files), "files")  # before each of them is looked at
    if once:
        _require_new(store, files)

    with ThreadPoolExecutor(_CONCURRENT_GETS) as pool:
        found = pool.map(partial(_parts, definition=definition, columns=columns, is_table=is_table), files)
        parts = tuple(part for of_file in found for part in of_file)
    if not parts:
        raise RequestError(f"nothing to take: the files are empty, {files[0].path} for instance")
    if len({part.is_table for part in parts}) > 1:
        raise RequestError("some files hold rows of a table, and others events: ask for them one after the other")
    _require_few(len(parts), "parts of files")
    request = Request(number, now, Document.given(store, definition), tuple(map(Requested, parts)))
    if not put_request(store, request):
        raise RequestError("somebody else has asked just now: `lakestream backfill status` tells how far it is")
    return request


def _parts(
    file: Found, *, definition: Definition, columns: Collection[str] | None, is_table: bool
) -> tuple[FilePart, ...]:
    """Of a file, by what its records are; errors as of `ask`."""
    of_table = is_table or file.table_rows is not None
    if of_table or definition.record_format in (RecordFormat.JSON, RecordFormat.JSONL):
        several = not of_table and definition.record_format is RecordFormat.JSONL
        return parts_of(file, None if of_table else columns, is_table=of_table, several=several)
    if definition.record_format is RecordFormat.TEXT:
        return parts_of_texts(file)
    raise RequestError(
        "by spec.format records are in frames of the Glue Schema Registry, which files have not: have a span of the "
        "stream read once more (--from, --to), or take rows as the table has them (--rows)"
    )


def told(request: Request) -> str:
    """What is asked for, in a sentence without its full stop."""
    size = sum(part.bytes for part in request.file_parts)
    what = "rows of a table" if request.file_parts[0].is_table else "records"
    return f"{request}: about {request.records:,} {what} in {len(request.files):,} files, {size:,} bytes"


def _require_few(count: int, what: str) -> None:
    if count > _MOST_PARTS:
        raise RequestError(f"{count:,} {what} are more than the {_MOST_PARTS:,} of a request: give fewer")


def _require_new(store: LogStore, files: Sequence[Found]) -> None:
    # An ETag is not its content: a copy, or an upload in parts, has another one.
    asked = {part.path: (request, part.etag) for request in requests(store) for part in request.file_parts}
    for file in files:
        if file.path in asked:
            before, etag = asked[file.path]
            since = "" if etag == file.etag else ", has changed since or was put there anew"
            raise RequestError(
                f"{file.path} was asked for by {before} of {before.requested_at:%Y-%m-%d %H:%M} UTC{since}, and the "
                "table keeps every row: what was taken then would be there twice. If that is right, give --again"
            )
