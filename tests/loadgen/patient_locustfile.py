"""The load's own locustfile, on a machine that may stand still for a minute: what is under way is waited for."""

import os

from locust import runners

from lakestream_loadgen import run
from lakestream_loadgen.locustfile import *  # noqa: F403

run.DRAIN_SECONDS = 200.0
run.MISSING_SECONDS = float(os.environ["LOAD_TEST_PATIENCE"])
runners.HEARTBEAT_LIVENESS = min(int(run.MISSING_SECONDS) - 2, 60)  # seconds; 3 by default
