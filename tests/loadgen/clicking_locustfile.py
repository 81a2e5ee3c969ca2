"""Users of one's own, which take no tokens, and say goodbye."""

from itertools import count

import patient_locustfile  # noqa: F401
from locust import between, task

from lakestream_loadgen.records import Record
from lakestream_loadgen.users import KinesisUser

NUMBERS = count()


class ClickUser(KinesisUser):
    wait_time = between(0.0, 0.2)  # so that something is always under way

    def put(self) -> None:
        number = f"click-{next(NUMBERS)}"
        self.producer.put([Record(number, number, number.encode())])

    @task
    def click(self) -> None:
        self.put()

    def on_stop(self) -> None:
        self.put()
