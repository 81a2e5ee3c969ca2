"""What a SparkApplication names as its main file: the `lakestream` command."""

from lakestream.main import app

app()
