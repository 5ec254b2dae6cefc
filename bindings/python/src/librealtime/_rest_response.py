"""The answer to a request."""

from __future__ import annotations

import json
import re
from typing import Any

from ._abi import rt_status
from ._response import Headers
from .exceptions import HTTPStatusError


class RESTResponse:
    """The answer to a request, of whatever status; decoded when it is asked.

    :ivar status_code: for example 200.
    :ivar reason_phrase: for example ``OK``; ``""`` in HTTP/2, which has none.
    :ivar headers: a mapping that does not care about case.
    :ivar url: where the answer came from, after redirects, without user and password.
    :ivar http_version: ``"HTTP/1.1"`` or ``"HTTP/2"``.
    :ivar attempts: how often the request was tried.
    :ivar retry_after: what the answer's Retry-After asks for, in seconds; None without.
    """

    def __init__(
        self,
        status_code: int,
        reason_phrase: str,
        headers: Headers,
        url: str,
        http_version: int,
        attempts: int = 1,
        retry_after: float | None = None,
        content: bytes = b"",
    ) -> None:
        self.status_code = status_code
        self.reason_phrase = reason_phrase
        self.headers = headers
        self.url = url
        self.http_version = {10: "HTTP/1.0", 11: "HTTP/1.1"}.get(
            http_version, f"HTTP/{http_version // 10}"
        )
        self.attempts = attempts
        self.retry_after = retry_after
        self._content = content

    @property
    def content(self) -> bytes:
        """The body, decoded from its content coding."""
        return self._content

    @property
    def encoding(self) -> str:
        """The charset of the Content-Type, ``utf-8`` without one that Python knows."""
        found = re.search(r"charset=\"?([\w.:-]+)", self.headers.get("Content-Type", ""), re.I)
        name = found[1] if found else "utf-8"
        try:
            "".encode(name)
        except LookupError:
            return "utf-8"
        return name

    @property
    def text(self) -> str:
        """The body as text; what is ill-formed is replaced by U+FFFD."""
        return self.content.decode(self.encoding, "replace")

    def json(self, **options: Any) -> Any:
        """The body's JSON, by the standard library; `options` are those of ``json.loads``."""
        return json.loads(self.content, **options)

    @property
    def is_success(self) -> bool:
        """Whether the status is one of 200 to 299."""
        return 200 <= self.status_code < 300

    def raise_for_status(self) -> RESTResponse:
        """Returns itself when the status is one of 200 to 299.

        :raises HTTPStatusError: for another.
        """
        if self.is_success:
            return self
        place = self.url.partition("?")[0]
        message = f"{place} answered {self.status_code} {self.reason_phrase}".rstrip()
        raise HTTPStatusError(rt_status.ERROR_HTTP_STATUS, message, self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} [{self.status_code} {self.reason_phrase}]>"
