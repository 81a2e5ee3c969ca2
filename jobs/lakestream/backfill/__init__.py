"""Asking for files, or a span of the stream, to be taken into a table beside its stream."""
