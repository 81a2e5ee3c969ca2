"""Which proxy is taken for Kinesis, of what an environment says."""

from __future__ import annotations

import pytest

from lakestream.errors import SettingsError
from lakestream.kinesis.proxies import proxy_of

URL = "https://kinesis.eu-west-1.amazonaws.com/"


@pytest.fixture(autouse=True)
def none(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.mark.parametrize(
    ("environ", "address"),
    [
        ({}, None),
        ({"HTTPS_PROXY": ""}, None),
        ({"HTTP_PROXY": "http://proxy:3128"}, None),
        ({"HTTPS_PROXY": "http://proxy:3128"}, ("proxy", 3128)),
        ({"https_proxy": "proxy:3128"}, ("proxy", 3128)),
        ({"HTTPS_PROXY": "http://proxy"}, ("proxy", 80)),
        ({"HTTPS_PROXY": "http://[fd00::1]:3128/"}, ("fd00::1", 3128)),
        ({"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": "10.0.0.1,.amazonaws.com"}, None),
        ({"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": "*"}, None),
        ({"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": "azonaws.com"}, ("proxy", 3128)),
    ],
)
def test_the_proxy_of_an_environment(
    environ: dict[str, str], address: tuple[str, int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    proxy = proxy_of(URL)
    assert (proxy and (proxy.host, proxy.port)) == address
    assert proxy is None or proxy.headers == {}


def test_who_we_are_is_told_to_the_proxy_and_to_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://me:a%40b@proxy:3128")
    proxy = proxy_of(URL)
    assert proxy is not None
    assert proxy.headers == {"Proxy-Authorization": "Basic bWU6YUBi"}
    assert "bWU6YUBi" not in repr(proxy)


@pytest.mark.parametrize(
    "given",
    ["socks5://me:secret@proxy:1080", "https://proxy:3128", "http://", "http://me:secret@proxy:70000", "proxy:x"],
)
def test_what_is_no_proxy_for_kinesis_is_refused_by_name(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", given)
    with pytest.raises(
        SettingsError, match=r"^HTTPS_PROXY is not .*kinesis\.eu-west-1\.amazonaws\.com by NO_PROXY"
    ) as told:
        proxy_of(URL)
    assert "secret" not in str(told.value)
