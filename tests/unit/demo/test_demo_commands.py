from __future__ import annotations

from pathlib import Path

from lakestream_demo.commands import child_environment


def test_children_cannot_reach_the_account_of_the_shell() -> None:
    shell = {"AWS_PROFILE": "production", "AWS_SESSION_TOKEN": "secret", "AWS_ACCESS_KEY_ID": "AKIA", "PATH": "/bin"}
    environment = child_environment(shell, "eu-west-1", Path("/demo/tmp"), s3=None)
    assert environment["PATH"] == "/bin"
    assert environment["AWS_ACCESS_KEY_ID"] == "demo"
    assert "AWS_PROFILE" not in environment
    assert "AWS_SESSION_TOKEN" not in environment
    assert "AWS_ENDPOINT_URL_S3" not in environment


def test_an_s3_server_is_passed_on() -> None:
    environment = child_environment({}, "eu-west-1", Path("/demo/tmp"), s3="http://127.0.0.1:9000")
    assert environment["AWS_ENDPOINT_URL_S3"] == "http://127.0.0.1:9000"
