"""How a load ends, and when. Run in a process of its own: Locust patches the one that imports it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

RUN = """
import logging, os, resource, sys
from pathlib import Path
from locust.argument_parser import get_parser
from locust.env import Environment
from lakestream_loadgen import locustfile, run

logging.basicConfig(stream=sys.stdout)
options = get_parser(default_config_files=[]).parse_args(["--ledger", sys.argv[1]])
environment = Environment(parsed_options=options)
environment.create_local_runner()
run.LoadRun.install(environment)
assert "pyarrow" not in sys.modules, "40 MB in each process, and a master keeps no ledger"
environment.events.test_start.fire(environment=environment)
ledger, = Path(sys.argv[1]).glob("*.ledger")
# As of a full disk.
resource.setrlimit(resource.RLIMIT_FSIZE, (ledger.stat().st_size + 1,) * 2)
if sys.argv[2] == "stopped":
    environment.events.test_stop.fire(environment=environment)
environment.events.quitting.fire(environment=environment, reverse=True)
environment.events.test_stop.fire(environment=environment)
print("status", environment.process_exit_code)
"""


def output_of(program: str, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> str:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
        monkeypatch.setenv(name, "local")
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("how", ["stopped", "SIGTERM"])
def test_a_load_whose_ledger_cannot_be_ended_fails_and_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, how: str
) -> None:
    """Locust asks for the status before it stops the users, when SIGTERM comes to a load with a page."""
    told = output_of(RUN, monkeypatch, str(tmp_path), how)
    assert told.splitlines()[-1] == "status 2", told
    assert "the ledger cannot be ended: " in told
    assert "Traceback" not in told


LATE = """
from locust.argument_parser import get_parser
from locust.env import Environment
from lakestream_loadgen import locustfile, run

options = get_parser(default_config_files=[]).parse_args(["--headless", "--users", "1", "--run-time", "5s"])
environment = Environment(shape_class=locustfile.OrderShape(), parsed_options=options)
environment.shape_class.runner = environment.create_local_runner()
run.LoadRun.install(environment)
environment.shape_class.start_time -= 60
assert environment.shape_class.tick() is None
environment.events.test_start.fire(environment=environment)
assert environment.shape_class.tick() == (1, 1.0)
"""


def test_the_run_time_is_not_for_what_takes_a_while_to_load(monkeypatch: pytest.MonkeyPatch) -> None:
    output_of(LATE, monkeypatch)


GRACEFUL = """
import gevent
from gevent.pool import Group
from locust.argument_parser import get_parser
from locust.env import Environment
from lakestream_loadgen import locustfile, run

environment = Environment(parsed_options=get_parser(default_config_files=[]).parse_args(["--events", "1e-9"]))
environment.create_local_runner()
run.LoadRun.install(environment)
environment.events.test_start.fire(environment=environment)
users = Group()
for _ in range(2):
    locustfile.OrderUser(environment).start(users)
gevent.sleep(0)
leaving, staying = (greenlet.args[0] for greenlet in users)
assert not leaving.stop(force=False), "it was not asked to finish what it does"
environment.events.test_stopping.fire(environment=environment)
assert staying.stop(force=False)
assert len(users) == 1
"""


def test_users_that_wait_for_tokens_are_not_waited_for_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Locust would for its `--stop-timeout`, which is for users that leave in the midst of a load."""
    output_of(GRACEFUL, monkeypatch)
