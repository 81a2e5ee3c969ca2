"""``python -m lakestream_loadgen.options``: all options of a load run, Locust's and ours."""

from __future__ import annotations

from locust.argument_parser import get_parser

from lakestream_loadgen import locustfile

__all__ = ["locustfile"]  # which adds ours

if __name__ == "__main__":
    parser = get_parser(default_config_files=[])
    parser.usage = "lakestream load [options] [UserClass ...]"
    parser.print_help()
