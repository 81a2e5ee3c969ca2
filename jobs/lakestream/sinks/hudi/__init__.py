"""The Hudi sink."""

from lakestream.sinks.hudi.restore import RestorableTable
from lakestream.sinks.hudi.settings import HudiSettings
from lakestream.sinks.hudi.sink import HudiSink

__all__ = ["HudiSettings", "HudiSink", "RestorableTable"]
