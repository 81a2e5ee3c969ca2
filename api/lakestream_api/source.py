"""Where the records come from."""

import json
import re
from contextlib import suppress
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from lakestream_api.base import ApiModel, problem_at
from lakestream_api.cel import fixed, rule, rules, same, text_schema

_STREAM = re.compile(r"[a-zA-Z0-9_.-]{1,128}")
_ACCOUNT = re.compile(r"[0-9]{12}")
_ROLE = re.compile("arn:aws[a-z-]*:iam::[0-9]{12}:role/[a-zA-Z0-9+=,.@_/-]+")
_ROLE_RULE = "write one as in arn:aws:iam::111122223333:role/reads-orders"
_REGION = re.compile(r"[a-z]{2,}(-[a-z]+)+-\d+")
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})")
_NOT_OURS = (
    "has an effect on a stream of one's own account only; remove it, and let the stream's owner see to its shards"
)
_ONE_STREAM = "is fixed: the checkpoint counts this stream's records; make another LakeStream for another stream"


class StartingPosition(StrEnum):
    """Kinesis's shard iterator types that a new checkpoint can begin at."""

    TRIM_HORIZON = "TRIM_HORIZON"
    LATEST = "LATEST"
    AT_TIMESTAMP = "AT_TIMESTAMP"


class MisplacedRecords(StrEnum):
    """What to do with user records that are in another shard than their key says."""

    DROP = "drop"
    KEEP = "keep"


class OnDataLoss(StrEnum):
    """What to do when records were trimmed before they were read."""

    FAIL = "fail"
    SKIP = "skip"


def _stream(name: str) -> str:
    if _STREAM.fullmatch(name) is None:
        raise ValueError(
            f"{name!r} is not the name of a Kinesis stream;"
            " use 1 to 128 letters, digits, '_', '.' and '-' (a name, not an ARN)"
        )
    return name


def _region(name: str) -> str:
    if _REGION.fullmatch(name) is None:
        raise ValueError(f"{name!r} is not an AWS region; write one as in eu-west-1")
    return name


def _account(number: str) -> str:
    if _ACCOUNT.fullmatch(number) is None:
        raise ValueError(f"{number!r} is not an AWS account; write its twelve digits in quotes")
    return number


def _role(arn: str) -> str:
    if _ROLE.fullmatch(arn) is None:
        raise ValueError(f"{arn!r} is not the ARN of a role; {_ROLE_RULE}")
    return arn


def _endpoint(url: str) -> str:
    with suppress(ValueError):
        parts = urlsplit(url)
        # To ask for the port is to look whether it is one. What `urlsplit` leaves out silently, as line ends, is not in
        # the URL that is asked; nor are a path and a user.
        bare = f"{parts.scheme}://{parts.netloc}".lower()
        is_all = url.lower().rstrip("/") == bare and "@" not in bare
        if is_all and parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            return url.rstrip("/")
    raise ValueError(f"{url!r} is not an endpoint; write a URL as in http://127.0.0.1:4567")


def _time(given: object) -> object:
    """Pydantic takes digits, in quotes or not, for seconds or milliseconds since 1970."""
    if isinstance(given, datetime):
        return given
    with suppress(ValueError, OverflowError):
        if isinstance(given, str) and _TIME.fullmatch(given):
            time = datetime.fromisoformat(given)
            time.astimezone(UTC)  # by which Kinesis is asked, and which has no year 0
            return time
    raise ValueError(f'is {json.dumps(given)}; must be a time with its zone, as in "2026-01-31T06:00:00Z"')


class Shards(ApiModel):
    """How many shards a provisioned stream may be given.

    Kinesis goes at most to twice and at least to half of what there is, ten times a day.
    """

    model_config = ConfigDict(
        json_schema_extra=rules(rule("self.min <= self.max", "min is above max; lower it or raise max", ".min"))
    )

    min: int = Field(ge=1, le=10_000)
    """Shards that always stay."""

    max: int = Field(ge=1, le=10_000)
    """Shards that are never exceeded."""

    @model_validator(mode="after")
    def _min_is_at_most_max(self) -> Self:
        if self.min > self.max:
            raise problem_at("min", f"is {self.min}, above max {self.max}; lower it or raise max")
        return self


