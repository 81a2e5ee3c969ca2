"""Files under a folder or an ``s3://`` (``s3a://``) prefix."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import obstore
from botocore.session import Session
from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import LocalStore, S3Store

from lakestream_loadgen.credentials import RenewedCredentials, checked_region, find_credentials
from lakestream_loadgen.errors import CredentialsError, LakeError, SettingsError

if TYPE_CHECKING:
    from obstore.store import ClientConfig, S3Config, S3Credential

_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
_URL = re.compile(r"https?://[!-~]+")
_LOCAL = ("", "file")
_S3 = ("s3", "s3a")
_URI = re.compile(r"(\w+):(?://([^/]*))?(/.*|)", re.DOTALL)
_SAID = re.compile(r"<Code>([\w.]+)</Code>(?:\s*<Message>([^<]*)</Message>)?")
_INNERMOST = re.compile(r'(?:"([^"]+)"|\b(\w+)),?[\s)}\],]*\Z')


class Folder:
    """A place with files. ``AWS_ENDPOINT_URL_S3`` (or ``AWS_ENDPOINT_URL``), and what any AWS SDK takes region and
    credentials from: variables, profiles, roles."""

    def __init__(self, location: str) -> None:
        self.location = location
        self._store = _open(location)

    def names(self) -> list[str]:
        """Paths of all files, relative to the location, in order; hidden ones are left out: those that Spark hides."""
        return sorted(self.sizes())

    def sizes(self) -> dict[str, int]:
        """Bytes of all files, by their paths as `names` gives them."""
        found = self._listed()
        return {path: size for path, size in found.items() if not any(map(_is_hidden, path.split("/")))}

    def read(self, name: str) -> bytes:
        """The whole file."""
        try:
            return bytes(obstore.get(self._store, name).bytes())
        except (BaseError, OSError) as error:
            raise LakeError(f"{self.location}/{name} cannot be read: {_told(error)}") from error

    def has(self, name: str) -> bool:
        """Whether there is such a file, hidden ones included."""
        try:
            obstore.head(self._store, name)
        except FileNotFoundError:
            return False
        except (BaseError, OSError) as error:
            raise LakeError(f"{self.location}/{name} cannot be looked at: {_told(error)}") from error
        return True

    def add(self, name: str, data: bytes) -> int:
        """A whole file, unless there is one of that name; the bytes of the one that is there now."""
        try:
            # In one request: S3 completes an upload in parts whatever is there.
            obstore.put(self._store, name, data, mode="create", use_multipart=False)
        except AlreadyExistsError:
            # Who may write need not have the right to read.
            found = self._listed(name.rpartition("/")[0])
            if name not in found:
                raise LakeError(f"{self.location}/{name} cannot be written: others write it") from None
            return found[name]
        except (BaseError, OSError) as error:
            raise LakeError(f"{self.location}/{name} cannot be written: {_told(error)}") from error
        return len(data)

    def _listed(self, folder: str = "") -> dict[str, int]:
        try:
            return {entry["path"]: entry["size"] for page in obstore.list(self._store, folder) for entry in page}
        except (BaseError, OSError) as error:
            raise LakeError(f"{self.location} cannot be listed: {_told(error)}") from error


def _told(error: Exception) -> str:
    """Its first line, without obstore's dump of what is behind it, but for the cause where nothing was answered; what
    S3 said as XML, in its words."""
    text = str(error)
    line = text.partition("\n")[0]
    if line.endswith("error sending request") and (cause := _INNERMOST.search(text)) is not None:
        return f"{line}: {cause[1] or cause[2]}"
    if (said := _SAID.search(text)) is None:
        return line
    return ": ".join(filter(None, (line.partition(": <")[0], *said.groups())))


def _is_hidden(name: str) -> bool:
    # `_shard_id=…` is a partition.
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def is_absent(location: str) -> bool:
    """Whether nothing has such a path; never of an s3:// prefix, which has no being of its own."""
    scheme, _, path = _split(location)
    return scheme in _LOCAL and not os.path.lexists(path)


