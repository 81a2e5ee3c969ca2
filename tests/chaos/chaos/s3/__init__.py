"""An S3 server, and a proxy before it that fails as S3 and networks do."""

from chaos.s3.faults import AWAITED, Effect, S3Fault, S3Faults, S3Request, Target
from chaos.s3.proxy import S3Proxy
from chaos.s3.server import S3Server

__all__ = ["AWAITED", "Effect", "S3Fault", "S3Faults", "S3Proxy", "S3Request", "S3Server", "Target"]
