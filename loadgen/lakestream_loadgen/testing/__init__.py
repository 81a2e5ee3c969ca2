"""Doubles for tests and measurements of producers."""

from lakestream_loadgen.testing.server import answering_server

__all__ = ["answering_server"]
