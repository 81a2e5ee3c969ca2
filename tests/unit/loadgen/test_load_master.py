"""How a master ends its workers' part. Run in a process of its own: Locust patches the one that imports it."""

from __future__ import annotations

import pytest

from .conftest import errors_of

PREAMBLE = """
from types import SimpleNamespace
from locust.env import Environment
from locust.runners import WorkerNode, WorkerNodes
from lakestream_loadgen import run

class Runner:
    worker_count = 1

    def __init__(self):
        self.environment, self.clients, self.heard = Environment(), WorkerNodes(), {}
        self.register_message = self.heard.__setitem__
        self.clients["first"] = WorkerNode("first")

    def send_message(self, kind, data=None):
        if kind == "lakestream_drain":
            for one in self.clients.all:
                self.heard["lakestream_drained"](self.environment, SimpleNamespace(node_id=one.id))
            self.clients["late"] = WorkerNode("late")

class Never:
    clear = set = lambda self: None

    def wait(self, timeout):
        raise AssertionError("it waits")

def fresh():
    runner = Runner()
    master = run._Master(runner)
    master._news = Never()
    return {**globals(), **locals()}
"""

CASES = {
    "a worker that comes while others settle what is under way has nothing to settle": """
        runner.environment.events.test_start.fire(environment=runner.environment)
        assert master.drain() == set()
    """,
}


@pytest.fixture(scope="module")
def errors() -> dict[str, str]:
    """What the cases that failed ended with."""
    return errors_of(PREAMBLE, CASES)


@pytest.mark.parametrize("case", CASES)
def test_a_master_ends_a_load(case: str, errors: dict[str, str]) -> None:
    assert case not in errors, errors[case]
