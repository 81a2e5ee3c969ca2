from __future__ import annotations

from pathlib import Path

from lakestream_demo.commands import child_environment, load_command
from lakestream_demo.document import ORDERS, make_document
from lakestream_demo.settings import WARM_UP, Table
from lakestream_demo.workspace import Workspace


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


def test_the_load_is_the_demo_s_and_not_one_that_the_shell_has_options_of() -> None:
    document = make_document(ORDERS.read_text(), endpoint="http://127.0.0.1:1", lake="/demo/lake", table=Table.MOR)
    shell = {"LAKESTREAM_SHAPE": "spike", "LOCUST_PROCESSES": "2", "PATH": "/bin"}
    command = load_command(shell, Workspace(Path("/demo")), document, WARM_UP)
    assert command.environment == {"PATH": "/bin", "AWS_ENDPOINT_URL_KINESIS": "http://127.0.0.1:1"}
