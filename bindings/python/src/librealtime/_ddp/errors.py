"""Failures of Meteor clients."""

from __future__ import annotations

from typing import Any, Literal

from .._core.abi import rt_status
from .._core.errors import RealtimeError

__all__ = ["DDPError", "DDPModelError"]

Kind = Literal["server", "stub", "invocation_failed", "disconnected", "timeout", "closed"]


class DDPError(RealtimeError):
    """A call or a subscription failed. Stubs raise it, too.

    :ivar kind: where it comes from: ``"server"``; ``"stub"``; ``"invocation_failed"`` for a call
        that must not be repeated and whose connection was lost; ``"disconnected"`` for good;
        ``"timeout"``; ``"closed"``.
    :ivar code: what programs compare, such as ``"not-found"`` or ``"403"``.
    :ivar code_is_number: whether the code is a number, as old servers send it.
    :ivar reason: a sentence for people, whose wording depends on the server's version; None for
        none.
    :ivar details: further data; None for none.
    :ivar source: the server's whole error as JSON text; ``""`` for other errors.
    """

    def __init__(
        self,
        code: str,
        reason: str | None = None,
        details: Any = None,
        *,
        kind: Kind = "stub",
        code_is_number: bool = False,
        source: str = "",
        status: int = -50,
    ) -> None:
        super().__init__(status, f"{reason or code} [{code}]")
        self.kind = kind
        self.code = code
        self.code_is_number = code_is_number
        self.reason = reason
        self.details = details
        self.source = source


def closed(reason: str) -> DDPError:
    """The error of what ends with a client, or because the program gave it up."""
    return DDPError("closed", reason, kind="closed", status=rt_status.ERROR_CLOSED)


class DDPModelError(RealtimeError, ValueError):
    """A document does not fit its model: a field is missing, or of another type. Or an object that
    is saved does not: its document could not be read again."""
