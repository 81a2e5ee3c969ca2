"""The entries of a journal made an account again."""

from __future__ import annotations

import logging
from pathlib import Path

from lakestream_localkinesis.core.account import Account
from lakestream_localkinesis.core.state import update_stream
from lakestream_localkinesis.core.stream import Stream
from lakestream_localkinesis.errors import StartupError
from lakestream_localkinesis.journal.entries import (
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
    """Fills an account that has nothing yet."""

    def __init__(self, account: Account) -> None:
        self.last_ms = 0
        self._account = account
        self._streams: dict[str, Stream] = {}

    def read(self, folder: Folder) -> list[Segment]:
        """Read all segments in their order, and cut off what a write left that was cut short.

        Raises:
            StartupError: a segment is damaged, or is that of another account.
        """
        segments = folder.segments()
        for segment in segments[:-1]:
            self._read(segment, is_last=False)
        if segments and not self._read(segments[-1], is_last=True):
            segments.pop().path.unlink()
        return segments

    def _read(self, segment: Segment, *, is_last: bool) -> int:
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
                if not (is_last and error.is_tail):
                    raise _damaged(segment.path, error.offset) from error
            except (LookupError, TypeError, ValueError) as error:
                raise _damaged(segment.path, whole) from error
        if whole < segment.size:
            logger.warning(
                "%s: the last %d bytes are of a write that was cut short, and never acknowledged: cut off at byte %d",
                segment.path,
                segment.size - whole,
                whole,
            )
            with segment.path.open("r+b") as file:
                file.truncate(whole)
            segment.size = whole
        return whole

    def _apply(self, segment: Segment, entry: Entry) -> None:
        self.last_ms = max(self.last_ms, entry.at_ms)
        match entry:
            case Arrived():
                shard = self._streams[entry.stream].shards[entry.shard]
                if entry.batch.before != shard.appended:
                    raise ValueError(f"{shard.id} has {shard.appended} records, not {entry.batch.before}")
                shard.extend(entry.batch)
                segment.newest_ms[entry.stream] = entry.at_ms
            case Changed():
                for ident in entry.gone:
                    del self._account.streams[self._streams.pop(ident).name]
                self._update(entry)
            case Head():
                self._check(segment.path, entry)
                self._account.streams.clear()
                self._update(entry)
                self._streams = {stream.id: stream for stream in self._account.streams.values()}
                for ident, shards in entry.counts.items():
                    for index, (records, size) in shards.items():
                        self._streams[ident].shards[index].count_before(records, size)

    def _update(self, entry: Head | Changed) -> None:
        for state in entry.streams:
            stream = update_stream(self._streams.get(state["id"]), state, self._account.settings.limits)
            self._account.streams[stream.name] = self._streams[stream.id] = stream

    def _check(self, path: Path, head: Head) -> None:
        settings = self._account.settings
        if head.version != VERSION:
            raise StartupError(
                f"{path} is of version {head.version}, and this server reads {VERSION}: use another folder"
            )
        if (head.account, head.region) != (settings.id, settings.region):
            raise StartupError(
                f"{path} has the streams of account {head.account} in {head.region}, and this server is account "
                f"{settings.id} in {settings.region}: start it with --account {head.account} --region {head.region}, "
                "or give it another folder"
            )


def _damaged(path: Path, offset: int) -> StartupError:
    return StartupError(
        f"{path} is damaged at byte {offset}, by the disk or by somebody who wrote to it. Put back a copy of the file; "
        "or move it away to go on without its records, all others stay; or begin anew in another folder"
    )
