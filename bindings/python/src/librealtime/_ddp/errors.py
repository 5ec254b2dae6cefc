"""Failures of Meteor clients."""

from __future__ import annotations

from typing import Any, Literal

from .._core.errors import RealtimeError

__all__ = ["DDPError"]

Kind = Literal["server", "stub", "invocation_failed", "disconnected", "timeout", "closed"]


class DDPError(RealtimeError):
    """A call or a subscription failed. Stubs raise it, too.

    :ivar kind: ``"server"`` if the server sent it, ``"stub"`` if a stub raised it,
        ``"invocation_failed"`` for a call that must not be repeated and whose connection was lost,
        ``"timeout"``, ``"disconnected"`` or ``"closed"``.
    :ivar code: what programs compare, such as ``"not-found"`` or ``"403"``.
    :ivar reason: a sentence for people, whose wording depends on the server's version; None for
        none.
    :ivar details: further data; None for none.
    """

    def __init__(
        self,
        code: str,
        reason: str | None = None,
        details: Any = None,
        *,
        kind: Kind = "stub",
        status: int = -50,
    ) -> None:
        super().__init__(status, f"{reason or code} [{code}]")
        self.kind = kind
        self.code = code
        self.reason = reason
        self.details = details
