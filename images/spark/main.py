#!/usr/bin/env python3
"""The `lakestream` command of the image: on its path, and what a SparkApplication names as its main file."""

from lakestream.main import app

app()
