"""The cases of Meteor clients; otherwise see table.py."""

from __future__ import annotations

from cases import Result
from table import LIMITED, LOST, MIB, NONE, PYTHON, TOO_LARGE, each

DDP = ("ddp",)

PYTHON |= {
    "ddp-malformed": DDP,
    "ddp-unknown-messages": (),
    "ddp-unknown-ids": (),
    "ddp-confirms-again": (),
    "ddp-nested": (),
    "ddp-nested-deep": DDP,
    "ddp-pings": (),
    "ddp-expensive-texts": DDP,
    "ddp-reconnect": (),
    "ddp-late-ready": (),
    "ddp-new-fields": (),
    "ddp-cleared-fields": (),
    "ddp-wide-document": (),
    "ddp-large-value": (),
    "ddp-added-before": (),
    "ddp-moved-before": (),
    "ddp-removed": (),
    "ddp-many-changed": (),
    "ddp-few-changed": (),
    "ddp-sorted": (),
    "ddp-sorted-objects": (),
    "ddp-large-documents": DDP,
    "ddp-drops": DDP,
    "ddp-versions": DDP,
    "sockjs-bad-array": DDP,
    "sockjs-messages": (),
}


def messages() -> None:
    """What has no meaning, is nested too deep, or wants an answer."""
    for attack in ("malformed", "nested-deep", "unknown-ids"):
        each(DDP, f"ddp-{attack}", cpu="none", seconds=1)
    for attack in ("unknown-messages", "confirms-again", "nested", "pings"):
        each(DDP, f"ddp-{attack}", NONE, cpu="none")
    unsent = {"unsent": MIB}
    full = {"status": ("RT_ERROR_BUFFER_FULL",), "options": unsent, "cpu": "none"}
    each(DDP, "ddp-pings-unread", **full)


def is_full(result: Result) -> list[str]:
    """More documents than `max_document_bytes` end the client."""
    last = [one["text"] for one in result["outcomes"]][-1:]
    met = last and "the documents of the server take more than 8 MiB" in last[0]
    return [] if met else [f"the documents were not refused; the client ended with {last}"]


def documents() -> None:
    each(DDP, "ddp-same-document", cpu="none", messages=1, seconds=1)
    few: dict[str, object] = {"options": {"documents": 8 * MIB}, "ends": True, "also": is_full}
    each(DDP, "ddp-small-documents", **few, seconds=4)
    each(DDP, "ddp-collections", **few, seconds=4)
    each(DDP, "ddp-large-documents", **few, seconds=3)
    # First the connection is lost, as the server wants it.
    held = {**few, "status": LOST}
    each(DDP, "ddp-before-ready", **held, seconds=4)
    each(DDP, "ddp-late-ready", messages=200_000, cpu="none", seconds=3)
    # The first outcome is the loss of the first connection.
    again: dict[str, object] = {"status": LOST, "outcomes": 2, "cpu": "none", "seconds": 3}
    again["kept_mib"] = 41
    each(DDP, "ddp-reconnect", **again)


def lives_on(result: Result) -> list[str]:
    """A live query that takes too long ends, but not its client."""
    kinds = [one["kind"] for one in result["outcomes"]]
    return [] if kinds == ["last", "query"] else [f"the outcomes are {kinds}"]


def work() -> None:
    """Work that the protocol allows, until the last document is there, or a limit is met."""
    done: dict[str, object] = {"status": ("RT_OK", "RT_ERROR_TOO_LARGE"), "cpu": "none"}
    plain = ("new-fields", "cleared-fields", "wide-document", "large-value", "added-before")
    plain += ("moved-before", "removed", "many-changed")
    large = ("text", "list", "objects", "escapes", "unknown", "ready", "updated", "result")
    large += ("error", "cleared")
    for attack in (*plain, *(f"large-{name}" for name in large)):
        each(DDP, f"ddp-{attack}", **done)
    # What it answers fails, not the connection.
    each(DDP, "ddp-values-result", status=("RT_OK",), cpu="none")
    each(DDP, "ddp-few-changed", options={"interval": 0, "indexes": 1}, **done)
    by_n = {"with": '{"sort":{"n":1}}'}
    for attack in ("sorted", "sorted-objects", "many-changed"):
        each(DDP, f"ddp-{attack}", options=by_n, **done)
    each(DDP, "ddp-moved-before", options={"indexes": 1}, **done)
    each(DDP, "ddp-added-before", options={"indexes": 1}, kept_mib=20, **done)
    each(DDP, "ddp-removed", options={"indexes": 1}, kept_mib=41, **done)
    find = {"find": '{"n":{"$regex":"(x+x+)+y"}}'}
    ended: dict[str, object] = {"status": ("RT_OK",), "outcomes": 2, "cpu": "none"}
    each(DDP, "ddp-expensive-texts", options=find, also=lives_on, **ended)
    each(DDP, "ddp-sorted", options={"inserts": 8000, "indexes": 1}, **done)
    floods = ("empty-texts", "numbers", "short-unknown", "ready-flood", "nosub-flood")
    floods += ("result-flood", "updated-flood", "error-flood")
    for attack in floods:
        each(DDP, f"ddp-{attack}", cpu="none")


def memory() -> None:
    # A message below every limit needs more memory than the process can have.
    few: dict[str, object] = {"options": {"memory": 24}, "cpu": "none"}
    each(DDP, "ddp-large-value", status=TOO_LARGE, text="no memory", **few)


def connections() -> None:
    # A connection that is lost at once is not a success: the delays grow.
    rare: dict[str, object] = {"cpu": "all", "quiet": True, "seconds": 3, "long_seconds": 3}
    each(DDP, "ddp-drops", status=LOST, max_connections=20, **rare)
    each(DDP, "ddp-versions", text="version negotiation failed", status=("RT_OK",), **rare)
    for attack in ("hangs-up", "resets", "refusals", "silent"):
        each(DDP, attack, max_connections=12, **rare)
    for attack in ("ws-huge-frame", "ws-masked", "garbage", "ws-head"):
        each(DDP, attack, max_connections=12, status=(*LIMITED, "RT_ERROR_HANDSHAKE"), seconds=2)
    each(DDP, "ws-byte-fragments", NONE, cpu="none")


def polls() -> None:
    fallback = {"sockjs": 1}
    # First comes a WebSocket, which is refused.
    rare: dict[str, object] = {"options": fallback, "cpu": "all", "quiet": True}
    rare |= {"seconds": 2, "long_seconds": 2}
    refused = ("RT_ERROR_HTTP_STATUS",)
    for attack in ("garbage", "bad-array", "nested", "nothing", "opens"):
        each(DDP, f"sockjs-{attack}", status=refused, max_requests=30, **rare)
    for attack in ("no-messages", "heartbeats"):
        each(DDP, f"sockjs-{attack}", status=refused, max_requests=40, **rare)
    each(DDP, "sockjs-messages", options=fallback, status=refused, cpu="none")
    small = {**fallback, "max": MIB}
    each(DDP, "sockjs-endless", options=small, status=refused, max_requests=30, seconds=2)


for group in (messages, documents, work, memory, connections, polls):
    group()
