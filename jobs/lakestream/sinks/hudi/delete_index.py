"""Whether a batch has keys that were deleted lately, told from hashes that the driver keeps: pure.

Hardly any batch has, and to look for them in the files of all deletes would cost each batch tens of requests.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

_SPANS = 12
"""Parts of the time for which deletes are remembered, after which their hashes are forgotten together."""

_MOST = 10_000_000
"""Hashes, of 8 bytes each. Of more there is no index any more, and files are looked into for each batch."""


@dataclass(frozen=True, slots=True)
class _Span:
    began: float
    newest: float
    hashes: pa.Int64Array


class DeleteIndex:
    """Hashes of the keys of remembered deletes: of all of them, and perhaps of some that are forgotten by now."""

    def __init__(self, retain: float, most: int = _MOST) -> None:
        """`retain`: seconds that a delete is remembered for, at least."""
        self._retain = retain
        self.most = most
        self._spans: tuple[_Span, ...] | None = ()

    def add(self, hashes: pa.Int64Array, newest: float) -> None:
        """Take in deletes.

        Args:
            hashes: of their keys.
            newest: by when, in seconds since 1970, the newest of them had come.
        """
        if self._spans is None:
            return
        spans = self._spans
        last = spans[-1] if spans else None
        if last is not None and newest < last.began + self._retain / _SPANS:
            spans = (*spans[:-1], _Span(last.began, max(last.newest, newest), pa.concat_arrays([last.hashes, hashes])))
        else:
            spans = (*spans, _Span(newest, newest, hashes))
        self._spans = spans
        if sum(len(span.hashes) for span in spans) > self.most:
            self.exceed()

    def expire(self, before: float) -> None:
        """Forget deletes that had come before a time, as far as all that are kept with them had."""
        if self._spans is not None:
            self._spans = tuple(span for span in self._spans if span.newest >= before)

    def exceed(self) -> None:
        """There are more than it takes."""
        self._spans = None

    def may_have(self, hashes: pa.Int64Array) -> bool:
        """Whether one of these keys may have been deleted; never no if one has."""
        if self._spans is None:
            return True
        return any(_overlap(span.hashes, hashes) for span in self._spans)


def _overlap(some: pa.Int64Array, others: pa.Int64Array) -> bool:
    fewer, more = sorted((some, others), key=len)
    return bool(pc.any(pc.is_in(more, value_set=fewer)).as_py())
