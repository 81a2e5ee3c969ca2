"""`python -m lakestream_operator` is the command `lakestream-operator`."""

from lakestream_operator.main import app

app()
