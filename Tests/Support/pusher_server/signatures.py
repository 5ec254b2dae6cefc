"""Signatures and encryption of the Pusher protocol."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import time
from collections.abc import Mapping

#: How far the clock of a publisher may be from ours, in seconds.
CLOCK_TOLERANCE_S = 600


def sign(secret: str, *parts: str) -> str:
    """The hexadecimal HMAC-SHA256 of the parts, joined by colons."""
    return hmac.new(secret.encode(), ":".join(parts).encode(), hashlib.sha256).hexdigest()


def channel_auth(
    key: str, secret: str, socket_id: str, channel: str, channel_data: str | None = None
) -> str:
    """The `auth` of a subscription."""
    data = [] if channel_data is None else [channel_data]
    return f"{key}:{sign(secret, socket_id, channel, *data)}"


def user_auth(key: str, secret: str, socket_id: str, user_data: str) -> str:
    """The `auth` of a sign-in."""
    return f"{key}:{sign(secret, socket_id, '', 'user', '', user_data)}"


def matches(auth: object, wanted: str) -> bool:
    return isinstance(auth, str) and hmac.compare_digest(auth.encode(), wanted.encode())


def publish_error(
    key: str, secret: str, method: str, path: str, query: Mapping[str, str], body: bytes
) -> str | None:
    """Why a request to the publish API is refused; None if its signature is valid."""
    if query.get("auth_key") != key:
        return "Unknown auth_key"
    if query.get("auth_version") != "1.0":
        return "Unsupported auth_version"
    try:
        late = abs(time.time() - float(query.get("auth_timestamp", "")))
    except ValueError:
        return "Invalid auth_timestamp"
    if late > CLOCK_TOLERANCE_S:
        return "Timestamp expired"
    if body and query.get("body_md5") != hashlib.md5(body).hexdigest():
        return "Invalid body_md5"
    pairs = sorted((k.lower(), v) for k, v in query.items() if k != "auth_signature")
    text = "\n".join([method, path, "&".join(f"{k}={v}" for k, v in pairs)])
    if not matches(query.get("auth_signature"), sign(secret, text)):
        return f"Invalid signature: you should have sent HmacSHA256Hex({text!r}, your_secret)"
    return None


def shared_secret(master_key: bytes, channel: str) -> bytes:
    """The key of an encrypted channel."""
    return hashlib.sha256(channel.encode() + master_key).digest()


def encrypt(key: bytes, text: str, nonce: bytes | None = None) -> str:
    """The `data` of an encrypted event. Needs PyNaCl."""
    from nacl.secret import SecretBox

    nonce = nonce or os.urandom(24)
    sealed = SecretBox(key).encrypt(text.encode(), nonce).ciphertext
    fields = {"nonce": nonce, "ciphertext": sealed}
    return json.dumps({name: base64.b64encode(value).decode() for name, value in fields.items()})
