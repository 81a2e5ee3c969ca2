"""The S3 server behind the proxy: moto, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from moto_s3 import s3_client, server


class S3Server:
    """A running server with one bucket."""

    bucket = "chaos"

    def __init__(self) -> None:
        self.url = ""

    def __enter__(self) -> Self:
        command = (sys.executable, server.__file__)
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the S3 server ended with {self._process.wait()}")
        self.url = line.strip()
        s3_client(self.url).create_bucket(Bucket=self.bucket)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def copy_to(self, folder: Path) -> None:
        """Copy all objects to a folder."""
        client = s3_client(self.url)
        for page in client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket):
            for found in page.get("Contents", ()):
                if found["Key"].endswith("/"):
                    continue  # a marker of an empty folder
                file = folder / found["Key"]
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(client.get_object(Bucket=self.bucket, Key=found["Key"])["Body"].read())
