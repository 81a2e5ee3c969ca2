"""Threads that share out thousands of questions."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class Crew:
    """So many threads, kept for the next questions."""

    def __init__(self, threads: int, name: str) -> None:
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name)

    def ask(self, question: Callable[[Key], Value], keys: Sequence[Key]) -> list[Value]:
        """The answers in the order of the keys. Raises what a question raises; those not yet asked are not any more."""
        # Each thread takes one key after the other: a future for each would cost more than most answers do.
        ahead = iter(enumerate(keys))

        def work() -> list[tuple[int, Value]]:
            try:
                return [(index, question(key)) for index, key in ahead]
            except BaseException:
                deque(ahead, maxlen=0)
                raise

        shares = [self._pool.submit(work) for _ in range(min(self._threads, len(keys)))]
        answers = dict(answer for share in shares for answer in share.result())
        return [answers[index] for index in range(len(keys))]

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
