"""Objects that executors write, named by batch, task and checkpoint, so that writing one twice is writing it once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import chain, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias
from uuid import uuid4

import obstore
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql.types import LongType, StringType, StructField, StructType

from lakestream.model import FileEntry
from lakestream.places import JSON_SIDE
from lakestream.sinks.contract import BatchRef
from lakestream.sinks.hive_paths import escape
from lakestream.spark.arrow import map_in_arrow
from lakestream.spark.worker import settle_worker
from lakestream.storage import LakeStore, ObjectNotFoundError, Scheme, StoreSettings, open_store, translated

if TYPE_CHECKING:
    Content: TypeAlias = bytes | memoryview

_CONCURRENT_PUTS = 8
"""Objects that one task puts at a time: a put on S3 takes some 30 ms, and a task may have one for each partition."""

_UNFINISHED = f"{JSON_SIDE}/unfinished"
"""Where an object of a folder is until it is whole. obstore writes it to another name beside its own, `…json.gz#1`,
which readers of the folder take as well: while it is written, and after a kill for good."""

_MANIFEST = StructType(
    [
        StructField("path", StringType()),
        StructField("rows", LongType()),
        StructField("bytes", LongType()),
        StructField("partition", StringType()),
    ]
)


def object_name(ref: BatchRef, task: int, suffix: str) -> str:
    """`b000000000012-00003-5e0c11aa.json.gz`: batch, task, the beginning of the checkpoint's UUID; and the attempt, if
    that makes a difference.

    With the checkpoint in it, a second one that writes to the same path adds to it instead of replacing some files.
    """
    attempt = f"-{ref.attempt}" if ref.attempt else ""
    return f"b{ref.batch:012d}-{task:05d}-{ref.checkpoint[:8]}{attempt}.{suffix}"


def name_pattern(checkpoint: str) -> re.Pattern[str]:
    """Matches the paths of all objects that any attempt at a batch of the checkpoint may have written; with `batch`."""
    return re.compile(rf"(?:.*/)?b(?P<batch>\d{{12}})-\d{{5,}}-{re.escape(checkpoint[:8])}(?:-\w+)?\.[^/]*")


TaskFiles = Callable[[int, "Iterator[pa.RecordBatch]"], "Iterator[tuple[FileEntry, Content]]"]
"""Makes the files of one task out of its number and rows. Runs on executors, so it is pickled; it must make the same
files of the same rows."""


def write_objects(rows: DataFrame, store: StoreSettings, files_of: TaskFiles) -> tuple[FileEntry, ...]:
    """Write the objects of a batch from the executors; returns them sorted by path."""

    def write_task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle_worker()
        context = TaskContext.get()
        assert context is not None  # it runs in tasks only
        files = list(files_of(context.partitionId(), iter(batches)))
        put_all(store, {entry.path: content for entry, content in files})
        if files:
            yield _to_arrow([entry for entry, _ in files])

    manifest = map_in_arrow(rows, write_task, _MANIFEST).collect()
    return tuple(sorted((FileEntry(*row) for row in manifest), key=lambda entry: entry.path))


def put_all(settings: StoreSettings, objects: Mapping[str, Content]) -> None:
    """Put objects, each whole or not at all, in the place of those that have the same name.

    Raises:
        StorageError, StorageUnavailableError: some may have been written.
    """
    store = open_store(settings)

    def put(item: tuple[str, Content]) -> None:
        path, content = item
        with translated(f"put {path} under {settings.path}"):
            if settings.path.scheme is Scheme.S3:
                obstore.put(store, path, content)
            else:
                _put_whole(store, path, content)

    if len(objects) == 1:
        put(next(iter(objects.items())))
    elif objects:
        with ThreadPoolExecutor(min(_CONCURRENT_PUTS, len(objects))) as pool:
            list(pool.map(put, objects.items()))


def _put_whole(store: LakeStore, path: str, content: Content) -> None:
    """Put an object into a folder in one step; an error leaves nothing of it."""
    unfinished = f"{_UNFINISHED}/{path.rpartition('/')[2]}-{uuid4().hex[:12]}"
    obstore.put(store, unfinished, content)
    try:
        obstore.rename(store, unfinished, path)
    except Exception:
        with suppress(Exception):
            obstore.delete(store, unfinished)
        raise


def discard_unfinished(settings: StoreSettings, ref: BatchRef) -> None:
    """Delete what processes that were killed have left in a folder of objects of this batch and of earlier ones. S3 has
    each whole or not at all."""
    if settings.path.scheme is Scheme.S3:
        return
    pattern = name_pattern(ref.checkpoint)
    with translated(f"delete what is unfinished under {settings.path}"):
        for file in Path(str(settings.path), _UNFINISHED).glob("b*"):
            if (name := pattern.fullmatch(file.name)) and int(name["batch"]) <= ref.batch:
                file.unlink(missing_ok=True)


def objects_of(settings: StoreSettings, ref: BatchRef) -> list[str]:
    """The paths of what all attempts at a batch have written into one folder, sorted. Of S3, which lists keys in their
    order, only those of the batch are listed."""
    pattern, first = name_pattern(ref.checkpoint), f"b{ref.batch:012d}-"
    with translated(f"list {settings.path}"):
        listed: Iterator[str] = (
            meta["path"] for meta in chain.from_iterable(obstore.list(open_store(settings), offset=first))
        )
        if settings.path.scheme is Scheme.S3:
            listed = takewhile(lambda path: path.startswith(first), listed)
        return sorted(path for path in listed if path.startswith(first) and pattern.fullmatch(path))


def folders_of(settings: StoreSettings, columns: Sequence[str]) -> Iterator[str]:
    """The paths of the partitions by these columns, the outermost first; other folders are not the table's."""
    store = open_store(settings)

    def below(path: str, columns: Sequence[str]) -> Iterator[str]:
        with translated(f"list {path or settings.path}"):
            found = obstore.list_with_delimiter(store, path or None)["common_prefixes"]
        for folder in sorted(found):
            if not folder.rpartition("/")[2].startswith(f"{escape(columns[0])}="):
                continue
            if len(columns) == 1:
                yield folder
            else:
                yield from below(folder, columns[1:])

    return below("", columns) if columns else iter(())


def remove(settings: StoreSettings, paths: Iterable[str]) -> None:
    """Delete objects; those that do not exist are no error."""
    store = open_store(settings)
    for path in paths:
        try:
            with translated(f"delete {path} under {settings.path}"):
                obstore.delete(store, path)
        except ObjectNotFoundError:
            continue  # a folder, unlike S3, says so when another driver was quicker


def _to_arrow(entries: list[FileEntry]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(
        [{"path": e.path, "rows": e.rows, "bytes": e.bytes, "partition": e.partition} for e in entries],
        schema=pa.schema(
            [("path", pa.string()), ("rows", pa.int64()), ("bytes", pa.int64()), ("partition", pa.string())]
        ),
    )
