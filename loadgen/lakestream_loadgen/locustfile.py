"""``locust -f`` this file, or ``lakestream load``: order events to a Kinesis stream."""

from __future__ import annotations

from locust import events

from lakestream_loadgen.metrics import serve_metrics
from lakestream_loadgen.page import check_forms
from lakestream_loadgen.run import LoadRun
from lakestream_loadgen.settings import add_arguments
from lakestream_loadgen.users import OrderShape, OrderUser

__all__ = ["OrderShape", "OrderUser"]

events.init_command_line_parser.add_listener(add_arguments)
events.init.add_listener(LoadRun.install)
events.init.add_listener(serve_metrics)
events.init.add_listener(check_forms)
