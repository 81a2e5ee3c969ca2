"""`python -m lakestream.quarantined`: for the driver's image, in which no package announces its commands."""

from lakestream.quarantined.cli import quarantine_app

quarantine_app()
