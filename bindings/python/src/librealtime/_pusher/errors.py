"""Failures of Pusher connections."""

from __future__ import annotations

from .._core.errors import RealtimeError

__all__ = ["PushError", "PusherError", "SignInError", "SubscriptionError", "TriggerError"]


class PusherError(RealtimeError):
    """What the server reported by ``pusher:error``; passed to ``on_error``. The connection stays.

    :ivar code: Pusher's error code, such as 4301 for a rejected client event; None without one.
    :ivar channel: the name of the channel that the server named; None without one.
    """

    def __init__(
        self, status: int, message: str, code: int | None = None, channel: str | None = None
    ) -> None:
        super().__init__(status, message)
        self.code = code
        self.channel = channel


class SubscriptionError(RealtimeError):
    """A subscription failed: it was not authorized, or the server refused it.

    :ivar channel: the name of the channel.
    :ivar http_status: of the authorization response, or in the server's refusal; 0 without one.
    :ivar body: of the authorization response, or the data of the server's refusal, as text.
    :ivar response: the authorization response, with ``status_code``, ``headers`` and ``body``; None
        without one.
    """

    def __init__(
        self, status: int, message: str, channel: str = "", http_status: int = 0, body: str = ""
    ) -> None:
        super().__init__(status, message)
        self.channel = channel
        self.http_status = http_status
        self.body = body


class SignInError(RealtimeError):
    """The user's sign-in failed: it was not authorized, or the server refused it.

    :ivar http_status: of the authorization response; 0 without one.
    :ivar body: of the authorization response, or the data of the server's refusal, as text.
    :ivar response: the authorization response, with ``status_code``, ``headers`` and ``body``; None
        without one.
    """

    def __init__(self, status: int, message: str, http_status: int = 0, body: str = "") -> None:
        super().__init__(status, message)
        self.http_status = http_status
        self.body = body


class TriggerError(RealtimeError):
    """A client event was dropped, because too many of its channel wait; see ``client_event_queue``.

    :ivar channel: the name of the channel.
    :ivar event: the name of the event.
    """

    def __init__(self, status: int, message: str, channel: str = "", event: str = "") -> None:
        super().__init__(status, message)
        self.channel = channel
        self.event = event


class PushError(RealtimeError):
    """A call of ``pusher.push`` failed.

    :ivar http_status: of the response that refused it; 0 without one.
    :ivar body: of that response, as text.
    """

    def __init__(self, status: int, message: str, http_status: int = 0, body: str = "") -> None:
        super().__init__(status, message)
        self.http_status = http_status
        self.body = body
