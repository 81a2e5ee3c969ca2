"""What must be known before any test is collected."""

from __future__ import annotations

import functools
import gc
import math
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.main
from _pytest.nodeid import NodeId
from hypothesis import HealthCheck, settings

# What takes long on a busy machine is no failure. Each run of `all` looks elsewhere; CI's `same` looks where it looked
# before, so that what fails is the change and not the day; `few` is for the inner loop, and `many` searches for long.
# Tests whose examples are dear or cheap take a part or a multiple of their profile's number.
settings.register_profile(
    "all", deadline=None, max_examples=60, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("same", settings.get_profile("all"), derandomize=True)
settings.register_profile("few", settings.get_profile("all"), max_examples=20)
settings.register_profile("many", settings.get_profile("all"), max_examples=2_000)
settings.load_profile("same" if os.environ.get("CI") else "all")

# No server of a test is known to the machine's authorities, and to read them takes each client of one 16 ms.
os.environ["SSL_CERT_FILE"] = os.devnull

# To make all commands of an application anew for each call of a test takes 10 ms.
typer.main.get_command = functools.cache(typer.main.get_command)

# Less often than Python does by itself: most of what is imported and collected stays.
gc.set_threshold(100_000, 50, 100)

TESTS = Path(__file__).parent
E2E = TESTS / "e2e"


@pytest.fixture(scope="session", autouse=True)
def _nothing_left_at_work() -> Iterator[None]:
    """Of what tests leave behind nothing may be at work: it slows down all that come behind, and what they measure is
    not their own."""
    yield
    before, span = time.process_time(), 0.2
    time.sleep(span)
    if time.process_time() - before > span / 2:
        frames = sys._current_frames()
        places = {thread.name: frames.get(thread.ident or 0) for thread in threading.enumerate()}
        told = [f"{name} at {at.f_code.co_filename}:{at.f_lineno}" for name, at in places.items() if at is not None]
        pytest.fail(f"all tests are over, and some thread is at work: {'; '.join(told)}", pytrace=False)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--with-e2e", action="store_true", help="also run tests/e2e, on kubectl's current context")
    parser.addoption(
        "--former",
        type=Path,
        metavar="FOLDER",
        help="sources of the release that test_7_upgrade.py begins with",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Each pytest that CI starts leaves a report of its own."""
    if folder := os.environ.get("CI_JUNIT_FOLDER"):
        config.option.xmlpath = str(Path(folder) / f"{os.getpid()}.xml")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What may take longest begins first, or other processes would wait for it in the end: of the tests with Spark. Of
    all others a file that waits and one that computes take turns, so that the CPUs always have work."""
    files = {item.path: _waits(item) for item in items}
    waiting = reversed([file for file, waits in files.items() if waits])
    computing = [file for file, waits in files.items() if not waits]
    turns = {file: (turn, second) for second, kind in enumerate((waiting, computing)) for turn, file in enumerate(kind)}
    items.sort(key=lambda item: (-_longest(item), turns[item.path]))
    if config.getoption("loadgroup", default=False):
        for item in items:
            _show_group(item)


def _waits(item: pytest.Item) -> bool:
    """Whether it is rather other processes, or pauses, that a file of tests spends its time on."""
    folder = item.path.relative_to(TESTS).parts[0]
    return folder in {"bench", "contract", "demo", "loadgen"} or item.get_closest_marker("waits") is not None


def pytest_collection_finish() -> None:
    """What is imported and collected stays, and need not be looked through again and again."""
    gc.freeze()


def _show_group(item: pytest.Item) -> None:
    """Tell a test's group where pytest-xdist looks for it: behind the test's id. That is where its release 3.8 wants to
    put it, but pytest 9.2 keeps the id elsewhere; so groups were spread over all processes, without a word."""
    mark = item.get_closest_marker("xdist_group")
    if mark is not None and not item.nodeid.endswith(group := f"@{mark.args[0]}"):
        item._id = NodeId.parse(item.nodeid + group)


def _longest(item: pytest.Item) -> float:
    if not item.get_closest_marker("spark"):
        return 0.0
    if item.get_closest_marker("xdist_group"):
        return math.inf
    mark = item.get_closest_marker("timeout")
    return mark.args[0] if mark else 0.0


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Nobody's cluster is touched by accident."""
    return True if collection_path == E2E and not config.getoption("--with-e2e") else None
