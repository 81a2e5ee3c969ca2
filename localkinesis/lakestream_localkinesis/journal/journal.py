"""What happens to an account, written down before it is answered, and read again at the next start.

Not the requests but what came of them: on-demand growth and retention depend on when they are looked at.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from lakestream_localkinesis.core.account import Account, AccountSettings
from lakestream_localkinesis.core.limits import MIB
from lakestream_localkinesis.core.shard import Shard
from lakestream_localkinesis.core.state import stream_state
from lakestream_localkinesis.core.stream import Stream
from lakestream_localkinesis.core.token import TokenSealer
from lakestream_localkinesis.errors import StartupError, UnwritableError
from lakestream_localkinesis.journal.entries import Arrived, Changed, Entry, Head, frame
from lakestream_localkinesis.journal.folder import Folder, Segment, Write
from lakestream_localkinesis.journal.replay import Replay

logger = logging.getLogger(__name__)

SEGMENT_BYTES = 64 * MIB
"""Retention gives disk back by whole segments."""
TIME_MS = 60_000
"""So often the time is written down when nothing else is."""


@dataclass(eq=False, slots=True)
class _Tail:
    """How much of an open shard is written down."""

    shard: Shard
    appended: int


@dataclass(eq=False, slots=True)
class _Kept:
    """What of a stream is written down."""

    stream: Stream
    text: str
    settled: int
    tails: list[_Tail] = field(default_factory=list)


class Journal:
    """An account that outlives its server."""

    def __init__(
        self,
        path: Path,
        settings: AccountSettings,
        now_ms: int,
        *,
        segment_bytes: int = SEGMENT_BYTES,
        write: Write = os.write,
    ) -> None:
        """Take a folder, and read what is in it and retained now.

        Raises:
            StartupError: somebody else has the folder, it cannot be used, or it is damaged.
        """
        self._folder = Folder(path, write)
        self._segment_bytes = segment_bytes
        try:
            self.account = Account(settings, TokenSealer(self._folder.key()))
            replay = Replay(self.account, now_ms)
            self._closed = replay.read(self._folder)
            self.last_ms = replay.last_ms
            """The latest time that was written down; 0 in a new folder."""
            self._kept = {stream.id: _all_of(stream) for stream in self.account.streams.values()}
            number = self._closed[-1].number + 1 if self._closed else 1
            begins_ms = max(now_ms, self.last_ms)
            for stream in self.account.streams.values():
                for shard in stream.open_shards():
                    # Readers may have read more than is here: a loss of power takes what was written last.
                    shard.begin_at(begins_ms)
            self._segment, self._descriptor = self._begin_first(number, begins_ms)
        except OSError as error:
            self._folder.close()
            raise StartupError(f"{path} cannot be used for the data: {error}") from error
        except BaseException:
            self._folder.close()
            raise
        self._pending: list[Entry] = []
        self._torn = False

    def close(self) -> None:
        """Let the folder go; all is written."""
        os.close(self._descriptor)
        self._folder.close()

    def keep(self, now_ms: int, *, changed: bool) -> None:
        """Write down all that is new in the account.

        Args:
            now_ms: When it came about.
            changed: Something may have been done to a stream beside putting records and letting time pass.

        Raises:
            UnwritableError: the folder takes nothing; what is new is kept for `retry`.
        """
        if changed or any(kept.stream.settled != kept.settled for kept in self._kept.values()):
            change = self._change(now_ms)
            if change.streams or change.gone:
                self._pending.append(change)
        for kept in self._kept.values():
            for tail in kept.tails:
                if tail.shard.appended != tail.appended:
                    self._pending.append(_arrived(kept.stream, tail))
        if not self._pending and now_ms - self.last_ms >= TIME_MS:
            self._pending.append(Changed(now_ms))
        self.retry()

    def retry(self) -> None:
        """Write down what could not be written before.

        Raises:
            UnwritableError: it still cannot.
        """
        if not self._pending:
            return
        data = b"".join(frame(entry) for entry in self._pending)
        try:
            if self._torn:
                os.ftruncate(self._descriptor, self._segment.size)
            self._folder.append(self._descriptor, data)
        except OSError as error:
            if not self._torn:
                logger.error("%s cannot be written to: %s. Requests fail until it can", self._folder.path, error)
            self._torn = True
            raise UnwritableError(f"{self._folder.path}: {error}") from error
        if self._torn:
            logger.warning("%s can be written to again", self._folder.path)
        self._torn = False
        self._written(len(data))

    def prune(self, now_ms: int) -> None:
        """Remove segments whose records are all past their retention.

        Raises:
            UnwritableError: one cannot be removed; the next time tries again.
        """
        self._remove_expired(list(self._closed), now_ms)

    def _remove_expired(self, segments: Sequence[Segment], now_ms: int) -> None:
        streams = {stream.id: stream for stream in self.account.streams.values()}
        for segment in segments:
            if not any(
                stream in streams and newest_ms >= streams[stream].horizon_ms(now_ms)
                for stream, newest_ms in segment.newest_ms.items()
            ):
                try:
                    segment.path.unlink(missing_ok=True)
                except OSError as error:
                    raise UnwritableError(f"{segment.path}: {error}") from error
                self._closed.remove(segment)

    def _written(self, size: int) -> None:
        segment = self._segment
        segment.size += size
        for entry in self._pending:
            self.last_ms = max(self.last_ms, entry.at_ms)
            if isinstance(entry, Arrived):
                segment.newest_ms[entry.stream] = entry.at_ms
        self._pending.clear()
        if segment.size >= self._segment_bytes:
            try:
                following, descriptor = self._begin(segment.number + 1)
            except OSError as error:
                logger.warning("%s: no new segment: %s. The present one goes on", self._folder.path, error)
                return
            os.close(self._descriptor)
            self._closed.append(segment)
            self._segment, self._descriptor = following, descriptor

    def _begin_first(self, number: int, now_ms: int) -> tuple[Segment, int]:
        try:
            return self._begin(number)
        except OSError:
            # A disk that the others fill may have room without them. The last one has what streams are.
            with suppress(UnwritableError):
                self._remove_expired(self._closed[:-1], now_ms)
            return self._begin(number)

    def _begin(self, number: int) -> tuple[Segment, int]:
        settings = self.account.settings
        streams = self.account.streams.values()
        counts = {stream.id: {index: shard.given() for index, shard in stream.shards.items()} for stream in streams}
        states = [stream_state(stream) for stream in streams]
        head = frame(Head(settings.id, settings.region, self.last_ms, states, counts))
        path = self._folder.segment_path(number)
        return Segment(path, len(head)), self._folder.create(path, head)

    def _change(self, now_ms: int) -> Changed:
        """What differs from what is written down."""
        change = Changed(now_ms)
        present = {stream.id: stream for stream in self.account.streams.values()}
        change.gone.extend(ident for ident in self._kept if ident not in present)
        for ident in change.gone:
            del self._kept[ident]
        for ident, stream in present.items():
            before = self._kept.get(ident)
            if before is None:
                before = self._kept[ident] = _Kept(stream, "", 0)
            state = stream_state(stream)
            text = json.dumps(state)
            if text != before.text:
                change.streams.append(state)
                before.text = text
                written = {tail.shard.index: tail.appended for tail in before.tails}
                before.tails = [_Tail(shard, written.get(shard.index, 0)) for shard in stream.open_shards()]
            before.settled = stream.settled
        return change


def _all_of(stream: Stream) -> _Kept:
    tails = [_Tail(shard, shard.appended) for shard in stream.open_shards()]
    return _Kept(stream, json.dumps(stream_state(stream)), stream.settled, tails)


def _arrived(stream: Stream, tail: _Tail) -> Arrived:
    batch = tail.shard.newest(tail.shard.appended - tail.appended)
    tail.appended = tail.shard.appended
    return Arrived(stream.id, tail.shard.index, batch)
