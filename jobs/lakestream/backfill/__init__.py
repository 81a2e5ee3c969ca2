"""Asking for files to be taken into a table beside its stream."""
