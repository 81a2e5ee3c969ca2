"""The load's own locustfile; somebody types Ctrl-C while a sender has the CPU."""

import os
import signal
from itertools import count

from patient_locustfile import *  # noqa: F403

from lakestream_loadgen.kinesis import client

SIGNED = count(1)


def signed_headers(self, body, sign=client.HttpKinesisClient._signed_headers):
    if next(SIGNED) == 20:
        os.kill(os.getpid(), signal.SIGINT)
    return sign(self, body)


client.HttpKinesisClient._signed_headers = signed_headers
# As in a terminal, also where tests run in the background and have it ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
