"""Types of single fields: names, locations, columns, SQL."""

import os
import re
from typing import Annotated

from pydantic import AfterValidator, Field, WithJsonSchema

from lakestream_api.cel import rule, rules, text_schema

_DNS_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_DNS_1123 = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_PLAIN = re.compile(r"[a-z][a-z0-9]*")
_SUBDOMAIN = re.compile(rf"{_DNS_1123.pattern}(\.{_DNS_1123.pattern})*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_LABEL = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_KEY = re.compile(r"(?!\.$|\.\.)[-._A-Za-z0-9]+")
_PREFIX = re.compile(r"[-._A-Za-z][-._A-Za-z0-9]*")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/")
_QUERY = re.compile(r"(\s|\(|--[^\n]*\n|/\*([^*]|\*+[^*/])*\*+/)*(select|with)\b", re.IGNORECASE)

STREAM_NAME = _DNS_1035.pattern

# An application is called <stream>-<writer>; its executor pods <application>-exec-<number>.
# A pod's name must fit a DNS label of 63; Spark reserves 6 for "-exec-" and 10 for the number,
# which leaves 47 = 30 + len("-") + 16.
MAX_STREAM_NAME = 30
MAX_WRITER_NAME = 16
_MAX_DNS_LABEL = 63
_MAX_DNS_SUBDOMAIN = 253
MAX_SQL = 65_536
_LABEL_RULE = f"use at most {_MAX_DNS_LABEL} letters, digits, '-', '_' and '.', with a letter or digit at both ends"


def _fits(name: str, limit: int) -> None:
    if len(name) > limit:
        raise ValueError(f"{name!r} has {len(name)} characters; at most {limit} leave room for the names of its pods")


def _stream_name(name: str) -> str:
    _fits(name, MAX_STREAM_NAME)
    if _DNS_1035.fullmatch(name) is None:
        raise ValueError(
            f"{name!r} is not a DNS-1035 name; use lower-case letters, digits and '-',"
            " beginning with a letter and ending with a letter or digit"
        )
    return name


def _writer_name(name: str) -> str:
    _fits(name, MAX_WRITER_NAME)
    # Without '-', "<stream>-<writer>" can be taken apart in one way only: a-b and c, a and b-c never meet.
    if _PLAIN.fullmatch(name) is None:
        raise ValueError(f"{name!r} is not a writer's name; use lower-case letters and digits, beginning with a letter")
    return name


def _is_subdomain(name: str) -> bool:
    return len(name) <= _MAX_DNS_SUBDOMAIN and _SUBDOMAIN.fullmatch(name) is not None


def _kubernetes_name(name: str) -> str:
    if not _is_subdomain(name):
        raise ValueError(
            f"{name!r} is not the name of a Kubernetes object; use lower-case letters, digits, '-' and '.',"
            " with a letter or digit at both ends"
        )
    return name


def _variable(name: str) -> str:
    if _VARIABLE.fullmatch(name) is None:
        raise ValueError(f"{name!r} is not the name of a variable; use letters, digits and '_', no digit first")
    return name


def _namespace(name: str) -> str:
    if len(name) > _MAX_DNS_LABEL or _DNS_1123.fullmatch(name) is None:
        raise ValueError(
            f"{name!r} is not a Kubernetes namespace; use at most {_MAX_DNS_LABEL}"
            " lower-case letters, digits and '-', with a letter or digit at both ends"
        )
    return name


def _is_label(text: str) -> bool:
    return len(text) <= _MAX_DNS_LABEL and _LABEL.fullmatch(text) is not None


def _label_key(key: str) -> str:
    *domain, name = key.split("/", 1)
    if not _is_label(name) or not all(map(_is_subdomain, domain)):
        raise ValueError(
            f"{key!r} is not the key of a label, annotation or taint; {_LABEL_RULE}, and before that a domain with a"
            " slash, if any, as in example.com/team"
        )
    return key


def _taint_key(key: str) -> str:
    return _label_key(key) if key else key  # all taints


def _label_value(value: str) -> str:
    if value and not _is_label(value):
        raise ValueError(f"{value!r} is not the value of a label or taint; {_LABEL_RULE}")
    return value


def valid_labels(labels: dict[str, str]) -> dict[str, str]:
    """As an API server has them. Of pods it sees them late: a driver would be ended for one that cannot start."""
    for key, value in labels.items():
        _label_key(key)
        _label_value(value)
    return labels


def valid_annotations(annotations: dict[str, str]) -> dict[str, str]:
    """As `valid_labels`; their values may be any."""
    for key in annotations:
        _label_key(key.lower())  # as Kubernetes does: their domains may have capital letters
    return annotations


def _entry(key: str) -> str:
    if _KEY.fullmatch(key) is None:
        raise ValueError(f"{key!r} is not an entry of a Secret or ConfigMap; use letters, digits, '-', '_' and '.'")
    return key


def _prefix(prefix: str) -> str:
    if prefix and _PREFIX.fullmatch(prefix) is None:
        raise ValueError(f"{prefix!r} cannot begin a variable; use letters, digits, '-', '_' and '.', no digit first")
    return prefix


def _image(image: str) -> str:
    if re.search(r"\s", image):
        raise ValueError(f"{image!r} is not an image; write it without blanks, as in registry.example.com/spark:1.0")
    return image


def _location(location: str) -> str:
    """A folder on S3 or on this machine, without a slash at its end."""
    folder = location.rstrip("/")
    if not folder or folder != folder.strip() or not folder.isprintable():
        raise ValueError(f"{location!r} is not a location; give a folder as in s3a://bucket/folder")
    scheme = _SCHEME.match(folder)
    if scheme is None:
        path = _local(location, folder)
    elif scheme[1] in ("s3", "s3a"):
        bucket, _, path = folder.partition("://")[2].partition("/")
        if _BUCKET.fullmatch(bucket) is None:
            raise ValueError(f"{location!r} names no valid bucket; write {scheme[1]}://bucket/folder")
        if not path:
            raise ValueError(f"{location!r} is a whole bucket; give a folder in it")
    elif scheme[1] == "file" and folder.startswith("file:///"):
        path = folder.removeprefix("file:///")
    elif scheme[1] == "file":
        raise ValueError(f"{location!r} names a host; a local folder has three slashes: file:///folder")
    else:
        raise ValueError(
            f"{location!r} has a scheme that LakeStream cannot write to; use s3a://, s3://, file:/// or a local folder"
        )
    if any(part in ("", ".", "..") for part in path.split("/")):
        raise ValueError(f"{location!r} has empty, '.' or '..' steps; write the folder out in full")
    return folder


def _local(location: str, folder: str) -> str:
    if folder.startswith(("~", "file:")):
        raise ValueError(
            f"{location!r} says what only shells know; write the folder out, as in /folder or file:///folder"
        )
    return folder[2:] if folder.startswith("./") else folder.removeprefix("/")


def overlap(first: str, second: str) -> bool:
    """Whether one of two locations is the other, or lies in it."""
    one, two = comparable(first), comparable(second)
    return one.startswith(two) or two.startswith(one)


def comparable(location: str) -> str:
    """What begins with that of another location if it is that one, or lies in it (s3 and s3a are the same)."""
    if location.startswith(("s3:", "s3a:")):
        return location.replace("s3a://", "s3://", 1) + "/"
    return os.path.abspath(location.removeprefix("file://")) + "/"


def _columns(names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if not name.strip():
            raise ValueError("a column name is empty; name a column or remove it")
        if names.count(name) > 1:
            raise ValueError(f"column {name!r} is listed twice; list it once")
    return names


def _sql(sql: str) -> str:
    if not sql.strip():
        raise ValueError("is empty; write it or remove the field")
    return sql


def _query(sql: str) -> str:
    if _QUERY.match(_sql(sql)) is None:
        raise ValueError("is not a query; write SELECT ... FROM events")
    return sql


_NAME_RULE = "use lower-case letters, digits, '-' and '.', with a letter or digit at both ends"
_ON_S3 = "must be a folder on S3, as in s3a://bucket/folder: pods share no disk, so what they write elsewhere is lost"

StreamName = Annotated[str, AfterValidator(_stream_name)]
"""Name of a LakeStream. A CRD checks names at its root, see `LakeStream`."""
WriterName = Annotated[
    str,
    AfterValidator(_writer_name),
    WithJsonSchema(
        text_schema(
            rule(
                f"self.matches('^{_PLAIN.pattern}$') && self.size() <= {MAX_WRITER_NAME}",
                f"use at most {MAX_WRITER_NAME} lower-case letters and digits, beginning with a letter:"
                " the names of the writer's pods are made of it",
            ),
            most=_MAX_DNS_SUBDOMAIN,
        )
    ),
]
Namespace = Annotated[str, AfterValidator(_namespace)]
Location = Annotated[
    str,
    AfterValidator(_location),
    Field(max_length=1024),
    WithJsonSchema(
        text_schema(
            rule(f"self.matches('^s3a?://{_BUCKET.pattern}/[^/]')", _ON_S3),
            rule(r"!self.matches(r'[^:]//|/\.{1,2}(/|$)')", "must have no empty, '.' or '..' steps; write it in full"),
            rule(r"!self.matches(r'\s$|[[:cntrl:]]')", "must end without blanks and have no control characters"),
            most=1024,
        )
    ),
]
Column = Annotated[
    str,
    AfterValidator(_sql),
    Field(max_length=256),
    WithJsonSchema(text_schema(rule(r"self.matches(r'\S')", "must name a column"), most=256)),
]
Columns = Annotated[
    tuple[Annotated[str, Field(max_length=256)], ...],
    Field(max_length=32),
    AfterValidator(_columns),
    rules(
        rule(r"self.all(column, column.matches(r'\S'))", "a column name is empty; name a column or remove it"),
        rule("self.all(column, self.exists_one(other, other == column))", "a column is listed twice; list it once"),
    ),
]
Sql = Annotated[
    str,
    AfterValidator(_sql),
    Field(max_length=MAX_SQL),
    WithJsonSchema(text_schema(rule(r"self.matches(r'\S')", "is empty; write it or remove the field"), most=MAX_SQL)),
]
Query = Annotated[
    str,
    AfterValidator(_query),
    Field(max_length=MAX_SQL),
    WithJsonSchema(
        text_schema(
            rule(f"self.matches(r'^(?i){_QUERY.pattern}')", "is not a query; write SELECT ... FROM events"),
            most=MAX_SQL,
        )
    ),
]
KubernetesName = Annotated[
    str,
    AfterValidator(_kubernetes_name),
    WithJsonSchema(text_schema(rule(f"self.matches(r'^{_SUBDOMAIN.pattern}$')", _NAME_RULE), most=_MAX_DNS_SUBDOMAIN)),
]
EnvName = Annotated[
    str,
    AfterValidator(_variable),
    Field(max_length=256),
    WithJsonSchema(
        text_schema(
            rule(f"self.matches('^{_VARIABLE.pattern}$')", "use letters, digits and '_', no digit first"),
            most=256,
        )
    ),
]
TaintKey = Annotated[str, AfterValidator(_taint_key)]
TaintValue = Annotated[str, AfterValidator(_label_value)]
EntryKey = Annotated[str, AfterValidator(_entry)]
EnvPrefix = Annotated[str, AfterValidator(_prefix)]
Image = Annotated[str, AfterValidator(_image)]
