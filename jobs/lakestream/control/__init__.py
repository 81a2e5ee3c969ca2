"""What a driver tells the world, and what it is told: progress, batch by batch, and the operator's orders."""

from lakestream.control.executors import Executor, ExecutorCounts, ExecutorPool
from lakestream.control.files import JsonLinesProgress, read_progress
from lakestream.control.kubernetes import ApiServerError, ConfigMaps, Pod
from lakestream.control.metrics import PrometheusProgress, serve_metrics
from lakestream.control.pod import DriverControl, NoControl, PodControl
from lakestream.control.report import Job, ProgressPublisher, ProgressReporter, progress_of
from lakestream.control.resharding import Resharder, ShardedStream

__all__ = [
    "ApiServerError",
    "ConfigMaps",
    "DriverControl",
    "Executor",
    "ExecutorCounts",
    "ExecutorPool",
    "Job",
    "JsonLinesProgress",
    "NoControl",
    "Pod",
    "PodControl",
    "ProgressPublisher",
    "ProgressReporter",
    "PrometheusProgress",
    "Resharder",
    "ShardedStream",
    "progress_of",
    "read_progress",
    "serve_metrics",
]
