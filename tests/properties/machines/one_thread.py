"""An engine in one thread: what it prepares ahead comes at one of two moments, and not whenever threads have it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch


class _Call(Future[Any]):
    """What is carried out when somebody asks for it, or before."""

    def __init__(self, call: Callable[[], Any]) -> None:
        super().__init__()
        self._call = call

    def carry_out(self) -> None:
        if self.done():
            return
        try:
            self.set_result(self._call())
        except BaseException as error:  # noqa: BLE001 - raised by who asks
            self.set_exception(error)

    def result(self, timeout: float | None = None) -> Any:
        self.carry_out()
        return super().result(timeout)


class _Executor:
    """In place of one with a thread."""

    def __init__(self, at_once: bool) -> None:
        self._at_once = at_once

    def __enter__(self) -> _Executor:
        return self

    def __exit__(self, *_: object) -> None: ...

    def submit(self, call: Callable[..., Any], *arguments: Any) -> _Call:
        made = _Call(partial(call, *arguments))
        if self._at_once:
            made.carry_out()
        return made


class _Waited:
    def __init__(self, calls: Iterable[_Call]) -> None:
        self.done = [*calls]
        for call in self.done:
            call.carry_out()


@contextmanager
def in_one_thread(*, at_once: bool) -> Iterator[None]:
    """Run engines so meanwhile.

    Args:
        at_once: a batch is prepared before the one in hand is written; else behind that, or behind its end.
    """

    def waited(calls: Iterable[_Call], timeout: float) -> _Waited:
        return _Waited(calls)

    with (
        patch("lakestream.engine.ThreadPoolExecutor", lambda *_, **__: _Executor(at_once)),
        patch("lakestream.engine.wait", waited),
    ):
        yield
