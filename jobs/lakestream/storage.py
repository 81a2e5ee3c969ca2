"""Where a lake lives: one place that turns a path of the LakeStream document into an obstore store.

The log, the JSON sink on the executors and the quarantine all come through here, so that a folder
and S3 are told apart once. What crosses to an executor is the `StoreSettings` (picklable, no
connection in it); each process opens its own store from them, and reuses it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from functools import lru_cache
from textwrap import shorten
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import urlsplit

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    InvalidPathError,
    NotSupportedError,
    PermissionDeniedError,
    UnauthenticatedError,
    UnknownConfigurationKeyError,
)
from obstore.store import LocalStore, S3Store

from lakestream.errors import AccessDeniedError, PermanentError, RetryLaterError
from lakestream.texts import is_utf8

if TYPE_CHECKING:
    from obstore.store import BackoffConfig, ClientConfig, RetryConfig, S3Config

LakeStore: TypeAlias = LocalStore | S3Store


class StorageError(PermanentError):
    """A path that cannot be a lake, or a store that refuses us."""


class StorageDeniedError(StorageError, AccessDeniedError):
    """S3 denies a request, or does not know the credentials."""


class StorageUnavailableError(RetryLaterError):
    """The store failed or did not answer, after obstore's own retries. A write may have taken effect."""


class ObjectNotFoundError(StorageError, FileNotFoundError):
    """No object of that name."""


class ObjectExistsError(StorageError, FileExistsError):
    """A put-if-absent found an object of that name."""


class Scheme(StrEnum):
    """The two kinds of place a lake can be in."""

    FOLDER = "file"
    S3 = "s3"


_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
"""Of ASCII; obstore takes none in a key."""
_BUCKET = re.compile(r"[A-Za-z0-9][\w.-]*", re.ASCII)
"""Also the names of old ones. Of another obstore makes a URL that is none, or that of another bucket (`lake#x`)."""


@dataclass(frozen=True, slots=True)
class LakePath:
    """A folder, or a prefix of an S3 bucket."""

    scheme: Scheme
    bucket: str
    """Empty for a folder."""
    key: str
    """No slash at either end; for a folder the absolute path without its first slash."""

    @classmethod
    def parse(cls, text: str) -> LakePath:
        """Read a local path, `file:///…`, `s3://bucket/…` or `s3a://bucket/…`.

        A relative folder is made absolute at once: executors may run in another directory.

        Raises:
            StorageError: another scheme, no bucket, or a path that an object key cannot hold.
        """
        if not is_utf8(text):
            raise StorageError(f"{text!r} is no path: it is not UTF-8")
        if _CONTROL.search(text):
            raise StorageError(f"{text!r} is no path: it has a control character")
        scheme, separator, rest = text.partition("://")
        if not separator:
            if not text or text.startswith("file:"):
                raise StorageError(f"{text!r} is no path: give a folder, file:///folder or s3a://bucket/prefix")
            return cls(Scheme.FOLDER, "", _key(text, os.path.abspath(text)))
        if scheme == "file":
            if not rest.startswith("/"):
                raise StorageError(f"{text!r} names a host: write file:///folder, with three slashes")
            return cls(Scheme.FOLDER, "", _key(text, rest))
        if scheme in ("s3", "s3a"):
            bucket, _, key = rest.partition("/")
            if not bucket:
                raise StorageError(f"{text!r} has no bucket: write s3a://bucket/prefix")
            if not _BUCKET.fullmatch(bucket):
                raise StorageError(f"{text!r} names no bucket: {bucket!r} has more than letters, digits and . - _")
            return cls(Scheme.S3, bucket, _key(text, key))
        raise StorageError(f"{text!r}: scheme {scheme!r} is not supported; use a folder, file://, s3:// or s3a://")

    def __truediv__(self, name: str) -> LakePath:
        return replace(self, key=_key(name, f"{self.key}/{name}"))

    @property
    def uri(self) -> str:
        """The name that Spark and Hudi understand: `file:///…` or `s3a://…`."""
        if self.scheme is Scheme.FOLDER:
            return f"file:///{self.key}"
        return f"s3a://{self.bucket}/{self.key}".rstrip("/")

    def __str__(self) -> str:
        return f"/{self.key}" if self.scheme is Scheme.FOLDER else self.uri


_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
_URL = re.compile(r"https?://[!-~]+")
_REGION = re.compile(r"[A-Za-z0-9-]*")