def below(location: str, path: str) -> str:
    """A file's path relative to a location: of one that is, or of a whole one, as `lakestream files` prints it.

    Raises:
        LakeError: it is somewhere else.
    """
    if not path.startswith("/") and "://" not in path:
        return path
    folder, file = _plain(location) + "/", _plain(path)
    if not file.startswith(folder):
        raise LakeError(f"{path} is listed, and is not below {location}")
    return file.removeprefix(folder)


def _plain(location: str) -> str:
    """Without the scheme, which may be one of several that mean the same."""
    scheme, bucket, path = _split(location)
    return f"{bucket}{path}".rstrip("/") if scheme not in _LOCAL else os.path.abspath(path)


def require_place(location: str) -> None:
    """Check that it can be one, whatever is made, granted or started meanwhile.

    Raises:
        LakeError: it cannot.
    """
    scheme, bucket, path = _split(location)
    # The empty path, as of a variable that is not set, would be the working folder.
    if not (path if scheme in _LOCAL else bucket and scheme in _S3):
        raise LakeError(f"{location or repr(location)}: give a folder, or an s3:// location with its bucket")


def _open(location: str) -> LocalStore | S3Store:
    require_place(location)
    scheme, bucket, path = _split(location)
    if scheme in _LOCAL:
        if not Path(path).is_dir():
            raise LakeError(f"{location} is not a folder")
        return LocalStore(path)
    for name in _ENDPOINTS:
        # Empty it is none to us, and a URL to obstore, which reads it as well and panics.
        if not os.environ.get(name, "none"):
            del os.environ[name]
    endpoint = next((os.environ[name] for name in _ENDPOINTS if name in os.environ), None)
    try:
        return _open_s3(bucket, path.strip("/") or None, endpoint)
    except (BaseError, CredentialsError, SettingsError, ValueError) as error:
        raise LakeError(f"{location}: {_told(error)}") from error


def _open_s3(bucket: str, prefix: str | None, endpoint: str | None) -> S3Store:
    config: S3Config = {}
    options: ClientConfig = {}
    if endpoint is not None:
        # Servers of one's own are reached by path, often over plain HTTP.
        config = {"endpoint": _checked(endpoint), "virtual_hosted_style_request": False}
        options = {"allow_http": True}
    session = Session()
    chain = _CredentialChain(session)
    # Botocore knows only AWS_DEFAULT_REGION and the profile's.
    if region := os.environ.get("AWS_REGION") or session.get_config_variable("region"):
        config["region"] = checked_region(region)
    return S3Store(bucket, prefix=prefix, config=config, client_options=options, credential_provider=chain)


class _CredentialChain:
    """Botocore's, as the load uses it; obstore's own knows neither profiles nor SSO."""

    # Botocore renews credentials 10 to 15 min before they end; asking every 5 min always gets live ones.
    _ASK_AGAIN = timedelta(minutes=5)

    def __init__(self, session: Session) -> None:
        self._credentials = RenewedCredentials(find_credentials(session))
        # Once there were some no error comes any more, which obstore would wrap in its own.
        self._credentials.now()

    def __call__(self) -> S3Credential:
        now = self._credentials.now()
        return {
            "access_key_id": now.access_key or "",
            "secret_access_key": now.secret_key or "",
            "token": now.token,
            "expires_at": datetime.now(UTC) + self._ASK_AGAIN,
        }


def _checked(endpoint: str) -> str:
    """Of others obstore panics, by what is no Exception: without a scheme, with a line's end behind it, …"""
    with suppress(ValueError):
        # To ask for the port is to look whether it is one.
        if _URL.fullmatch(endpoint) and urlsplit(endpoint).port != 0:
            return endpoint
    raise LakeError(
        f"{' or '.join(_ENDPOINTS)} is {endpoint!r}, which is not an endpoint; write a URL as in http://127.0.0.1:7070"
    )


def _split(location: str) -> tuple[str, str, str]:
    """Scheme, bucket and path. Not as of a URL, whose path ends at `#` and `?`: names of folders may have them."""
    found = _URI.fullmatch(location)
    return (found[1].lower(), found[2] or "", found[3]) if found else ("", "", location)
