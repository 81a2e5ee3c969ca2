"""A cluster in memory, to try decisions on: API server, Spark Operator, kubelet and drivers, as far as matters here."""

from lakestream_operator.testing.api import ModelApi, Mood
from lakestream_operator.testing.cluster import Cluster
from lakestream_operator.testing.documents import lakestream, report_of
from lakestream_operator.testing.drivers import Behaviour, Driver, KinesisStream

__all__ = ["Behaviour", "Cluster", "Driver", "KinesisStream", "ModelApi", "Mood", "lakestream", "report_of"]
