"""A small, fast server that speaks the Kinesis API and keeps Kinesis's rules."""

from lakestream_localkinesis.core.account import AccountSettings
from lakestream_localkinesis.core.limits import Limits
from lakestream_localkinesis.errors import LocalKinesisError

__all__ = ["AccountSettings", "Limits", "LocalKinesisError"]
