"""The response to a request."""

from __future__ import annotations

import codecs
import encodings
import json
import re
from collections.abc import Iterator
from datetime import timedelta
from encodings.aliases import aliases
from http.client import responses
from typing import Any

from .._core.abi import rt_status
from .._core.errors import InvalidState, RealtimeError
from .._core.response import Headers, Opened, version_name, visible
from .decoders import LineDecoder, SizeDecoder, TextDecoder

#: The modules of `encodings` that a server may choose. Python has others, such as unicode_escape
#: and punycode, whose time grows with the square of the length.
_CHARACTER_SETS = re.compile(
    r"ascii|utf_8(_sig)?|utf_(16|32)(_[bl]e)?|latin_1|iso8859_\d\d?|cp\d{3,4}|koi8_[rtu]|kz1048"
    r"|ptcp154|hp_roman8|mac_\w{1,9}|tis_620|gb2312|gbk|gb18030|hz|big5|big5hkscs|johab|euc_kr"
    r"|(euc|shift)_jis(_2004|x0213)?|euc_jp|iso2022_(jp(_1|_2|_2004|_3|_ext)?|kr)"
)


class RESTResponse:
    """The response to a request, whatever its status; the body is decoded on access.

    :ivar status_code: for example 200.
    :ivar reason_phrase: for example ``OK``; ``""`` in HTTP/2, which has none.
    :ivar headers: a case-insensitive mapping.
    :ivar url: the URL of the response, after redirects, without user and password.
    :ivar http_version: ``"HTTP/1.1"`` or ``"HTTP/2"``.
    :ivar opened: an ``Opened``: the response's head and details of the connection, with its
        addresses and TLS version.
    :ivar attempts: how often the request was tried.
    :ivar retry_after: the response's Retry-After in seconds; None without one.
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
        opened: Opened | None = None,
    ) -> None:
        self.status_code = status_code
        self.reason_phrase = reason_phrase
        self.headers = headers
        self.url = url
        self.http_version = version_name(http_version)
        self.opened = opened
        self.attempts = attempts
        self.retry_after = retry_after
        self._content = content
        self._encoding: str | None = None
        self._elapsed: timedelta | None = None
        #: The library's message for a status other than 200 to 299; "" before the end.
        self._refusal = ""

    @property
    def content(self) -> bytes:
        """The body, decoded from its content coding."""
        return self._content

    @property
    def elapsed(self) -> timedelta:
        """The time from the call to the end of the response, including waits and all attempts.

        :raises InvalidState: while the response is arriving.
        """
        if self._elapsed is None:
            raise InvalidState(rt_status.ERROR_STATE, "the response has not ended yet")
        return self._elapsed

    @property
    def cookies(self) -> dict[str, str]:
        """Names and values of cookies in the response; the client does not store them."""
        lines = (line.partition(";")[0] for line in self.headers.get_all("Set-Cookie"))
        pairs = (line.partition("=") for line in lines)
        return {name.strip(): value.strip() for name, found, value in pairs if found}

    @property
    def encoding(self) -> str:
        """The encoding for reading the body as text; may be set.

        The charset of the Content-Type if Python knows it as a character encoding, else ``utf-8``.
        Other codecs such as ``punycode``, ``utf-7`` and ``unicode_escape`` are not used.
        """
        if self._encoding is None:
            self._encoding = _charset(self.headers.get("Content-Type", "")) or "utf-8"
        return self._encoding

    @encoding.setter
    def encoding(self, name: str) -> None:
        self._encoding = name

    @property
    def text(self) -> str:
        """The body as text; U+FFFD replaces invalid bytes."""
        return self.content.decode(self.encoding, "replace")

    def json(self, **options: Any) -> Any:
        """The body parsed as JSON; `options` are those of the standard ``json.loads``."""
        return json.loads(self.content, **options)

    def read(self) -> bytes:
        """The whole body."""
        return self.content

    def iter_bytes(self, chunk_size: int | None = None) -> Iterator[bytes]:
        """The body in pieces, as they arrive or of `chunk_size` bytes each."""
        decoder = SizeDecoder(chunk_size)
        for data in self._pieces():
            yield from decoder.decode(data)
        yield from decoder.flush()

    def iter_text(self) -> Iterator[str]:
        """The body as text, in pieces that end between characters."""
        decoder = TextDecoder(self.encoding)
        for data in self._pieces():
            yield from decoder.decode(data)
        yield from decoder.flush()

    def iter_lines(self) -> Iterator[str]:
        """The lines of the body, without their ends; LF or CR LF ends a line."""
        decoder = LineDecoder()
        for text in self.iter_text():
            yield from decoder.decode(text)
        yield from decoder.flush()

    def _pieces(self) -> Iterator[bytes]:
        yield self.content

    @property
    def is_success(self) -> bool:
        """Whether the status is 200 to 299."""
        return 200 <= self.status_code < 300

    @property
    def is_redirect(self) -> bool:
        """Whether the status is 300 to 399, as with ``max_redirects=0``."""
        return 300 <= self.status_code < 400

    @property
    def is_client_error(self) -> bool:
        """Whether the status is 400 to 499."""
        return 400 <= self.status_code < 500

    @property
    def is_server_error(self) -> bool:
        """Whether the status is 500 to 599."""
        return 500 <= self.status_code < 600

    @property
    def is_error(self) -> bool:
        """Whether the status is 400 to 599."""
        return 400 <= self.status_code < 600

    def raise_for_status(self) -> RESTResponse:
        """Returns the response itself if its status is 200 to 299.

        :raises HTTPStatusError: for any other status.
        """
        if self.is_success:
            return self
        message = self._refusal
        if not message:
            place = self.url.partition("?")[0]
            message = f"{place} answered {self.status_code} {visible(self.reason_phrase)}".rstrip()
        raise HTTPStatusError(rt_status.ERROR_HTTP_STATUS, message, self)

    def __repr__(self) -> str:
        # Not the server's reason, which may quote a credential.
        known = responses.get(self.status_code, "")
        return f"<{type(self).__name__} [{self.status_code} {known}".rstrip() + "]>"


def _charset(content_type: str) -> str | None:
    found = re.search(r"charset=\"?([\w.:-]+)", content_type, re.I)
    if found is None:
        return None
    known = encodings.normalize_encoding(found[1]).lower().replace(".", "_")
    # Python caches each name that it looks up, so look up only these.
    if not _CHARACTER_SETS.fullmatch(aliases.get(known, known)):
        return None
    try:
        codecs.lookup(found[1])
    except (LookupError, ValueError):
        return None
    return found[1]


class HTTPStatusError(RealtimeError):
    """A response whose status is not 200 to 299; raised by ``raise_for_status``.

    :ivar response: the response.
    """

    response: RESTResponse

    def __init__(self, status: int, message: str, response: RESTResponse) -> None:
        super().__init__(status, message)
        self.response = response
