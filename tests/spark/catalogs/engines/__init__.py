"""Catalogs and engines that are not ours, started for tests, and tables for them to read."""
