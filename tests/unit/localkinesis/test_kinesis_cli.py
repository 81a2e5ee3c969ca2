"""`lakestream kinesis serve`."""

from __future__ import annotations

import re
import signal
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lakestream_localkinesis.cli import app
from lakestream_localkinesis.server import Address
from lakestream_localkinesis.testing import connect, local_kinesis

STOP_SECONDS = 60


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--create-stream", "orders"], "'orders' is neither NAME:SHARDS nor NAME:on-demand"),
        (["--create-stream", "orders:0"], "--create-stream"),
        (["--create-stream", ":4"], "--create-stream"),
        (["--create-stream", f"orders:{'1' * 5_000}"], "is neither NAME:SHARDS nor NAME:on-demand"),
        (["--account", "me"], "'me' is not 12 digits"),
        (["--create-stream", "my orders:4"], "'my orders' is no name of a stream"),
        (["--create-stream", f"{'o' * 129}:4"], "length less than or equal to 128"),
        (["--region", ""], "region: '' is no name"),
        (["--port", "70000"], "65535"),
        (["--host", ""], "host: it is empty"),
        (["--transition", "-1"], "transition"),
        (["--transition", "nan"], "transition: nan"),
        (["--transition", "inf"], "transition: inf"),
        (["--tls", ""], "'--tls': it is empty; give a folder"),
        (["--data", ""], "'--data': it is empty; give a folder"),
        (["--tls", "/dev/null"], "tls.crt and tls.key in /dev/null cannot be used"),
    ],
)
def test_settings_that_make_no_sense_are_named(arguments: list[str], named: str):
    result = CliRunner().invoke(app, ["serve", "--port", "0", *arguments])

    assert result.exit_code == 2
    # The message is wrapped into a box.
    assert named in " ".join(re.sub(r"[│╭╮╰╯─]", " ", result.output).split())


def test_a_port_that_is_taken_ends_it():
    with local_kinesis() as server:
        port = server.endpoint.rpartition(":")[2]
        result = CliRunner().invoke(app, ["serve", "--port", port])

    assert result.exit_code == 1


def test_a_host_that_is_none_ends_it(caplog: pytest.LogCaptureFixture):
    result = CliRunner().invoke(app, ["serve", "--port", "0", "--host", "127.0..1"])

    assert result.exit_code == 1
    assert "cannot listen on 127.0..1:0: " in caplog.text


@pytest.mark.parametrize("tls", [False, True])
def test_it_serves_until_it_is_told_to_stop(tmp_path: Path, tls: bool):
    secured = ["--tls", str(tmp_path)] if tls else []
    streams = ["--create-stream", "orders:3", "--create-stream", "wide:on-demand"]
    command = [sys.executable, "-m", "lakestream_localkinesis.cli", "serve", "--port", "0", "--testing", *streams]
    with _serving([*command, "--region", "eu-west-1", *secured]) as (process, endpoint, _):
        certificate = tmp_path / "tls.crt" if tls else None
        server = connect(endpoint, region="eu-west-1", certificate=certificate)
        described = server.client().describe_stream_summary(StreamName="orders")["StreamDescriptionSummary"]
        assert described["OpenShardCount"] == 3
        assert described["StreamARN"].startswith("arn:aws:kinesis:eu-west-1:")
        assert server.client().list_streams()["StreamNames"] == ["orders", "wide"]
        server.clock.advance(60)
        context = ssl.create_default_context(cafile=certificate) if tls else None
        assert b"kinesis_shard_open" in urllib.request.urlopen(f"{server.endpoint}/metrics", context=context).read()
        process.send_signal(signal.SIGTERM)
        assert process.wait(STOP_SECONDS) == 0


def test_an_address_of_ipv6_is_told_as_clients_take_it():
    assert Address("::1", 4567).url() == "http://[::1]:4567"
    assert Address("127.0.0.1", 4567).url(tls=True) == "https://127.0.0.1:4567"


def test_what_was_acknowledged_outlives_a_kill(tmp_path: Path):
    folder = tmp_path / "data"
    command = [sys.executable, "-m", "lakestream_localkinesis.cli", "serve", "--port", "0", "--testing"]
    command += ["--data", str(folder), "--create-stream"]
    acknowledged = []
    iterator = ""
    for stream in ("orders:2", "orders:3"):
        with _serving([*command, stream]) as (_, endpoint, said):
            server = connect(endpoint)
            client = server.client()
            assert [record.sequence_number for record in server.records("orders")] == acknowledged
            if iterator:
                # Another count of shards is told and nothing else.
                assert "--create-stream: orders is there already, PROVISIONED with 2 open shards" in said
                assert len(client.list_shards(StreamName="orders")["Shards"]) == 2
                assert [record["Data"] for record in client.get_records(ShardIterator=iterator)["Records"]] == [b"data"]
            else:
                put = client.put_record(StreamName="orders", PartitionKey="key", Data=b"data")
                place_of = {"StreamName": "orders", "ShardId": put["ShardId"]}
                iterator = client.get_shard_iterator(**place_of, ShardIteratorType="TRIM_HORIZON")["ShardIterator"]
                acknowledged.append(put["SequenceNumber"])
                second = CliRunner().invoke(app, ["serve", "--port", "0", "--data", str(folder)])
                assert second.exit_code == 1


@contextmanager
def _serving(command: list[str]) -> Iterator[tuple[subprocess.Popen[str], str, str]]:
    """A server that serves, where, and what it has said until then; killed in the end."""
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = ""
        try:
            for line in process.stderr:
                said += line
                if found := re.search(r"serving Kinesis at (https?://\S+)", line):
                    yield process, found.group(1), said
                    return
            raise AssertionError(f"the server ended with {process.wait()}: {said}")
        finally:
            process.kill()