@dataclass(frozen=True, slots=True)
class S3Settings:
    """How to reach S3. Credentials are not among them: each process finds its own."""

    region: str
    endpoint: str | None = None
    """A server other than AWS; then buckets are in the path of the URL, and plain http is allowed."""

    @classmethod
    def from_environment(cls, environ: Mapping[str, str], region: str) -> S3Settings:
        """Read AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, AWS_REGION and AWS_DEFAULT_REGION.

        Args:
            environ: the environment of the process.
            region: of the Kinesis stream; the lake is taken to be beside it unless the environment says otherwise.
        """
        endpoint = next((environ[name] for name in _ENDPOINTS if environ.get(name)), None)
        return cls(environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION") or region, endpoint)


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """Everything that another process needs to open the same place."""

    path: LakePath
    s3: S3Settings
    patience: timedelta = timedelta(minutes=3)
    """How long a request is tried again (with backoff, four seconds at most) before it fails."""

    def __truediv__(self, name: str) -> StoreSettings:
        return replace(self, path=self.path / name)

    @property
    def root(self) -> StoreSettings:
        """The whole bucket, or all folders: a store whose keys are those of `path`."""
        return replace(self, path=replace(self.path, key=""))


def _retries(patience: timedelta) -> RetryConfig:
    """Time alone ends them. By itself obstore ends with the tenth, five to nine seconds after a server went away where
    connections are refused at once."""
    backoff: BackoffConfig = {
        "init_backoff": timedelta(milliseconds=100),
        "max_backoff": timedelta(seconds=4),
        "base": 2,
    }
    return {"retry_timeout": patience, "max_retries": 1_000_000, "backoff": backoff}


def _checked_region(name: str) -> str:
    """With a line's end or a blank obstore and hudi-rs panic, as for an endpoint."""
    if not _REGION.fullmatch(name):
        raise StorageError(
            f"AWS_REGION or AWS_DEFAULT_REGION is {name!r}, which is no region; write one as in eu-west-1"
        )
    return name


def _checked(endpoint: str) -> str:
    """Of others obstore and hudi-rs panic, by what is no Exception: without a scheme, with a line's end behind it, …"""
    with suppress(ValueError):
        # To ask for the port is to look whether it is one.
        if _URL.fullmatch(endpoint) and urlsplit(endpoint).port != 0:
            return endpoint
    raise StorageError(
        f"{' or '.join(_ENDPOINTS)} is {endpoint!r}, which is not an endpoint; write a URL as in http://127.0.0.1:7070"
    )


@lru_cache(maxsize=32)
def open_store(settings: StoreSettings) -> LakeStore:
    """Open a store whose keys are relative to the path. A folder is created if it is missing.

    Cached per process: Spark's Python workers outlive their tasks, and so do the connections.

    Raises:
        StorageError: the folder cannot be created, the region or the endpoint is none, or there are no AWS credentials.
        StorageUnavailableError: whoever gives these is away.
    """
    path = settings.path
    if path.scheme is Scheme.FOLDER:
        try:
            return LocalStore(str(path), mkdir=True)
        except OSError as error:
            raise StorageError(f"cannot create the folder {path}: {error}") from error
    # botocore takes 80 ms to import, and a command that asks no S3 has no use for it.
    from lakestream.s3_credentials import CredentialChain

    for name in _ENDPOINTS:
        # Empty it is none to us, and a URL to obstore and hudi-rs, which read it as well and panic.
        if not os.environ.get(name, "none"):
            del os.environ[name]
    config: S3Config = {"region": _checked_region(settings.s3.region), "conditional_put": "etag"}
    options: ClientConfig = {}
    if settings.s3.endpoint is not None:
        config["endpoint"] = _checked(settings.s3.endpoint)
        config["aws_endpoint_url_s3"] = settings.s3.endpoint
        config["virtual_hosted_style_request"] = False
        options["allow_http"] = settings.s3.endpoint.startswith("http://")
    # The timeout of one attempt (30 s is obstore's default) may not outlast the patience for all.
    options["timeout"] = min(timedelta(seconds=30), settings.patience)
    return S3Store(
        path.bucket,
        prefix=path.key or None,
        config=config,
        client_options=options,
        retry_config=_retries(settings.patience),
        credential_provider=CredentialChain(),
    )


def exists(place: StoreSettings, key: str) -> bool:
    """Whether there is an object of that key below a place. One HEAD request; a folder is not made.

    Raises:
        StorageError, StorageUnavailableError: of the store.
    """
    if place.path.scheme is Scheme.FOLDER and not os.path.isdir(str(place.path)):
        return False
    try:
        with translated(f"look for {key} under {place.path}"):
            obstore.head(open_store(place), key)
    except ObjectNotFoundError:
        return False
    return True


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Turn obstore's errors into ours; `what` says what was tried, e.g. "put batches/7"."""
    try:
        yield
    except AlreadyExistsError as error:
        raise ObjectExistsError(f"{what}: {_first_line(error)}") from error
    except FileNotFoundError as error:
        raise ObjectNotFoundError(f"{what}: {_first_line(error)}") from error
    except (PermissionDeniedError, UnauthenticatedError) as error:
        raise _denied(what, error) from error
    except (InvalidPathError, NotSupportedError, UnknownConfigurationKeyError, ValueError) as error:
        raise StorageError(f"{what}: {_first_line(error)}") from error
    except (BaseError, OSError) as error:
        if _BEYOND.search(str(error)) is not None:
            raise StorageError(
                f"{what}: somebody has cut it, as it is shorter than it was: {_first_line(error)}"
            ) from error
        if " 403 Forbidden" in str(error):  # to a listing; obstore has no name for that
            raise _denied(what, error) from error
        raise StorageUnavailableError(f"{what}: {_first_line(error)}") from error


def failure_of_s3(what: str, said: str) -> StorageError | StorageUnavailableError | None:
    """What S3 did, if that is what a library failed with that has obstore's `object_store`, and tells it as text.

    Args:
        what: was tried.
        said: by the library.
    """
    told = shorten(_RETRIED.sub(": ", said), 400, placeholder=" …")
    if _DENIED.search(said):
        return _denied(what, Exception(told))
    return StorageUnavailableError(f"{what}: {told}") if _FAILED.search(said) else None


def _key(given: str, path: str) -> str:
    segments = path.strip("/").split("/")
    if any(segment in ("", ".", "..") for segment in segments) and path.strip("/"):
        raise StorageError(f"{given!r}: empty, '.' and '..' segments cannot be part of an object's key")
    return "/".join(segments)


def _denied(what: str, error: BaseException) -> StorageError | StorageUnavailableError:
    """A folder's rights are what they are at once, unlike those of S3."""
    said = _first_line(error)
    if (away := _AWAY.search(said)) is not None:
        return StorageUnavailableError(f"{what}: {away[1]}")
    if "RequestTimeTooSkewed" in said:
        return StorageUnavailableError(f"{what}: the clock of this machine is wrong: {said}")
    if "(os error" in said:
        return StorageError(f"{what}: access denied; check who may read and write there: {said}")
    return StorageDeniedError(f"{what}: access denied; check the credentials and the policy: {said}")


def _first_line(error: BaseException) -> str:
    """Without the dump of its internals that obstore appends, but for the cause of what it tells as "error sending
    request"; what S3 said, in XML, in its words."""
    text = str(error)
    first, found = text.split("\n", 1)[0], _SAID.search(text)
    if found is None:
        return first + _cause(text) if first.endswith("error sending request") else first
    return f"{first.partition(': <')[0]}: {found[1]}{': ' if found[2] else ''}{found[2] or ''}"


def _cause(dump: str) -> str:
    """Of a request that was not answered, what is innermost in the dump."""
    found = _INNERMOST.search(dump)
    cause = f": {found[1] or found[2]}" if found is not None else ""
    if "InvalidCertificate(" not in dump:
        return cause
    return f"{cause}: the certificate of the server is not trusted; SSL_CERT_FILE names a file of those that are"


_BEYOND = re.compile(r" 416 Range Not Satisfiable|\bInvalidRange \{")
"""What S3, or a folder, is made to say of an object that ends before what is asked for."""
_DENIED = re.compile(r"\b(?:PermissionDenied|Unauthenticated) \{|status: 40[13]\b| 403 Forbidden|operation lacked ")
_FAILED = re.compile(r'Generic \{ store: "S3"|Generic S3 error')
_INNERMOST = re.compile(r'(?:"([^"]+)"|\b(\w+)),?[\s)}\],]*\Z')
"""The last value of what Rust prints with `{:#?}`."""
_RETRIED = re.compile(r", source: RetryError\(.*?\binner: ")
_SAID = re.compile(r"<Code>([\w.]+)</Code>(?:\s*<Message>([^<]*)</Message>)?")
_AWAY = re.compile(rf"{StorageUnavailableError.__name__}: (no credentials of AWS: .*)")
"""What obstore makes of it that whoever gives credentials is away."""
