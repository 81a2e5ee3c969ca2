"""Opaque tokens: shard iterators and list tokens carry their own state, so the server keeps none for them."""

from __future__ import annotations

import binascii
import hashlib
import hmac
import secrets
from base64 import b64decode, b64encode

import orjson

KEY_BYTES = 16
_MAC_BYTES = 16

Payload = list[str | int | None]


class TokenSealer:
    """Seals a payload against change, with a key that lives as long as the server, or longer where it is given."""

    def __init__(self, key: bytes | None = None) -> None:
        self._key = key or secrets.token_bytes(KEY_BYTES)

    def seal(self, payload: Payload) -> str:
        """The token of a payload."""
        body = orjson.dumps(payload)
        return b64encode(self._mac(body) + body).decode()

    def open(self, token: str) -> Payload | None:
        """The payload of a token, or None if this server did not make it."""
        try:
            raw = b64decode(token, validate=True)
        except (binascii.Error, ValueError):
            return None
        mac, body = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
        if not hmac.compare_digest(mac, self._mac(body)):
            return None
        payload: Payload = orjson.loads(body)
        return payload

    def _mac(self, body: bytes) -> bytes:
        return hashlib.blake2s(body, digest_size=_MAC_BYTES, key=self._key).digest()
