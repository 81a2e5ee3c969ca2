"""The entries of a journal made an account again."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from lakestream_localkinesis.core.account import Account
from lakestream_localkinesis.core.state import update_stream
from lakestream_localkinesis.core.stream import HOUR_MS, Stream
from lakestream_localkinesis.errors import StartupError
from lakestream_localkinesis.journal.entries import (
    READ,
    VERSION,
    Arrived,
    Changed,
    Entry,
    FrameError,
    Head,
    read_entries,
)
from lakestream_localkinesis.journal.folder import Folder, Segment

logger = logging.getLogger(__name__)


class Replay:
    """Fills an account that has nothing yet with what is retained now: a folder may have more than fits in memory."""

    def __init__(self, account: Account, now_ms: int) -> None:
        self.last_ms = 0
        self._now_ms = now_ms
        self._account = account
        self._number = 0
        """Of the segment that was read last; 0 until one has begun."""
        self._streams: dict[str, Stream] = {}
        self._horizons: dict[str, int] = {}
        """Before when records are gone, by the ids of the streams that there are in the end."""

    def read(self, folder: Folder) -> list[Segment]:
        """Read all segments in their order, and cut off what a write left that was cut short.

        Raises:
            StartupError: a segment is damaged, or is that of another account.
        """
        segments = folder.segments()
        self._horizons = self._horizons_of(segments)
        for behind, segment in enumerate(segments[:-1], start=1):
            self._read(segment, segments[behind:])
        if segments and not self._read(segments[-1], []):
            segments.pop().path.unlink()
        return segments

    def _horizons_of(self, segments: list[Segment]) -> dict[str, int]:
        """By what the journal ends with: retention may have grown since a record arrived."""
        found = (retention for retention in map(_last_retention, reversed(segments)) if retention is not None)
        return {ident: self._now_ms - hours * HOUR_MS for ident, hours in next(found, {}).items()}

    def _read(self, segment: Segment, following: Sequence[Segment]) -> int:
        """Bytes of the segment that are whole."""
        whole = 0
        with segment.path.open("rb") as file:
            try:
                for end, entry in read_entries(file, segment.size):
                    if whole == 0 and not isinstance(entry, Head):
                        raise FrameError(0, is_tail=False)
                    self._apply(segment, entry)
                    whole = end
            except FrameError as error:
                # The kernel writes files in any order: also one that is followed may lack its end.
                if not error.is_tail:
                    raise _damaged(segment, error.offset, following) from error
            except (LookupError, TypeError, ValueError) as error:
                raise _damaged(segment, whole, following) from error
        if whole < segment.size:
            logger.warning(
                "%s: the last %d bytes are of a write that was cut short, and was not acknowledged unless the machine "
                "lost power: cut off at byte %d",
                segment.path,
                segment.size - whole,
                whole,
            )
            with segment.path.open("r+b") as file:
                file.truncate(whole)
            segment.size = whole
        if whole or self._number:
            self._number = segment.number
        return whole

    def _apply(self, segment: Segment, entry: Entry) -> None:
        self.last_ms = max(self.last_ms, entry.at_ms)
        match entry:
            case Arrived():
                shard = self._streams[entry.stream].shards[entry.shard]
                if entry.batch.before != shard.appended:
                    raise ValueError(f"{shard.id} has {shard.appended} records, not {entry.batch.before}")
                if entry.at_ms >= self._horizons.get(entry.stream, math.inf):
                    shard.extend(entry.batch)
                else:
                    shard.skip(entry.batch)
                segment.newest_ms[entry.stream] = entry.at_ms
            case Changed():
                for ident in entry.gone:
                    del self._account.streams[self._streams.pop(ident).name]
                self._update(entry)
            case Head():
                self._check(segment.path, entry)
                self._begin(segment, entry)

    def _begin(self, segment: Segment, head: Head) -> None:
        """Streams as the segment's head has them, whatever came before."""
        self._account.streams.clear()
        self._update(head)
        self._streams = {stream.id: stream for stream in self._account.streams.values()}
        missing = 0
        for ident, shards in head.counts.items():
            for index, (records, size) in shards.items():
                shard = self._streams[ident].shards[index]
                missing += records - shard.appended
                shard.go_on_after(records, size)
        # Segments that are not there were removed by `prune`, or by somebody who knows of it.
        if missing and segment.number - 1 == self._number:
            logger.warning(
                "%s: %d records that were acknowledged are missing before it: the file before it has lost its end, as "
                "by a loss of power",
                segment.path,
                missing,
            )

    def _update(self, entry: Head | Changed) -> None:
        for state in entry.streams:
            stream = update_stream(self._streams.get(state["id"]), state, self._account.settings.limits)
            self._account.streams[stream.name] = self._streams[stream.id] = stream

    def _check(self, path: Path, head: Head) -> None:
        settings = self._account.settings
        if head.version not in READ:
            raise StartupError(
                f"{path} is of version {head.version}, and this server reads {VERSION} at most: use another folder"
            )
        if (head.account, head.region) != (settings.id, settings.region):
            raise StartupError(
                f"{path} has the streams of account {head.account} in {head.region}, and this server is account "
                f"{settings.id} in {settings.region}: start it with --account {head.account} --region {head.region}, "
                "or give it another folder"
            )


def _last_retention(segment: Segment) -> dict[str, int] | None:
    """Hours of the streams that a segment ends with, by their ids; None if it does not even begin.

    What is damaged is told when all is read.
    """
    hours: dict[str, int] | None = None
    with suppress(FrameError, LookupError, TypeError, ValueError), segment.path.open("rb") as file:
        for _, entry in read_entries(file, segment.size):
            if isinstance(entry, Arrived):
                continue
            gone = entry.gone if isinstance(entry, Changed) else ()
            hours = {ident: kept for ident, kept in (hours or {}).items() if ident not in gone}
            hours |= {state["id"]: state["retention_hours"] for state in entry.streams}
    return hours


def _damaged(segment: Segment, offset: int, following: Sequence[Segment]) -> StartupError:
    told = f"{segment.path} is damaged at byte {offset}, by the disk or by somebody who wrote to it."
    # One that begins has all that streams were by then, and how many records they had been given.
    if any(_last_retention(later) is not None for later in following):
        return StartupError(
            f"{told} Put back a copy of the file; or move it away to go on without its records, all others stay; or "
            "begin anew in another folder"
        )
    return StartupError(
        f"{told} It is the last one, which alone has what streams have become since it began: without it, shards "
        "would be open again that readers have read to their end. Put back a copy of the file; or begin anew in "
        "another folder"
    )
