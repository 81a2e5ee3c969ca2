"""What files a path of S3 means: folders are objects there, or nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from moto_s3 import moto_s3, s3_client

from lakestream.backfill.find import find_files
from lakestream.errors import LakeStreamError
from lakestream.kinesis.batches import REASON
from lakestream.model import FilePart, Format
from lakestream.spark import parts
from lakestream.storage import LakePath, S3Settings, StorageUnavailableError, StoreSettings

Found = Callable[[str], list[str]]


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> Iterator[Found]:
    """Paths below one; each folder has the object that S3's console and Hadoop make for it."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    with moto_s3("lake") as url:
        client = s3_client(url)
        for key in (
            *("hudi/", "hudi/.hoodie/", "hudi/.hoodie/hoodie.properties", "hudi/dt=1/", "hudi/dt=1/a.parquet"),
            *("json/", "json/_lakestream/", "json/_lakestream/owner", "json/dt=1/", "json/dt=1/a.json"),
            *("files/", "files/2025/", "files/2025/a.json"),
        ):
            client.put_object(Bucket="lake", Key=key, Body=b"" if key.endswith("/") else b"{}")
        s3 = S3Settings("us-east-1", url)

        def find(path: str) -> list[str]:
            place = StoreSettings(LakePath.parse(f"s3://lake/{path}"), s3)
            return [one.path for one in find_files(place, LakePath.parse("/elsewhere")) if one.size]

        yield find


def test_a_table_is_one_though_its_folder_is_an_object(found: Found) -> None:
    for path in ("hudi", "hudi/dt=1", "hudi/dt=1/a.parquet"):
        with pytest.raises(LakeStreamError, match="s3a://lake/hudi is a Hudi table"):
            found(path)
    for path in ("json", "json/dt=1"):
        with pytest.raises(LakeStreamError, match="s3a://lake/json/_lakestream/owner"):
            found(path)


def test_the_object_of_a_folder_is_no_file(found: Found) -> None:
    for path in ("files", "files/", "files/2025", "files/2025/a.json"):
        assert found(path) == ["s3a://lake/files/2025/a.json"]


class Refusing(BaseHTTPRequestHandler):
    """Answers each GET by one refusal."""

    status, code = 400, ""

    def do_GET(self) -> None:
        body = f"<Error><Code>{self.code}</Code><Message>no</Message></Error>".encode()
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Settings]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    with HTTPServer(("127.0.0.1", 0), Refusing) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield S3Settings("us-east-1", f"http://127.0.0.1:{server.server_port}")
        server.shutdown()
        thread.join()


def read(s3: S3Settings, kind: Format) -> str:
    """Why nothing is read of a file."""
    part = FilePart("s3a://lake/a", kind, 0, 10, 1, 10, "etag", datetime(2026, 1, 1, tzinfo=UTC))
    (batch,) = parts.read_parts(s3, [part], {})
    return str(batch[REASON][0].as_py())


@pytest.mark.parametrize("kind", [Format.JSON, Format.PARQUET])
@pytest.mark.parametrize(
    ("status", "code"),
    [
        (301, "PermanentRedirect"),
        (400, "AuthorizationHeaderMalformed"),
        (400, "KMS.DisabledException"),
        (400, "InvalidRequest"),
        (403, "InvalidObjectState"),
        (405, "MethodNotAllowed"),
        (416, "InvalidRange"),
    ],
)
def test_what_a_store_refuses_for_good_does_not_stop_the_stream(
    refusing: S3Settings, monkeypatch: pytest.MonkeyPatch, status: int, code: str, kind: Format
) -> None:
    monkeypatch.setattr(Refusing, "status", status)
    monkeypatch.setattr(Refusing, "code", code)
    why = read(refusing, kind)
    assert why.startswith("file not read: read s3a://lake/a: ")
    assert "redirect" in why if status == 301 else code in why


@pytest.mark.parametrize("code", ["ExpiredToken", "RequestTimeout", "KMS.ThrottlingException"])
def test_what_may_pass_is_waited_for(refusing: S3Settings, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    monkeypatch.setattr(Refusing, "code", code)
    with pytest.raises(StorageUnavailableError, match=code):
        read(refusing, Format.JSON)
