"""What measurements of producers need."""

from lakestream_loadgen.testing.server import answering_server

__all__ = ["answering_server"]
