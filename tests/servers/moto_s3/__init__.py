"""moto's S3 as a server whose conditional writes one client wins."""

from moto_s3.server import OneWriteAtATime, moto_s3, s3_client

__all__ = ["OneWriteAtATime", "moto_s3", "s3_client"]
