"""What Spreadbot connections logged, behind all tests of them."""

from bot import SECRET, Bot
from harness import Suite, expect

#: Of what was logged, so that there is something to look at.
SIGNS = (
    "trying WebSocket",
    "trying SSE",
    "trying long poll",
    "asking for a WebSocket again",
    "refreshing the tokens",
    "the tokens are refreshed",
    "without TLS",
    "error text:",
    "sent text:",
)


def add(suite: Suite) -> None:
    suite.add("spreadbot, no credential is in a log", log_is_discreet)


def log_is_discreet() -> None:
    """Neither the log, nor an error's text of any client so far has a credential in it: each of
    the tests' has this word."""
    said = "".join(Bot.said)
    for sign in SIGNS:
        expect(sign in said, f"{sign!r} is not in what the clients said")
    guilty = [line for line in Bot.said if SECRET in line]
    expect(not guilty, f"{len(guilty)} lines, the first: {guilty[:1]}")
