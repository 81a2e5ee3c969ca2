"""What Hudi says of a commit, in our terms: pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lakestream.model import FileEntry, SinkCommit

WriteStat = Mapping[str, Any]
"""Hudi's HoodieWriteStat as JSON."""

BATCH, CHECKPOINT = "lakestream.batch", "lakestream.checkpoint"
"""Keys of our marks in the metadata of a commit."""


def sink_commit(instant: str, stats: Iterable[WriteStat], seconds: Mapping[str, float] | None = None) -> SinkCommit:
    """The commit of a batch from the write statistics of its files.

    `rows` are those inserted and updated; a rewritten base file also has rows that the batch did not touch, which are
    counted in its `FileEntry` only.
    """
    stats = sorted(stats, key=lambda stat: str(stat["path"]))
    return SinkCommit(
        rows=sum(max(stat["numInserts"], 0) + max(stat["numUpdateWrites"], 0) for stat in stats),
        bytes=sum(max(stat["totalWriteBytes"], 0) for stat in stats),
        files=tuple(
            FileEntry(
                path=stat["path"],
                rows=max(stat["numWrites"], 0),
                bytes=max(stat["totalWriteBytes"], 0),
                partition=stat["partitionPath"] or "",
            )
            for stat in stats
            # A file group that a batch only tried to delete from has no file.
            if stat["path"] is not None
        ),
        instant=instant,
        seconds=seconds or {},
        file_groups=len({(stat["partitionPath"], stat["fileId"]) for stat in stats}),
    )


def largest_file(stats: Iterable[WriteStat]) -> int:
    """Bytes of the largest base file that was written; 0: none was."""
    sizes = (stat["fileSizeInBytes"] for stat in stats if str(stat["path"]).endswith(".parquet"))
    return max(sizes, default=0)


def marks(batch: int, checkpoint: str) -> dict[str, str]:
    """What a batch leaves in its commit's metadata."""
    return {BATCH: str(batch), CHECKPOINT: checkpoint}


def batch_of(metadata: Mapping[str, str], checkpoint: str) -> int | None:
    """The batch that a commit was made for, or None if it was not made for this checkpoint."""
    if metadata.get(CHECKPOINT) != checkpoint:
        return None
    return int(metadata[BATCH])
