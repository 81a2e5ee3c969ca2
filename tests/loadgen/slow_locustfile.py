"""The load's own locustfile, where whoever gives credentials takes a while: Locust goes on meanwhile."""

import gevent
from patient_locustfile import *  # noqa: F403

from lakestream_loadgen.kinesis.client import KinesisEndpoint

_find = KinesisEndpoint.from_environment


def _slowly() -> KinesisEndpoint:
    gevent.sleep(5.0)
    return _find()


KinesisEndpoint.from_environment = staticmethod(_slowly)  # type: ignore[method-assign]
