"""A scenario that is over leaves nothing in the memory of the run."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator

import psutil
import pytest

from chaos.memory import give_back

MEBIBYTE = 2**20


@pytest.fixture
def at_leisure() -> Iterator[None]:
    """Python collects nothing by itself, as with few objects, however large."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class _Circle:
    """As a world, and a producer that asks it how many batches there are."""

    def __init__(self) -> None:
        self.itself = self
        self.records = [b"x" * 50_000 for _ in range(2_000)]


@pytest.mark.usefixtures("at_leisure")
def test_what_refers_to_itself_is_given_back_to_the_system() -> None:
    process = psutil.Process()
    before = process.memory_info().rss
    # In a thread, as servers and producers are.
    thread = threading.Thread(target=_Circle)
    thread.start()
    thread.join()
    assert process.memory_info().rss > before + 80 * MEBIBYTE
    give_back()
    assert process.memory_info().rss < before + 20 * MEBIBYTE
