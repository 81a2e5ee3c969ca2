"""Which request to S3 meets which fault: decided here, without I/O. `proxy` acts it out."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from random import Random


class Effect(StrEnum):
    """What happens to a request."""

    REFUSE = "refuse"
    """500 or 503 in turn, without effect."""
    FORBID = "forbid"
    """403, without effect."""
    CUT = "cut"
    """The connection closes, without effect."""
    LOSE_ANSWER = "lose answer"
    """It takes effect, and the connection closes without an answer."""
    DELAY = "delay"
    """It takes effect, and the answer comes late."""
    LATE = "late"
    """The connection closes without an answer; the request takes effect when `seconds` have gone by."""
    HOLD = "hold"
    """It gets no answer, and takes effect when it is released."""


AWAITED = 3
"""Requests that are denied before a right comes that a driver cannot do without, and waits for."""


@dataclass(frozen=True)
class S3Request:
    """What a fault goes by."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    """Names in lower case."""


_COMPLETED = re.compile(r"/\.hoodie/(timeline/)?\d+(_\d+)?\.(delta|replace)?commit$")


def _puts_instant(request: S3Request, ending: str) -> bool:
    return request.method == "PUT" and re.search(rf"/\.hoodie/(timeline/)?\d+{ending}", request.path) is not None


_TARGETS: dict[str, Callable[[S3Request], bool]] = {
    "any": lambda request: True,
    "read": lambda request: request.method in ("GET", "HEAD"),
    "write": lambda request: request.method in ("PUT", "POST", "DELETE"),
    "delete": lambda request: request.method == "DELETE" or (request.method == "POST" and request.query == "delete"),
    "conditional put": lambda request: request.method == "PUT" and "if-none-match" in request.headers,
    "complete": lambda request: request.method == "POST" and "uploadId=" in request.query,
    # `timeline/<begin>_<end>.deltacommit`, in version 6 `<begin>.deltacommit`: makes a batch, or a compaction, visible.
    "hudi commit": lambda request: _puts_instant(request, r"(_\d+)?\.(delta)?commit$"),
    "timeline": lambda request: _puts_instant(request, ""),
    # What an archiving ends with, when what commits began with is gone.
    "archived": lambda request: request.method == "DELETE" and _COMPLETED.search(request.path) is not None,
    "properties": lambda request: request.method == "PUT" and request.path.endswith("/.hoodie/hoodie.properties"),
    "side file": lambda request: request.method == "PUT" and "/.hoodie/lakestream/" in request.path,
    "log commit": lambda request: request.method == "PUT" and "/commits/" in request.path,
    "plan": lambda request: request.method == "PUT" and "/batches/" in request.path,
    "data": lambda request: request.method == "PUT" and re.search(r"/table/(?!\.hoodie/).", request.path) is not None,
}
TARGETS = tuple(_TARGETS)
Target = str
"""One of `TARGETS`."""


@dataclass(frozen=True)
class S3Fault:
    """A fault and the requests that it befalls."""

    effect: Effect
    target: Target = "any"
    times: int | None = None
    """How many requests are befallen; None: until the faults are cleared."""
    probability: float = 1.0
    seconds: float = 0.0
    """Of DELAY and LATE."""


class S3Faults:
    """The faults that are switched on. Used by all threads of the proxy."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._lock = threading.Lock()
        self._faults: list[S3Fault] = []
        self._left: list[int | None] = []
        self.struck = 0
        """Requests that were befallen."""
        self.begun: set[str] = set()
        """Paths of the files by which Hudi begins a commit, and goes on with one."""

    def add(self, fault: S3Fault) -> None:
        with self._lock:
            self._faults.append(fault)
            self._left.append(fault.times)

    def bound(self, effect: Effect, times: int) -> None:
        """Have what was switched on with this effect befall so many more requests at most."""
        with self._lock:
            for number, fault in enumerate(self._faults):
                if fault.effect is effect:
                    left = self._left[number]
                    self._left[number] = times if left is None else min(left, times)

    def clear(self) -> None:
        with self._lock:
            self._faults.clear()
            self._left.clear()

    def strikes(self, request: S3Request) -> S3Fault | None:
        """The fault that befalls a request, which counts as one of its times."""
        with self._lock:
            if _puts_instant(request, r"\.(delta)?commit\.\w+$"):
                self.begun.add(request.path)
            for number, fault in enumerate(self._faults):
                left = self._left[number]
                if left == 0 or not _TARGETS[fault.target](request) or self._chance.random() >= fault.probability:
                    continue
                self._left[number] = None if left is None else left - 1
                self.struck += 1
                return fault
        return None
