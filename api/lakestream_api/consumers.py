"""Consumers of enhanced fan-out, which Kinesis pushes a stream's records to."""

import re
from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator, WithJsonSchema

from lakestream_api.base import problem_at
from lakestream_api.cel import rule, text_schema
from lakestream_api.source import KinesisSource

_ARN = re.compile(
    "arn:aws[a-z-]*:kinesis:([a-z0-9-]+):([0-9]{12}):stream/([a-zA-Z0-9_.-]{1,128})/consumer/[a-zA-Z0-9_.-]{1,128}:[0-9]+"
)
_ARN_RULE = (
    "write the ARN that `aws kinesis register-stream-consumer` gives, as in"
    " arn:aws:kinesis:eu-west-1:111122223333:stream/orders/consumer/lake:1764460800"
)


def _arn(given: str) -> str:
    if _ARN.fullmatch(given) is None:
        raise ValueError(f"{given!r} is not the ARN of a consumer; {_ARN_RULE}")
    return given


ConsumerArn = Annotated[
    str,
    AfterValidator(_arn),
    WithJsonSchema(text_schema(rule(f"self.matches('^{_ARN.pattern}$')", _ARN_RULE), most=512)),
]


def require_own_consumers(arns: Sequence[str | None], source: KinesisSource) -> None:
    """Refuse consumers that writers share, or that are of another stream.

    Args:
        arns: of the writers, in their order.
        source: what is read.

    Raises:
        Problem: with its place below `spec`.
    """
    for index, arn in enumerate(arns):
        if arn is None:
            continue
        here = f"writers[{index}].consumerArn"
        if arn in arns[:index]:
            raise problem_at(
                here, "is another writer's, which would lose each shard to this one; register one for each"
            )
        found = _ARN.fullmatch(arn)
        assert found is not None  # the type
        region, account, stream = found.groups()
        for name, its, ours in (
            ("stream", stream, source.stream),
            ("region", region, source.region),
            ("account", account, source.account or account),
        ):
            if its != ours:
                raise problem_at(here, f"is of {name} {its}, and source.kinesis.{name} is {ours}; make them the same")
