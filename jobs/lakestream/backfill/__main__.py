"""`python -m lakestream.backfill`: for the driver's image, in which no package announces its commands."""

from lakestream.backfill.cli import backfill_app

backfill_app()
