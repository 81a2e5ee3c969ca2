"""Our signer gives what botocore's gives."""

from __future__ import annotations

from datetime import UTC, datetime
from unittest.mock import patch

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials, ReadOnlyCredentials

from lakestream.kinesis.signing import Signer

FIXED = {"content-type": "application/x-amz-json-1.1", "x-amz-target": "Kinesis_20131202.GetRecords"}
TIMES = [datetime(2026, 1, 31, 23, 59, 59, tzinfo=UTC), datetime(2026, 2, 1, 0, 0, 0, tzinfo=UTC)]


def expected(credentials: ReadOnlyCredentials, now: datetime, host: str, body: bytes) -> str:
    full = Credentials(credentials.access_key or "", credentials.secret_key or "", credentials.token)
    request = AWSRequest("POST", f"https://{host}/", headers=dict(FIXED), data=body)
    with patch("botocore.auth.get_current_datetime", return_value=now):
        SigV4Auth(full, "kinesis", "eu-west-1").add_auth(request)
    return str(request.headers["Authorization"])


@pytest.mark.parametrize("token", [None, "session-token/with+signs="])
@pytest.mark.parametrize("host", ["kinesis.eu-west-1.amazonaws.com", "127.0.0.1:4567"])
def test_as_botocore(host: str, token: str | None) -> None:
    signer = Signer("kinesis", "eu-west-1", host)
    for secret in ("secret", "rotated"):
        credentials = ReadOnlyCredentials("AKIDEXAMPLE", secret, token)
        for now in (*TIMES, *TIMES):  # over midnight and back: the kept key must not outlive its day
            for body in (b"", b'{"Limit":1}'):
                headers = signer.sign(credentials, now, FIXED, body)
                assert headers["authorization"] == expected(credentials, now, host, body)
                assert headers.get("x-amz-security-token") == token
