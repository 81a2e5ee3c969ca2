"""What a person is shown of a record that its producer has wrapped."""

from __future__ import annotations

import logging
from collections.abc import Callable

from lakestream.avro import AvroTexts, GlueRegistry
from lakestream.errors import LakeStreamError
from lakestream.kinesis.texts import text_of
from lakestream.settings import registry_settings
from lakestream_api import LakeStream, RecordFormat

logger = logging.getLogger(__name__)

_PATIENCE = 5.0
"""Seconds for which somebody waits for schemas: a driver has more."""


def shown_by(document: LakeStream | None) -> Callable[[bytes], bytes]:
    """A function that gives a record's text; or its bytes, if it has none.

    Args:
        document: says of what format the records are; None: of any that nothing has to be asked for.
    """
    if document is None or document.spec.format is not RecordFormat.AVRO:
        return text_of
    try:
        registry = GlueRegistry(registry_settings(document.spec.source.kinesis), _PATIENCE)
    except LakeStreamError as error:
        _warn(error)
        return text_of
    return _InAvro(AvroTexts(registry.version)).text_of


class _InAvro:
    """Records whose schemas have to be asked for: to whom that is denied, they are shown as they came."""

    def __init__(self, texts: AvroTexts) -> None:
        self._texts: AvroTexts | None = texts

    def text_of(self, data: bytes) -> bytes:
        if self._texts is None:
            return data
        try:
            text, reason = self._texts.text_of(data)
        except LakeStreamError as error:
            self._texts = None
            _warn(error)
            return data
        return text if reason is None else data


def _warn(error: LakeStreamError) -> None:
    logger.warning("records are shown as they came, without their schemas: %s", error)
