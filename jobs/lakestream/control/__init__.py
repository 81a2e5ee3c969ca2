"""What a driver tells the world: its progress, batch by batch."""

from lakestream.control.files import JsonLinesProgress, read_progress
from lakestream.control.metrics import PrometheusProgress, serve_metrics
from lakestream.control.report import Job, ProgressPublisher, ProgressReporter, progress_of

__all__ = [
    "Job",
    "JsonLinesProgress",
    "ProgressPublisher",
    "ProgressReporter",
    "PrometheusProgress",
    "progress_of",
    "read_progress",
    "serve_metrics",
]
