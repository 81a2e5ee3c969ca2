"""Waiting for what a cluster will have done in a while, with a deadline and the last state."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from cluster.commands import CommandError

Found = TypeVar("Found")

_PAUSE = 0.5


def eventually(what: str, probe: Callable[[], Found | None], seconds: float, state: Callable[[], object]) -> Found:
    """What `probe` returns, once that is neither None nor False.

    A command that fails is no answer, and asked again: for a moment the API server may not answer, or a pod that
    something is run in be restarted.

    Raises:
        AssertionError: it was not so within `seconds`; the message has the last `state`, and the last failure.
    """
    deadline = time.monotonic() + seconds
    while True:
        failure = ""
        try:
            found = probe()
            if found is not None and found is not False:
                return found
        except CommandError as error:
            failure = f"\nthe last look failed: {error}"
        if time.monotonic() > deadline:
            seen: object = "nothing"
            with suppress(CommandError):
                seen = state()
            raise AssertionError(f"not within {seconds:g} s: {what}\nlast seen: {seen}{failure}")
        time.sleep(_PAUSE)


def steadily(what: str, probe: Callable[[], bool], seconds: float, state: Callable[[], object]) -> None:
    """Require that `probe` is true all through `seconds`."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert probe(), f"did not stay so for {seconds:g} s: {what}\nseen: {state()}"
        time.sleep(_PAUSE)
