"""The S3 server behind the proxy: moto, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

START_SECONDS = 90.0
_SERVE = """
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(*server.get_host_and_port(), flush=True)
server._thread.join()
"""


class S3Server:
    """A running server with one bucket."""

    bucket = "chaos"

    def __init__(self) -> None:
        self.url = ""

    def __enter__(self) -> Self:
        command = (sys.executable, "-c", _SERVE)
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the S3 server ended with {self._process.wait()}")
        host, port = line.split()
        self.url = f"http://{host}:{port}"
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                self._client().create_bucket(Bucket=self.bucket)
                return self
            except OSError:
                if time.monotonic() > deadline:
                    raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def copy_to(self, folder: Path) -> None:
        """Copy all objects to a folder."""
        client = self._client()
        for page in client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket):
            for found in page.get("Contents", ()):
                if found["Key"].endswith("/"):
                    continue  # a marker of an empty folder
                file = folder / found["Key"]
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(client.get_object(Bucket=self.bucket, Key=found["Key"])["Body"].read())

    def _client(self) -> S3Client:
        import boto3
        from botocore.config import Config

        return boto3.client(
            "s3",
            endpoint_url=self.url,
            region_name="us-east-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
            config=Config(s3={"addressing_style": "path"}),
        )
