"""Locust users that write to Kinesis."""

from __future__ import annotations

import time
from typing import Any

from locust import LoadTestShape, User, task
from locust.exception import StopUser
from locust.runners import MasterRunner

from lakestream_loadgen.errors import LoadgenError
from lakestream_loadgen.kinesis.producer import KinesisProducer
from lakestream_loadgen.run import LoadRun
from lakestream_loadgen.shapes import next_users, users_at


class KinesisUser(User):
    """A user with ``self.producer``, the process's producer: ``self.producer.put([Record(…), …])``.

    ``put`` waits until Kinesis has answered for each of the records, as a request of an HTTP user does. When the run
    comes to its end, it takes nothing more and ends the user.
    However many users there are, they share the producer, its requests and its connections.
    """

    abstract = True
    host = "kinesis"  # Locust's page asks for one if there is none

    def __init__(self, environment: Any) -> None:
        super().__init__(environment)
        self.run_of_load = LoadRun.of(environment)

    @property
    def producer(self) -> KinesisProducer:
        self.run_of_load.installed.wait()
        if not self.run_of_load.is_open:
            # The load could not start, which it has told; Locust makes its users all the same.
            raise StopUser
        return self.run_of_load.producer


class OrderUser(KinesisUser):
    """Writes order events as fast as the load shape allows: waits for tokens, writes, waits for the answer."""

    burst = 100
    """Events that a user writes at a time, at most; one at low rates, so that many users take part."""

    @task
    def write_orders(self) -> None:
        run, producer = self.run_of_load, self.producer
        tokens = run.pacer.take(self.burst)
        producer.put(run.events.take(tokens, time.time()))

    def stop(self, force: bool = False) -> bool:
        # When a run ends all is settled, and who waits for tokens would do so for all of `--stop-timeout`.
        return bool(super().stop(force=force or self.run_of_load.is_ending))


class OrderShape(LoadTestShape):
    """Users in proportion to the load: ``--users`` at its peak, and one a worker at least.

    Until ``--run-time`` is over or SIGTERM comes.
    """

    use_common_options = True
    _stepped = 0.0

    def tick(self) -> tuple[int, float] | None:
        if self.runner is None or self.runner.environment.parsed_options is None:
            raise LoadgenError("the load shape needs a runner with options")
        options = self.runner.environment.parsed_options
        run = LoadRun.of(self.runner.environment)
        elapsed = time.perf_counter() - self.start_time
        if run.stop_requested or (options.run_time and elapsed >= options.run_time):
            return None
        # The runner of a master has workers; of a process on its own it does the work.
        workers = max(getattr(self.runner, "worker_count", 1), 1)
        users = users_at(run.settings.shape, elapsed, options.num_users or 1, workers)
        spawn_rate = options.spawn_rate or 1.0
        if isinstance(self.runner, MasterRunner):
            users = self._step(self.runner, users, spawn_rate)
        return users, spawn_rate

    def _step(self, runner: MasterRunner, users: int, spawn_rate: float) -> int:
        """A master asks for nothing more, not even whether the run is over, before all users are there."""
        there = runner.shape_last_tick[0] if runner.shape_last_tick else 0
        now = time.perf_counter()
        step = next_users(users, there, spawn_rate, now - self._stepped if there else 1.0)
        if step != there:
            self._stepped = now
        return step
