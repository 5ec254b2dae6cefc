"""Prints random cases of Pusher's signatures and encryption, made by the official PyPI `pusher` and
by PyNaCl.

    build/venv/bin/python Tests/Support/pusher_cases.py [COUNT [SEED]]

`Tests/Support/pusher_cases.jsonl` has the first fifty; Tests/WireTests/Pusher compares the library
with them. To try others, write them to a file and name it in PUSHER_CASES.
"""

from __future__ import annotations

import base64
import json
import random
import sys
from typing import Any

import pusher
from pusher.crypto import encrypt

CHANNEL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-=@,.;"


class Encoder(json.JSONEncoder):
    """Leaves text as it is, so that the signed bytes are not only ASCII."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "ensure_ascii": False})


def text(draw: random.Random, most: int) -> str:
    """Any characters, mostly ASCII."""
    limits = [0x7F, 0x7F, 0x7FF, 0xD7FF, 0x10FFFF]
    points = (draw.randint(0, draw.choice(limits)) for _ in range(draw.randint(0, most)))
    return "".join(chr(point) for point in points if not 0xD800 <= point <= 0xDFFF)


def case(draw: random.Random) -> dict[str, str]:
    master = draw.randbytes(32)
    key = "".join(draw.choices(CHANNEL, k=draw.randint(1, 40)))
    app_secret = text(draw, 40)
    server = pusher.Pusher(
        app_id="1",
        key=key,
        secret=app_secret,
        encryption_master_key_base64=base64.b64encode(master).decode(),
        json_encoder=Encoder,
    )
    name = "".join(draw.choices(CHANNEL, k=draw.randint(1, 60)))
    socket_id = f"{draw.randrange(10**9)}.{draw.randrange(10**9)}"
    user = {"user_id": text(draw, 20) or "u", "user_info": {"name": text(draw, 20)}}
    presence = server.authenticate(f"presence-{name}", socket_id, user)
    signed_in = server.authenticate_user(
        socket_id, {"id": f"u-{draw.randrange(10**9)}", "name": text(draw, 20)}
    )
    secret = server.authenticate(f"private-encrypted-{name}", socket_id)["shared_secret"]
    plain = text(draw, 60)
    event = encrypt(f"private-encrypted-{name}", plain, master, draw.randbytes(24))
    return {
        "key": key,
        "secret": app_secret,
        "name": name,
        "socket_id": socket_id,
        "private_auth": server.authenticate(f"private-{name}", socket_id)["auth"],
        "channel_data": presence["channel_data"],
        "presence_auth": presence["auth"],
        "user_data": signed_in["user_data"],
        "user_auth": signed_in["auth"],
        "master_key": base64.b64encode(master).decode(),
        "shared_secret": secret.decode(),
        "plain": plain,
        "event": json.dumps(event),
    }


def cases(count: int, seed: int) -> str:
    draw = random.Random(seed)
    return "".join(json.dumps(case(draw)) + "\n" for _ in range(count))


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    sys.stdout.write(cases(count, seed))


if __name__ == "__main__":
    main()