class KinesisSource(ApiModel):
    """A Kinesis data stream."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "self.startingPosition != 'AT_TIMESTAMP' || has(self.timestamp)",
                "is required with startingPosition AT_TIMESTAMP; add the time to begin at",
                ".timestamp",
            ),
            rule(
                "self.startingPosition == 'AT_TIMESTAMP' || !has(self.timestamp)",
                "has an effect with startingPosition AT_TIMESTAMP only; remove it or set that",
                ".timestamp",
            ),
            rule(same("account"), _ONE_STREAM, ".account"),
            rule("!has(self.account) || !has(self.shards)", _NOT_OURS, ".shards"),
        )
    )

    stream: Annotated[
        str,
        AfterValidator(_stream),
        WithJsonSchema(
            text_schema(
                rule(
                    f"self.matches('^{_STREAM.pattern}$')",
                    "use 1 to 128 letters, digits, '_', '.' and '-': the name of the stream, not its ARN",
                ),
                most=256,
            )
        ),
    ] = Field(json_schema_extra=fixed(_ONE_STREAM))
    """Name of the stream, not its ARN. Fixed."""

    region: Annotated[
        str,
        AfterValidator(_region),
        WithJsonSchema(
            text_schema(rule(f"self.matches(r'^{_REGION.pattern}$')", "write one as in eu-west-1"), most=64)
        ),
    ] = Field(json_schema_extra=fixed(_ONE_STREAM))
    """AWS Region of the stream. Fixed.

    S3 and Glue are asked in it as well, unless the environment names another by `AWS_REGION`, or else
    `AWS_DEFAULT_REGION`: on Kubernetes in `kubernetes.env`."""

    account: (
        Annotated[
            str,
            AfterValidator(_account),
            WithJsonSchema(
                text_schema(
                    rule(f"self.matches(r'^{_ACCOUNT.pattern}$')", "write its twelve digits in quotes"), most=64
                )
            ),
        ]
        | None
    ) = None
    """AWS account that the stream belongs to, in quotes, if that is another one than its readers'. It
    is asked for by its ARN then, which its owner has to allow by a policy of the stream
    (docs/eks.md). Fixed."""

    role_arn: (
        Annotated[
            str,
            AfterValidator(_role),
            WithJsonSchema(text_schema(rule(f"self.matches('^{_ROLE.pattern}$')", _ROLE_RULE), most=640)),
        ]
        | None
    ) = None
    """A role that the stream is read by, of its account or another one, which has to trust the role of
    the pods (docs/eks.md). The lake is written without it."""

    endpoint: (
        Annotated[
            str,
            AfterValidator(_endpoint),
            WithJsonSchema(
                text_schema(
                    rule("self.matches('^(?i)https?://[^/:]')", "write a URL as in http://127.0.0.1:4567"), most=512
                )
            ),
        ]
        | None
    ) = None
    """URL of a Kinesis API other than the region's own. Without it, `AWS_ENDPOINT_URL_KINESIS`
    and `AWS_ENDPOINT_URL` are honoured; `AWS_CA_BUNDLE` names certificates to trust instead of the
    system's, and `HTTPS_PROXY` (`HTTP_PROXY` where the URL begins with `http:`) a proxy, but for the
    hosts of `NO_PROXY`."""

    starting_position: StartingPosition = StartingPosition.TRIM_HORIZON
    """Where a new checkpoint begins: the oldest record retained (`TRIM_HORIZON`; of a stream that
    trims already one 15 minutes younger, which is still there when it is read), what arrives after
    the first start or within the second before, as Kinesis tells its time in whole ones
    (`LATEST`), or the first record at or after `timestamp` (`AT_TIMESTAMP`). A checkpoint that
    exists goes on from where it is."""

    timestamp: (
        Annotated[
            AwareDatetime,
            BeforeValidator(_time),
            WithJsonSchema(
                text_schema(
                    rule(
                        f"self.matches(r'^{_TIME.pattern}$')",
                        'write a time with its zone, as in "2026-01-31T06:00:00Z"',
                    ),
                    most=64,
                )
            ),
        ]
        | None
    ) = None
    """Arrival time to begin at, with a time zone. Goes with `AT_TIMESTAMP` only."""

    on_data_loss: OnDataLoss = OnDataLoss.FAIL
    """When records have left the stream's retention before they were read: `fail`, naming the
    shard and how much is lost, or `skip` them and go on with the oldest that is left."""

    misplaced_records: MisplacedRecords = MisplacedRecords.DROP
    """User records of an aggregate whose keys belong to another shard than the aggregate is in. The
    Kinesis Producer Library leaves such copies behind when the stream is resharded, and sends those
    records again: `drop` takes them once, and counts the others. Producers other than it, that
    aggregate records of many keys, need `keep`. Without effect where Kinesis distributes records by
    itself."""

    shards: Shards | None = None
    """Bounds of the shards that a provisioned stream is given, by what is written to it. The driver of
    the first writer asks Kinesis for them, and needs the right to. Without this field, the default,
    nobody touches the stream."""

    @model_validator(mode="after")
    def _timestamp_goes_with_at_timestamp(self) -> Self:
        at_timestamp = self.starting_position is StartingPosition.AT_TIMESTAMP
        if at_timestamp and self.timestamp is None:
            raise problem_at(
                "timestamp",
                "is required with startingPosition AT_TIMESTAMP;"
                ' add the time to begin at, as in "2026-01-31T06:00:00Z"',
            )
        if not at_timestamp and self.timestamp is not None:
            raise problem_at(
                "timestamp",
                f"has no effect with startingPosition {self.starting_position};"
                " remove it or set startingPosition: AT_TIMESTAMP",
            )
        return self

    @model_validator(mode="after")
    def _shards_are_the_owners(self) -> Self:
        if self.account is not None and self.shards is not None:
            raise problem_at("shards", _NOT_OURS)
        return self


class Source(ApiModel):
    """The source of a LakeStream."""

    kinesis: KinesisSource
    """The Kinesis data stream to read."""
