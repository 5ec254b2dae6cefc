"""The cases of Pusher clients; otherwise see table.py."""

from __future__ import annotations

from table import each

PUSHER = ("pusher",)


def answers() -> None:
    # Floods of messages that the client answers; the server never reads.
    full = {"status": ("RT_ERROR_BUFFER_FULL",), "text": "does not read", "cpu": "none"}
    each(PUSHER, "pusher-pings", **full)
    each(PUSHER, "pusher-successes", **full)
    each(PUSHER, "pusher-long-successes", cpu="none")


def messages() -> None:
    for attack in ("empty-texts", "numbers", "errors", "unknown-events", "internal-events"):
        each(PUSHER, f"pusher-{attack}", cpu="none")
    subscribed = {"options": {"channel": "open"}, "cpu": "none"}
    for attack in ("data", "objects", "escapes", "watchlist", "error"):
        each(PUSHER, f"pusher-large-{attack}", **subscribed)


def memory() -> None:
    # A message below every limit needs more memory than the process can have.
    few = {"options": {"channel": "open", "memory": 24}, "cpu": "none"}
    each(PUSHER, "pusher-large-data", status=("RT_ERROR_TOO_LARGE",), text="no memory", **few)


def members() -> None:
    present = {"options": {"channel": "presence-a"}, "cpu": "none"}
    for attack in ("members", "small-members", "ids", "hash"):
        each(PUSHER, f"pusher-{attack}", **present)


def encrypted() -> None:
    many = {"channel": "private-encrypted-", "channels": 300}
    each(PUSHER, "pusher-undecryptable", options=many, cpu="none", max_requests=2000, seconds=5)
    one = {"channel": "private-encrypted-", "channels": 1}
    each(PUSHER, "pusher-large-box", options=one, cpu="none")


for group in (answers, messages, memory, members, encrypted):
    group()
