"""uv gets its packages from where pip is told to."""

import runpy
from pathlib import Path

import pytest

UV = runpy.run_path(str(Path(__file__).parents[3] / "tools" / "uv.py"))


def test_variables_count_before_a_section_of_a_file() -> None:
    listing = (
        ":env:.index-url='https://variable.test/simple'\n"
        "global.index-url='https://global.test/simple'\n"
        "global.timeout='60'\n"
        "install.index-url='https://install.test/simple'\n"
        "install.timeout='90'\n"
    )
    assert UV["pip_settings"](listing) == {"index-url": "https://variable.test/simple", "timeout": "90"}


def test_sections_of_other_commands_do_not_count() -> None:
    assert UV["pip_settings"]("download.index-url='https://other.test/simple'\n") == {}


def test_nothing_is_said_where_pip_has_no_settings() -> None:
    assert UV["uv_variables"](UV["pip_settings"]("")) == {}
    assert UV["uv_options"]({}) == []


def test_a_mirror_and_its_certificates() -> None:
    settings = {"index-url": "https://mirror.test/simple", "cert": "/etc/ca.crt", "trusted-host": "a.test\nb.test:8443"}
    assert UV["uv_variables"](settings) == {
        "UV_DEFAULT_INDEX": "https://mirror.test/simple",
        "SSL_CERT_FILE": "/etc/ca.crt",
        "UV_INSECURE_HOST": "a.test b.test:8443",
    }


def test_certificates_of_requests_count_for_pip_too() -> None:
    env = {"REQUESTS_CA_BUNDLE": "/etc/requests.crt", "CURL_CA_BUNDLE": "/etc/curl.crt"}
    assert UV["certificates"](env) == "/etc/requests.crt"
    assert Path(UV["certificates"]({})).exists()


def test_of_several_indexes_the_version_decides() -> None:
    settings = UV["pip_settings"](r"global.extra-index-url='https://a.test/simple\nhttps://b.test/simple'")
    assert UV["uv_variables"](settings) == {
        "UV_INDEX": "https://a.test/simple https://b.test/simple",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
    }


def test_folders_that_are_not_there_are_passed_over(tmp_path: Path) -> None:
    settings = {"find-links": f"{tmp_path}/absent {tmp_path} https://wheels.test/"}
    assert UV["uv_variables"](settings) == {"UV_FIND_LINKS": f"{tmp_path},https://wheels.test/"}
    assert UV["uv_variables"]({"find-links": f"{tmp_path}/absent"}) == {}


@pytest.mark.parametrize(("value", "options"), [("true", ["--no-index"]), ("1", ["--no-index"]), ("false", [])])
def test_no_index_is_an_option(value: str, options: list[str]) -> None:
    assert UV["uv_options"]({"no-index": value}) == options
